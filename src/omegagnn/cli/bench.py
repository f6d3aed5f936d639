"""``omegagnn bench``: measure this machine, ours and the peers in one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.console import note, show, show_json, show_table
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.errors import WrongUse

if TYPE_CHECKING:
    import torch

    from omegagnn.benchmark.cases import Case

app = verb_app()


@app.command()
def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Small cases on the embedded data set: minutes, mostly compiling.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Only cases and sweeps whose name contains this; may be repeated."),
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="Print the names of cases and sweeps and stop.")] = False,
    sweep: Annotated[
        bool, typer.Option(help="Also fit how time grows with edges, nodes, layers, channels, runs.")
    ] = True,
    output: Annotated[Path | None, typer.Option(help="Write the result as JSON.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the ratios as SVG.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads for everybody.")] = 1,
    device_name: Annotated[str, typer.Option("--device", help="cpu or cuda; a GPU has cases of its own.")] = "cpu",
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Time whole training steps and single operations of ours and of the peers: same model, same data, same run.

    Peers are PyTorch Geometric in several forms, also compiled by torch.compile, and DGL where it is installed. Outputs are
    compared before anything is timed. Times are medians over rounds in which all take turns. docs/benchmarks.md says what
    is compared with what.
    """
    import time

    import torch

    from omegagnn.benchmark.cases import Bench, quickest
    from omegagnn.benchmark.measure import ceilings
    from omegagnn.benchmark.plans import peer_cases
    from omegagnn.benchmark.sweeps import sweeps
    from omegagnn.training.environment import choose_device
    from omegagnn.training.memory import memory_kept

    started = time.perf_counter()
    device = choose_device(device_name)
    chosen = _choose(quick, sweep, only or [], device)
    if list_names:
        for name in chosen:
            show(name)
        return
    _check_places(output, picture)
    torch.set_num_threads(threads)
    with memory_kept(device):  # as in training, for the peers too
        limits = ceilings(device)
        run = Bench(quick, data_root, limits, note, device)
        cases = list(peer_cases(run, chosen.__contains__))
        grown = sweeps(quick, note, chosen.__contains__, device)
    result: dict[str, Any] = {
        "command": _command(quick, only or [], sweep, threads, device_name),
        "environment": _environment(device),
        "seconds": time.perf_counter() - started,
        "copy_gb_per_s": limits.bytes_per_s / 1e9,
        "product_gflop_per_s": limits.flops_per_s / 1e9,
        "cases": [case.to_dict() for case in cases],
        "quickest_peers": [{"name": best.name, "peer": best.peer, "ratio": best.ratio} for best in quickest(cases)],
        "alone": run.alone,
        "left_out": run.left_out,
        "sweeps": [found.to_dict() for found in grown],
    }
    _write(output, picture, cases, result)
    if as_json:
        show_json(result)
        return
    _show(cases, result)


def _choose(quick: bool, sweep: bool, only: list[str], device: torch.device) -> list[str]:
    """Return the names of cases and sweeps that contain one of the texts, or all of them where there is none."""
    from omegagnn.benchmark import plans, sweeps

    names = [*plans.plans(quick, device.type), *(sweeps.plans(quick, device) if sweep else ())]
    for text in only:
        if not any(text.lower() in name.lower() for name in names):
            raise WrongUse(f"No case or sweep has {text!r} in its name: see `omegagnn bench --list`.")
    return [name for name in names if not only or any(text.lower() in name.lower() for text in only)]


def _environment(device: torch.device) -> dict[str, Any]:
    """Return versions and machine, DGL's version among them where it was imported."""
    import sys

    from omegagnn.training.environment import describe

    made = describe(device)
    if "dgl" in sys.modules:
        made["versions"]["dgl"] = sys.modules["dgl"].__version__
    return made


def _check_places(*places: Path | None) -> None:
    """Refuse before minutes of measuring what could not be written after them."""
    for place in places:
        if place is not None and (place.is_dir() or not place.absolute().parent.is_dir()):
            raise WrongUse(f"{place} cannot be written: name a file in a folder that exists.")


def _command(quick: bool, only: list[str], sweep: bool, threads: int, device: str) -> str:
    import shlex

    parts = ["omegagnn bench", "--quick" if quick else "", *(f"--only {shlex.quote(text)}" for text in only)]
    parts += ["" if sweep else "--no-sweep", f"--threads {threads}" if threads > 1 else ""]
    parts += ["" if device == "cpu" else f"--device {device}"]
    return " ".join(part for part in parts if part)


def _write(output: Path | None, picture: Path | None, cases: list[Case], result: dict[str, Any]) -> None:
    import json

    from omegagnn.benchmark.picture import ratio_chart
    from omegagnn.files import write_bytes

    if output is not None:
        write_bytes(output, (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode())
    if picture is None:
        return
    if all(case.against_ourselves for case in cases):
        note(f"No peer was timed, so {picture} was not drawn.")
        return
    made, names = result["environment"], ("omegagnn", "torch", "torch_geometric", "dgl")
    versions = ", ".join(f"{name} {made['versions'][name]}" for name in names if name in made["versions"])
    where = f"{made['processor']} CPU, {made['threads']} thread(s)" if made["device"] == "cpu" else made["device"]
    machine = f"{where}; {versions}; median times"
    write_bytes(picture, ratio_chart(cases, machine).encode())


def _show(cases: list[Case], result: dict[str, Any]) -> None:
    rows = [
        [
            case.name, case.peer, _number(case.ours_ms, 2), _number(case.ours_spread_ms, 2), _number(case.peer_ms, 2),
            _number(case.peer_spread_ms, 2), _number(case.ratio, 2), _number(case.ours_mib, 0), _number(case.peer_mib, 0),
            _number(case.fraction_of_floor, 2), _number(case.peer_fraction_of_floor, 2), _number(case.compile_s, 0),
        ]
        for case in cases
    ]  # fmt: skip
    columns = (
        "case", "peer", "ours ms", "±", "peer ms", "± ", "ratio", "ours MiB", "peer MiB", "of limit", "peer's", "compile s",
    )  # fmt: skip
    show_table("Ours against the peers", columns, rows, right=columns[2:])
    for best in result["quickest_peers"]:
        show(f"{best['name']}: {best['ratio']:.2f} times as fast as the quickest peer, {best['peer']}")
    for found in result["sweeps"]:
        show(f"{found['name']}: exponent {found['exponent']:.2f}")
    for ours in result["alone"]:
        show(f"{ours['name']}: ours takes {ours['ours_ms']:.1f} ms and {ours['ours_mib']:.0f} MiB; no peer runs")
    for missing in result["left_out"]:
        show(f"{missing['peer']}: {missing['reason']}")
    show(f"copy {result['copy_gb_per_s']:.1f} GB/s, products {result['product_gflop_per_s']:.0f} GFLOP/s in float32")


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"

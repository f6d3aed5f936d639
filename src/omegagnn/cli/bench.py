"""``omegagnn bench``: measure this machine, ours and the peers in one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.console import note, show, show_json, show_table
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.errors import WrongUse

if TYPE_CHECKING:
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

    from omegagnn.benchmark.cases import Bench, peer_cases, quickest
    from omegagnn.benchmark.measure import ceilings
    from omegagnn.benchmark.sweeps import sweeps

    started = time.perf_counter()
    chosen = _choose(quick, sweep, only or [])
    if list_names:
        for name in chosen:
            show(name)
        return
    _check_places(output, picture)
    torch.set_num_threads(threads)
    limits = ceilings()
    run = Bench(quick, data_root, limits, note)
    cases = list(peer_cases(run, chosen.__contains__))
    grown = sweeps(quick, note, chosen.__contains__)
    result: dict[str, Any] = {
        "command": _command(quick, only or [], sweep, threads),
        "environment": _environment(),
        "seconds": time.perf_counter() - started,
        "copy_gb_per_s": limits.bytes_per_s / 1e9,
        "product_gflop_per_s": limits.flops_per_s / 1e9,
        "cases": [case.to_dict() for case in cases],
        "quickest_peers": [{"name": best.name, "peer": best.peer, "ratio": best.ratio} for best in quickest(cases)],
        "left_out": run.left_out,
        "sweeps": [found.to_dict() for found in grown],
    }
    _write(output, picture, cases, result)
    if as_json:
        show_json(result)
        return
    _show(cases, result)


def _choose(quick: bool, sweep: bool, only: list[str]) -> list[str]:
    """Return the names of cases and sweeps that contain one of the texts, or all of them where there is none."""
    from omegagnn.benchmark import cases, sweeps

    names = [*cases.plans(quick), *(sweeps.plans(quick) if sweep else ())]
    for text in only:
        if not any(text.lower() in name.lower() for name in names):
            raise WrongUse(f"No case or sweep has {text!r} in its name: see `omegagnn bench --list`.")
    return [name for name in names if not only or any(text.lower() in name.lower() for text in only)]


def _environment() -> dict[str, Any]:
    """Return versions and machine, DGL's version among them where it was imported."""
    import sys

    import torch

    from omegagnn.training.environment import describe

    made = describe(torch.device("cpu"))
    if "dgl" in sys.modules:
        made["versions"]["dgl"] = sys.modules["dgl"].__version__
    return made


def _check_places(*places: Path | None) -> None:
    """Refuse before minutes of measuring what could not be written after them."""
    for place in places:
        if place is not None and (place.is_dir() or not place.absolute().parent.is_dir()):
            raise WrongUse(f"{place} cannot be written: name a file in a folder that exists.")


def _command(quick: bool, only: list[str], sweep: bool, threads: int) -> str:
    import shlex

    parts = ["omegagnn bench", "--quick" if quick else "", *(f"--only {shlex.quote(text)}" for text in only)]
    parts += ["" if sweep else "--no-sweep", f"--threads {threads}" if threads > 1 else ""]
    return " ".join(part for part in parts if part)


def _write(output: Path | None, picture: Path | None, cases: list[Case], result: dict[str, Any]) -> None:
    import json

    from omegagnn.benchmark.picture import ratio_chart
    from omegagnn.training.checkpoint import write_bytes

    if output is not None:
        write_bytes(output, (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode())
    if picture is None:
        return
    if all(case.against_ourselves for case in cases):
        note(f"No peer was timed, so {picture} was not drawn.")
        return
    made, names = result["environment"], ("omegagnn", "torch", "torch_geometric", "dgl")
    versions = ", ".join(f"{name} {made['versions'][name]}" for name in names if name in made["versions"])
    machine = f"{made['processor']} CPU, {made['threads']} thread(s); {versions}; median times"
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
    for missing in result["left_out"]:
        show(f"{missing['peer']}: {missing['reason']}")
    show(f"copy {result['copy_gb_per_s']:.1f} GB/s, 64-column products {result['product_gflop_per_s']:.0f} GFLOP/s")


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"

"""``omegagnn bench``: measure this machine, ours and the peers in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omegagnn.cli.console import note, show, show_json, show_table
from omegagnn.cli.frame import AsJson, DataRoot, verb_app

app = verb_app()


@app.command()
def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Small cases on the embedded data set: about a minute.")
    ] = False,
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

    Outputs are compared before anything is timed. Times are medians over rounds in which all take turns.
    """
    import json

    import torch

    from omegagnn.benchmark.cases import peer_cases
    from omegagnn.benchmark.measure import ceilings
    from omegagnn.benchmark.picture import ratio_chart
    from omegagnn.benchmark.sweeps import sweeps
    from omegagnn.training.checkpoint import write_bytes
    from omegagnn.training.environment import describe

    torch.set_num_threads(threads)
    limits = ceilings()
    cases = list(peer_cases(quick, data_root, limits, note))
    grown = sweeps(quick, note) if sweep else []
    result: dict[str, Any] = {
        "command": "omegagnn bench" + (" --quick" if quick else ""),
        "environment": describe(torch.device("cpu")),
        "copy_gb_per_s": limits.bytes_per_s / 1e9,
        "product_gflop_per_s": limits.flops_per_s / 1e9,
        "cases": [case.to_dict() for case in cases],
        "sweeps": [found.to_dict() for found in grown],
    }
    if output is not None:
        write_bytes(output, (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode())
    if picture is not None:
        write_bytes(picture, ratio_chart(cases).encode())
    if as_json:
        show_json(result)
        return
    _show_cases([case.to_dict() for case in cases])
    for found in grown:
        show(f"{found.name}: exponent {found.exponent:.2f}")
    show(f"copy {limits.bytes_per_s / 1e9:.1f} GB/s, 64-column products {limits.flops_per_s / 1e9:.0f} GFLOP/s")


def _show_cases(cases: list[dict[str, Any]]) -> None:
    def number(value: float | None, digits: int) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    rows = [
        [
            case["name"], case["peer"], number(case["ours_ms"], 2), number(case["peer_ms"], 2), number(case["ratio"], 2),
            number(case["ours_mib"], 0), number(case["peer_mib"], 0), number(case["fraction_of_floor"], 2),
        ]
        for case in cases
    ]  # fmt: skip
    columns = ("case", "peer", "ours ms", "peer ms", "ratio", "ours MiB", "peer MiB", "of limit")
    show_table("Ours against the peers", columns, rows, right=columns[2:])

"""``omegagnn doctor``: what is installed, what runs where and why, and whether it works."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omegagnn.cli.console import note, show, show_json, show_table
from omegagnn.cli.frame import AsJson, DataRoot, verb_app

app = verb_app()


@app.command()
def doctor(
    runs_dir: Annotated[
        Path | None, typer.Option("--runs-dir", help="Where runs are kept [default: $OMEGAGNN_RUNS, else ./runs].")
    ] = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Look at the installation and try it out: about ten seconds. Exit code 0: all works; 1: something is broken."""
    from omegagnn.training.doctor import examine, summary, to_dict

    checks = list(examine(data_root, runs_dir))
    if as_json:
        show_json(to_dict(checks))
    else:
        show_table("", ("check", "", "found"), [[c.name, c.status, c.found] for c in checks], cut_first=("found",))
        for check in checks:
            if check.remedy is not None:
                show(f"{check.name}: {check.remedy}")
        note(summary(checks))
    if any(check.status == "broken" for check in checks):
        raise typer.Exit(1)

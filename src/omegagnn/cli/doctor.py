"""``omegagnn doctor``: what is installed, what runs where and why, and whether it works."""

from __future__ import annotations

import typer

from omegagnn.cli.console import note, show, show_json
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.cli.runs import RunsDir

app = verb_app()


@app.command()
def doctor(
    runs_dir: RunsDir = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Look at the installation and try it out: about ten seconds. Exit code 0: all works; 1: something is broken."""
    from omegagnn.training.doctor import examine, summary, to_dict

    checks = list(examine(data_root, runs_dir))
    if as_json:
        show_json(to_dict(checks))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:  # not a drawn table: what was found must not be cut where the terminal is narrow
            show(f"{check.name.ljust(width)}  {check.status.ljust(7)}  {check.found}")
            if check.remedy is not None:
                show(f"{' ' * width}           → {check.remedy}")
        note(summary(checks))
    if any(check.status == "broken" for check in checks):
        raise typer.Exit(1)

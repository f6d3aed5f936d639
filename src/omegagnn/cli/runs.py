"""``omegagnn runs``: list, show, export and delete what was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omegagnn.cli.console import note, show, show_json, show_table
from omegagnn.cli.frame import AsJson, verb_app

app = verb_app()

RunsDir = Annotated[
    Path | None, typer.Option("--runs-dir", help="Where runs are kept [default: $OMEGAGNN_RUNS, else ./runs].")
]
Run = Annotated[str, typer.Argument(help="Name of a run, its beginning, or 'last'.")]


def open_journal(runs_dir: Path | None) -> Any:
    """Return the journal of a folder, which must be there."""
    from omegagnn.training.fit import runs_folder
    from omegagnn.training.journal import Journal

    return Journal(runs_folder(runs_dir), create=False)


@app.command("list")
def list_runs(runs_dir: RunsDir = None, as_json: AsJson = False) -> None:
    """Show all runs, newest first."""
    runs = open_journal(runs_dir).runs()
    if as_json:
        show_json(
            [{key: run[key] for key in ("run", "created", "status", "dataset", "model", "protocol")} for run in runs]
        )
        return
    rows = [[run["run"], run["created"], run["status"], run["protocol"], f"{run['seconds']:.1f}"] for run in runs]
    show_table("Runs", ["run", "created", "status", "protocol", "seconds"], rows, right=["seconds"])


@app.command("show")
def show_run(
    run: Run,
    protocol: Annotated[str, typer.Option(help="A rule of selection, or all.")] = "all",
    runs_dir: RunsDir = None,
    as_json: AsJson = False,
) -> None:
    """Show a run's configuration and its test score under one rule or under all of them, side by side."""
    from omegagnn.training.fit import Result
    from omegagnn.training.protocol import PROTOCOLS, NotApplicable

    journal = open_journal(runs_dir)
    result = Result(journal, journal.run(run)["run"])
    found: dict[str, Any] = {}
    for name in PROTOCOLS if protocol == "all" else [protocol]:
        try:
            found[name] = (result.test(name), result.outcome(name).optimistic)
        except NotApplicable as reason:
            if protocol != "all":
                raise
            found[name] = (str(reason), PROTOCOLS[name].optimistic)
    if as_json:
        scores = {name: None if isinstance(test, str) else test.to_dict() for name, (test, _) in found.items()}
        show_json({"run": result.run, "status": result.row["status"], "test": scores})
        return
    row = result.row
    show(f"{result.run}  ({row['status']}, {row['created']}, {row['seconds']:.1f} s, {row['parameters']} parameters)")
    show(result.config.to_yaml().rstrip())
    rows = [
        [name, "optimistic" if optimistic else "validation", str(test)] for name, (test, optimistic) in found.items()
    ]
    show_table("Test score in per cent", ["rule", "selects on", "mean"], rows)


@app.command()
def export(
    output: Annotated[Path, typer.Argument(help="File to write: .parquet, .csv or .json.")], runs_dir: RunsDir = None
) -> None:
    """Write every recorded epoch of every run into one file."""
    open_journal(runs_dir).export(output)
    note(f"wrote {output}")


@app.command()
def delete(run: Run, runs_dir: RunsDir = None) -> None:
    """Delete a run: its rows in the journal and its folder."""
    import shutil

    journal = open_journal(runs_dir)
    name = journal.run(run)["run"]
    journal.delete(name)
    shutil.rmtree(journal.folder / name, ignore_errors=True)
    note(f"deleted {name}")

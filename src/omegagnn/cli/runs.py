"""``omegagnn runs``: list, show, export and delete what was trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.completion import protocol_names, run_names
from omegagnn.cli.console import note, show, show_json, show_table
from omegagnn.cli.frame import AsJson, verb_app
from omegagnn.errors import WrongUse

if TYPE_CHECKING:
    from omegagnn.training.fit import Result
    from omegagnn.training.prediction import Predictor

app = verb_app()

MOST_SPLITS = 10  # that are shown one by one
FORMATS = ("parquet", "csv", "json", "tensorboard")

RunsDir = Annotated[
    Path | None, typer.Option("--runs-dir", help="Where runs are kept [default: $OMEGAGNN_RUNS, else ./runs].")
]
Run = Annotated[
    str, typer.Argument(help="Name of a run, its beginning, or 'last'.", autocompletion=run_names, show_default=False)
]


def open_journal(runs_dir: Path | None) -> Any:
    """Return the journal of a folder, which must be there."""
    from omegagnn.training.fit import runs_folder
    from omegagnn.training.journal import Journal

    return Journal(runs_folder(runs_dir), create=False)


def open_predictor(run: str, protocol: str | None, runs_dir: Path | None) -> tuple[Predictor, Result | None, str]:
    """Return the trained networks of a run or of a folder, by the rule asked for, with their run in the journal and name."""
    from dataclasses import replace

    from omegagnn.files import CONFIG, PICKLES
    from omegagnn.training.evaluation import kept_rule
    from omegagnn.training.fit import Result
    from omegagnn.training.prediction import Predictor

    folder = Path(run)
    if (folder / CONFIG).is_file() or folder.suffix.lower() in PICKLES:
        predictor = Predictor.from_pretrained(folder)
        return replace(predictor, rule=protocol or predictor.rule), None, folder.resolve().name
    journal = open_journal(runs_dir)
    result = Result(journal, journal.run(run)["run"])
    return replace(result.predictor, rule=protocol or kept_rule(result)), result, result.run


@app.command("list")
def list_runs(runs_dir: RunsDir = None, as_json: AsJson = False) -> None:
    """Show all runs, newest first."""
    runs = open_journal(runs_dir).runs()
    if as_json:
        keys = ("run", "created", "status", "dataset", "model", "preset", "protocol")
        show_json([{key: run[key] for key in keys} for run in runs])
        return
    columns = ["run", "created", "status", "preset", "protocol", "seconds"]
    rows = [_row(run) for run in runs]
    show_table("Runs", columns, rows, right=["seconds"], cut_first=["preset"])


def _row(run: dict[str, Any]) -> list[str]:
    created, seconds = run["created"][:16].replace("T", " "), f"{run['seconds']:.1f}"
    return [run["run"], created, run["status"], run["preset"] or "", run["protocol"], seconds]


@app.command("show")
def show_run(
    run: Run,
    protocol: Annotated[str, typer.Option(help="A rule of selection, or all.", autocompletion=protocol_names)] = "all",
    runs_dir: RunsDir = None,
    as_json: AsJson = False,
) -> None:
    """Show a run's configuration and its test score under one rule or under all of them, side by side."""
    from omegagnn.training.fit import Result
    from omegagnn.training.protocol import PROTOCOLS, NotApplicable

    journal = open_journal(runs_dir)
    result = Result(journal, journal.run(run)["run"])
    if protocol != "all" and protocol not in PROTOCOLS:
        raise WrongUse(f"There is no protocol {protocol!r}: choose one of all, {', '.join(PROTOCOLS)}.")
    found: dict[str, Any] = {}
    for name in PROTOCOLS if protocol == "all" else [protocol]:
        try:
            found[name] = result.test(name)
        except NotApplicable as reason:
            if protocol != "all":
                raise
            found[name] = str(reason)
    row = result.row
    if as_json:
        scores = {name: None if isinstance(test, str) else test.to_dict() for name, test in found.items()}
        facts = {key: row[key] for key in ("status", "dataset", "model", "preset", "preset_hash", "config_hash")}
        show_json({"run": result.run, **facts, "split_hashes": result.split_hashes, "test": scores})
        return
    show(f"{result.run}  ({row['status']}, {row['created']}, {row['seconds']:.1f} s, {row['parameters']} parameters)")
    show(result.config.to_yaml().rstrip())
    if row["preset"] is not None:
        show(f"preset: {row['preset']}  # {row['preset_hash']}")
    show(f"configuration hash: {row['config_hash']}")
    for line in _splits(journal.members(result.run)):
        show(line)
    columns = ["rule", "selects on", "mean", "sd", "low", "high", "runs", "reason"]
    rows = [[name, _looks_at(name), *_cells(test)] for name, test in found.items()]
    show_table("Test score in per cent", columns, rows, right=columns[2:7], cut_first=["reason"])


def _splits(members: list[dict[str, Any]]) -> list[str]:
    """Return a line a split; of many splits the first and the last, since ``--json`` has them all."""
    lines = [f"split {name}: {digest}" for name, digest in {m["split"]: m["split_hash"] for m in members}.items()]
    if len(lines) <= MOST_SPLITS:
        return lines
    return [lines[0], f"... {len(lines) - 2} splits between; --json has the hash of each", lines[-1]]


def _looks_at(rule: str) -> str:
    from omegagnn.training.protocol import PROTOCOLS

    return "test (optimistic)" if PROTOCOLS[rule].optimistic else "validation"


def _cells(test: Any) -> list[str]:
    if isinstance(test, str):
        return ["", "", "", "", "", test]
    return [*(f"{value:.2f}" for value in (test.mean, test.sd, test.low, test.high)), str(test.n), ""]


@app.command()
def export(
    output: Annotated[
        Path,
        typer.Argument(help="File to write: .parquet, .csv or .json; a folder for tensorboard.", show_default=False),
    ],
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="parquet, csv, json or tensorboard [default: what the name ends in]."),
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="Only this run, for tensorboard [default: all].", autocompletion=run_names)
    ] = None,
    runs_dir: RunsDir = None,
) -> None:
    """Write every recorded epoch of every run into one file, or as event files for TensorBoard."""
    if file_format is not None and file_format not in FORMATS:
        raise WrongUse(f"There is no format {file_format!r}: choose one of {', '.join(FORMATS)}.")
    journal = open_journal(runs_dir)
    if file_format == "tensorboard":
        from omegagnn.training.tensorboard import export_tensorboard

        names = [row["run"] for row in journal.runs()] if run is None else [journal.run(run)["run"]]
        for folder in export_tensorboard(journal, output, names):
            note(f"wrote {folder}")
        return
    if run is not None:
        raise WrongUse("--run belongs to --format tensorboard: a table holds all runs, by name.")
    if file_format is not None and output.suffix != f".{file_format}":
        raise WrongUse(f"{output.name} must end in .{file_format}, as --format says.")
    journal.export(output)
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

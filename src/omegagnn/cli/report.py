"""``omegagnn report``: everything about a run, several beside each other, or a study, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omegagnn.cli.completion import run_and_study_names
from omegagnn.cli.console import note, show, show_json
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.cli.runs import RunsDir, open_journal
from omegagnn.errors import WrongUse

app = verb_app()


@app.command()
def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...|STUDY",
            help="Name of a run, its beginning, or 'last', of several to see them beside each other; or of a study.",
            autocompletion=run_and_study_names,
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write the page [default: report.html in the folder of the run, the runs or the study].",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
    storage: Annotated[
        str | None, typer.Option(metavar="URL|FILE", help="The study's storage, as tune had it.")
    ] = None,
    runs_dir: RunsDir = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page that needs no network, about a run: scores by every rule, classes, curves, depth, ω, time, data.

    The networks are measured anew on the run's own data, which must be there. Of a study of `omegagnn tune` the page shows the
    budget, the winner and every trial. The path of the page is printed.
    """
    import webbrowser

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise WrongUse(f"--out {out} is no name for a page: end it in .html.")
    if storage is not None or _is_study(runs, runs_dir):
        names, path = _about_study(runs, out, storage, runs_dir)
    else:
        names, path = _about_runs(runs, out, runs_dir, data_root)
    if as_json:
        show_json({"runs": names, "report": str(path), "bytes": path.stat().st_size})
    else:
        show(str(path))
    if open_page and not webbrowser.open(path.as_uri()):
        note("no browser could be started: open the page yourself, or leave out the attempt with --no-open.")


def _is_study(names: list[str], runs_dir: Path | None) -> bool:
    """Whether one of the names is that of a study that was begun here, which then must be the only one."""
    from omegagnn.training.fit import runs_folder
    from omegagnn.tuning.study import STUDIES

    found = [name for name in names if (runs_folder(runs_dir) / STUDIES / name).is_dir()]
    if found and len(names) > 1:
        raise WrongUse(f"{found[0]} is a study, which has a page of its own: name it alone.")
    return bool(found)


def _about_study(
    names: list[str], out: Path | None, storage: str | None, runs_dir: Path | None
) -> tuple[list[str], Path]:
    from omegagnn.report import write_study_report
    from omegagnn.training.fit import runs_folder
    from omegagnn.tuning.study import find_study

    if len(names) > 1:
        raise WrongUse("--storage belongs to a study, which has a page of its own: name it alone.")
    study = find_study(names[0], runs_folder(runs_dir), storage)
    path = (out or study.folder / "report.html").absolute()
    write_study_report(study, path)
    return [study.name], path


def _about_runs(
    runs: list[str], out: Path | None, runs_dir: Path | None, data_root: Path | None
) -> tuple[list[str], Path]:
    from omegagnn.report import gather, write_report
    from omegagnn.training.fit import Result

    journal = open_journal(runs_dir)
    names = list(dict.fromkeys(journal.run(run)["run"] for run in runs))
    folder = journal.folder / names[0] if len(names) == 1 else journal.folder
    path = (out or folder / "report.html").absolute()
    found = []
    for name in names:
        note(f"looking at {name}")
        found.append(gather(Result(journal, name), data_root))
    write_report(found, path)
    return names, path

"""``omegagnn report``: everything about a run, or several beside each other, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omegagnn.cli.completion import run_names
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
            metavar="RUN...",
            help="Name of a run, its beginning, or 'last'; of several to see them beside each other.",
            autocompletion=run_names,
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write the page [default: report.html in the folder of the run, or of the runs].",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = False,
    runs_dir: RunsDir = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page about a run that needs no network: scores by every rule, classes, curves, depth, ω, time, data.

    The networks are measured anew on the run's own data, which must be there. The path of the page is printed.
    """
    import webbrowser

    from omegagnn.report import gather, write_report
    from omegagnn.training.fit import Result

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise WrongUse(f"--out {out} is no name for a page: end it in .html.")
    journal = open_journal(runs_dir)
    names = list(dict.fromkeys(journal.run(run)["run"] for run in runs))
    folder = journal.folder / names[0] if len(names) == 1 else journal.folder
    path = (out or folder / "report.html").absolute()
    found = []
    for name in names:
        note(f"looking at {name}")
        found.append(gather(Result(journal, name), data_root))
    write_report(found, path)
    if as_json:
        show_json({"runs": names, "report": str(path), "bytes": path.stat().st_size})
    else:
        show(str(path))
    if open_page and not webbrowser.open(path.as_uri()):
        note("no browser could be started: open the page yourself, or leave out the attempt with --no-open.")

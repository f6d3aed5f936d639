"""``omegagnn explore``: the ω explorer as a page in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omegagnn.cli.console import note, show
from omegagnn.cli.frame import verb_app

app = verb_app()


@app.command()
def explore(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write the page [default: in the user cache folder]."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
) -> None:
    """Write the ω explorer, one page that needs no network, and open it.

    On it one chooses or draws a graph, puts an impulse on a node, moves ω and the number of steps, and sees the response,
    its signs, its energy and the spectrum beside those of a GCN. The path of the page is printed.
    """
    import webbrowser

    from omegagnn.data.places import cache_folder
    from omegagnn.errors import WrongUse
    from omegagnn.report import write_explorer

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise WrongUse(f"--out {out} is no name for a page: end it in .html.")
    path = (out or cache_folder() / "explorer.html").absolute()
    write_explorer(path)
    show(str(path))
    if open_page and not webbrowser.open(path.as_uri()):
        note("no browser could be started: open the page yourself, or leave out the attempt with --no-open.")

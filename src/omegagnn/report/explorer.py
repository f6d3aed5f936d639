r"""The ω explorer: a page on which one draws a graph, moves ω and watches :math:`P_ω^L δ`.

Its mathematics is written a second time there, in JavaScript, since a page has no Python; the tests hold its numbers to
those of `omegagnn.analysis`.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from omegagnn.files import write_bytes
from omegagnn.report.page import self_contained

# What is used stands before who uses it.
SCRIPTS = (
    "layout.js", "graphs.js", "spectrum.js", "propagation.js", "colour.js", "address.js", "words.js", "charts.js",
    "graph_view.js", "drawing.js", "panels.js", "explorer.js",
)  # fmt: skip


def explorer_page() -> str:
    """Return the explorer as one HTML page."""
    pieces = files("omegagnn.report") / "explorer_page"

    def text(name: str) -> str:
        return (pieces / name).read_text(encoding="utf-8")

    return self_contained(text("explorer.html"), text("style.css"), [text(name) for name in SCRIPTS])


def write_explorer(path: Path) -> None:
    """Write the explorer to a file, whole or not at all."""
    write_bytes(path, explorer_page().encode())


__all__ = ["explorer_page", "write_explorer"]

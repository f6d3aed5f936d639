"""``omegagnn data``: list, fetch, check, audit and import data sets."""

from __future__ import annotations

from omegagnn.cli.frame import verb_app

app = verb_app()


@app.command("list")
def list_datasets() -> None:
    """Show every known data set."""


@app.command("two")
def two(n: int) -> None:
    """Show every known data set."""
    raise SystemExit(3)

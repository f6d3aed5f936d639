"""The printed numbers: `published.toml` as tables of cells."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as resources

from omegagnn.errors import WrongUse

NOTHING = "-"


@dataclass(frozen=True)
class Cell:
    """A printed number: its text, its value, and its deviation where one is printed."""

    text: str
    value: float
    sd: float | None = None

    def __str__(self) -> str:
        return self.text.replace("±", " ± ")


@dataclass(frozen=True)
class Table:
    """A table of the paper; `rows` holds the texts of the cells, ``-`` where nothing is printed."""

    key: str
    number: int
    label: str
    caption: str
    unit: str
    slips: tuple[str, ...]
    columns: tuple[str, ...]
    rows: dict[str, tuple[str, ...]]

    def cell(self, row: str, column: str) -> Cell | None:
        """Return a number, or None where the paper prints none or has no such row or column."""
        if row not in self.rows or column not in self.columns:
            return None
        text = self.rows[row][self.columns.index(column)]
        return None if text == NOTHING else _cell(text)

    def column(self, column: str) -> dict[str, Cell]:
        """Return the numbers of a column by row, without the gaps."""
        return {row: cell for row in self.rows if (cell := self.cell(row, column)) is not None}


@cache
def published() -> dict[str, Table]:
    """Return every table by its key, in the order of the paper."""
    text = resources("omegagnn.paper").joinpath("published.toml").read_text(encoding="utf-8")
    return {key: parse_table(key, facts) for key, facts in tomllib.loads(text).items()}


def published_table(key: str) -> Table:
    """Return a table by its key."""
    if key not in published():
        raise WrongUse(f"The paper has no table {key!r} here: choose one of {', '.join(published())}.")
    return published()[key]


def parse_table(key: str, facts: dict[str, object]) -> Table:
    """Read a table of the file; a row that is too short or too long is an error."""
    head, *lines = str(facts["cells"]).strip("\n").splitlines()
    columns = tuple(head.split("|", 1)[1].split())
    rows: dict[str, tuple[str, ...]] = {}
    for line in lines:
        name, bar, cells = line.partition("|")
        name, values = name.strip(), tuple(cells.split())
        if not bar or len(values) != len(columns) or name in rows:
            raise ValueError(f"Row {name!r} of table {key} must be unique and have {len(columns)} cells behind a bar.")
        rows[name] = values
    slips = facts.get("slips", [])
    assert isinstance(slips, list)
    return Table(
        key,
        int(str(facts["number"])),
        str(facts["label"]),
        str(facts["caption"]),
        str(facts["unit"]),
        tuple(str(slip) for slip in slips),
        columns,
        rows,
    )


def _cell(text: str) -> Cell:
    value, _, sd = text.replace(",", "").partition("±")
    return Cell(text, float(value), float(sd) if sd else None)

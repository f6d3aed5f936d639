"""What a verb shows: results on stdout, notes and progress on stderr; plain lines where nobody watches a terminal.

rich is imported only where it draws, and obeys ``NO_COLOR`` and ``TERM=dumb``.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal


def show(line: str) -> None:
    """Print a result."""
    print(line)


def show_json(result: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a result as one line of JSON; NaN and infinity, which JSON has not, become null."""
    print(json.dumps(_finite(result), ensure_ascii=False, allow_nan=False))


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    cut_first: Sequence[str] = (),
) -> None:
    """Print rows as a drawn table on a terminal, as tab-separated lines elsewhere.

    Columns named in `right` are flush right; those in `cut_first` give way where the terminal is narrow.
    """
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", header_style="bold underline", box=None, padding=(0, 1, 0, 0))
    for position, column in enumerate(columns):
        side: Literal["left", "right"] = "right" if column in right else "left"
        # A header may be cut, a number never.
        needed = None if column in cut_first else max((len(row[position]) for row in rows), default=None)
        table.add_column(column, justify=side, overflow="ellipsis", no_wrap=column not in cut_first, min_width=needed)
    for row in rows:
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    Console().print(table)


def note(line: str) -> None:
    """Tell something that is not the result."""
    print(line, file=sys.stderr)


@contextmanager
def progress(description: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes how much was done since its last call: a bar on a terminal, a line each tenth elsewhere.

    >>> with progress("counting", total=2) as advance:
    ...     advance(1)
    ...     advance(1)
    """
    if not sys.stderr.isatty():
        yield _lines(description, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task(description, total=total)
        yield lambda amount: bars.advance(task, amount)


def _lines(description: str, total: float) -> Callable[[float], None]:
    done, told = 0.0, 0

    def advance(amount: float) -> None:
        nonlocal done, told
        done += amount
        tenth = int(10 * done / total) if total else 10
        if tenth > told:
            told = tenth
            note(f"{description}: {10 * tenth} %")

    return advance


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

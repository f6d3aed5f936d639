"""Numbers and tables as Markdown text, the same bytes for the same numbers everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from omegagnn.training.metrics import Summary

NOTHING = "–"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], text: Sequence[int] = (0,)) -> str:
    """Return a table; the columns numbered in `text` are flush left, the others right."""
    marks = [":---" if place in text else "---:" for place in range(len(columns))]
    lines = [columns, marks, *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def mean(found: Summary | None) -> str:
    """Return a mean alone."""
    return NOTHING if found is None else f"{found.mean:.1f}"


def interval(found: Summary | None) -> str:
    """Return a mean with its 95 % interval; of one run, which has none, the value."""
    if found is None:
        return NOTHING
    if found.n == 1:
        return f"{found.mean:.1f} (one run)"
    return f"{found.mean:.1f} ({found.low:.1f} to {found.high:.1f})"


def half_width(found: Summary | None) -> str:
    """Return a mean with half the width of its 95 % interval."""
    if found is None:
        return NOTHING
    return f"{found.mean:.1f}" if found.n == 1 else f"{found.mean:.1f} ± {(found.high - found.low) / 2:.1f}"


def code(text: str) -> str:
    """Return a command as code."""
    return f"`{text}`"


__all__ = ["NOTHING", "code", "half_width", "interval", "mean", "table"]

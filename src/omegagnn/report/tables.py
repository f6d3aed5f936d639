"""Tables and lists as HTML, from rows of text; a script of the page lets columns be sorted, without it they stand as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

SENTENCE = 40  # characters from which a cell may go over several lines
SHADES = 10  # of a cell, classes s0 to s9 of the style sheet


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", text: Sequence[int] = (0,)) -> str:
    """Return a table; the columns at the positions `text` are words, the others numbers."""
    head = "".join(f'<th scope="col"{_words(k, text)}>{escape(name)}</th>' for k, name in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(f"<td{_words(k, text, cell)}>{escape(cell)}</td>" for k, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="scroll"><table class="sortable">{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def shaded_table(names: Sequence[str], counts: Sequence[Sequence[int]], caption: str) -> str:
    """Return a square table of counts, rows true and columns predicted, each cell as dark as its share of the row."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = []
    for name, row in zip(names, counts, strict=True):
        whole = sum(row) or 1
        shares = [(count, count / whole) for count in row]
        cells = "".join(
            f'<td class="s{round((SHADES - 1) * share)}" title="{100 * share:.1f} % of {escape(name)}">{count:,}</td>'
            for count, share in shares
        )
        body.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        f'<div class="scroll"><table class="confusion"><caption>{escape(caption)}</caption>'
        f'<thead><tr><th scope="col">true ↓ as →</th>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    )


def facts(entries: Mapping[str, str]) -> str:
    """Return names with what they are, side by side."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in entries.items())
    return f"<dl>{items}</dl>"


def section(title: str, *parts: str) -> str:
    """Return a part of a page with its heading; nothing where there is nothing to show."""
    inner = "\n".join(part for part in parts if part)
    return f"<section><h2>{escape(title)}</h2>\n{inner}</section>" if inner else ""


def charts(*figures: str) -> str:
    """Return figures side by side where there is room."""
    inner = "".join(figures)
    return f'<div class="charts">{inner}</div>' if inner else ""


def folded(title: str, content: str) -> str:
    """Return something that opens with a click, and is open on paper."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>" if content else ""


def _words(position: int, text: Sequence[int], cell: str = "") -> str:
    if position not in text:
        return ""
    return ' class="words sentence"' if len(cell) > SENTENCE else ' class="words"'


__all__ = ["charts", "facts", "folded", "section", "shaded_table", "table"]

"""Charts as SVG text: lines with bands, intervals, points, a map of values. Colours are classes of the page's style sheet.

Every chart is a ``<figure>`` with its title as caption and, for a screen reader, as label; the numbers behind it stand in a
table of the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape

WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 38
LETTER = 11  # height of the smallest text
SMALLEST = 1e-30
LEVELS = 16  # colours of a map, classes v0 to v15
HUES = 10  # colours of series and classes, classes c0 to c9


@dataclass(frozen=True)
class Series:
    """A curve: values at some places, with the ends of a band around it where there is one."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    hue: int = 0
    joined: bool = True


@dataclass(frozen=True)
class Axis:
    """The values of one axis: its label, its scale, and what it must reach."""

    label: str
    logarithmic: bool = False
    reach: Sequence[float] = ()
    tight: bool = False  # ends where the values end
    whole: bool = False  # has ticks at whole numbers only
    named: Sequence[float] = ()  # has its ticks here


@dataclass(frozen=True)
class Mark:
    """A level that is drawn across a chart, with its name."""

    value: float
    name: str
    vertical: bool = False


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float
    logarithmic: bool
    whole: bool
    named: Sequence[float] = ()

    def __call__(self, value: float) -> float:
        if self.logarithmic:
            value = math.log10(max(value, SMALLEST))
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Return places and labels of about five ticks, or of those that were named."""
        if self.named:
            return [(self(value), f"{value:g}") for value in self.named]
        if self.logarithmic:
            step = max(1, math.ceil((self.high - self.low) / 5))
            exponents = range(math.ceil(self.low), math.floor(self.high) + 1, step)
            return [(self(10.0**k), _power(k)) for k in exponents]
        rough = (self.high - self.low) / 4
        magnitude = 10 ** math.floor(math.log10(rough))
        step_size = min((magnitude * factor for factor in (1, 2, 2.5, 5, 10)), key=lambda each: abs(each - rough))
        step_size = max(1, round(step_size)) if self.whole else step_size
        first, last = math.ceil(self.low / step_size - 1e-9), math.floor(self.high / step_size + 1e-9)
        return [(self(k * step_size), f"{round(k * step_size, 10):,g}") for k in range(first, last + 1)]


def line_chart(title: str, series: Sequence[Series], x: Axis, y: Axis, marks: Sequence[Mark] = ()) -> str:
    """Draw curves over a common axis; values that are not finite, or not positive on a logarithmic axis, are left out."""
    shown = [_finite(each, y.logarithmic) for each in series]
    shown = [each for each in shown if each.x]
    if not shown:
        return ""
    levels = [mark for mark in marks if math.isfinite(mark.value) and not mark.vertical]
    across = _scale([v for each in shown for v in each.x], x, LEFT, WIDTH - RIGHT)
    heights = [v for each in shown for v in (*each.y, *each.low, *each.high)] + [mark.value for mark in levels]
    up = _scale(heights, y, HEIGHT - BOTTOM, TOP)
    parts = [*_frame(across, up, x.label, y.label)]
    for mark in marks:
        if mark.vertical:
            parts.append(f'<path class="mark" d="M{across(mark.value)} {TOP}V{HEIGHT - BOTTOM}"/>')
            anchor, aside = ("end", -4) if across(mark.value) > WIDTH / 2 else ("start", 4)
            parts.append(_text(across(mark.value) + aside, HEIGHT - BOTTOM - 6, mark.name, anchor, "mark-text"))
    for mark in levels:
        parts.append(f'<path class="mark" d="M{LEFT} {up(mark.value)}H{WIDTH - RIGHT}"/>')
        above = up(mark.value) - TOP > LETTER  # else the name would be cut off at the top
        parts.append(_text(WIDTH - RIGHT, up(mark.value) + (-4 if above else LETTER), mark.name, "end", "mark-text"))
    for each in shown:
        parts += _curve(each, across, up)
    return figure(title, parts, WIDTH, HEIGHT, [(each.name, each.hue) for each in series if each.name])


def interval_chart(title: str, rows: Sequence[tuple[str, float, float, float]], label: str) -> str:
    """Draw a value with the ends of its interval for each row."""
    if not rows:
        return ""
    names = [name if len(name) <= 30 else f"{name[:29]}…" for name, *_ in rows]
    start, step = 16 + 6.6 * max(map(len, names)), 26
    height = TOP + step * len(rows) + BOTTOM
    across = _scale([v for _, *values in rows for v in values], Axis(label), start, WIDTH - 24)
    parts = []
    for place, name in across.ticks():
        parts.append(f'<path class="grid" d="M{place} {TOP}V{height - BOTTOM}"/>')
        parts.append(_text(place, height - BOTTOM + 16, name, "middle", "tick"))
    for k, ((full, value, low, high), name) in enumerate(zip(rows, names, strict=True)):
        y = TOP + step * (k + 0.5)
        parts.append(_text(start - 10, y + 4, name, "end", "tick"))
        parts.append(f'<path class="curve c{k % HUES}" d="M{across(low)} {y}H{across(high)}"/>')
        told = f"{escape(full)}: {value:.2f}, {low:.2f} to {high:.2f}"
        parts.append(
            f'<circle class="dot c{k % HUES}" cx="{across(value)}" cy="{y}" r="4.5"><title>{told}</title></circle>'
        )
    parts.append(_text((start + WIDTH - 24) / 2, height - 4, label, "middle", "name"))
    return figure(title, parts, WIDTH, height)


def point_chart(title: str, points: Sequence[tuple[str, int, Sequence[tuple[float, float]]]], label: str) -> str:
    """Draw groups of points, ``(class names of the style sheet, hue, places)``, in one picture."""
    places = [place for *_, group in points for place in group]
    if not places:
        return ""
    size = 400
    across = _scale([a for a, _ in places], Axis(""), 12, WIDTH - 12)
    up = _scale([b for _, b in places], Axis(""), size - 30, 12)
    parts = [f'<path class="grid" d="M12 {size - 30}H{WIDTH - 12}"/>']
    for kind, hue, group in points:
        dots = "".join(f"M{across(a):g} {up(b):g}h0" for a, b in group)
        parts.append(f'<path class="points c{hue % HUES} {kind}" d="{dots}"/>')
    parts.append(_text(WIDTH / 2, size - 8, label, "middle", "name"))
    return figure(title, parts, WIDTH, size)


def map_chart(title: str, rows: Sequence[Sequence[float]], x_label: str, y_label: str) -> str:
    """Draw a table of values as coloured cells, the first row at the bottom, with the scale of its colours."""
    flat = [value for row in rows for value in row]
    if not flat:
        return ""
    low, high = min(flat), max(flat)
    span = (high - low) or 1.0
    columns, inner_width, inner_height = len(rows[0]), WIDTH - LEFT - RIGHT, 210
    wide, tall = inner_width / columns, inner_height / len(rows)
    cells: dict[int, list[str]] = {}
    for k, row in enumerate(rows):
        for j, value in enumerate(row):
            level = min(LEVELS - 1, int(LEVELS * (value - low) / span))
            cells.setdefault(level, []).append(f"M{j} {len(rows) - 1 - k}h1v1h-1z")
    drawn = "".join(f'<path class="v{level}" d="{"".join(shapes)}"/>' for level, shapes in sorted(cells.items()))
    parts = [f'<g transform="translate({LEFT} {TOP}) scale({wide:.5f} {tall:.5f})">{drawn}</g>']
    base, middle = TOP + inner_height, TOP + inner_height / 2
    numbered = sorted({0, (len(rows) - 1) // 2, len(rows) - 1})
    parts += [_text(LEFT - 6, base - (k + 0.5) * tall + 4, str(k + 1), "end", "tick") for k in numbered]
    parts += [_text(LEFT + inner_width / 2, base + 16, x_label, "middle", "name"), _upright(middle, y_label)]
    step = inner_width / LEVELS
    parts += [
        f'<rect class="v{level}" x="{LEFT + level * step:.1f}" y="{base + 26}" width="{step + 0.3:.1f}" height="9"/>'
        for level in range(LEVELS)
    ]
    ends = ((low, "start", 0.0), ((low + high) / 2, "middle", 0.5), (high, "end", 1.0))
    parts += [_text(LEFT + at * inner_width, base + 50, f"{value:.3g}", anchor, "tick") for value, anchor, at in ends]
    return figure(title, parts, WIDTH, base + 56)


def bar_chart(title: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """Draw a bar for each row, ``(name, value, value in words)``."""
    if not rows:
        return ""
    step, largest = 26, max(value for _, value, _ in rows) or 1.0
    start = 14 + 6.6 * max(len(name) for name, *_ in rows)
    room = WIDTH - start - 74
    parts = []
    for k, (name, value, words) in enumerate(rows):
        y, width = TOP + k * step, max(0.0, room * value / largest)
        parts.append(_text(start - 8, y + 16, name, "end", "tick"))
        parts.append(f'<rect class="bar" x="{start}" y="{y + 4}" width="{width:.1f}" height="{step - 9}" rx="2"/>')
        parts.append(_text(start + width + 6, y + 16, words, "start", "tick"))
    return figure(title, parts, WIDTH, TOP + len(rows) * step + 4)


def figure(title: str, parts: Sequence[str], width: float, height: float, key: Sequence[tuple[str, int]] = ()) -> str:
    """Put shapes into a figure; the key names the curves where there are several."""
    names = "".join(f'<span class="k{hue % HUES}">{escape(name)}</span>' for name, hue in key)
    legend = f'<p class="key">{names}</p>' if len(key) > 1 else ""
    drawing = f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    return f"<figure><figcaption>{escape(title)}</figcaption>{legend}{drawing}</figure>"


# --------------------------------------------------------------------------------------------------------------- pieces


def _finite(series: Series, logarithmic: bool) -> Series:
    """Return a series without the places that cannot be drawn."""

    def drawable(value: float) -> bool:
        return math.isfinite(value) and (not logarithmic or value > SMALLEST)

    kept = [k for k, value in enumerate(series.y) if drawable(value)]
    columns = [[values[k] for k in kept] if values else [] for values in (series.x, series.y, series.low, series.high)]
    y = columns[1]
    for end in (2, 3):
        columns[end] = [v if drawable(v) else own for v, own in zip(columns[end], y, strict=False)]
    x, y, low, high = columns
    return replace(series, x=x, y=y, low=low, high=high)


def _scale(values: Sequence[float], axis: Axis, start: float, end: float) -> _Scale:
    low, high = min([*values, *axis.reach]), max([*values, *axis.reach])
    if axis.logarithmic:
        low, high = math.log10(max(low, SMALLEST)), math.log10(max(high, SMALLEST))
        low, high = (low - 0.05, high + 0.05) if axis.named else (math.floor(low + 1e-9), math.ceil(high - 1e-9))
    elif not axis.tight:
        margin = 0.05 * (high - low)
        # What ends at a bound ends there exactly: a share is never beyond 0 or 1.
        low, high = (each if each in axis.reach else each + side * margin for each, side in ((low, -1), (high, 1)))
    if high - low < 1e-12:
        low, high = low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1)
    return _Scale(low, high, start, end, axis.logarithmic, axis.whole, axis.named)


def _frame(across: _Scale, up: _Scale, x_label: str, y_label: str) -> list[str]:
    base = HEIGHT - BOTTOM
    parts = []
    for place, name in up.ticks():
        parts.append(f'<path class="grid" d="M{LEFT} {place}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 6, place + 4, name, "end", "tick"))
    for place, name in across.ticks():
        parts.append(_text(place, base + 16, name, "middle", "tick"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, x_label, "middle", "name"))
    parts.append(_upright((TOP + base) / 2, y_label))
    return parts


def _curve(series: Series, across: Callable[[float], float], up: Callable[[float], float]) -> list[str]:
    parts = []
    if series.low and series.high:
        ends = [*zip(series.x, series.high, strict=True), *reversed([*zip(series.x, series.low, strict=True)])]
        outline = " ".join(f"{across(a)},{up(b)}" for a, b in ends)
        parts.append(f'<polygon class="band c{series.hue % HUES}" points="{outline}"/>')
    places = [(across(a), up(b)) for a, b in zip(series.x, series.y, strict=True)]
    line = " ".join(f"{a},{b}" for a, b in places)
    if series.joined:
        parts.append(f'<polyline class="curve c{series.hue % HUES}" points="{line}"/>')
    if len(places) <= 70:
        for (a, b), x, y in zip(places, series.x, series.y, strict=True):
            told = f"{escape(series.name)} at {x:g}: {y:.4g}".strip()
            parts.append(
                f'<circle class="dot c{series.hue % HUES}" cx="{a}" cy="{b}" r="2.6"><title>{told}</title></circle>'
            )
    return parts


def _text(x: float, y: float, text: str, anchor: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _upright(y: float, text: str) -> str:
    return f'<text class="name" transform="translate(11 {y}) rotate(-90)" text-anchor="middle">{escape(text)}</text>'


def _power(exponent: int) -> str:
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {0: "1", 1: "10"}.get(exponent, f"10{raised}")


__all__ = [
    "Axis", "Mark", "Series", "bar_chart", "figure", "interval_chart", "line_chart", "map_chart", "point_chart",
]  # fmt: skip

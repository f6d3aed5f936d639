"""A diagnosis as a picture: five small charts over the layers, one a measure, as SVG text that needs no library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from omegagnn.analysis.reading import ALIKE, headline

if TYPE_CHECKING:
    from omegagnn.analysis.diagnosis import Diagnosis
    from omegagnn.analysis.layer_measures import LayerMeasures

WIDTH, PANEL_WIDTH, PANEL_HEIGHT, GAP, HEAD = 940, 300, 190, 20, 62
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 30, 26
INK, PALE, LINE, BAND, LIMIT = "#1c2430", "#5b6675", "#2b6cb0", "#2b6cb0", "#c2410c"
SMALLEST = 1e-30

Band = list[tuple[float, float, float]]  # value, lower and upper end at each layer


@dataclass(frozen=True)
class Panel:
    """One chart: a value with its lower and upper end at some layers, and marked levels."""

    title: str
    band: Band
    positions: list[int]
    logarithmic: bool
    limits: Sequence[tuple[float, str]] = ()


def draw(diagnosis: Diagnosis) -> str:
    """Return the picture; where there are several members a band spans them, around ω it spans the channels."""
    panels = chart_panels(diagnosis)
    lines = -(-len(panels) // 3)
    height = HEAD + lines * (PANEL_HEIGHT + GAP)
    title = escape(diagnosis.subject)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        f'<text x="10" y="28" font-size="16" font-weight="600" fill="{INK}">{title}</text>',
        f'<text x="10" y="48" fill="{PALE}">{escape(headline(diagnosis.findings))}</text>',
    ]
    for number, panel in enumerate(panels):
        x, y = number % 3 * (PANEL_WIDTH + GAP), HEAD + number // 3 * (PANEL_HEIGHT + GAP)
        parts.append(f'<g transform="translate({x} {y})">{_drawn(panel, diagnosis.rows[-1].position)}</g>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def page(diagnosis: Diagnosis) -> str:
    """Return picture and reading as a piece of HTML, for a notebook."""
    marks = {"well": "✓", "note": "·", "problem": "✗"}
    items = "".join(f"<li>{marks[each.status]} {escape(str(each))}</li>" for each in diagnosis.findings)
    return f'<div>{draw(diagnosis)}<ul style="list-style:none;padding-left:1em">{items}</ul></div>'


def chart_panels(diagnosis: Diagnosis) -> list[Panel]:
    """Return the charts that the diagnosis has numbers for."""
    rows = diagnosis.rows
    panels = [
        _panel("energy E / E⁰", rows, "energy_ratio", logarithmic=True),
        _panel("mean cosine distance in a component", rows, "within", logarithmic=True, limits=((ALIKE, "alike"),)),
        _panel("effective rank", rows, "rank", logarithmic=False),
        _panel("gradient ‖∂loss/∂f‖", rows, "gradient", logarithmic=True),
    ]
    learnt = [(row.position, row.omega) for row in rows if row.omega is not None]
    if learnt:
        limits = [(0.0, "0"), (1.0, "1: GCN")]
        if diagnosis.thresholds is not None and diagnosis.thresholds.critical < math.inf:
            limits.append((diagnosis.thresholds.critical, "ω₀"))
        band = [(omega.mean, omega.min, omega.max) for _, omega in learnt]
        panels.append(Panel("ω: mean and range of the channels", band, [k for k, _ in learnt], False, limits))
    return [panel for panel in panels if panel.band]


def _panel(
    title: str, rows: Sequence[LayerMeasures], name: str, *, logarithmic: bool, limits: Sequence[tuple[float, str]] = ()
) -> Panel:
    band, positions = [], []
    for row in rows:
        value = getattr(row, name)
        if value is None or not math.isfinite(value) or (logarithmic and value <= SMALLEST):
            continue
        low, high = row.spread.get(name, (value, value))
        band.append((value, max(low, SMALLEST) if logarithmic else low, high))
        positions.append(row.position)
    return Panel(title, band, positions, logarithmic, limits)


def _drawn(panel: Panel, last: int) -> str:
    scale = math.log10 if panel.logarithmic else float
    limits = [(scale(value), label) for value, label in panel.limits]
    ends = [scale(value) for each in panel.band for value in each] + [value for value, _ in limits]
    low, high = min(ends), max(ends)
    if not panel.logarithmic:
        low = min(low, 0.0)
    low, high = (math.floor(low), math.ceil(high)) if panel.logarithmic else (low, high + 0.08 * (high - low))
    if high - low < 1e-9:
        high = low + 1.0

    def x(position: int) -> float:
        return round(LEFT + position / max(1, last) * (PANEL_WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(PANEL_HEIGHT - BOTTOM - (value - low) / (high - low) * (PANEL_HEIGHT - TOP - BOTTOM), 1)

    parts = [f'<text x="{LEFT}" y="16" font-weight="600" fill="{INK}">{escape(panel.title)}</text>']
    for value in _ticks(low, high, panel.logarithmic):
        text = _power(value) if panel.logarithmic else f"{value:g}"
        parts.append(f'<path d="M{LEFT} {y(value)}H{PANEL_WIDTH - RIGHT}" stroke="#e3e7ed"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4}" text-anchor="end" fill="{PALE}">{text}</text>')
    for value, label in limits:
        parts.append(f'<path d="M{LEFT} {y(value)}H{PANEL_WIDTH - RIGHT}" stroke="{LIMIT}" stroke-dasharray="4 3"/>')
        parts.append(
            f'<text x="{PANEL_WIDTH - RIGHT}" y="{y(value) - 3}" text-anchor="end" font-size="10" fill="{LIMIT}">'
            f"{escape(label)}</text>"
        )
    for position in sorted({0, last // 2, last}):
        anchor = "end" if position == last and last else "middle"
        parts.append(
            f'<text x="{x(position)}" y="{PANEL_HEIGHT - 8}" text-anchor="{anchor}" fill="{PALE}">'
            f"{'layer ' if position == last and last else ''}{position}</text>"
        )
    return "".join([*parts, *_curve(panel, x, lambda value: y(scale(value)))])


def _curve(panel: Panel, x: Callable[[int], float], y: Callable[[float], float]) -> list[str]:
    places = list(zip(panel.positions, panel.band, strict=True))
    upper = [f"{x(k)},{y(high)}" for k, (_, _, high) in places]
    lower = [f"{x(k)},{y(low)}" for k, (_, low, _) in places]
    middle = " ".join(f"{x(k)},{y(value)}" for k, (value, _, _) in places)
    parts = [
        f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{BAND}" opacity="0.18"/>',
        f'<polyline points="{middle}" fill="none" stroke="{LINE}" stroke-width="2"/>',
    ]
    radius = 3 if len(places) <= 20 else 1.5
    for k, (value, _, _) in places:
        told = f"layer {k}: {value:.3g}"
        parts.append(f'<circle cx="{x(k)}" cy="{y(value)}" r="{radius}" fill="{LINE}"><title>{told}</title></circle>')
    return parts


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    if logarithmic:
        step = max(1, math.ceil((high - low) / 5))
        return [float(k) for k in range(math.floor(low), math.ceil(high) + 1, step)]
    rough = (high - low) / 4
    magnitude = 10 ** math.floor(math.log10(rough))
    step_size = min((magnitude * factor for factor in (1, 2, 5, 10)), key=lambda each: abs(each - rough))
    first = math.ceil(low / step_size - 1e-9)
    return [round(k * step_size, 10) for k in range(first, math.floor(high / step_size + 1e-9) + 1)]


def _power(exponent: float) -> str:
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {0: "1", 1: "10"}.get(int(exponent), f"10{raised}")


__all__ = ["Panel", "chart_panels", "draw", "page"]

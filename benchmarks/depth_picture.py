"""A line chart with intervals as a self-contained SVG, in a few lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 62, 24, 84, 56


@dataclass(frozen=True)
class Line:
    """A named line: for each place on the axis (value, lower end, upper end), in per cent."""

    name: str
    color: str
    points: Sequence[tuple[float, float, float]]
    dashes: str = "none"


def draw(title: str, places: Sequence[str], lines: Sequence[Line], axis: str = "layers") -> str:
    """Return the chart; the vertical axis runs from 0 to 100 %."""
    step = (WIDTH - LEFT - RIGHT) / (len(places) - 1 + 0.4)

    def x(place: int) -> float:
        return round(LEFT + (place + 0.2) * step, 1)

    def y(percent: float) -> float:
        return round(HEIGHT - BOTTOM - percent / 100 * (HEIGHT - TOP - BOTTOM), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="14" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="28" font-size="17" font-weight="600" fill="#1c2430">{escape(title)}</text>',
    ]
    for percent in range(0, 101, 20):
        parts.append(f'<path d="M{LEFT} {y(percent)}H{WIDTH - RIGHT}" stroke="#e3e7ed"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(percent) + 5}" text-anchor="end" fill="#5b6675">{percent} %</text>')
    for place, label in enumerate(places):
        parts.append(f'<text x="{x(place)}" y="{HEIGHT - 32}" text-anchor="middle" fill="#5b6675">{label}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle" fill="#5b6675">{escape(axis)}</text>')
    legend = float(LEFT)
    for line in lines:
        stroke = f'stroke="{line.color}" stroke-width="2.5" stroke-dasharray="{line.dashes}"'
        upper = [f"{x(k)},{y(high)}" for k, (_, _, high) in enumerate(line.points)]
        lower = [f"{x(k)},{y(low)}" for k, (_, low, _) in enumerate(line.points)]
        middle = " ".join(f"{x(k)},{y(value)}" for k, (value, _, _) in enumerate(line.points))
        parts.append(f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{line.color}" opacity="0.15"/>')
        parts.append(f'<polyline points="{middle}" fill="none" {stroke}/>')
        for k, (value, low, high) in enumerate(line.points):
            told = f"{line.name}, {places[k]} {axis}: {value:.1f} % ({low:.1f} to {high:.1f})"
            parts.append(
                f'<circle cx="{x(k)}" cy="{y(value)}" r="4" fill="{line.color}"><title>{escape(told)}</title></circle>'
            )
        parts.append(f'<path d="M{legend} 54h22" {stroke}/>')
        parts.append(f'<text x="{legend + 28}" y="59" fill="#1c2430">{escape(line.name)}</text>')
        legend += 28 + 7.1 * len(line.name) + 22
    return "\n".join([*parts, "</svg>"]) + "\n"

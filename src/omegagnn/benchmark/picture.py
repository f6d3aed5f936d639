"""The ratios as a chart in SVG, readable in light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from omegagnn.benchmark.cases import Case, quickest

WIDTH, LEFT, RIGHT = 960, 340, 140  # of the picture; of the labels; of the numbers beside the bars
ROW, HEADING, TOP, BOTTOM = 22, 34, 86, 56
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
STYLE = (
    "<style>.page{fill:#fff}text{fill:#1f2933;stroke:#fff;stroke-width:3px;paint-order:stroke}.quiet{fill:#5f6c7b}"
    ".grid{stroke:#dfe3e8}.one{stroke:#1f2933}.peer{fill:#9dbfe3}.best{fill:#2b6cb0}.faster{fill:#c05621}"
    "@media(prefers-color-scheme:dark){.page{fill:#14181d}text{fill:#e4e7eb;stroke:#14181d}.quiet{fill:#9aa5b1}"
    ".grid{stroke:#323f4b}.one{stroke:#e4e7eb}.peer{fill:#3a5f87}.best{fill:#63a4e8}.faster{fill:#ed8936}}</style>"
)


def ratio_chart(cases: Sequence[Case], machine: str = "") -> str:
    """Draw how many times faster than each peer ours is, on a logarithmic axis that starts at equally fast.

    The quickest peer of a comparison stands out, as it is the one that counts; comparisons of ours with ours are left
    to the table. `machine` is written below the title.
    """
    shown = [case for case in cases if not case.against_ourselves]
    groups = {case.name: [other for other in shown if other.name == case.name] for case in shown}
    best = {(case.name, case.peer) for case in quickest(shown)}
    low, high = _range([case.ratio for case in shown])
    height = TOP + len(groups) * HEADING + len(shown) * ROW + BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12"'
        ' role="img" aria-label="How many times faster than its peers omegagnn is">',
        STYLE,
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        '<text x="16" y="28" font-size="17" font-weight="bold">Time of the peer over time of ours, same work, same run</text>',
        f'<text class="quiet" x="16" y="48">{escape(machine)}</text>',
        *_axis(low, high, height),
        *_legend(height - 10),
    ]
    y = float(TOP)
    for name, rows in groups.items():
        lines.append(
            f'<text x="16" y="{y + 22:.0f}"><tspan font-weight="bold">{escape(name)}</tspan>'
            f'<tspan class="quiet" dx="8">ours {_ms(rows[0].ours_ms)}</tspan></text>'
        )
        y += HEADING
        for case in rows:
            lines += _bar(case, y, low, high, (case.name, case.peer) in best)
            y += ROW
    return "\n".join([*lines, "</svg>", ""])


def _range(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the ticks that enclose the ratios and 1."""
    low = max((tick for tick in TICKS if tick <= min(1.0, *ratios)), default=TICKS[0])
    return low, min((tick for tick in TICKS if tick >= max(2.0, *ratios)), default=TICKS[-1])


def _at(ratio: float, low: float, high: float) -> float:
    """Return the place of a ratio on the axis."""
    share = (math.log(ratio) - math.log(low)) / (math.log(high) - math.log(low))
    return LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)


def _axis(low: float, high: float, height: int) -> list[str]:
    lines: list[str] = []
    for tick in (tick for tick in TICKS if low <= tick <= high):
        x, kind = _at(tick, low, high), "one" if tick == 1 else "grid"
        lines.append(f'<line class="{kind}" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{height - BOTTOM + 4}"/>')
        lines += [
            f'<text class="quiet" x="{x:.1f}" y="{y}" text-anchor="middle">{tick:g}×</text>'
            for y in (TOP - 6, height - BOTTOM + 19)
        ]
    return lines


def _legend(y: int) -> list[str]:
    """Say what the three colours mean."""
    lines, x = [], 16
    for kind, meaning in (
        ("best", "the quickest peer of a comparison"),
        ("peer", "another peer, slower than ours"),
        ("faster", "a peer faster than ours"),
    ):
        lines.append(f'<rect class="{kind}" x="{x}" y="{y - 10}" width="12" height="12" rx="2"/>')
        lines.append(f'<text class="quiet" x="{x + 18}" y="{y}">{meaning}</text>')
        x += 240
    return lines


def _bar(case: Case, y: float, low: float, high: float, is_quickest: bool) -> list[str]:
    one, end = _at(1.0, low, high), _at(case.ratio, low, high)
    kind = "faster" if case.ratio < 1 else "best" if is_quickest else "peer"
    left, width = min(one, end), max(1.0, abs(end - one))
    weight = ' font-weight="bold"' if is_quickest else ""
    return [
        f'<text x="{LEFT - 12}" y="{y + 14:.0f}" text-anchor="end"{weight}>{escape(case.peer)}</text>',
        f'<rect class="{kind}" x="{left:.1f}" y="{y + 2:.0f}" width="{width:.1f}" height="{ROW - 6}" rx="2"/>',
        f'<text x="{max(one, end) + 6:.1f}" y="{y + 14:.0f}"{weight}>{_ratio(case.ratio)}'
        f'<tspan class="quiet" font-weight="normal" dx="6">{_ms(case.peer_ms)}</tspan></text>',
    ]


def _ratio(ratio: float) -> str:
    return f"{ratio:.1f}×" if ratio >= 1.95 else f"{ratio:.2f}×"


def _ms(value: float) -> str:
    return f"{value:.0f} ms" if value >= 99.95 else f"{value:.1f} ms" if value >= 1 else f"{value:.2f} ms"

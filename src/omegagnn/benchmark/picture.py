"""The ratios as a bar chart in SVG, readable in light and dark."""

from __future__ import annotations

from html import escape

from omegagnn.benchmark.cases import Case

BAR, GAP, LABEL, WIDTH = 18, 10, 520, 980


def ratio_chart(cases: list[Case]) -> str:
    """Draw how many times faster than the peer each case is; comparisons of ours with ours are left to the table."""
    cases = [case for case in cases if not case.peer.startswith("ours")]
    largest = max(case.ratio for case in cases)
    height = 60 + len(cases) * (BAR + GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        "<style>text{fill:#222}.b{fill:#2b6cb0}@media(prefers-color-scheme:dark){text{fill:#ddd}.b{fill:#63a4e8}}</style>",
        '<text x="10" y="24" font-size="16">Times faster than the peer, same work, same run</text>',
    ]
    for row, case in enumerate(cases):
        y = 44 + row * (BAR + GAP)
        length = max(2.0, (WIDTH - LABEL - 70) * case.ratio / largest)
        label = escape(f"{case.name} · {case.peer}")
        lines.append(f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end" font-size="11">{label}</text>')
        lines.append(f'<rect class="b" x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>')
        lines.append(f'<text x="{LABEL + length + 6:.1f}" y="{y + 13}">{case.ratio:.1f}×</text>')
    return "\n".join([*lines, "</svg>", ""])

"""The audit as one HTML page that needs nothing else: no network, no script, light and dark, readable on a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from omegagnn.data.audit import Audit
from omegagnn.files import replacing

# Small enough that the text of 12 units is still read where a phone scales the drawing down.
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 420, 200, 48, 40, 12
BAR = 26
MOST_BARS, MOST_LETTERS, LETTER = 30, 20, 7

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Audit of $name</title>
<style>
:root { --ink: #1c2430; --soft: #5b6675; --paper: #ffffff; --card: #f4f6f9; --line: #d9dfe7; --bar: #2f6fde; --same: #1f9d63;
  --alert: #9a4b00; --alert-paper: #fff4e5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8edf4; --soft: #9fabba; --paper: #12161c; --card: #1b212a;
  --line: #323b48; --bar: #6ea3ff; --same: #4fcf94; --alert: #ffc27a; --alert-paper: #33240f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.2rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p.kind { margin: 0; color: var(--soft); }
ul.warnings { list-style: none; padding: 0; margin: 0; }
ul.warnings li { background: var(--alert-paper); border-left: 4px solid var(--alert); padding: .5rem .8rem; margin: .4rem 0;
  border-radius: 4px; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); gap: .6rem; margin: 0; }
dl div { background: var(--card); border-radius: 6px; padding: .6rem .8rem; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
figure { margin: 0; } svg { width: 100%; max-width: 40rem; height: auto; display: block; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .soft { fill: var(--soft); }
svg .axis { stroke: var(--line); } svg .bar { fill: var(--bar); } svg .same { fill: var(--same); }
figcaption { color: var(--soft); font-size: .85rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } code { font-size: .85em; }
</style>
</head>
<body>
<h1>Audit of $name</h1>
<p class="kind">$kind</p>
$warnings
<h2>Numbers</h2>
<dl>$numbers</dl>
$charts
$splits
</body>
</html>
""")


def write_page(found: Audit, path: str | Path) -> None:
    """Write the page of an audit to a file, in one piece or not at all."""
    with replacing(path) as part:
        part.write_text(page(found), encoding="utf-8")


def page(found: Audit) -> str:
    """Return the page of an audit."""
    kind = f"{found.task} task · {found.nodes:,} nodes · {found.edges:,} edges · {found.features:,} features"
    return _PAGE.substitute(
        name=escape(found.name),
        kind=kind + (f" · {found.graphs:,} graphs" if found.graphs > 1 else ""),
        warnings=_warnings(found.warnings),
        numbers="".join(
            f"<div><dt>{escape(title)}</dt><dd>{escape(value)}</dd></div>" for title, value in _numbers(found)
        ),
        charts=_charts(found),
        splits=_splits(found),
    )


def _warnings(warnings: Sequence[str]) -> str:
    if not warnings:
        return "<p>Nothing was found that a reader should be warned of.</p>"
    items = "".join(f"<li>{escape(warning)}</li>" for warning in warnings)
    return f'<h2>Warnings</h2><ul class="warnings">{items}</ul>'


def _numbers(found: Audit) -> list[tuple[str, str]]:
    def percent(value: float | None) -> str:
        return "–" if value is None else f"{value:.1f} %"

    return [
        ("twins in training", percent(found.twins_percent)),
        ("edge homophily", percent(found.edge_homophily_percent)),
        ("node homophily", percent(found.node_homophily_percent)),
        ("adjusted homophily", percent(found.adjusted_homophily_percent)),
        ("best single feature", percent(found.best_single_feature_percent)),
        ("classes", f"{len(found.classes):,}"),
        ("unlabelled", f"{found.unlabelled:,}"),
        ("mean degree", f"{found.degree['mean']:.2f}"),
        ("components", f"{found.components:,}"),
        ("largest component", percent(found.largest_component_percent)),
        ("edges both ways", percent(found.reciprocal_percent)),
        ("self-loops", f"{found.self_loops:,}"),
        ("duplicate edges", f"{found.duplicate_edges:,}"),
        ("isolated nodes", f"{found.isolated_nodes:,}"),
    ]


def _charts(found: Audit) -> str:
    parts = ["<h2>Degrees</h2>", _degree_chart(found.degree_counts)]
    if found.classes:
        unit = "graphs" if found.task == "graph" else "nodes"
        largest = max(found.classes.values())
        parts += [f"<h2>Classes</h2>{_bars(found.classes, largest, f'{unit} of each class', 'bar', '{:,.0f}')}"]
    if found.same_class_percent:
        caption = "per cent of the edges into each class that come from within it"
        parts += [f"<h2>Homophily by class</h2>{_bars(found.same_class_percent, 100.0, caption, 'same', '{:.1f} %')}"]
    return "\n".join(parts)


def _degree_chart(counts: Mapping[int, int]) -> str:
    """Draw how many nodes have which degree; degrees from 2 on are counted in ranges of doubling width."""
    ranges: dict[tuple[int, int], int] = {}
    for degree, count in counts.items():
        low = degree if degree < 2 else 1 << (degree.bit_length() - 1)
        key = (low, low if low < 2 else 2 * low - 1)
        ranges[key] = ranges.get(key, 0) + count
    largest, step = max(ranges.values(), default=1), (WIDTH - LEFT) / max(len(ranges), 1)
    base = HEIGHT - BOTTOM
    shapes = [_line(LEFT, base, WIDTH, base)]
    for share in (0.5, 1.0):
        y = base - share * (base - TOP)
        shapes += [_line(LEFT, y, WIDTH, y), _text(LEFT - 6, y + 4, f"{share * largest:,.6g}", "end", soft=True)]
    for position, ((low, high), count) in enumerate(sorted(ranges.items())):
        height, x = (base - TOP) * count / largest, LEFT + position * step
        label = str(low) if low == high else f"{low}–{high}"
        title = f"<title>degree {label}: {count:,} nodes</title>"
        shapes.append(
            f'<rect class="bar" x="{x + 0.12 * step:.1f}" y="{base - height:.1f}" width="{0.76 * step:.1f}" '
            f'height="{height:.1f}" rx="2">{title}</rect>'
        )
        shapes.append(_text(x + step / 2, base + 16, str(low), "middle"))
    shapes.append(_text(LEFT + (WIDTH - LEFT) / 2, HEIGHT - 6, "neighbours of a node", "middle", soft=True))
    return _figure(shapes, HEIGHT, "nodes by number of neighbours, in ranges that double (4 stands for 4 to 7)")


def _bars(values: Mapping[str, float], largest: float, caption: str, style: str, pattern: str) -> str:
    """Draw one horizontal bar for each class, at most `MOST_BARS`, largest value first where there are more."""
    shown = list(values.items())
    if len(shown) > MOST_BARS:
        shown = sorted(shown, key=lambda item: -item[1])[:MOST_BARS]
        caption += f" (the {MOST_BARS} largest of {len(values)})"
    labels = [name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…" for name, _ in shown]
    start = 14 + LETTER * max(map(len, labels))
    room = WIDTH - start - 60
    shapes = []
    for position, ((name, value), label) in enumerate(zip(shown, labels, strict=True)):
        y, width = position * BAR, room * value / largest if largest else 0.0
        shapes += [
            _text(start - 8, y + BAR * 0.68, label, "end"),
            f'<rect class="{style}" x="{start}" y="{y + 4:.1f}" width="{width:.1f}" height="{BAR - 8}" rx="2">'
            f"<title>{escape(name)}: {pattern.format(value)}</title></rect>",
            _text(start + width + 6, y + BAR * 0.68, pattern.format(value), "start", soft=True),
        ]
    return _figure(shapes, len(shown) * BAR + 4, caption)


def _splits(found: Audit) -> str:
    if not found.splits:
        return ""
    rows = []
    for split in found.splits:
        twins = "–" if split.twins_percent is None else f"{split.twins_percent:.1f} %"
        cells = (
            f"{split.train:,}",
            f"{split.val:,}",
            f"{split.test:,}",
            twins,
            f"{split.equal_features_percent:.1f} %",
        )
        data = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f"<tr><td>{escape(split.name)}</td>{data}<td><code>{split.hash[:12]}</code></td></tr>")
    head = "".join(
        f"<th>{title}</th>" for title in ("split", "train", "val", "test", "twins", "equal features", "hash")
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<h2>Splits</h2><div class="scroll">{table}</div>'


def _figure(shapes: Sequence[str], height: float, caption: str) -> str:
    label = escape(caption, quote=True)
    drawing = f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{label}">{"".join(shapes)}</svg>'
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="axis" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def _text(x: float, y: float, text: str, anchor: str, soft: bool = False) -> str:
    style = ' class="soft"' if soft else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'

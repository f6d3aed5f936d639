"""The paper on one HTML page: the tables of `docs/results.md`, and charts that those tables do not draw."""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from omegagnn.paper.experiments import ITEMS
from omegagnn.paper.figures import PICTURES, draw_pictures
from omegagnn.paper.graphs import AUTHORS
from omegagnn.paper.lines import lines_of
from omegagnn.paper.networks import DEPTHS
from omegagnn.paper.nodes import CITATION, energy_networks, map_networks
from omegagnn.paper.page import results_page
from omegagnn.paper.results import Results
from omegagnn.report.charts import Axis, Series, bar_chart, interval_chart, line_chart
from omegagnn.report.page import self_contained
from omegagnn.report.tables import charts, folded, table
from omegagnn.training.checkpoint import write_bytes

DRAWN = ("GCN", "GCN, K from I", "ωGCN", "GAT", "GAT, K from I", "ωGAT", "GCNII", "APPNP")
SHORT = {AUTHORS: "script"}
LEVELS = 10  # of colour on either side of 1
BLUE, WHITE, RED = (33, 102, 172), (255, 255, 255), (178, 24, 43)
MOST_GAPS = 24
CHARTED = ("energy", "omega-maps")  # drawn here, where a pointer can ask for values
TABLE_HEADING = re.compile(r"## (?:Table (\d+)|Figure): ")


def paper_page(results: Results) -> str:
    """Return the page; figures are drawn where matplotlib is."""
    pieces = files("omegagnn.report") / "report_page"

    def text(name: str) -> str:
        return (pieces / name).read_text(encoding="utf-8")

    pictures = _pictures(results)
    head, *sections = re.split(r"\n\n(?=## )", results_page(results))
    parts = [_html(head.split("\n\n", 1)[1], pictures)]
    by_title = {_first_line(item_key): item_key for item_key in ITEMS}
    for section in sections:
        title, _, rest = section.partition("\n\n")
        key = by_title.get(_kind_of(title), "")
        drawn = charts(*(figure for figure in _charts(key, results) if figure))
        body = _html(rest, pictures)
        anchor = f' id="{escape(key)}"' if key else ""
        parts.append(f"<section{anchor}><h2>{escape(title.removeprefix('## '))}</h2>{drawn}{body}</section>")
    links = "".join(f'<li><a href="#{key}">{escape(key)}</a></li>' for key in ITEMS)
    contents = f'<ul class="contents">{links}</ul>'
    return self_contained(
        text("report.html"),
        text("style.css"),
        [text("report.js"), text("map.js")],
        title="The paper, reproduced",
        body="\n".join([parts[0], contents, *parts[1:]]),
    )


def write_paper_page(results: Results, path: Path) -> None:
    """Write the page to a file, whole or not at all."""
    write_bytes(path, paper_page(results).encode())


# ------------------------------------------------------------------------------------------------- Markdown to HTML


def _html(markdown: str, pictures: dict[str, str]) -> str:
    """Turn what our tables are written in (headings, tables, paragraphs, pictures) into HTML."""
    parts = []
    for block in markdown.strip().split("\n\n"):
        if block.startswith("### "):
            parts.append(f"<h3>{escape(block[4:])}</h3>")
        elif block.startswith("| "):
            parts.append(_table(block))
        elif (picture := re.fullmatch(r"!\[([^\]]*)\]\(pictures/(\w+)\.svg\)", block.strip())) is not None:
            data = pictures.get(picture[2])
            if data is not None:
                parts.append(f'<figure class="wide"><img alt="{escape(picture[1])}" src="{data}"></figure>')
        else:
            parts.append(f"<p>{_inline(block)}</p>")
    return "\n".join(parts)


def _table(block: str) -> str:
    rows = [[_plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()]
    text = [place for place, mark in enumerate(rows[1]) if mark == ":---"]
    drawn = table(rows[0], rows[2:], text=text)
    return drawn if len(rows) < 30 else folded(f"{len(rows) - 2} rows", drawn)


def _plain(cell: str) -> str:
    return re.sub(r"[`*]", "", cell.replace("\\|", "|")).strip()


def _inline(text: str) -> str:
    html = escape(text)
    html = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", html)  # links lead to other pages of the documentation
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
    html = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", html)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", html)


def _pictures(results: Results) -> dict[str, str]:
    """Return the figures as addresses that hold them."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = draw_pictures(results, Path(folder), [p.item for p in PICTURES.values() if p.item not in CHARTED])
        return {p.stem: f"data:image/svg+xml;base64,{base64.b64encode(p.read_bytes()).decode()}" for p in drawn}


def _kind_of(title: str) -> str:
    found = TABLE_HEADING.match(title)
    return f"table {found[1]}" if found is not None and found[1] else title.removeprefix("## Figure: ")


def _first_line(key: str) -> str:
    return ITEMS[key].kind if ITEMS[key].table is not None else ITEMS[key].about


# ------------------------------------------------------------------------------------------------------------ charts


def _charts(key: str, results: Results) -> Iterator[str]:
    if key == "semi-depth":
        yield from _depth_curves(results)
    elif key == "tu":
        yield from _optimism(results)
    elif key == "energy":
        yield from _energies(results)
    elif key == "omega-maps":
        yield from _maps(results)


def _depth_curves(results: Results) -> Iterator[str]:
    """Draw accuracy against depth under the common budget, with what the paper prints for ωGCN."""
    lines = list(lines_of(ITEMS["semi-depth"].cells(results.quick), results))
    for data in CITATION:
        own = [line for line in lines if line.cell.column.startswith(f"{data}-")]
        series = []
        for hue, row in enumerate(DRAWN):
            points = [(line.cell.depth, line.chosen) for line in own if line.cell.row == row]
            found = [(float(depth), s) for depth, s in points if depth is not None and s is not None]
            if found:
                x = [depth for depth, _ in found]
                series.append(
                    Series(
                        row, x, [s.mean for _, s in found], [s.low for _, s in found], [s.high for _, s in found], hue
                    )
                )
        if not series:
            continue
        printed = [
            (float(line.cell.depth or 0), line.printed.value)
            for line in own
            if line.cell.row == "ωGCN" and line.printed
        ]
        series.append(Series("ωGCN as printed", [x for x, _ in printed], [y for _, y in printed], hue=9))
        title = f"{data}: honest accuracy by depth, common budget, 95 % bands"
        yield line_chart(title, series, Axis("layers", logarithmic=True, named=DEPTHS), Axis("test accuracy in %"))


def _optimism(results: Results) -> Iterator[str]:
    """Draw the three rules of graph classification, and where the best test epoch adds most in all tables."""
    lines = [line for line in lines_of(ITEMS["tu"].cells(results.quick), results) if line.record is not None]
    for data in dict.fromkeys(line.cell.column for line in lines):
        rows = []
        for line in (each for each in lines if each.cell.column == data and each.cell.published is not None):
            name = f"{line.cell.row} {SHORT.get(line.cell.variant, '')}".strip()
            for rule, found in (("best test", line.rules.get("authors-tu")), ("honest", line.honest)):
                if found is not None:
                    rows.append((f"{name}, {rule}", found.mean, found.low, found.high))
        yield interval_chart(f"{data}: the same runs at the best test epoch and honestly", rows, "test accuracy in %")
    gaps = [
        (f"{line.cell.column} {line.cell.row} {line.cell.variant}".strip(), line.optimism)
        for key in ("homophilic", "heterophilic", "tu")
        for line in lines_of(ITEMS[key].cells(results.quick), results)
        if line.cell.published is not None and line.optimism is not None
    ]
    gaps.sort(key=lambda pair: -pair[1])
    rows_of_gaps = [(name, max(0.0, gap), f"{gap:.1f} points") for name, gap in gaps[:MOST_GAPS]]
    yield bar_chart("The optimism gap: what the best test epoch adds to the honest mean", rows_of_gaps)


def _energies(results: Results) -> Iterator[str]:
    for data in CITATION:
        for title in ("ωGCN", "ωGAT"):
            series = []
            own = {key[2]: t for key, t in energy_networks().items() if key[:2] == (data, title)}
            for hue, (omega, training) in enumerate(own.items()):
                record = results.find((training.quick() if results.quick else training).tag)
                energy = None if record is None else record.get("energy")
                if energy and energy[0]:
                    ratio = [float("nan") if value is None else value / energy[0] for value in energy]
                    series.append(Series(f"ω {omega}", list(range(len(ratio))), ratio, hue=hue))
            if series:
                axes = Axis("layer", tight=True, whole=True), Axis("E / E⁰", logarithmic=True)
                yield line_chart(f"{title} on {data}: energy by layer, 64 layers", series, *axes)


def _maps(results: Results) -> Iterator[str]:
    for (data, kind), training in map_networks().items():
        record = results.find((training.quick() if results.quick else training).tag)
        if record is not None and record.get("map"):
            yield omega_map(f"ω on {data}, {kind}", record["map"])


def omega_map(title: str, layers: Sequence[Sequence[float | None]]) -> str:
    """Draw ω, layers across and channels up, sorted by their means: blue smooths, red sharpens, white is 1.

    The values stand in the figure for a script that tells the one under the pointer.
    """
    rows = [[1.0 if value is None else value for value in layer] for layer in layers]
    order = sorted(range(len(rows[0])), key=lambda channel: sum(layer[channel] for layer in rows))
    reach = max(abs(value - 1) for layer in rows for value in layer) or 1.0
    shapes: dict[int, list[str]] = {}
    for x, layer in enumerate(rows):
        for up, channel in enumerate(order):
            level = round(LEVELS * (layer[channel] - 1) / reach)
            shapes.setdefault(level, []).append(f"M{x} {len(order) - 1 - up}h1v1h-1z")
    cells = "".join(
        f'<path fill="{_colour(level / LEVELS)}" d="{"".join(each)}"/>' for level, each in sorted(shapes.items())
    )
    values = json.dumps([[round(layer[channel], 3) for channel in order] for layer in rows], separators=(",", ":"))
    drawing = (
        f'<svg class="map" viewBox="0 0 {len(rows)} {len(order)}" role="img" shape-rendering="crispEdges" '
        f'aria-label="{escape(title)}">{cells}</svg>'
    )
    told = (
        f"{len(rows)} layers across, {len(order)} channels up; blue to {1 - reach:.2f}, white 1, red to {1 + reach:.2f}"
    )
    return (
        f'<figure data-values="{values}"><figcaption>{escape(title)}</figcaption>{drawing}'
        f'<p class="key told">{escape(told)}</p></figure>'
    )


def _colour(share: float) -> str:
    """Return the colour of a place between blue (−1), white (0) and red (1)."""
    end = RED if share > 0 else BLUE
    mixed = [round(w + abs(share) * (e - w)) for w, e in zip(WHITE, end, strict=True)]
    return "#" + "".join(f"{each:02x}" for each in mixed)


__all__ = ["omega_map", "paper_page", "write_paper_page"]

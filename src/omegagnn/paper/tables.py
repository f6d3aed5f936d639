"""The tables of the paper as Markdown, ours beside the printed ones; `docs/results.md` is all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from omegagnn.paper.experiments import ITEMS, Item
from omegagnn.paper.graphs import AUTHORS
from omegagnn.paper.lines import Line, lines_of
from omegagnn.paper.markdown import NOTHING, code, half_width, interval, mean, table
from omegagnn.paper.networks import CHOICES
from omegagnn.paper.nodes import CITATION, MENDED
from omegagnn.paper.outcome import best_by_validation, summary, validation_mean
from omegagnn.paper.published import Table, published_table
from omegagnn.paper.results import Results

QUICK_NOTE = (
    "**Made with `--quick`: a few epochs, seeds and splits. It shows that everything runs; the numbers say nothing about the "
    "networks.**"
)
RULES_IN_WORDS = {
    "honest": "honest",
    "validation-accuracy": "best validation accuracy",
    "gcnii": "GCNII's scheme",
    "authors-tu": "best test epoch of each fold (optimistic)",
    "gin": "best mean test epoch (optimistic)",
}
Section = Callable[[Item, Results], Iterator[str]]


def item_section(item: Item, results: Results) -> str:
    """Return a table of the paper with all that belongs to it."""
    assert item.table is not None
    printed = published_table(item.table)
    parts = [f"## Table {printed.number}: {printed.caption}", *([QUICK_NOTE] if results.quick else [])]
    parts += [f"Command: {code(f'omegagnn reproduce {item.key}')}."]
    parts += [f"In the paper: {slip}" for slip in printed.slips]
    parts += SECTIONS.get(item.key, _published_and_compared)(item, results)
    return "\n\n".join(parts)


def verdicts(items: Sequence[Item], results: Results) -> dict[str, Counter[str]]:
    """Count the verdicts on the published settings by the published rule, table by table."""
    found = {}
    for item in items:
        if item.key == "semi-summary":  # its cells are those of the depth table
            continue
        lines = [line for line in lines_of(item.cells(results.quick), results) if line.cell.published is not None]
        counts = Counter(_kind(line.verdict) for line in lines if line.printed is not None)
        if counts:
            found[item.key] = counts
    return found


def _kind(words: str) -> str:
    first = words.split(";", maxsplit=1)[0]
    return next((kind for kind in ("reached", "below", "above", "not run", "failed") if first.startswith(kind)), first)


# ------------------------------------------------------------------------------------------------------ kinds of table


def _published_and_compared(item: Item, results: Results) -> Iterator[str]:
    lines = list(lines_of(item.cells(results.quick), results))
    yield from _published(item, [line for line in lines if line.cell.published is not None])
    compared = [line for line in lines if line.cell.chosen is not None]
    if compared:
        yield from _compared(item, compared)


def _published(item: Item, lines: Sequence[Line]) -> Iterator[str]:
    """Yield the table of what the published settings give."""
    if not lines:
        return
    rule = next(iter(lines[0].rules), "honest")
    compared = any(line.cell.chosen is not None for line in lines)
    yield f"### Published settings (table {_table(item).number})"
    yield table(
        ["network", "data", "printed", f"ours, {RULES_IN_WORDS[rule]}", "ours, honest (95 %)", "best test epoch adds",
         "seeds × splits", "verdict", *(["common budget, honest (95 %)"] if compared else []), "command"],
        [
            [
                _row_name(line),
                _column_name(line),
                str(line.printed or NOTHING),
                mean(line.by_published_rule),
                interval(line.honest),
                NOTHING if line.optimism is None else f"{line.optimism:.1f}",
                line.size or NOTHING,
                line.verdict,
                *([interval(line.chosen)] if compared else []),
                code(line.command),
            ]
            for line in lines
        ],
        text=(0, 1, 7, 9 if compared else 8),
    )  # fmt: skip


def _compared(item: Item, lines: Sequence[Line]) -> Iterator[str]:
    """Yield the tables of networks under one budget, one for each data set where depths are compared."""
    yield f"### The same budget for every network (table {_table(item).number})"
    yield (
        f"64 channels, dropout 0.5, at most 500 epochs, patience 100, {CHOICES} choices of rates for each network, of which each "
        "split's own validation takes one; honest rule; mean ± half the width of the 95 % interval; in brackets what the paper "
        f"prints for a network of that name; – was not run. One of them: {code(lines[0].command)}."
    )
    by_data: dict[str, list[Line]] = {}
    for line in lines:
        by_data.setdefault(_data_of(line) if line.cell.depth is not None else "", []).append(line)
    for data, own in by_data.items():
        columns = list(dict.fromkeys(str(line.cell.depth or line.cell.column) for line in own))
        rows: dict[str, dict[str, str]] = {}
        for line in own:
            beside = "" if line.printed is None else f" [{line.printed}]"
            text = half_width(line.chosen) + beside
            rows.setdefault(_row_name(line), {})[str(line.cell.depth or line.cell.column)] = text
        head = f"{data}, layers" if data else "network"
        yield table([head, *columns], [[row, *(cells.get(c, NOTHING) for c in columns)] for row, cells in rows.items()])


def _summary(item: Item, results: Results) -> Iterator[str]:
    """Yield the summary: of each network the depth that validation chooses."""
    yield (
        "The paper's summary takes the best depth of each network. Here validation chooses the depth, among those that were run; "
        "the settings are the published ones for ours and, in a row of its own, those of the common budget for everybody."
    )
    rows = []
    cells = item.cells(results.quick)
    for data in CITATION:
        for row in dict.fromkeys(cell.row for cell in cells):
            own = [cell for cell in cells if cell.row == row and cell.column.startswith(f"{data}-")]
            printed = published_table("semi-summary").rows[data][published_table("semi-summary").columns.index(row)]
            for kind in ("published", "chosen"):
                records = [
                    (record, cell.depth)
                    for cell in own
                    if (t := getattr(cell, kind)) is not None and (record := results.find(t.tag)) is not None
                ]
                if kind == "published" and not row.startswith("ω"):
                    continue
                best = best_by_validation([record for record, _ in records])
                depth = next((str(depth) for record, depth in records if record is best), NOTHING)
                settings = "published" if kind == "published" else "common budget"
                validation = NOTHING if best is None else f"{100 * validation_mean(best):.1f}"
                rows.append(
                    [
                        data,
                        row,
                        settings,
                        printed,
                        depth,
                        validation,
                        interval(summary(best)),
                        f"{len(records)}/{len(own)}",
                    ]
                )
    columns = ["data", "network", "settings", "printed", "layers", "validation", "ours, honest (95 %)", "depths run"]
    yield table(columns, rows, text=(0, 1, 2))


def _tu(item: Item, results: Results) -> Iterator[str]:
    yield (
        "Three rules over the same ten folds: the released script's, which takes each fold's best *test* epoch; GIN's, which "
        "takes the epoch of the best mean *test* curve; and the honest one, whose epoch a tenth of each training part chooses. "
        f"*{AUTHORS}* is the block of the released code, a raw sum over neighbours; the other is the paper's. *structure-blind* "
        "sees no edges, *label histogram* nothing but how many nodes of each label a graph has."
    )
    rules = ("authors-tu", "gin")
    columns = [
        "data", "network", "printed", *(RULES_IN_WORDS[rule] for rule in rules), "honest (95 %)", "seeds × splits", "verdict",
        "command",
    ]  # fmt: skip
    rows = [
        [
            line.cell.column,
            _row_name(line),
            str(line.printed or NOTHING),
            *(interval(line.rules.get(rule)) for rule in rules),
            interval(line.honest or line.chosen),
            line.size or NOTHING,
            line.verdict if line.cell.published is not None or line.record is not None else line.missing,
            code(line.command),
        ]
        for line in lines_of(item.cells(results.quick), results)
    ]
    yield table(columns, rows, text=(0, 1, 7, 8))


def _random(item: Item, results: Results) -> Iterator[str]:
    yield (
        "The paper does not say how its splits are drawn, nor how deep the networks are. *diffusion* draws as graph neural "
        "diffusion does (largest component, 20 a class, all nodes outside the 1,500 development nodes test), *random-20* takes "
        "20 a class, 500 and 1,000. Two layers; *usual* are fixed usual rates, the same number of choices for everybody: one."
    )
    columns = [
        "data", "splits", "network", "printed", "published settings, their rule", "published settings, honest (95 %)",
        "usual rates, honest (95 %)", "seeds × splits", "verdict",
    ]  # fmt: skip
    rows = [
        [
            line.cell.column,
            line.cell.variant,
            line.cell.row,
            str(line.printed or NOTHING),
            mean(line.by_published_rule),
            interval(line.honest),
            interval(line.chosen),
            line.size or NOTHING,
            line.verdict,
        ]
        for line in lines_of(item.cells(results.quick), results)
    ]
    yield table(columns, rows, text=(0, 1, 2, 8))


def _run_times(item: Item, results: Results) -> Iterator[str]:
    record = results.find("runtimes")
    measured = {} if record is None else record["values"]["milliseconds"]
    printed = published_table("runtimes")
    rows = []
    for part in ("Training", "Inference"):
        for network in printed.columns:
            found = measured.get(network, {}).get(part.lower())
            baseline = measured.get(network.removeprefix("ω"), {}).get(part.lower())
            cell, reference = printed.cell(part, network), printed.cell(part, network.removeprefix("ω"))
            assert cell is not None
            assert reference is not None
            rows.append(
                [part, network, str(cell), f"{cell.value / reference.value:.2f}",
                 results.missing("runtimes") if found is None else f"{found:.2f}",
                 NOTHING if found is None or baseline is None else f"{found / baseline:.2f}"]
            )  # fmt: skip
    if record is not None:
        environment = record["environment"]
        versions = ", ".join(f"{name} {environment['versions'][name]}" for name in ("torch", "torch_geometric"))
        yield (
            f"One training step and one inference, medians of {record['values']['rounds']} rounds in turns, on "
            f"{_machine(environment)}, {versions}; the paper does not name its GPU. GCN and GAT are PyTorch Geometric's."
        )
    columns = ["", "network", "printed ms", "of its baseline", "ours ms", "of its baseline"]
    yield table(columns, rows, text=(0, 1))
    yield from _published(item, list(lines_of(item.cells(results.quick), results)))


def _sizes(item: Item, results: Results) -> Iterator[str]:
    assert item.table is not None
    printed = published_table(item.table)
    rows = []
    for measurement in item.measurements:
        name = measurement.tag.removeprefix("statistics-")
        record = results.find(measurement.tag)
        for row in printed.rows:
            cell = printed.cell(row, name)
            ours = results.missing(measurement.tag) if record is None else _size(row, record["values"])
            rows.append([name if row == "Classes" else "", row, str(cell or NOTHING), ours])
    yield "Edges are counted once for both directions, without loops and repetitions; homophily is the share of edges in a class."
    yield table(["data", "", "printed", "ours"], rows, text=(0, 1))


def _size(row: str, values: dict[str, float]) -> str:
    if row.startswith("Avg"):
        return f"{values[row.split()[1]] / values['graphs']:.2f}"
    key = {"Hom. score": "homophily"}.get(row, row.lower())
    value = values[key]
    if value is None:
        return NOTHING
    return f"{value:.3f}" if key == "homophily" else f"{value:,}"


SECTIONS: dict[str, Section] = {
    "semi-summary": _summary,
    "tu": _tu,
    "random-splits": _random,
    "runtimes": _run_times,
    "nodes-statistics": _sizes,
    "graphs-statistics": _sizes,
}


# ------------------------------------------------------------------------------------------------------------- pieces


def machine_minutes(results: Results) -> dict[str, float]:
    """Return the minutes of training and measuring by machine, summed over all parts."""
    found: dict[str, float] = {}
    for record in results.all():
        name = _machine(record["environment"])
        found[name] = found.get(name, 0.0) + record["seconds"] / 60
    return found


def _machine(environment: dict[str, str]) -> str:
    if environment["device"] != "cpu":
        return environment["device"]
    return f"a CPU ({environment['processor']}, {environment['threads']} thread(s))"


def _table(item: Item) -> Table:
    assert item.table is not None
    return published_table(item.table)


def _row_name(line: Line) -> str:
    name = line.cell.row.split(" / ")[-1]
    return f"{name} ({line.cell.variant})" if line.cell.variant else name


def _data_of(line: Line) -> str:
    return line.cell.row.split(" / ")[0] if " / " in line.cell.row else line.cell.column.rsplit("-", 1)[0]


def _column_name(line: Line) -> str:
    if line.cell.depth is not None:
        return f"{_data_of(line)}, {line.cell.depth} layers"
    mended = MENDED.get(line.cell.column)
    return line.cell.column if mended is None else f"{line.cell.column} (settings of {mended})"


__all__ = ["ITEMS", "QUICK_NOTE", "item_section", "machine_minutes", "verdicts"]

"""`docs/results.md`: every table and figure of the paper with ours beside it, from the records alone, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator

from omegagnn.paper.experiments import ITEMS, Item
from omegagnn.paper.figures import PICTURES
from omegagnn.paper.markdown import NOTHING, code, table
from omegagnn.paper.results import Results
from omegagnn.paper.tables import QUICK_NOTE, item_section, machine_minutes, verdicts

KINDS = ("reached", "below", "above", "not run", "failed")
HEAD = """# Results

The paper's tables and figures, ours beside what is printed. This page is made by `omegagnn reproduce report` from the records in
`results/paper`; [Reproduce](reproduce.md) says how to make or continue them and how to read a verdict.

*Printed* is what the paper has. *Published settings* are the paper's, [value by value with its source](presets.md). A rule is
named wherever a number stands; rules that look at test labels are called optimistic. *Honest* is the epoch of the best
validation loss, with a 95 % bootstrap interval of the mean. A verdict is about the published settings, by the published rule
first and then by the honest one: *reached* where the printed value lies within the 95 % interval."""


def results_page(results: Results) -> str:
    """Return the whole page."""
    parts = [HEAD, *([QUICK_NOTE] if results.quick else []), *_overview(results)]
    parts += [item_section(item, results) for item in ITEMS.values() if item.table is not None]
    parts += [figure_section(item, results) for item in ITEMS.values() if item.table is None]
    return "\n\n".join(parts) + "\n"


def figure_section(item: Item, results: Results) -> str:
    """Return the pictures of a figure with what they show; before anything was run there is none."""
    parts = [f"## Figure: {item.about}", f"Command: {code(f'omegagnn reproduce {item.key}')}."]
    is_begun = any(results.find(each.tag) is not None for each in item.work(results.quick))
    for name, picture in PICTURES.items():
        if picture.item == item.key:
            parts += [f"![{picture.alt}](pictures/{name}.svg)", picture.note] if is_begun else ["Not run."]
    return "\n\n".join(parts)


def _overview(results: Results) -> Iterator[str]:
    """Yield how much was run and reached, and what it cost."""
    counted = verdicts([item for item in ITEMS.values() if item.table is not None], results)
    rows: list[list[str]] = []
    done: set[str] = set()
    asked: set[str] = set()
    for key, item in ITEMS.items():
        work = item.work(results.quick)
        there = [each.tag for each in work if results.find(each.tag) is not None]
        done.update(there)
        asked.update(each.tag for each in work)
        counts = [str(counted[key][kind] or NOTHING) if key in counted else "" for kind in KINDS]
        rows.append([key, item.kind, f"{len(there)} of {len(work)}", *counts])
    minutes = "; ".join(f"{spent:.1f} minutes on {name}" for name, spent in sorted(machine_minutes(results).items()))
    yield (
        f"{len(done)} of {len(asked)} trainings and measurements are here, which took {minutes or 'no time'}; some serve several "
        "tables. The right part counts our networks at the published settings against the printed values."
    )
    yield table(["item", "", "done", *KINDS], rows, text=(0, 1))


__all__ = ["figure_section", "results_page"]

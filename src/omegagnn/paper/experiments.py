"""The tables and figures of the paper as data: what is trained for each, and where in a table it stands."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from omegagnn.errors import WrongUse
from omegagnn.paper import graphs, nodes
from omegagnn.paper.cells import Cell
from omegagnn.paper.measurements import EULER, GRADIENT, IMPULSE, RUN_TIMES, Measurement, statistics_of
from omegagnn.paper.published import published_table
from omegagnn.paper.runner import Work
from omegagnn.paper.trainings import Training, unique

ALL = "all"
QUICK_DEPTHS = (2, 4)


@dataclass(frozen=True, eq=False)
class Item:
    """A table or a figure: its key, what it shows, and what it needs.

    `table` is the key of the paper's table. `make_cells` and `extra` are called when they are first needed, since they read
    many presets.
    """

    key: str
    about: str
    table: str | None = None
    make_cells: Callable[[], Iterator[Cell]] = lambda: iter(())
    extra: Callable[[], Iterator[Training]] = lambda: iter(())
    measurements: tuple[Measurement, ...] = ()

    @property
    def kind(self) -> str:
        """``table N`` or ``figure``."""
        return "figure" if self.table is None else f"table {published_table(self.table).number}"

    def cells(self, quick: bool = False) -> list[Cell]:
        """Return the cells of the table; quick ones are of few depths and are quickly trained."""
        found = list(_cells(self.key))
        return [cell.quick() for cell in found if cell.depth in (*QUICK_DEPTHS, None)] if quick else found

    def trainings(self, quick: bool = False) -> list[Training]:
        """Return what is trained: the published settings before the comparisons, each once."""
        extra = list(self.extra())
        if quick:
            # What keeps more than scores is drawn at one depth and has no shallower form.
            extra = [t.quick() for t in extra if t.also or t.config.model.layers in QUICK_DEPTHS]
        cells = self.cells(quick)
        of_cells = [t for part in ("published", "chosen") for cell in cells if (t := getattr(cell, part)) is not None]
        return unique([*of_cells, *extra])

    def work(self, quick: bool = False) -> list[Work]:
        """Return all that is to be trained and measured."""
        return [*self.measurements, *self.trainings(quick)]


@cache
def _cells(key: str) -> tuple[Cell, ...]:
    return tuple(ITEMS[key].make_cells())


def _tables() -> Iterator[Item]:
    yield Item("semi-summary", "the best depth of each network, chosen on validation", "semi-summary", nodes.summary)
    yield Item("semi-depth", "semi-supervised accuracy from 2 to 64 layers", "semi-depth", nodes.depth)
    yield Item("homophilic", "citation graphs, ten geom splits", "homophilic", nodes.homophilic)
    yield Item("heterophilic", "heterophilic graphs, as released and mended", "heterophilic", nodes.heterophilic)
    yield Item("ppi", "inductive learning on proteins", "ppi", nodes.ppi)
    yield Item("tu", "graph classification by three rules", "tu", graphs.tu)
    yield Item("scopes-gcn", "an ω for the network, a layer, a channel: ωGCN", "scopes-gcn", nodes.scopes_gcn)
    yield Item(
        "nodes-statistics", "sizes of the node data", "nodes-statistics", measurements=_sizes("nodes-statistics")
    )
    yield Item(
        "graphs-statistics", "sizes of the graph data", "graphs-statistics", measurements=_sizes("graphs-statistics")
    )
    yield Item(
        "runtimes", "a training step and an inference on Cora", "runtimes", nodes.timed, measurements=(RUN_TIMES,)
    )
    yield Item("scopes-gat", "an ω for the network, a layer, a channel: ωGAT", "scopes-gat", nodes.scopes_gat)
    yield Item("random-splits", "100 random splits", "random-splits", nodes.random_splits)
    yield Item("arxiv", "ogbn-arxiv", "arxiv", nodes.arxiv)


def _figures() -> Iterator[Item]:
    yield Item("impulse", "the impulse response of ωGCN's propagation", measurements=(IMPULSE,))
    yield Item("gradient", "GCN and ωGCN estimate the gradient of a node feature", measurements=(GRADIENT,))
    yield Item("energy", "energy of the features against the layer", extra=nodes.energy_trainings)
    yield Item("mean-omega", "mean ω against the depth", extra=nodes.mean_omega_trainings)
    yield Item("euler", "error of forward Euler against the depth", measurements=(EULER,))
    yield Item("omega-maps", "learnt ω of Cora and Texas, 64 layers × 64 channels", extra=nodes.map_trainings)


def _sizes(table: str) -> tuple[Measurement, ...]:
    more = ("squirrel", "cornell-corrected", "chameleon-filtered", "squirrel-filtered") if table[0] == "n" else ()
    return tuple(statistics_of(name) for name in (*published_table(table).columns, *more))


ITEMS: dict[str, Item] = {item.key: item for item in (*_tables(), *_figures())}


def find_items(names: list[str]) -> list[Item]:
    """Return items by their names, ``all`` being every one, in the order of the paper and each once."""
    for name in names:
        if name not in ITEMS and name != ALL:
            near = difflib.get_close_matches(name, [*ITEMS, ALL], n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else "`omegagnn reproduce list` shows what there is."
            raise WrongUse(f"There is no item {name!r}: {hint}")
    return [item for key, item in ITEMS.items() if ALL in names or key in names]


def work_of(items: list[Item], quick: bool = False, only: list[str] | None = None) -> list[Work]:
    """Return the work of several items, each piece once.

    Of `only` each text is the name of a training, or words that its name must have: ``cora 64 published``.
    """
    trainings = unique([training for item in items for training in item.trainings(quick)])
    trainings.sort(key=lambda training: len(training.choices))  # what the paper claims before what it is compared with
    measurements = {each.tag: each for item in items for each in item.measurements}
    found: list[Work] = [*measurements.values(), *trainings]
    if not only:
        return found
    names = {each.name for each in found}
    for text in only:
        if text not in names and not any(_words(text) <= _words(name) for name in names):
            raise WrongUse(f"No training has all words of {text!r} in its name: see `omegagnn reproduce list ITEM`.")
    return [each for each in found if any(_is_meant(each.name, text, names) for text in only)]


def _is_meant(name: str, text: str, names: set[str]) -> bool:
    return name == text if text in names else _words(text) <= _words(name)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\s,]+", text.lower()))


__all__ = ["ALL", "ITEMS", "Item", "find_items", "work_of"]

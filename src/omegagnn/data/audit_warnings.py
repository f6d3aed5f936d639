"""From what an audit found to the sentences a user should read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from omegagnn.data.audit import Audit

WORTH_A_WARNING = 1.0  # per cent of the test set
FEWEST_OF_A_CLASS = 3  # one to train, one to validate, one to test
MOST_NAMED = 5


def warnings_of(found: Audit) -> Iterator[str]:
    """Yield a sentence for each finding that can mislead."""
    yield from _same_as_another(found)
    yield from _met_in_training(found)
    yield from _bad_splits(found)
    yield from _classes(found)
    for leak in found.leaks[:MOST_NAMED]:
        what = f"marks the class {leak.marks_class!r}" if leak.marks_class else "determines the label"
        yield f"The feature {leak.name!r} {what} ({leak.accuracy_percent:.1f} % right by itself): is it the answer in disguise?"
    if len(found.leaks) > MOST_NAMED:
        yield f"{len(found.leaks) - MOST_NAMED} more features determine the label or mark a class."
    yield from _structure(found)


def _same_as_another(found: Audit) -> Iterator[str]:
    for other in found.identical:
        parts = ["features", *(["labels"] if other.labels else []), *(["edges"] if other.edges else [])]
        shared = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
        differs = "" if other.edges else "; the edges are others, so features and graph may not belong together"
        yield f"The {shared} are those of the data set {other.name!r}, item for item{differs}."


def _met_in_training(found: Audit) -> Iterator[str]:
    if found.twins_percent is not None and found.twins_percent >= WORTH_A_WARNING:
        same = "the same neighbours and label" if found.task == "node" else "the same structure, features and label"
        yield f"{found.twins_percent:.1f} % of the test {_items(found)} have a twin in training with {same}: memory is rewarded."
    if found.task == "node" and found.splits:
        equal = float(np.mean([split.equal_features_percent for split in found.splits]))
        if equal >= WORTH_A_WARNING:
            yield f"{equal:.1f} % of the test nodes have exactly the features of a training node."


def _bad_splits(found: Audit) -> Iterator[str]:
    for split in found.splits:
        if split.in_two_parts:
            yield f"The split {split.name!r} has {split.in_two_parts} {_items(found)} in two of train, val and test."
        if split.unlabelled:
            yield f"The split {split.name!r} has {split.unlabelled} {_items(found)} without a label."
    lacking = [split for split in found.splits if split.classes_without_training]
    if lacking:
        names = sorted({name for split in lacking for name in split.classes_without_training})
        yield (
            f"In {len(lacking)} of {len(found.splits)} splits a class to be told in validation or test is never in training: "
            f"{', '.join(names)}."
        )
    smallest = min((split.test for split in found.splits), default=0)
    if 0 < smallest < 100:
        yield f"One test item is worth {100 / smallest:.1f} points of accuracy: differences below that mean nothing."


def _classes(found: Audit) -> Iterator[str]:
    if found.task == "inductive":
        return
    for name, count in found.classes.items():
        if count < FEWEST_OF_A_CLASS:
            noun = _items(found) if count != 1 else _items(found)[:-1]
            yield f"The class {name!r} has {count} {noun}, too few to be in training, validation and test."


def _structure(found: Audit) -> Iterator[str]:
    if found.duplicate_edges:
        yield f"{found.duplicate_edges:,} edges are stored more than once; a propagation counts each."
    if found.isolated_nodes:
        yield f"{found.isolated_nodes:,} of {found.nodes:,} nodes have no neighbours: only their features can tell their class."
    if found.directed:
        yield (
            f"The graph is directed ({found.reciprocal_percent:.1f} % of the edges run both ways): results depend on whether "
            "it is made undirected."
        )


def _items(found: Audit) -> str:
    return "graphs" if found.task == "graph" else "nodes"

"""Which nodes or graphs train, select and test: the splits of the literature and one's own.

A split is asked for by a short text, ``KIND[:ARGUMENTS][@SEED][#PICK]``:

=====================  ===============================================================================================
``public``             one that comes with the data, as do ``time`` (arxiv), ``heterophilous``, ``leaders`` (karate)
``geom``               the ten of geom-gcn (about 48/32/20 %); ``geom:3`` takes the first three
``random-20:100``      100 draws of 20 nodes a class to train, then 500 to validate and 1,000 to test
``diffusion:100``      100 draws as in graph neural diffusion: of the largest component, 1,500 development nodes; 20 a class
                       of them train, the other development nodes validate, all nodes outside test
``ratio:0.6,0.2:10``   10 draws of 60 % to train, 20 % to validate, the rest to test
``kfold:10``           10 folds with equal shares of each class; a tenth of each training part, stratified, validates
=====================  ===============================================================================================

``@7`` draws with seed 7 instead of 0, ``#3`` takes the split number 3 alone (counted from 0). The name of each split is the
text that asks for it alone. Draws never depend on how many there are, and order the raw numbers of PCG64, whose stream NumPy
guarantees: they are the same on every machine. Nodes of unknown label are in no random split.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from omegagnn.data.dataset import Dataset, Split
from omegagnn.errors import DataError, WrongUse
from omegagnn.graph import Graph

Integers = npt.NDArray[np.int64]

NUM_VALIDATION, NUM_TEST = 500, 1000
NUM_DEVELOPMENT, DIFFUSION_PER_CLASS = 1500, 20
INNER_FOLDS = 10
MOST_SPLITS = 10_000

_PATTERN = re.compile(r"(?P<kind>[^:@#]+)(?::(?P<arguments>[^@#]*))?(?:@(?P<seed>\d+))?(?:#(?P<pick>\d+))?")
_PARTS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


class _NoSuchSplitError(Exception):
    """The text asks for nothing that exists."""


def choose_splits(dataset: Dataset, text: str, also: Sequence[str] = ()) -> tuple[Split, ...]:
    """Return the splits that `text` asks for: some that the data set carries, or drawn ones; others are a `WrongUse`.

    `also` are families that an error should name beside those that are there.
    """
    try:
        return _choose(dataset, text)
    except _NoSuchSplitError:
        own = dict.fromkeys((*(family(split.name) for split in dataset.splits), *also))
        drawn = ["ratio:0.6,0.2", *(["kfold:10"] if dataset.task == "graph" else ["random-20:100", "diffusion:100"])]
        raise WrongUse(
            f"There is no split {text!r} for {dataset.name}: choose one of {', '.join([*own, *drawn])}, "
            "with :COUNT, @SEED or #PICK behind it if you like."
        ) from None


def _choose(dataset: Dataset, text: str) -> tuple[Split, ...]:
    carried = [split for split in dataset.splits if text in (split.name, family(split.name))]
    if carried:
        return tuple(carried)
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise _NoSuchSplitError
    kind, arguments = match["kind"], match["arguments"]
    seed, pick = int(match["seed"] or 0), None if match["pick"] is None else int(match["pick"])
    carried = [split for split in dataset.splits if family(split.name) == kind]
    if carried and match["seed"] is None and match["pick"] is None:
        return tuple(carried[: _count(arguments)])
    if kind == "ratio" and arguments:
        fractions, _, count = arguments.partition(":")
        return _drawn(_ratio(dataset, text, fractions), f"ratio:{fractions}", seed, _count(count), pick)
    if kind == "kfold":
        folds = _count(arguments, default=10)
        return _drawn(_kfold(dataset, folds, seed), f"kfold:{folds}", seed, folds, pick)
    if kind == "diffusion":
        return _drawn(_diffusion(dataset), kind, seed, _count(arguments), pick)
    if (per_class := re.fullmatch(r"random-(\d+)", kind)) is not None:
        return _drawn(_per_class(dataset, int(per_class[1])), kind, seed, _count(arguments), pick)
    raise _NoSuchSplitError


def _count(arguments: str | None, default: int = 1) -> int:
    if not arguments:
        return default
    if not arguments.isdecimal() or not 1 <= int(arguments) <= MOST_SPLITS:
        raise _NoSuchSplitError
    return int(arguments)


def family(name: str) -> str:
    """Return what a split's name has in common with its brothers: ``geom`` for ``geom#3``."""
    return name.split("#", maxsplit=1)[0]


def by_year(years: npt.ArrayLike, last_train: int = 2017, last_val: int = 2018) -> Split:
    """Train up to a year, validate up to another, test on what came later."""
    year = np.asarray(years)
    masks = (year <= last_train, (year > last_train) & (year <= last_val), year > last_val)
    return from_masks("time", *masks)


def from_masks(name: str, train: npt.ArrayLike, val: npt.ArrayLike, test: npt.ArrayLike) -> Split:
    """Make a split from three masks over the items."""
    return Split(name, *(torch.from_numpy(np.flatnonzero(np.asarray(mask))) for mask in (train, val, test)))


def from_column(name: str, values: Sequence[Any]) -> Split:
    """Make a split from a column that says ``train``, ``val`` or ``test`` for each item; an empty cell is in no part."""
    parts: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for place, value in enumerate(values):
        word = "" if value is None or value != value else str(value).strip().lower()  # noqa: PLR0124  (NaN is not itself)
        if not word:
            continue
        if word not in _PARTS:
            raise DataError(
                f"Split column {name!r} says {value!r} in row {place + 1}: write train, val, test or nothing."
            )
        parts[_PARTS[word]].append(place)
    return Split(name, *(torch.tensor(items, dtype=torch.long) for items in parts.values()))


def held_out(items: Integers, classes: Integers, share: float, seed: int) -> tuple[Integers, Integers]:
    """Divide items into those that train and those that validate: of each class `share` of its items, rounded, validate.

    Of a class of several items at least one validates and at least one trains; a class of one item trains.
    """
    train, val = [], []
    for number in np.unique(classes):
        order = _shuffled(items[classes == number], "held-out", seed, int(number))
        count = min(max(1, round(share * len(order))), len(order) - 1)
        val.append(order[:count])
        train.append(order[count:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(val))


# ---------------------------------------------------------------------------------------------------------------- draws

Draw = Callable[[str, int, int], tuple[Integers, Integers, Integers]]


def _drawn(draw: Draw, kind: str, seed: int, count: int, pick: int | None) -> tuple[Split, ...]:
    shown = kind if seed == 0 else f"{kind}@{seed}"
    numbers = range(count) if pick is None else [pick]
    return tuple(
        Split(f"{shown}#{number}", *(torch.from_numpy(np.sort(part)) for part in draw(kind, seed, number)))
        for number in numbers
    )


def _shuffled(items: Integers, kind: str, seed: int, number: int) -> Integers:
    """Return the items in an order that depends on nothing but the arguments."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, number, *kind.encode()]))
    return items[np.argsort(bits.random_raw(len(items)), kind="stable")]


def _ratio(dataset: Dataset, text: str, fractions: str) -> Draw:
    try:
        train, val = (float(part) for part in fractions.split(","))
    except ValueError:
        raise _NoSuchSplitError from None
    items = _items(dataset)
    whole = train > 0 and val >= 0 and train + val < 1
    num_train, num_val = (round(share * len(items)) if whole else 0 for share in (train, val))
    if num_train < 1 or num_train + num_val >= len(items):
        raise WrongUse(
            f"Split {text!r} leaves nothing to train or nothing to test on {dataset.name} ({len(items)} items): "
            "the two shares must be above 0 and together below 1."
        )

    def draw(kind: str, seed: int, number: int) -> tuple[Integers, Integers, Integers]:
        order = _shuffled(items, kind, seed, number)
        return order[:num_train], order[num_train : num_train + num_val], order[num_train + num_val :]

    return draw


def _per_class(dataset: Dataset, per_class: int) -> Draw:
    items, classes = _items(dataset), _classes(dataset, f"random-{per_class}")
    needed = per_class * len(np.unique(classes)) + NUM_VALIDATION + NUM_TEST
    _check_classes(dataset, classes, per_class)
    if per_class < 1 or len(items) < needed:
        raise WrongUse(
            f"Split 'random-{per_class}' needs at least 1 item a class and {needed} items in all, but {dataset.name} has "
            f"{len(items)}: use ratio:0.6,0.2."
        )

    def draw(kind: str, seed: int, number: int) -> tuple[Integers, Integers, Integers]:
        order = _shuffled(np.arange(len(items)), kind, seed, number)
        train = _first_of_each_class(order, classes, per_class)
        rest = order[~np.isin(order, train)]
        return items[train], items[rest[:NUM_VALIDATION]], items[rest[NUM_VALIDATION : NUM_VALIDATION + NUM_TEST]]

    return draw


def _diffusion(dataset: Dataset) -> Draw:
    every, labels = _items(dataset), _classes(dataset, "diffusion")
    if dataset.task != "node":
        raise WrongUse(
            f"Split 'diffusion' is for node classification, but {dataset.name} has many graphs: use kfold:10."
        )
    inside = np.isin(every, largest_component(dataset.graph))
    items, classes = every[inside], labels[inside]
    if len(items) <= NUM_DEVELOPMENT:
        raise WrongUse(
            f"Split 'diffusion' needs more than {NUM_DEVELOPMENT} labelled nodes in the largest component, but "
            f"{dataset.name} has {len(items)} there: use ratio:0.6,0.2."
        )

    def draw(kind: str, seed: int, number: int) -> tuple[Integers, Integers, Integers]:
        order = _shuffled(np.arange(len(items)), kind, seed, number)
        development, test = order[:NUM_DEVELOPMENT], order[NUM_DEVELOPMENT:]
        _check_classes(dataset, classes[development], DIFFUSION_PER_CLASS)
        train = _first_of_each_class(development, classes, DIFFUSION_PER_CLASS)
        return items[train], items[development[~np.isin(development, train)]], items[test]

    return draw


def _kfold(dataset: Dataset, folds: int, seed: int) -> Draw:
    items = _items(dataset)
    if not 2 <= folds <= len(items):
        raise WrongUse(f"Split 'kfold:{folds}' is not possible for {dataset.name}: take from 2 to {len(items)} folds.")
    plain = dataset.labels.is_floating_point() or dataset.task == "inductive"
    classes = np.zeros(len(items), dtype=np.int64) if plain else _classes(dataset, "kfold")

    def draw(kind: str, seed: int, number: int) -> tuple[Integers, Integers, Integers]:
        if number >= folds:
            raise WrongUse(f"Split '{kind}#{number}' does not exist: the folds are numbered 0 to {folds - 1}.")
        fold = _dealt(classes, folds, kind, seed, 0)
        rest = np.flatnonzero(fold != number)
        held = _dealt(classes[rest], INNER_FOLDS, f"{kind} inner", seed, number) == 0
        return items[rest[~held]], items[rest[held]], items[fold == number]

    return draw


def _dealt(classes: Integers, hands: int, kind: str, seed: int, number: int) -> Integers:
    """Deal the items out like cards, class after class: hands differ by one item at most, and so does each class."""
    order = _shuffled(np.arange(len(classes)), kind, seed, number)
    order = order[np.argsort(classes[order], kind="stable")]
    hand = np.empty(len(classes), dtype=np.int64)
    hand[order] = np.arange(len(classes)) % hands
    return hand


def _first_of_each_class(order: Integers, classes: Integers, per_class: int) -> Integers:
    return np.concatenate([order[classes[order] == number][:per_class] for number in np.unique(classes)])


# ------------------------------------------------------------------------------------------------------ what is divided


def largest_component(graph: Graph) -> Integers:
    """Return the nodes of the largest component, direction aside; of two equal ones the one with the lowest node."""
    receiver, sender = graph.row.cpu().numpy(), graph.col.cpu().numpy()
    entries = (np.ones(graph.num_edges, dtype=np.int8), (sender, receiver))
    _, component = connected_components(coo_array(entries, shape=(graph.num_nodes,) * 2), directed=False)
    return np.flatnonzero(component == np.bincount(component).argmax())


def _items(dataset: Dataset) -> Integers:
    """Return the nodes or graphs with a known label."""
    labels = dataset.labels
    if dataset.task == "inductive":
        known = torch.ones(dataset.num_graphs, dtype=torch.bool)
    elif labels.is_floating_point():
        known = torch.isfinite(labels if labels.dim() == 1 else labels.sum(dim=1))
    else:
        known = labels >= 0
    items = known.nonzero().flatten().numpy()
    if len(items) == 0:
        raise WrongUse(f"{dataset.name} has no labelled item to split: give it labels or a split column.")
    return items


def _classes(dataset: Dataset, kind: str) -> Integers:
    if dataset.labels.is_floating_point() or dataset.task == "inductive":
        raise WrongUse(
            f"Split {kind!r} needs one class an item, which {dataset.name} does not have: use ratio:0.6,0.2."
        )
    return dataset.labels.numpy()[_items(dataset)]


def _check_classes(dataset: Dataset, classes: Integers, wanted: int) -> None:
    numbers, counts = np.unique(classes, return_counts=True)
    if counts.min() < wanted:
        worst = int(counts.argmin())
        raise WrongUse(
            f"The split wants {wanted} items of every class, but class {numbers[worst]} of {dataset.name} has "
            f"{counts[worst]}: use ratio:0.6,0.2."
        )

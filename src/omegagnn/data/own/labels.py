"""Class labels and user-given splits, read from columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from omegagnn.data.dataset import Split
from omegagnn.data.own.cells import missing, texts
from omegagnn.data.own.tables import Table
from omegagnn.errors import DataError

_PARTS = {
    **dict.fromkeys(("train", "training"), 0),
    **dict.fromkeys(("val", "valid", "validation", "dev"), 1),
    **dict.fromkeys(("test", "testing"), 2),
    **dict.fromkeys(("none", "unused", "-"), -1),
}


def read_labels(table: Table, column: str, known: tuple[str, ...] = ()) -> tuple[Tensor, tuple[str, ...]]:
    """Return the class of each row (-1 where the cell is missing) and the names of the classes.

    Classes are in numerical order where all are whole numbers, else in alphabetical order; with `known` classes, any
    other is an error.
    """
    values, _ = texts(table.require(column, "the label"))
    gone = missing(values)
    names = known or _ordered([str(name) for name in pd.unique(pd.Series(values[~gone], dtype=object))])
    if not known:
        _check_classes(table, column, names, int((~gone).sum()))
    position = pd.Index(names, dtype=object).get_indexer(pd.Index(values, dtype=object)).astype(np.int64)
    position[gone] = -1
    foreign = np.flatnonzero((position < 0) & ~gone)
    if foreign.size:
        row = int(foreign[0])
        raise DataError(
            f"{table.where(row)}: {values[row]!r} in column {column!r} is none of the classes {', '.join(names[:20])}: "
            "mend the cell or leave it empty."
        )
    return torch.from_numpy(position), names


def read_split(table: Table, column: str, labels: Tensor, classes: tuple[str, ...]) -> Split:
    """Return the split that a column of ``train``, ``val``, ``test`` and empty cells spells out."""
    values, _ = texts(table.require(column, "the split"))
    lowered = pd.Series(values, dtype=object).str.strip().str.lower()
    part = np.array([_PARTS.get(text, -2) for text in lowered.tolist()], dtype=np.int64)
    part[missing(values)] = -1
    odd = np.flatnonzero(part == -2)
    if odd.size:
        row = int(odd[0])
        raise DataError(
            f"{table.where(row)}: {values[row]!r} in the split column {column!r} is none of train, val and test: "
            "write one of them or leave the cell empty."
        )
    _check_split(table, column, part, labels.numpy(), classes)
    train, val, test = (torch.from_numpy(np.flatnonzero(part == which).astype(np.int64)) for which in range(3))
    return Split(column, train, val, test)


def _check_classes(table: Table, column: str, names: tuple[str, ...], rows: int) -> None:
    if rows == 0:
        raise DataError(
            f"{table.label}: the label column {column!r} is empty in every row: fill it or leave out --label."
        )
    if len(names) == 1:
        raise DataError(
            f"{table.label}: the label column {column!r} has the one class {names[0]!r}: there is nothing to learn; "
            "give it two classes or leave out --label."
        )
    if rows >= 20 and len(names) * 2 > rows:
        raise DataError(
            f"{table.label}: the label column {column!r} has {len(names)} different values in {rows} rows, which are no "
            "classes: group the values into classes or name another column."
        )


def _check_split(
    table: Table, column: str, part: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], classes: tuple[str, ...]
) -> None:
    for which, name in ((0, "train"), (1, "val"), (2, "test")):
        if not (part == which).any():
            raise DataError(
                f"{table.label}: the split column {column!r} has no row for {name}: mark some rows {name!r}."
            )
    unlabelled = np.flatnonzero((part >= 0) & (labels < 0))
    if unlabelled.size:
        row = int(unlabelled[0])
        raise DataError(
            f"{table.where(row)}: the row is in {('train', 'val', 'test')[part[row]]} by the split column {column!r} but has "
            "no label: label it or leave the split cell empty."
        )
    learnt = np.unique(labels[part == 0])
    for which, name in ((1, "val"), (2, "test")):
        strange = np.flatnonzero((part == which) & ~np.isin(labels, learnt))
        if strange.size:
            row = int(strange[0])
            raise DataError(
                f"{table.where(row)}: the class {classes[labels[row]]!r} is in {name} but never in train by the split column "
                f"{column!r}: put a row of this class into train."
            )


def _ordered(names: list[str]) -> tuple[str, ...]:
    try:
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    except ValueError:
        return tuple(sorted(names))

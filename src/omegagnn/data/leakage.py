"""Feature columns that give the label away.

Each column is cut into the values it takes, or into up to 64 ranges of equal count where it takes more, and the label is
guessed by the most frequent class of each. A column is suspect when that guess is right for 95 % of the labelled nodes and
removes nine tenths of the errors of guessing the most frequent class; or when it is not zero exactly on the nodes of one
class (of five nodes or more), as a column of a one-hot label is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from omegagnn.data.dataset import Dataset

MOST_RANGES, NODES_A_RANGE = 64, 20
SUSPECT_ACCURACY, ERRORS_LEFT = 0.95, 0.1
SMALLEST_CLASS = 5

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Leak:
    """A suspect column: its position, its name and the accuracy of guessing the label (or the class) from it alone."""

    column: int
    name: str
    accuracy_percent: float
    marks_class: str | None = None


def best_single_feature(dataset: Dataset) -> tuple[float, tuple[Leak, ...]]:
    """Return the accuracy, in per cent, of the best guess by one column, and the columns that are suspect."""
    known = np.flatnonzero(dataset.labels.numpy() >= 0)
    labels: Labels = dataset.labels.numpy()[known]
    if not known.size or dataset.num_features == 0:
        return 0.0, ()
    sizes = np.bincount(labels, minlength=dataset.num_classes)
    right, marked = _filled_or_not(_csr(dataset.features)[known], labels, sizes)
    for column in _columns_of_many_values(dataset.features):
        values = _dense_column(dataset.features, column)[known]
        right[column] = max(right[column], _by_ranges(values, labels, sizes.size))
    accuracy, baseline = right / known.size, sizes.max() / known.size
    needed = max(SUSPECT_ACCURACY, 1 - ERRORS_LEFT * (1 - baseline))
    suspects = np.flatnonzero((accuracy >= needed) & (accuracy > baseline) | (marked >= 0))
    leaks = [
        Leak(
            int(column),
            dataset.feature_names[column] if dataset.feature_names else f"number {column}",
            100.0 if marked[column] >= 0 else 100 * float(accuracy[column]),
            _class_name(dataset, int(marked[column])),
        )
        for column in suspects
    ]
    return 100 * float(accuracy.max()), tuple(leaks)


def _filled_or_not(matrix: Any, labels: Labels, sizes: Labels) -> tuple[Labels, Labels]:
    """Return how many nodes are guessed right by a cell being zero or not, and the class that a column marks (-1: none)."""
    filled = matrix.copy()
    filled.data = (filled.data != 0).astype(np.int64)
    rows = np.arange(labels.size)
    classes = sp.csr_array((np.ones(labels.size, dtype=np.int64), (rows, labels)), shape=(labels.size, sizes.size))
    counts = (filled.T @ classes).toarray()
    right = counts.max(axis=1) + (sizes[None] - counts).max(axis=1)
    marks = (counts == counts.sum(axis=1, keepdims=True)) & (counts == sizes[None]) & (sizes[None] >= SMALLEST_CLASS)
    marks &= sizes[None] < labels.size
    return right, np.where(marks.any(axis=1), marks.argmax(axis=1), -1)


def _columns_of_many_values(features: torch.Tensor) -> list[int]:
    """Return the columns that hold anything but zero and one other value."""
    if features.layout == torch.sparse_csr:
        matrix = _csr(features).tocsc()
        starts = matrix.indptr
        filled = np.flatnonzero(np.diff(starts) > 0)
        lowest, highest = (part.reduceat(matrix.data, starts[filled]) for part in (np.minimum, np.maximum))
        return [int(column) for column in filled[lowest != highest]]
    low, high = features.amin(dim=0), features.amax(dim=0)
    two = ((features == low) | (features == high)).all(dim=0) & ((low == 0) | (high == 0))
    return [int(column) for column in (~two).nonzero().flatten()]


def _by_ranges(values: npt.NDArray[np.float32], labels: Labels, classes: int) -> int:
    distinct, cell = np.unique(values, return_inverse=True)
    if distinct.size > max(2, min(MOST_RANGES, labels.size // NODES_A_RANGE)):
        ranges = max(2, min(MOST_RANGES, labels.size // NODES_A_RANGE))
        borders = np.quantile(values, np.linspace(0, 1, ranges + 1)[1:-1])
        cell = np.searchsorted(borders, values, side="right")
    counts = np.bincount(cell * classes + labels, minlength=(int(cell.max()) + 1) * classes).reshape(-1, classes)
    return int(counts.max(axis=1).sum())


def _csr(features: torch.Tensor) -> Any:
    if features.layout != torch.sparse_csr:
        return sp.csr_array(features.numpy())
    parts = (features.values().numpy(), features.col_indices().numpy(), features.crow_indices().numpy())
    return sp.csr_array(parts, shape=(features.size(0), features.size(1)))


def _dense_column(features: torch.Tensor, column: int) -> npt.NDArray[np.float32]:
    if features.layout != torch.sparse_csr:
        return features[:, column].numpy()
    chosen = features.col_indices() == column
    row = torch.repeat_interleave(torch.arange(features.size(0)), features.crow_indices().diff())[chosen]
    dense = torch.zeros(features.size(0)).index_put((row,), features.values()[chosen])
    return dense.numpy()


def _class_name(dataset: Dataset, number: int) -> str | None:
    if number < 0:
        return None
    return dataset.class_names[number] if number < len(dataset.class_names) else str(number)

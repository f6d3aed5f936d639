"""Predictions as a table that speaks the user's language: their ids, their class names, their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from omegagnn.data.dataset import Dataset
from omegagnn.errors import WrongUse
from omegagnn.files import replacing

BETWEEN = ";"  # stands between the names of several labels of one item


def write_predictions(
    dataset: Dataset,
    predictions: torch.Tensor | npt.ArrayLike,
    path: str | Path,
    ids: Sequence[str] | None = None,
    several: bool = False,
) -> None:
    """Write the table of `prediction_table` as a CSV file, in one piece or not at all."""
    table = prediction_table(dataset, predictions, ids, several)
    with replacing(path) as part:
        table.to_csv(part, index=False, float_format="%.6g", lineterminator="\n")


def prediction_table(
    dataset: Dataset,
    predictions: torch.Tensor | npt.ArrayLike,
    ids: Sequence[str] | None = None,
    several: bool = False,
) -> pd.DataFrame:
    """Return a table with the columns ``id``, ``predicted`` and, where probabilities are given, ``p(CLASS)`` for each class.

    Args:
        dataset: the data set that was predicted; its ids (`item_ids`) stand in the first column, in its order.
        predictions: classes ``[items]`` or probabilities ``[items, classes]``.
        ids: other ids.
        several: whether an item may have several labels at once; ``predicted`` then names those with a probability above
            one half, separated by semicolons.
    """
    values = np.asarray(predictions.detach().cpu() if isinstance(predictions, torch.Tensor) else predictions)
    items = dataset.num_graphs if dataset.task == "graph" else dataset.num_nodes
    names = dataset.class_names or tuple(map(str, range(dataset.num_classes)))
    ids = item_ids(dataset) if ids is None else ids
    fits = (values.ndim == 1 and not several) or (values.ndim == 2 and values.shape[1] == len(names))
    if len(values) != items or len(ids) != items or not fits:
        raise WrongUse(
            f"The predictions have shape {values.shape} and there are {len(ids)} ids, but {dataset.name} has {items} items and "
            f"{len(names)} classes: give one row for each item."
        )
    columns: dict[str, object] = {"id": list(ids), "predicted": _names(values, names, several, dataset.name)}
    if values.ndim == 2:
        columns.update({f"p({name})": values[:, k] for k, name in enumerate(names)})
    return pd.DataFrame(columns)


def item_ids(dataset: Dataset) -> Sequence[str]:
    """Return what a user calls the items that have a label: graphs of a graph task, else nodes; their numbers if nothing."""
    if dataset.task == "graph":
        known = () if dataset.schema is None else dataset.schema.graph_ids
        return known if len(known) == dataset.num_graphs else [str(k) for k in range(dataset.num_graphs)]
    return [str(k) for k in range(dataset.num_nodes)] if dataset.node_ids is None else dataset.node_ids


def _names(values: npt.NDArray[np.generic], names: Sequence[str], several: bool, label: str) -> list[str]:
    if several:
        positive = np.asarray(values, dtype=np.float64) > 0.5
        return [
            BETWEEN.join(name for name, given in zip(names, row, strict=True) if given) for row in positive.tolist()
        ]
    classes = values.astype(np.int64) if values.ndim == 1 else values.argmax(axis=1)
    if classes.size and not 0 <= int(classes.min()) <= int(classes.max()) < len(names):
        raise WrongUse(
            f"A predicted class lies outside 0 to {len(names) - 1}, the classes of {label}: check the model."
        )
    return [names[k] for k in classes.tolist()]

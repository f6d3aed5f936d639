"""Predictions as a table that speaks the user's language: their ids, their class names, their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from omegagnn.data.cache import replacing
from omegagnn.data.dataset import Dataset
from omegagnn.errors import WrongUse


def write_predictions(
    dataset: Dataset, predictions: torch.Tensor | npt.ArrayLike, path: str | Path, ids: Sequence[str] | None = None
) -> None:
    """Write a CSV with the columns ``id``, ``predicted`` and, where probabilities are given, ``p(CLASS)`` for each class.

    Args:
        dataset: the data set that was predicted; its node ids stand in the first column, in its order.
        predictions: classes ``[items]`` or probabilities ``[items, classes]``.
        path: the file, written in one piece or not at all.
        ids: other ids, such as a schema's ``graph_ids`` for a graph task.
    """
    values = np.asarray(predictions.detach().cpu() if isinstance(predictions, torch.Tensor) else predictions)
    items = dataset.num_graphs if dataset.task == "graph" else dataset.num_nodes
    names = dataset.class_names or tuple(map(str, range(dataset.num_classes)))
    if ids is None:
        ids = (
            dataset.node_ids
            if dataset.task != "graph" and dataset.node_ids is not None
            else [str(k) for k in range(items)]
        )
    fits = values.ndim == 1 or (values.ndim == 2 and values.shape[1] == len(names))
    if len(values) != items or len(ids) != items or not fits:
        raise WrongUse(
            f"The predictions have shape {values.shape} and there are {len(ids)} ids, but {dataset.name} has {items} items and "
            f"{len(names)} classes: give one row for each item."
        )
    classes = values.astype(np.int64) if values.ndim == 1 else values.argmax(axis=1)
    if classes.size and not 0 <= int(classes.min()) <= int(classes.max()) < len(names):
        raise WrongUse(
            f"A predicted class lies outside 0 to {len(names) - 1}, the classes of {dataset.name}: check the model."
        )
    columns: dict[str, object] = {"id": list(ids), "predicted": np.array(names, dtype=object)[classes]}
    if values.ndim == 2:
        columns.update({f"p({name})": values[:, k] for k, name in enumerate(names)})
    with replacing(path) as part:
        pd.DataFrame(columns).to_csv(part, index=False, float_format="%.6g", lineterminator="\n")

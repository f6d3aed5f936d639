"""The npz files of the heterophilous-graphs benchmark: minesweeper, filtered chameleon and squirrel.

An undirected edge is written once; it becomes two, as in PyTorch Geometric.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.readers.edges import simple_graph, sparsified
from omegagnn.data.readers.npz import read_npz, require
from omegagnn.errors import DataError

ARRAYS = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")
LARGEST_FILE = 2**30
# Bags of words have thousands of columns, nearly all zero; minesweeper has seven.
SPARSE_FROM = 100


def read_heterophilous(files: Mapping[str, Path], name: str) -> Dataset:
    """Read the only file given, with its splits ``heterophilous#0`` and so on."""
    (path,) = files.values()
    arrays = read_npz(path, limit=LARGEST_FILE)
    require(arrays, ARRAYS, str(path))
    features, labels, edges = (arrays[key] for key in ARRAYS[:3])
    n = len(features) if features.ndim == 2 else -1
    masks = [arrays[key] for key in ARRAYS[3:]]
    whole = edges.ndim == 2 and edges.shape[1] == 2 and edges.dtype.kind in "iu" and features.dtype.kind == "f"
    fit = labels.shape == (n,) and labels.dtype.kind in "iu" and all(mask.shape == (len(masks[0]), n) for mask in masks)
    if not whole or not fit or n == 0 or labels.min() < 0 or not np.isfinite(features).all():
        raise DataError(f"{path} does not hold one graph with features, labels and masks: fetch it again.")
    both = np.concatenate([edges, edges[:, ::-1]])
    wide = features.shape[1] >= SPARSE_FROM
    return Dataset(
        name=name,
        task="node",
        graph=simple_graph(both[:, 0], both[:, 1], n, str(path)),
        features=sparsified(features) if wide else torch.from_numpy(features.astype(np.float32)),
        labels=torch.from_numpy(labels.astype(np.int64)),
        splits=tuple(
            Split(f"heterophilous#{number}", *(torch.from_numpy(np.flatnonzero(mask[number])) for mask in masks))
            for number in range(len(masks[0]))
        ),
        class_names=tuple(str(number) for number in range(int(labels.max()) + 1)),
    )

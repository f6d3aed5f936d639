"""The text files of geom-gcn: chameleon, squirrel, film (actor) and the WebKB pages, and their ten splits.

``out1_node_feature_label.txt`` has a heading and a line ``id <tab> features <tab> label`` a node; film lists the numbers of
the features a node has, the others write every feature as 0 or 1. ``out1_graph_edges.txt`` has a heading and a line
``id <tab> id`` an edge. Edges are directed and distinct, self-loops are kept, as in PyTorch Geometric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.readers.edges import simple_graph, sparse_features
from omegagnn.data.readers.npz import read_npz, require
from omegagnn.data.readers.text import read_bytes, read_table
from omegagnn.errors import DataError

NODES, EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"
LARGEST_FILE = 256 * 2**20
LARGEST_SPLIT = 64 * 2**20


def read_geom_gcn(files: Mapping[str, Path], name: str) -> Dataset:
    """Read nodes and edges; the splits are in files of their own (`read_geom_splits`)."""
    path = files[NODES]
    ids, texts, labels = _node_lines(path)
    # A heading of film reads "feature(feature_amount:931)": its lines list numbers of features.
    listed = b"feature_amount" in read_bytes(path, LARGEST_FILE).split(b"\n", 1)[0]
    features = _listed_features(texts, path) if listed else _written_features(texts, path)
    edges = read_table(files[EDGES], 2, delimiter="\t", skip=1)
    return Dataset(
        name=name,
        task="node",
        graph=simple_graph(edges[:, 0], edges[:, 1], len(ids), str(files[EDGES])),
        features=features,
        labels=torch.from_numpy(labels),
        class_names=tuple(str(number) for number in range(int(labels.max()) + 1)),
    )


def read_geom_splits(paths: Sequence[Path], num_nodes: int) -> tuple[Split, ...]:
    """Read split files, one a split, with the masks ``train_mask``, ``val_mask`` and ``test_mask``."""
    splits = []
    for number, path in enumerate(paths):
        masks = read_npz(path, limit=LARGEST_SPLIT)
        names = ("train_mask", "val_mask", "test_mask")
        require(masks, names, str(path))
        if any(masks[key].shape != (num_nodes,) or masks[key].dtype.kind not in "biu" for key in names):
            raise DataError(f"{path} does not hold masks over {num_nodes} nodes: it belongs to another data set.")
        splits.append(Split(f"geom#{number}", *(torch.from_numpy(np.flatnonzero(masks[key])) for key in names)))
    return tuple(splits)


def _node_lines(path: Path) -> tuple[npt.NDArray[np.int64], list[bytes], npt.NDArray[np.int64]]:
    """Return ids, feature texts in the order of the ids, and labels likewise."""
    lines = read_bytes(path, LARGEST_FILE).split(b"\n")[1:]
    rows = [line.rstrip(b"\r").split(b"\t") for line in lines if line.strip()]
    n = len(rows)
    if n == 0:
        raise DataError(f"{path} has no node: fetch it again.")
    for number, row in enumerate(rows):
        if len(row) != 3:
            raise DataError(f"{path}, line {number + 2}, has {len(row)} columns where 3 belong: fetch it again.")
    try:
        ids, labels = (np.array([int(row[column]) for row in rows], dtype=np.int64) for column in (0, 2))
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path} has an id or a label that is not a number ({error}): fetch it again.") from error
    order = np.argsort(ids, kind="stable")
    if not np.array_equal(ids[order], np.arange(n)):
        raise DataError(f"{path} does not number its {n} nodes from 0 to {n - 1}: fetch it again.")
    if labels.min() < 0 or labels.max() >= n:
        raise DataError(f"{path} has the label {int(labels.min())} or {int(labels.max())}: fetch it again.")
    return ids[order], [rows[place][1] for place in order], labels[order]


def _written_features(texts: list[bytes], path: Path) -> Tensor:
    """Every feature is written: ``0,1,0,...``, one digit each."""
    width = len(texts[0])
    for node, text in enumerate(texts):
        if len(text) != width or width % 2 == 0:
            raise DataError(f"{path}: node {node} has another number of features than node 0: fetch it again.")
    table = np.frombuffer(b"".join(texts), dtype=np.uint8).reshape(len(texts), width)
    digits, commas = table[:, ::2], table[:, 1::2]
    wrong = (commas != ord(",")).any(axis=1) | ((digits != ord("0")) & (digits != ord("1"))).any(axis=1)
    if wrong.any():
        raise DataError(f"{path}: node {int(wrong.argmax())} has features other than 0 and 1: fetch it again.")
    row, col = np.nonzero(digits == ord("1"))
    return _binary(row, col, len(texts), digits.shape[1])


def _listed_features(texts: list[bytes], path: Path) -> Tensor:
    """The numbers of the features that a node has: ``21,400,7``."""
    try:
        listed = [np.unique(np.array(text.split(b","), dtype=np.int64)) for text in texts]
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path} lists a feature that is not a number ({error}): fetch it again.") from error
    row = np.repeat(np.arange(len(listed)), [len(numbers) for numbers in listed])
    col = np.concatenate(listed)
    if col.min() < 0 or col.max() >= LARGEST_FILE:
        raise DataError(f"{path} lists a feature {int(col.min())} or {int(col.max())}: fetch it again.")
    return _binary(row, col, len(listed), int(col.max()) + 1)


def _binary(row: npt.NDArray[np.int64], col: npt.NDArray[np.int64], rows: int, columns: int) -> Tensor:
    rowptr = np.concatenate([[0], np.bincount(row, minlength=rows).cumsum()])
    return sparse_features(rowptr, col, np.ones(len(col)), columns)

"""PPI: 24 graphs of proteins whose nodes have any of 121 labels, in twelve files.

They are ``graph.json``, ``feats.npy``, ``labels.npy`` and ``graph_id.npy`` behind ``train_``, ``valid_`` and ``test_``.
A ``graph.json`` is NetworkX's node-link form. Row ``k`` of the three arrays belongs to the node with the id ``k``; the ids of
graphs start anywhere and rise. As in PyTorch Geometric edges run both ways where the file is undirected, are distinct, have
no self-loops, and an edge between two graphs is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.readers.edges import simple_graph
from omegagnn.data.readers.npz import read_npy
from omegagnn.data.readers.text import read_bytes
from omegagnn.errors import DataError

PARTS = ("train", "valid", "test")
FILES = tuple(f"{part}_{name}" for part in PARTS for name in ("graph.json", "feats.npy", "labels.npy", "graph_id.npy"))


class _Block(NamedTuple):
    """The graphs of one part, with nodes ordered by graph."""

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    sender: npt.NDArray[np.int64]
    receiver: npt.NDArray[np.int64]


def read_ppi(files: Mapping[str, Path], name: str) -> Dataset:
    """Read the twelve files, given by their names; the split ``public`` lists graphs."""
    blocks = [_read_part(files, part) for part in PARTS]
    for field in ("features", "labels"):
        if len({getattr(block, field).shape[1] for block in blocks}) != 1:
            raise DataError(f"The {field} of PPI's train, valid and test files differ in width: fetch them again.")
    starts = np.cumsum([0, *(len(block.features) for block in blocks)])
    sizes = np.concatenate([block.sizes for block in blocks])
    sender = np.concatenate([block.sender + start for block, start in zip(blocks, starts, strict=False)])
    receiver = np.concatenate([block.receiver + start for block, start in zip(blocks, starts, strict=False)])
    bounds = np.cumsum([0, *(len(block.sizes) for block in blocks)])
    parts = [torch.arange(low, high) for low, high in pairwise(bounds)]
    return Dataset(
        name=name,
        task="inductive",
        graph=simple_graph(sender, receiver, int(starts[-1]), "PPI", self_loops=False),
        features=torch.from_numpy(np.concatenate([block.features for block in blocks])),
        labels=torch.from_numpy(np.concatenate([block.labels for block in blocks])),
        splits=(Split("public", *parts),),
        ptr=torch.from_numpy(np.concatenate([[0], sizes.cumsum()])),
    )


def _read_part(files: Mapping[str, Path], part: str) -> _Block:
    features, labels, graph_id = (read_npy(files[f"{part}_{name}.npy"]) for name in ("feats", "labels", "graph_id"))
    n = len(graph_id)
    shapes = features.ndim == labels.ndim == 2 and graph_id.ndim == 1 and len(features) == len(labels) == n > 0
    if not shapes or graph_id.dtype.kind not in "iu":
        raise DataError(f"{part}_feats.npy, {part}_labels.npy and {part}_graph_id.npy of PPI do not fit together.")
    if not np.isfinite(features).all() or not np.isin(labels, (0, 1)).all():
        raise DataError(
            f"{part}_feats.npy or {part}_labels.npy of PPI holds numbers that do not belong: fetch them again."
        )
    sender, receiver = _links(files[f"{part}_graph.json"], n)
    _, graph, sizes = np.unique(graph_id, return_inverse=True, return_counts=True)
    within = graph[sender] == graph[receiver]
    order = np.argsort(graph, kind="stable")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    return _Block(
        features[order].astype(np.float32),
        labels[order].astype(np.float32),
        sizes.astype(np.int64),
        place[sender[within]],
        place[receiver[within]],
    )


def _links(path: Path, num_nodes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    try:
        content: dict[str, Any] = json.loads(read_bytes(path))
        links = np.array([(link["source"], link["target"]) for link in content["links"]]).reshape(-1, 2)
        directed = bool(content.get("directed", False))
        if links.size and links.dtype.kind != "i":
            raise TypeError("a link does not name two node numbers")
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise DataError(f"{path} is not a graph in NetworkX's node-link form ({error}): fetch it again.") from error
    if links.size and not 0 <= links.min() <= links.max() < num_nodes:
        raise DataError(f"{path} has a link to a node that is not among 0 to {num_nodes - 1}: fetch it again.")
    links = links.astype(np.int64)
    if not directed:
        links = np.concatenate([links, links[:, ::-1]])
    return links[:, 0], links[:, 1]

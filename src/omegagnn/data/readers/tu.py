"""Graph classification sets of TU Dortmund: ``<NAME>_{A,graph_indicator,graph_labels,node_labels}.txt``.

Features are the node labels, one-hot over those that occur (as in PyTorch Geometric; PROTEINS' attribute is left out, as by
its default). Distinct edges without self-loops, in the direction of the file (which lists both).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset
from omegagnn.data.readers.edges import simple_graph
from omegagnn.data.readers.text import read_table
from omegagnn.errors import DataError

PARTS = ("A", "graph_indicator", "graph_labels", "node_labels")
MOST_NODE_LABELS = 4096


def read_tu(files: Mapping[str, Path], name: str) -> Dataset:
    """Read the four files, given by their names, as one block-diagonal graph."""
    prefix = next(file.removesuffix("_A.txt") for file in files if file.endswith("_A.txt"))
    paths = {part: files[f"{prefix}_{part}.txt"] for part in PARTS}
    edges = read_table(paths["A"], 2) - 1
    indicator = read_table(paths["graph_indicator"], 1).ravel() - 1
    graph_labels = read_table(paths["graph_labels"], 1).ravel()
    ptr = _ptr(indicator, len(graph_labels), paths["graph_indicator"])
    graph = simple_graph(edges[:, 0], edges[:, 1], len(indicator), str(paths["A"]), self_loops=False)
    sender, receiver = graph.to_edge_index()[0].numpy()
    if (indicator[sender] != indicator[receiver]).any():
        raise DataError(f"{paths['A']} has an edge from one graph to another: fetch it again.")
    classes, labels = np.unique(graph_labels, return_inverse=True)
    features, feature_names = _one_hot(paths["node_labels"], len(indicator))
    return Dataset(
        name=name,
        task="graph",
        graph=graph,
        features=features,
        labels=torch.from_numpy(labels.astype(np.int64)),
        ptr=torch.from_numpy(ptr),
        class_names=tuple(str(label) for label in classes),
        feature_names=feature_names,
    )


def _ptr(indicator: npt.NDArray[np.int64], num_graphs: int, path: Path) -> npt.NDArray[np.int64]:
    if len(indicator) == 0 or (np.diff(indicator) < 0).any() or indicator[0] < 0 or indicator[-1] >= num_graphs:
        raise DataError(f"{path} does not give the nodes of {num_graphs} graphs in order: fetch it again.")
    return np.concatenate([[0], np.bincount(indicator, minlength=num_graphs).cumsum()])


def _one_hot(path: Path, num_nodes: int) -> tuple[Tensor, tuple[str, ...]]:
    numbers = read_table(path, 1).ravel()
    if len(numbers) != num_nodes:
        raise DataError(f"{path} has {len(numbers)} labels for {num_nodes} nodes: fetch it again.")
    low, high = int(numbers.min()), int(numbers.max())
    if high - low >= MOST_NODE_LABELS:
        raise DataError(f"{path} has labels from {low} to {high}, more than {MOST_NODE_LABELS}: fetch it again.")
    features = torch.zeros(num_nodes, high - low + 1)
    features[torch.arange(num_nodes), torch.from_numpy(numbers - low)] = 1
    return features, tuple(f"label {number}" for number in range(low, high + 1))

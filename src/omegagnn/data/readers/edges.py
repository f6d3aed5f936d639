"""Turn lists of edges into the graph that PyTorch Geometric's loaders make of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from omegagnn.errors import DataError
from omegagnn.graph import Graph
from omegagnn.graph_checks import INT32_LIMIT

Integers = npt.NDArray[np.integer[Any]]


def simple_graph(sender: Integers, receiver: Integers, num_nodes: int, label: str, self_loops: bool = True) -> Graph:
    """Build the graph of the distinct edges, with or without self-loops; `label` is what an error calls the source."""
    if len(sender):
        low, high = min(sender.min(), receiver.min()), max(sender.max(), receiver.max())
        if low < 0 or high >= num_nodes:
            bad = low if low < 0 else high
            raise DataError(f"{label} has an edge at node {bad}, but nodes are numbered 0 to {num_nodes - 1}.")
    if not self_loops:
        kept = sender != receiver
        sender, receiver = sender[kept], receiver[kept]
    # Sorting and looking at neighbours is several times faster than np.unique where there are millions.
    key = np.sort(receiver.astype(np.int64) * num_nodes + sender)
    kept = np.ones(len(key), dtype=bool)
    np.not_equal(key[1:], key[:-1], out=kept[1:])
    row, col = np.divmod(key[kept], max(num_nodes, 1))
    dtype = np.int32 if max(num_nodes, len(row)) + num_nodes < INT32_LIMIT else np.int64
    rowptr = np.zeros(num_nodes + 1, dtype=dtype)
    rowptr[1:] = np.bincount(row, minlength=num_nodes).cumsum()
    return Graph(torch.from_numpy(rowptr), torch.from_numpy(col.astype(dtype)), None)


def sparse_features(rowptr: Integers, col: Integers, values: npt.NDArray[Any], columns: int) -> Tensor:
    """Make torch sparse CSR features from compressed rows whose columns rise within each row."""
    parts = (rowptr.astype(np.int32), col.astype(np.int32), values.astype(np.float32))
    return torch_csr(*(torch.from_numpy(part) for part in parts), shape=(len(rowptr) - 1, columns))


def torch_csr(rowptr: Tensor, col: Tensor, value: Tensor, *, shape: tuple[int, int]) -> Tensor:
    """Make a torch sparse CSR tensor of parts that are known to fit, without torch's checks and its notice of a beta."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        return torch.sparse_csr_tensor(rowptr, col, value, shape, check_invariants=False)


def sparsified(dense: npt.NDArray[Any]) -> Tensor:
    """Make torch sparse CSR features from a dense array."""
    row, col = np.nonzero(dense)
    rowptr = np.concatenate([[0], np.bincount(row, minlength=len(dense)).cumsum()])
    return sparse_features(rowptr, col, dense[row, col], dense.shape[1])

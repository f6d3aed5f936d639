r"""Features made from the structure of the graph, for graphs that have none of their own.

* ``one-hot``: the identity matrix; each node is told from every other, so no other node can be coded later.
* ``degree``: :math:`\log(1 + d)` of the number of edges that enter a node, and of those that leave it in a directed graph.
* ``positional``: eigenvectors of :math:`D^{-1/2} A D^{-1/2}` (of the undirected graph, without weights) for its largest
  eigenvalues after the first, up to 8 of them, times :math:`\sqrt n`; the entry of largest size is made positive. They are
  fixed by the graph, so a changed graph cannot be coded with them later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from omegagnn.data.own.schema import NodeFeatures
from omegagnn.errors import DataError, WrongUse
from omegagnn.graph import Graph

POSITIONS = 8
# Below this size the full decomposition is quicker and has no convergence to worry about.
_SMALL = 256


def structural_features(graph: Graph, kind: NodeFeatures) -> tuple[Tensor, tuple[str, ...]]:
    """Return the features ``[n, k]`` and their names."""
    if kind == "one-hot":
        return _identity(graph.num_nodes), tuple(f"node={number}" for number in range(graph.num_nodes))
    if kind == "degree":
        directions = (
            {"log_in_degree": graph}
            if graph.is_undirected
            else {"log_in_degree": graph, "log_out_degree": graph.transposed}
        )
        degrees = [torch.log1p(g.rowptr.diff().to(torch.float32)) for g in directions.values()]
        return torch.stack(degrees, dim=1), tuple(directions)
    values = torch.from_numpy(_eigenvectors(graph).astype(np.float32))
    return values, tuple(f"position_{number}" for number in range(values.size(1)))


def fingerprint(kind: NodeFeatures | None, ids: Iterable[str], graph: Graph) -> str:
    """Return a hash of what structural features belong to: the nodes, or the nodes and their edges, or nothing."""
    if kind in (None, "degree"):
        return ""
    digest = hashlib.sha256()
    for name in ids:
        encoded = name.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    if kind == "positional":
        for part in (graph.rowptr, graph.col):
            digest.update(part.to(torch.int64).numpy().astype("<i8").tobytes())
    return digest.hexdigest()


def check_fingerprint(kind: NodeFeatures | None, expected: str, ids: Iterable[str], graph: Graph) -> None:
    """Refuse a changed graph where its structural features could not be compared with those of the first one."""
    if fingerprint(kind, ids, graph) != expected:
        what = "nodes" if kind == "one-hot" else "nodes and edges"
        raise DataError(
            f"The {kind} features belong to the {what} they were made for and cannot code a changed graph: "
            "import the first graph with --node-features degree, or with columns."
        )


def refuse_for_many_graphs(kind: NodeFeatures | None) -> None:
    """Over many graphs only the degree means the same in each."""
    if kind in ("one-hot", "positional"):
        raise WrongUse(
            f"--node-features {kind} cannot compare nodes of different graphs: choose degree, or feature columns."
        )


def _identity(n: int) -> Tensor:
    return torch.sparse_csr_tensor(torch.arange(n + 1), torch.arange(n), torch.ones(n), (n, n))


def _eigenvectors(graph: Graph) -> npt.NDArray[np.float64]:
    n = graph.num_nodes
    if n < 3:
        raise DataError(
            f"Positional features need at least 3 nodes, but the graph has {n}: choose --node-features degree."
        )
    both = graph.unweighted().to_undirected()
    degree = both.rowptr.diff().to(torch.float64)
    scale = degree.clamp(min=1).rsqrt().numpy()
    matrix = both.to_scipy().astype(np.float64).multiply(scale[:, None]).multiply(scale[None, :]).tocsr()
    count = min(POSITIONS, n - 2)
    if n <= _SMALL:
        values, vectors = np.linalg.eigh(matrix.toarray())
    else:
        from scipy.sparse.linalg import ArpackNoConvergence, eigsh

        start = np.random.Generator(np.random.PCG64(0)).standard_normal(n)
        try:
            values, vectors = eigsh(matrix, k=count + 1, which="LA", v0=start)
        except ArpackNoConvergence as error:
            raise DataError(
                "The eigenvectors of this graph did not converge: choose --node-features degree."
            ) from error
    chosen = vectors[:, np.argsort(-values, kind="stable")[1 : count + 1]]
    largest = chosen[np.abs(chosen).argmax(axis=0), np.arange(count)]
    signed: npt.NDArray[np.float64] = chosen * np.where(largest < 0, -1.0, 1.0) * np.sqrt(n)
    return signed

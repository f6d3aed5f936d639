"""Every way of building a wrong graph is refused in one sentence that says what to do."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from omegagnn.graph import Graph, as_graph

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
NAN, INF = float("nan"), float("inf")


def weighted(*weights: Any) -> Graph:
    return Graph.from_edge_index(EDGES, 3, torch.tensor(weights))


def half_weighted() -> Graph:
    source = nx.Graph()
    source.add_edge(0, 1, weight=1.0)
    source.add_edge(1, 2)
    return Graph.from_networkx(source)


MISTAKES: list[tuple[str, Any, type[Exception], str]] = [
    (
        "transposed pairs",
        lambda: Graph.from_edge_index(EDGES.t(), 3),
        ValueError,
        "edge_index must have shape [2, E], but its shape is (4, 2): pass its transpose.",
    ),
    (
        "one row",
        lambda: Graph.from_edge_index(EDGES[0], 3),
        ValueError,
        "edge_index must have shape [2, E], but its shape is (4,).",
    ),
    (
        "floats",
        lambda: Graph.from_edge_index(EDGES.float(), 3),
        TypeError,
        "edge_index must hold integers, but its dtype is torch.float32: convert it with .long().",
    ),
    (
        "booleans",
        lambda: Graph.from_edge_index(EDGES.bool(), 3),
        TypeError,
        "edge_index must hold integers, but its dtype is torch.bool: convert it with .long().",
    ),
    (
        "nodes unknown",
        lambda: Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long)),
        ValueError,
        "An empty edge_index does not tell the number of nodes: pass num_nodes.",
    ),
    (
        "negative nodes",
        lambda: Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), -1),
        ValueError,
        "num_nodes must be at least 0, but it is -1.",
    ),
    (
        "too high",
        lambda: Graph.from_edge_index(EDGES, 2),
        ValueError,
        "edge_index holds node 2 at edge 2, but nodes are numbered 0 to 1: correct the index or raise num_nodes.",
    ),
    (
        "negative",
        lambda: Graph.from_edge_index(EDGES - 1, 3),
        ValueError,
        "edge_index holds node -1 at edge 0, but nodes are numbered 0 to 2: correct the index or raise num_nodes.",
    ),
    (
        "too few weights",
        lambda: weighted(1.0, 2.0),
        ValueError,
        "edge_weight must have shape [4], one number an edge, but it is (2,).",
    ),
    (
        "weights of two dimensions",
        lambda: Graph.from_edge_index(EDGES, 3, torch.ones(4, 1)),
        ValueError,
        "edge_weight must have shape [4], one number an edge, but it is (4, 1).",
    ),
    (
        "complex weights",
        lambda: weighted(1j, 1, 1, 1),
        TypeError,
        "edge_weight must be real, but it is complex: take its absolute value.",
    ),
    (
        "NaN",
        lambda: weighted(1.0, NAN, 1.0, 1.0),
        ValueError,
        "edge_weight is nan at edge 1: weights must be finite; drop or mend the edge.",
    ),
    (
        "infinity",
        lambda: Graph.from_edge_index(EDGES, 3, torch.tensor([1.0, 1.0, 1.0, -INF], requires_grad=True)),
        ValueError,
        "edge_weight is -inf at edge 3: weights must be finite; drop or mend the edge.",
    ),
    (
        "negative weights in gcn_norm",
        lambda: weighted(1.0, -0.5, 1.0, 1.0).gcn_norm(),
        ValueError,
        "gcn_norm needs weights of at least 0, but the smallest is -0.5: take their absolute value, shift them, or "
        "declare the matrix finished with Graph.as_operator() (normalize=False in a layer).",
    ),
    (
        "negative weights in row_norm",
        lambda: weighted(1.0, 1.0, -2.0, 1.0).row_norm(False),
        ValueError,
        "row_norm needs weights of at least 0, but the smallest is -2: take their absolute value, shift them, or "
        "declare the matrix finished with Graph.as_operator() (normalize=False in a layer).",
    ),
    (
        "rowptr falls",
        lambda: Graph.from_csr(torch.tensor([0, 3, 1, 4]), torch.zeros(4, dtype=torch.long)),
        ValueError,
        "rowptr must start at 0, never fall and end at the number of entries (4): check the rows.",
    ),
    (
        "rowptr falls without a sign",
        lambda: Graph.from_csr(torch.tensor([0, 3, 1, 4], dtype=torch.uint8), torch.zeros(4, dtype=torch.long)),
        ValueError,
        "rowptr must start at 0, never fall and end at the number of entries (4): check the rows.",
    ),
    (
        "rowptr empty",
        lambda: Graph.from_csr(torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)),
        ValueError,
        "rowptr must start at 0, never fall and end at the number of entries (0): check the rows.",
    ),
    (
        "rowptr of two dimensions",
        lambda: Graph.from_csr(torch.zeros(1, 2, dtype=torch.long), torch.zeros(0, dtype=torch.long)),
        ValueError,
        "rowptr must have one dimension, but it has shape (1, 2).",
    ),
    (
        "columns not integers",
        lambda: Graph.from_csr(torch.tensor([0, 1]), torch.tensor([0.5])),
        TypeError,
        "col must hold integers, but its dtype is torch.float32: convert it with .long().",
    ),
    (
        "rectangular torch",
        lambda: Graph.from_torch_sparse(torch.ones(2, 3).to_sparse()),
        ValueError,
        "The sparse matrix must be square, but its shape is (2, 3).",
    ),
    (
        "rectangular scipy",
        lambda: Graph.from_scipy(sp.csr_array((2, 3))),
        ValueError,
        "The SciPy matrix must be square, but its shape is (2, 3).",
    ),
    (
        "weights on some edges",
        half_weighted,
        ValueError,
        "Some edges carry 'weight' and some do not: give it to all of them or pass weight=None.",
    ),
    (
        "PyG without edges",
        lambda: Graph.from_pyg(Data(num_nodes=2)),
        ValueError,
        "The PyG data object has neither edge_index nor adj_t: set one of them.",
    ),
    (
        "graph and weights",
        lambda: as_graph(Graph.from_edge_index(EDGES, 3), 3, torch.ones(4)),
        ValueError,
        "A Graph carries its own weights: build it with edge_weight instead of passing both.",
    ),
    (
        "matrix and weights",
        lambda: as_graph(torch.eye(3).to_sparse(), 3, torch.ones(3)),
        ValueError,
        "A sparse matrix carries its own weights: put edge_weight into its values.",
    ),
    (
        "a list",
        lambda: as_graph([[0], [1]], 2),  # type: ignore[arg-type]
        TypeError,
        "edge_index must be a Graph, an integer tensor [2, E] or a torch sparse matrix, not list.",
    ),
    (
        "another graph's features",
        lambda: as_graph(Graph.from_edge_index(EDGES, 3), 4),
        ValueError,
        "The graph has 3 nodes but x has 4 rows: they must agree.",
    ),
]


@pytest.mark.parametrize(("build", "error", "sentence"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_one_sentence(build: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as caught:
        build()
    assert str(caught.value) == sentence


def test_policies_that_are_no_mistakes() -> None:
    assert weighted(0.0, 0.0, 0.0, 0.0).num_edges == 4
    assert weighted(-1.0, 1.0, 1.0, 1.0).as_operator().is_operator
    assert bool(torch.isfinite(weighted(0.0, 0.0, 0.0, 0.0).gcn_norm(False).to_dense()).all())
    assert weighted(1, 2, 3, 4).weight is not None

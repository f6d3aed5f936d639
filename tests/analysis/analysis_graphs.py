"""Graphs and dense formulas that the tests of the analysis share."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from omegagnn import Graph

F64 = torch.float64


@st.composite
def graphs(draw: st.DrawFn, undirected: bool = True, weighted: bool | None = None, max_nodes: int = 9) -> Graph:
    """Any small graph: empty, isolated nodes, several components, self-loops, duplicates, weights."""
    n = draw(st.integers(1, max_nodes))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=3 * n))
    has_weights = draw(st.booleans()) if weighted is None else weighted
    weights = draw(st.lists(st.floats(0.1, 5), min_size=len(pairs), max_size=len(pairs))) if has_weights else None
    index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
    weight = None if weights is None else torch.tensor(weights, dtype=F64)
    if undirected:
        back = index[0] != index[1]
        index = torch.cat([index, index[:, back].flip(0)], dim=1)
        weight = None if weight is None else torch.cat([weight, weight[back]])
    return Graph.from_edge_index(index, n, weight)


def dense_operator(graph: Graph, add_self_loops: bool = True) -> np.ndarray:
    """S from its definition, in NumPy alone."""
    adjacency = graph.to_dense().double().numpy()
    if add_self_loops:
        loops = np.diag(adjacency).copy()
        # As PyG: an existing loop keeps its weight (the last one's, where there are several), all others become 1.
        for i in range(graph.num_nodes):
            own = (graph.row == i) & (graph.col == i)
            loops[i] = 1.0 if not own.any() else (1.0 if graph.weight is None else float(graph.weight[own][-1]))
        adjacency = adjacency - np.diag(np.diag(adjacency)) + np.diag(loops)
    degree = adjacency.sum(1)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return scale[:, None] * adjacency * scale[None, :]


def features(graph: Graph, channels: int = 3, seed: int = 0) -> Tensor:
    """Gaussian features of a graph, float64."""
    return torch.randn(graph.num_nodes, channels, dtype=F64, generator=torch.Generator().manual_seed(seed))


def karate() -> Graph:
    """Zachary's karate club, unweighted."""
    return Graph.from_networkx(nx.karate_club_graph(), weight=None)


def largest_component(graph: Graph) -> Graph:
    """The induced subgraph on the largest connected component."""
    whole = nx.Graph()
    whole.add_nodes_from(range(graph.num_nodes))
    whole.add_edges_from(zip(graph.row.tolist(), graph.col.tolist(), strict=True))
    nodes = max(nx.connected_components(whole), key=len)
    return Graph.from_networkx(whole.subgraph(sorted(nodes)), weight=None)

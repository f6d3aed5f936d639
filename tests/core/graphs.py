"""Small graphs of every kind a user may bring, for hypothesis to choose and shrink."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from omegagnn.graph import Graph

KINDS = (
    "directed",
    "undirected",
    "disconnected",
    "isolated nodes",
    "empty",
    "no nodes",
    "one node",
    "hub",
    "duplicates",
    "self-loops",
)


@dataclass(frozen=True)
class Example:
    """Edges as a user has them, and a seed for whatever numbers a test needs on top."""

    kind: str
    num_nodes: int
    edge_index: Tensor
    edge_weight: Tensor | None
    seed: int

    @property
    def graph(self) -> Graph:
        return Graph.from_edge_index(self.edge_index, self.num_nodes, self.edge_weight)

    def randn(self, *shape: int, offset: int = 0) -> Tensor:
        """Return float64 normal numbers that depend on the example alone."""
        generator = torch.Generator().manual_seed(self.seed + offset)
        return torch.randn(shape, generator=generator, dtype=torch.float64)


def pairs_of(kind: str, n: int, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Bend pairs of nodes until they are of a kind."""
    if kind == "undirected":
        return [*pairs, *[(i, j) for j, i in pairs if i != j]]
    if kind == "disconnected":
        half = n // 2
        return [(j, i) for j, i in pairs if (j < half) == (i < half)]
    if kind == "isolated nodes":
        return [(j, i) for j, i in pairs if j % 2 == 0 and i % 2 == 0]
    if kind in ("empty", "no nodes"):
        return []
    if kind == "hub":
        return [*pairs[:3], *[(j, 0) for j in range(1, n)], *[(0, i) for i in range(1, n)]]
    if kind == "duplicates":
        return [*pairs, *pairs[: len(pairs) // 2 + 1], *pairs[:1]]
    if kind == "self-loops":
        return [*pairs, *[(i, i) for i in range(0, n, 2)], (0, 0)]
    return pairs


@st.composite
def graphs(draw: st.DrawFn, weighted: bool | None = None, kinds: tuple[str, ...] = KINDS) -> Example:
    """Draw a graph of one of the `kinds`; positive weights or none (None: either)."""
    kind = draw(st.sampled_from(kinds))
    n = {"no nodes": 0, "one node": 1}.get(kind) if kind in ("no nodes", "one node") else draw(st.integers(2, 7))
    assert n is not None
    node = st.integers(0, max(n - 1, 0))
    pairs = pairs_of(kind, n, draw(st.lists(st.tuples(node, node), max_size=14)) if n else [])
    with_weights = draw(st.booleans()) if weighted is None else weighted
    seed = draw(st.integers(0, 2**20))
    index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
    generator = torch.Generator().manual_seed(seed)
    weight = 0.1 + 2 * torch.rand(len(pairs), generator=generator, dtype=torch.float64) if with_weights else None
    return Example(kind, n, index, weight, seed)


def fixed_graphs(weighted: bool = False) -> list[Example]:
    """Return one graph of every kind, for what is too slow to try on many."""
    generator = torch.Generator().manual_seed(5)
    examples = []
    for kind in KINDS:
        n = {"no nodes": 0, "one node": 1}.get(kind, 6)
        drawn = torch.randint(max(n, 1), (9, 2), generator=generator).tolist()
        pairs = pairs_of(kind, n, [(j, i) for j, i in drawn])
        index = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()
        weight = 0.1 + 2 * torch.rand(len(pairs), generator=generator, dtype=torch.float64) if weighted else None
        examples.append(Example(kind, n, index, weight, seed=len(kind)))
    return examples


def random_graph(n: int, num_edges: int, seed: int = 0) -> Graph:
    """Return a directed random graph with self-loops and duplicates as they fall."""
    generator = torch.Generator().manual_seed(seed)
    return Graph.from_edge_index(torch.randint(max(n, 1), (2, num_edges), generator=generator), n)

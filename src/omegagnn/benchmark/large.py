"""Graphs of the size of well-known large ones, made where they are used."""

from __future__ import annotations

import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.synthetic import scale_free
from omegagnn.graph import Graph

# nodes, entries with self-loops, features, classes
LARGE = {
    "arxiv-sized": (169_343, 2_500_000, 128, 40),
    "products-sized": (2_449_029, 62_000_000, 100, 47),
}


def large_graph(nodes: int, entries: int) -> Graph:
    """Return a scale-free graph of about so many entries, self-loops included."""
    return scale_free(nodes, _edges_per_node(nodes, entries), features=1).graph.to_undirected()


def _edges_per_node(nodes: int, entries: int) -> int:
    return max(1, round((entries / nodes - 1) / 2))


def make_large(name: str, device: torch.device) -> Dataset:
    """Make a data set of a known size on a device: preferential attachment as in `data.synthetic.scale_free`, without its care.

    There is nothing to learn. Edges that occur twice are kept as one.
    """
    nodes, entries, features, classes = LARGE[name]
    draw = torch.Generator(device).manual_seed(0)
    per_node = _edges_per_node(nodes, entries)
    entry = torch.arange(nodes * per_node, device=device)
    sender = entry // per_node
    # Entry 2e is the node that edge e comes from, entry 2e + 1 the one it goes to: a copy of some entry before.
    share = torch.rand(entry.numel(), generator=draw, device=device, dtype=torch.float64)
    copied = (share * (2 * entry + 1)).long()
    while bool((copied % 2 == 1).any()):
        copied = torch.where(copied % 2 == 1, copied[copied // 2], copied)
    receiver = copied // 2 // per_node
    proper = sender != receiver
    graph = Graph.from_edge_index(torch.stack([sender, receiver])[:, proper], nodes).coalesce().unweighted()
    x = torch.randn(nodes, features, generator=draw, device=device)
    labels = torch.randint(classes, (nodes,), generator=draw, device=device)
    thirds = torch.arange(nodes).tensor_split(3)
    return Dataset(
        name=name,
        task="node",
        graph=graph.to_undirected(),
        features=x,
        labels=labels,
        splits=(Split("thirds", *thirds),),
        class_names=tuple(str(number) for number in range(classes)),
    )

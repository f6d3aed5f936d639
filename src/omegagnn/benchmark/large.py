"""Large graphs, made where they are used: on a GPU what a CPU would take minutes for takes seconds."""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset, Split
from omegagnn.graph import Graph

# nodes, entries with self-loops, features, classes of graphs that are well known
LARGE = {
    "arxiv-sized": (169_343, 2_500_000, 128, 40),
    "products-sized": (2_449_029, 62_000_000, 100, 47),
}


def large_graph(nodes: int, entries: int, device: torch.device) -> Graph:
    """Return an undirected graph of about so many entries, self-loops included, whose degrees have a long tail.

    Preferential attachment as in `data.synthetic.scale_free`, drawn on the device; an edge that occurs twice is kept once.
    """
    per_node = max(1, round((entries / nodes - 1) / 2))
    entry = torch.arange(nodes * per_node, device=device)
    sender = entry // per_node
    # Entry 2e is the node that edge e comes from, entry 2e + 1 the one it goes to: a copy of some entry before.
    share = torch.rand(entry.numel(), generator=_generator(device), device=device, dtype=torch.float64)
    copied = (share * (2 * entry + 1)).long()
    while bool((copied % 2 == 1).any()):
        copied = torch.where(copied % 2 == 1, copied[copied // 2], copied)
    receiver = copied // 2 // per_node
    proper = sender != receiver
    graph = Graph.from_edge_index(torch.stack([sender, receiver])[:, proper], nodes).coalesce().unweighted()
    return graph.to_undirected()


def large_dataset(name: str, device: torch.device, nodes: int, entries: int, features: int, classes: int) -> Dataset:
    """Return a data set on a device in which there is nothing to learn, only something to time."""
    draw = _generator(device)
    x: Tensor = torch.randn(nodes, features, generator=draw, device=device)
    labels = torch.randint(classes, (nodes,), generator=draw, device=device)
    return Dataset(
        name=name,
        task="node",
        graph=large_graph(nodes, entries, device),
        features=x,
        labels=labels,
        splits=(Split("thirds", *torch.arange(nodes).tensor_split(3)),),
        class_names=tuple(str(number) for number in range(classes)),
    )


def _generator(device: torch.device) -> torch.Generator:
    return torch.Generator(device).manual_seed(0)

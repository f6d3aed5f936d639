"""Tiny data sets of the three kinds of task, quick to train and with something to learn."""

from __future__ import annotations

import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.graph import Graph


def _blocks(sizes: list[int], generator: torch.Generator) -> tuple[Graph, torch.Tensor]:
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    edges = []
    for start, size in zip(ptr[:-1].tolist(), sizes, strict=True):
        ring = torch.arange(size)
        edges.append(torch.stack([ring, (ring + 1) % size]) + start)
        edges.append(torch.randint(0, size, (2, size), generator=generator) + start)
    index = torch.cat(edges, dim=1)
    index = index[:, index[0] != index[1]]
    return Graph.from_edge_index(index, int(ptr[-1])).to_undirected(), ptr


def node_dataset(n: int = 60, classes: int = 3, sparse: bool = False) -> Dataset:
    generator = torch.Generator().manual_seed(1)
    graph, _ = _blocks([n], generator)
    labels = torch.arange(n) % classes
    features = torch.rand(n, 12, generator=generator) * (torch.rand(n, 12, generator=generator) < 0.4)
    features[torch.arange(n), labels] += 1.5
    order = torch.randperm(n, generator=generator)
    splits = tuple(
        Split(
            f"tiny-{k}", *(part.sort().values for part in order.roll(7 * k).split([n // 3, n // 3, n - 2 * (n // 3)]))
        )
        for k in range(3)
    )
    return Dataset("tiny-nodes", "node", graph, features.to_sparse_csr() if sparse else features, labels, splits)


def graph_dataset(graphs: int = 24) -> Dataset:
    generator = torch.Generator().manual_seed(2)
    sizes = torch.randint(4, 9, (graphs,), generator=generator).tolist()
    graph, ptr = _blocks(sizes, generator)
    labels = torch.arange(graphs) % 2
    features = torch.rand(graph.num_nodes, 4, generator=generator)
    features[:, 0] += labels[torch.repeat_interleave(torch.arange(graphs), ptr.diff())]
    order = torch.randperm(graphs, generator=generator)
    splits = tuple(
        Split(f"fold-{k}", *(part.sort().values for part in order.roll(4 * k).split([graphs - 8, 4, 4])))
        for k in range(2)
    )
    return Dataset("tiny-graphs", "graph", graph, features, labels, splits, ptr=ptr)


def inductive_dataset(graphs: int = 6) -> Dataset:
    generator = torch.Generator().manual_seed(3)
    graph, ptr = _blocks([10 + k for k in range(graphs)], generator)
    features = torch.rand(graph.num_nodes, 5, generator=generator)
    labels = (features[:, :3] + 0.1 * torch.rand(graph.num_nodes, 3, generator=generator) > 0.5).float()
    parts = torch.arange(graphs).split([graphs - 2, 1, 1])
    return Dataset("tiny-inductive", "inductive", graph, features, labels, (Split("fixed", *parts),), ptr=ptr)


DATASETS = {"node": node_dataset, "graph": graph_dataset, "inductive": inductive_dataset}

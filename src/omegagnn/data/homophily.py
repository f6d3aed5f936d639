r"""How often neighbours are of one class.

With :math:`E` the stored edges :math:`j \to i` whose ends both have a label, self-loops included as PyTorch Geometric does:

* edge homophily: the share of edges with :math:`y_i = y_j`;
* node homophily: the mean over nodes with neighbours of the share of their neighbours in their class;
* adjusted homophily (Platonov et al., 2023), of the undirected graph without self-loops and duplicates:
  :math:`(h - \sum_k p_k^2) / (1 - \sum_k p_k^2)`, with :math:`p_k` the share of edge ends in class k. It is 0 for labels
  drawn without regard to edges, whatever the sizes of the classes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset
from omegagnn.graph import Graph


def edge_homophily(dataset: Dataset) -> float | None:
    """Return the share of edges within a class, or None where no edge has labels at both ends."""
    same, _ = _same_class(dataset.graph, dataset.labels)
    return float(same.double().mean()) if same.numel() else None


def node_homophily(dataset: Dataset) -> float | None:
    """Return the mean share of neighbours in the class of the node, or None where there is no labelled edge."""
    same, receiver = _same_class(dataset.graph, dataset.labels)
    if not same.numel():
        return None
    n = dataset.num_nodes
    matching = torch.bincount(receiver, weights=same.double(), minlength=n)
    neighbours = torch.bincount(receiver, minlength=n)
    return float((matching / neighbours)[neighbours > 0].mean())


def adjusted_homophily(dataset: Dataset) -> float | None:
    """Return homophily beyond what the classes' shares of the edges explain, or None where one class has all edges."""
    graph = simple(dataset.graph)
    same, receiver = _same_class(graph, dataset.labels)
    if not same.numel():
        return None
    share = torch.bincount(dataset.labels[receiver]).double() / receiver.numel()
    by_chance = float((share**2).sum())
    return None if by_chance >= 1 else (float(same.double().mean()) - by_chance) / (1 - by_chance)


def simple(graph: Graph) -> Graph:
    """Return the undirected graph without weights, self-loops and duplicates."""
    return graph.unweighted().to_undirected().without_self_loops()


def _same_class(graph: Graph, labels: Tensor) -> tuple[Tensor, Tensor]:
    sender, receiver = graph.col.long(), graph.row.long()
    labelled = (labels[sender] >= 0) & (labels[receiver] >= 0)
    sender, receiver = sender[labelled], receiver[labelled]
    return labels[sender] == labels[receiver], receiver

"""Data sets that are made, not read: for tests of what a network can express, for pictures and for benchmarks.

Every maker draws from PCG64 with its own `seed`, so equal arguments give equal data.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.readers.edges import simple_graph
from omegagnn.errors import WrongUse
from omegagnn.graph import Graph

MOST_TRIES = 10_000


def karate() -> Dataset:
    """Zachary's karate club of 34 members: who went with Mr. Hi and who with the officer after the split of the club.

    The two classes are what happened (the four of some papers are the output of a clustering). The split ``leaders`` trains
    on the two leaders, validates on eight members and tests on the others. Features are one-hot.
    """
    import networkx as nx

    club = nx.karate_club_graph()
    labels = torch.tensor([int(club.nodes[node]["club"] == "Officer") for node in club])
    leaders, validation = torch.tensor([0, 33]), torch.tensor([3, 7, 8, 16, 19, 23, 28, 30])
    others = torch.tensor([node for node in range(34) if node not in {*leaders.tolist(), *validation.tolist()}])
    return Dataset(
        name="karate",
        task="node",
        graph=Graph.from_networkx(club, weight=None),
        features=torch.eye(34),
        labels=labels,
        splits=(Split("leaders", leaders, validation, others),),
        class_names=("Mr. Hi", "Officer"),
    )


def csbm(
    homophily: float = 0.8,
    nodes: int = 1000,
    degree: float = 10.0,
    classes: int = 2,
    features: int = 16,
    signal: float = 1.0,
    seed: int = 0,
) -> Dataset:
    r"""Contextual stochastic block model with a knob for homophily.

    Classes are equal in size. An edge joins nodes of one class with probability `homophily`; the expected degree is
    `degree`. Features are :math:`x_i = \text{signal} \cdot \mu_{y_i} + \varepsilon_i`, with unit vectors :math:`\mu` and
    :math:`\varepsilon \sim N(0, I)`.
    """
    if (
        not 0 <= homophily <= 1
        or classes < 2
        or nodes < 2 * classes
        or not 0 <= degree < nodes / classes - 1
        or features < 1
    ):
        raise WrongUse(
            "csbm needs a homophily from 0 to 1, two classes or more, two nodes a class or more, a degree below the size of "
            "a class less one, and a feature: correct what is outside."
        )
    draw = np.random.Generator(np.random.PCG64(seed))
    labels = np.arange(nodes) % classes
    upper = np.stack(np.triu_indices(nodes, 1)) if nodes <= 2000 else None
    same_rate = homophily * degree / (nodes / classes - 1)
    other_rate = (1 - homophily) * degree / (nodes - nodes / classes)
    if upper is not None:
        rate = np.where(labels[upper[0]] == labels[upper[1]], same_rate, other_rate)
        sender, receiver = upper[:, draw.random(len(rate)) < rate]
    else:
        sender, receiver = _sparse_blocks(draw, labels, classes, homophily, degree)
    means = draw.standard_normal((classes, features))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    x = signal * means[labels] + draw.standard_normal((nodes, features))
    return _node_task("csbm", sender, receiver, x, labels)


def _sparse_blocks(
    draw: np.random.Generator, labels: npt.NDArray[np.int64], classes: int, homophily: float, degree: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Draw as many edges as expected, each with its ends: for graphs too large to toss a coin for every pair."""
    nodes = len(labels)
    count = draw.poisson(nodes * degree / 2)
    sender = draw.integers(nodes, size=count)
    same = draw.random(count) < homophily
    shift = np.where(same, 0, draw.integers(1, classes, size=count))
    wanted = (labels[sender] + shift) % classes
    # Nodes of class k are k, k + classes, k + 2 classes ...; the last of them may be missing.
    size = (nodes - wanted + classes - 1) // classes
    receiver = wanted + classes * (draw.random(count) * size).astype(np.int64)
    kept = sender != receiver
    return sender[kept], receiver[kept]


def gradient_task(nodes: int = 8, edge_rate: float = 0.3, seed: int = 0) -> Dataset:
    r"""The paper's task of expressing a gradient: regress :math:`\max_{j \in N_i} (f_i - f_j)` on an Erdős–Rényi graph.

    The first connected graph that the seed gives is taken (a node without neighbours has no gradient); features are uniform
    in [0, 1]. All nodes train, validate and test, as in the paper: the question is what can be expressed.
    """
    if nodes < 2 or not 0 < edge_rate <= 1:
        raise WrongUse("gradient-task needs two nodes or more and an edge rate above 0 up to 1: correct them.")
    draw = np.random.Generator(np.random.PCG64(seed))
    pairs = np.stack(np.triu_indices(nodes, 1))
    for _ in range(MOST_TRIES):
        sender, receiver = pairs[:, draw.random(pairs.shape[1]) < edge_rate]
        graph = _undirected(sender, receiver, nodes)
        if _is_connected(graph):
            break
    else:
        raise WrongUse(f"No connected graph of {nodes} nodes came at an edge rate of {edge_rate}: raise the rate.")
    f = torch.from_numpy(draw.random(nodes)).float()
    difference = f[graph.row] - f[graph.col]
    target = torch.full_like(f, -torch.inf).scatter_reduce(0, graph.row.long(), difference, "amax")
    everything = torch.arange(nodes)
    return Dataset(
        name="gradient-task",
        task="node",
        graph=graph,
        features=f.unsqueeze(1),
        labels=target,
        splits=(Split("all", everything, everything, everything),),
    )


def grid(height: int = 32, width: int = 32) -> Dataset:
    """Make a lattice whose nodes know their place (features in [0, 1]); the classes are its four quarters."""
    if height < 1 or width < 1:
        raise WrongUse(f"A grid needs a height and a width of 1 or more, not {height} and {width}.")
    number = np.arange(height * width).reshape(height, width)
    sender = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    receiver = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    row, column = np.divmod(number.ravel(), width)
    place = np.stack([row / max(height - 1, 1), column / max(width - 1, 1)], axis=1)
    return _node_task("grid", sender, receiver, place, 2 * (row >= height / 2) + (column >= width / 2))


def ring(nodes: int = 64) -> Dataset:
    """Make a cycle whose nodes know their place on the unit circle; the classes are its four quarters."""
    if nodes < 3:
        raise WrongUse(f"A ring needs 3 nodes or more, not {nodes}.")
    number = np.arange(nodes)
    angle = 2 * np.pi * number / nodes
    return _node_task(
        "ring", number, (number + 1) % nodes, np.stack([np.cos(angle), np.sin(angle)], axis=1), number * 4 // nodes
    )


def scale_free(
    nodes: int = 10_000, edges_per_node: int = 5, features: int = 32, classes: int = 8, seed: int = 0
) -> Dataset:
    r"""Make a graph by preferential attachment (Barabási–Albert), of any size: 10 million edges take seconds.

    The ends of all edges are written into one list; the new end of edge ``e`` copies a uniformly drawn earlier entry, which
    prefers nodes in proportion to their degree. All draws are made at once and references to entries that are themselves
    references are followed together, halving at each step. Loops and repeated edges are dropped. Features are normal,
    classes uniform: there is nothing to learn here, only something to measure.
    """
    if nodes < 2 or edges_per_node < 1 or features < 1 or classes < 1:
        raise WrongUse(
            "scale-free needs two nodes or more, and an edge a node, a feature and a class or more: correct them."
        )
    draw = np.random.Generator(np.random.PCG64(seed))
    entry = np.arange(nodes * edges_per_node, dtype=np.int64)
    sender = entry // edges_per_node
    # Entry 2e of the list is the node that edge e comes from, entry 2e + 1 the node it goes to: a copy of an entry before.
    copied = (draw.random(len(entry)) * (2 * entry + 1)).astype(np.int64)
    unresolved = np.flatnonzero(copied % 2 == 1)
    while len(unresolved):
        copied[unresolved] = copied[copied[unresolved] // 2]
        unresolved = unresolved[copied[unresolved] % 2 == 1]
    receiver = copied // 2 // edges_per_node
    x = draw.standard_normal((nodes, features), dtype=np.float32)
    return _node_task("scale-free", sender, receiver, x, draw.integers(classes, size=nodes), classes)


def _node_task(
    name: str,
    sender: npt.NDArray[np.int64],
    receiver: npt.NDArray[np.int64],
    features: npt.NDArray[np.floating],
    labels: npt.NDArray[np.int64],
    classes: int = 0,
) -> Dataset:
    classes = classes or int(labels.max()) + 1
    return Dataset(
        name=name,
        task="node",
        graph=_undirected(sender, receiver, len(labels)),
        features=torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32)),
        labels=torch.from_numpy(labels.astype(np.int64)),
        class_names=tuple(str(number) for number in range(classes)),
    )


def _undirected(sender: npt.NDArray[np.int64], receiver: npt.NDArray[np.int64], nodes: int) -> Graph:
    both = np.concatenate([sender, receiver]), np.concatenate([receiver, sender])
    return simple_graph(*both, nodes, "the made graph", self_loops=False)


def _is_connected(graph: Graph) -> bool:
    reached = torch.zeros(graph.num_nodes, dtype=torch.bool)
    reached[0] = True
    for _ in range(graph.num_nodes):
        reached[graph.row[reached[graph.col]]] = True
    return bool(reached.all())

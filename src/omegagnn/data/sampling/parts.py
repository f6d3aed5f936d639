r"""`NodeSampler` and `ClusterSampler`: an epoch cuts all nodes into batches; edges within a batch are kept.

A batch loses the edges that leave it. Given that node i is in a batch, its neighbour j is there with probability
:math:`π_{ij}`, so entries of an operator S are taken along as :math:`Ŝ_{ij} = S_{ij} / π_{ij}`, which makes the expected
propagation the full one, :math:`E[Ŝ_{ij} \mid i] = S_{ij}`, with the degrees of the full graph in S:

* random nodes (GraphSAINT's node batches, drawn evenly): b of n nodes, :math:`π_{ij} = (b - 1) / (n - 1)`, :math:`π_{ii} = 1`;
* clusters (Cluster-GCN's batches): q of P parts, :math:`π_{ij} = 1` within a part, :math:`(q - 1) / (P - 1)` between two.

Attention has no entries to scale: its softmax runs over the neighbours that are there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.data.sampling.blocks import ranges
from omegagnn.data.sampling.subgraph import Places, Subgraph, assemble
from omegagnn.errors import OmegaError, WrongUse
from omegagnn.graph import Graph
from omegagnn.ops.random import draw_bits

PARTS_A_BATCH = 10  # clusters that make a batch: enough that edges between clusters are seen


def shuffled(items: Tensor, key: Tensor) -> Tensor:
    """Return items in an order drawn by `key` ``[2]``."""
    return items[torch.sort(draw_bits(key, torch.arange(items.numel())), stable=True).indices]


class NodeSampler:
    """Batches of nodes drawn evenly."""

    def __init__(self, graph: Graph, batch_nodes: int) -> None:
        """Take the graph and the number of nodes of a batch."""
        self.graph, self.batch_nodes = graph, batch_nodes
        self._places = Places(graph.num_nodes)

    def batches(self, key: Tensor) -> list[Tensor]:
        """Return the nodes of each batch of an epoch; sizes differ by one at most."""
        n = self.graph.num_nodes
        return list(shuffled(torch.arange(n), key).tensor_split(max(1, round(n / self.batch_nodes))))

    def sample(self, items: Tensor) -> Subgraph:
        """Return the subgraph of some nodes of a batch."""
        nodes, n = items.sort().values, self.graph.num_nodes
        scale = (n - 1) / (nodes.numel() - 1) if nodes.numel() > 1 else 1.0
        rows, senders, subgraph = _induced(self.graph, nodes, self._places)
        return _scaled(subgraph, torch.where(rows == senders, 1.0, scale)) if self.graph.is_operator else subgraph


class ClusterSampler:
    """Batches of clusters: METIS cuts the graph into parts with few edges between them (extra `scale`)."""

    def __init__(self, graph: Graph, batch_nodes: int) -> None:
        """Cut the graph into parts of which about ten make a batch."""
        self.graph = graph
        self._places = Places(graph.num_nodes)
        self.part = metis_parts(graph, max(1, round(PARTS_A_BATCH * graph.num_nodes / batch_nodes)))
        order = self.part.argsort(stable=True)
        self._members = order.split(torch.bincount(self.part).tolist())
        self.num_parts = len(self._members)

    def batches(self, key: Tensor) -> list[Tensor]:
        """Return the parts of each batch of an epoch."""
        return list(
            shuffled(torch.arange(self.num_parts), key).tensor_split(max(1, round(self.num_parts / PARTS_A_BATCH)))
        )

    def sample(self, items: Tensor) -> Subgraph:
        """Return the subgraph of some parts of a batch."""
        nodes = torch.cat([self._members[part] for part in items.tolist()]).sort().values
        if items.numel() == 1 < self.num_parts:
            raise WrongUse(
                "One cluster alone never sees the edges to others: give fewer shards, or larger batch_nodes."
            )
        scale = (self.num_parts - 1) / (items.numel() - 1) if items.numel() > 1 else 1.0
        rows, senders, subgraph = _induced(self.graph, nodes, self._places)
        same = self.part[rows] == self.part[senders]
        return _scaled(subgraph, torch.where(same, 1.0, scale)) if self.graph.is_operator else subgraph


def metis_parts(graph: Graph, parts: int) -> Tensor:
    """Return the part of each node, ``[n]`` int64, numbered from 0 without gaps; the same for the same graph."""
    try:
        import pymetis
    except ModuleNotFoundError:
        raise OmegaError("Clusters need pymetis: `pip install 'omegagnn[scale]'`, or use another sampler.") from None
    if parts <= 1 or graph.num_edges == 0:
        return torch.zeros(graph.num_nodes, dtype=torch.long)
    bare = graph.unweighted().without_self_loops()
    bare = bare if bare.is_undirected else bare.to_undirected()
    adjacency = pymetis.CSRAdjacency(bare.rowptr.numpy(), bare.col.numpy())
    _, found = pymetis.part_graph(parts, adjacency, options=pymetis.Options(seed=0))
    return torch.unique(torch.as_tensor(found, dtype=torch.long), return_inverse=True)[1]


def _induced(graph: Graph, nodes: Tensor, places: Places) -> tuple[Tensor, Tensor, Subgraph]:
    """Return receiver and sender of each entry between `nodes`, and the subgraph with the weights as they are."""
    start = graph.rowptr[nodes].long()
    size = graph.rowptr[nodes + 1].long() - start
    edges, rows = ranges(start, size), torch.repeat_interleave(nodes, size)
    senders = graph.col[edges].long()
    columns, receivers = places.number(nodes, senders, rows)
    inside = columns >= 0
    sizes = torch.bincount(receivers[inside], minlength=nodes.numel())
    weight = None if graph.weight is None else graph.weight[edges[inside]]
    taken = assemble(graph, nodes, sizes, columns[inside], weight)
    return rows[inside], senders[inside], Subgraph(taken, nodes, torch.arange(nodes.numel()))


def _scaled(subgraph: Subgraph, scale: Tensor) -> Subgraph:
    graph = subgraph.graph
    assert graph.weight is not None
    scaled = Graph(graph.rowptr, graph.col, graph.weight * scale.to(graph.weight.dtype), is_operator=True)
    return Subgraph(scaled, subgraph.nodes, subgraph.targets)

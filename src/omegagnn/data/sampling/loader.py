"""`PygNeighbourSampler`: the neighbour sampler in PyTorch Geometric's own `NodeLoader`, without its compiled extras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.sampler import BaseSampler, EdgeSamplerInput, NodeSamplerInput, SamplerOutput

from omegagnn.data.sampling.neighbours import NeighbourSampler
from omegagnn.graph import Graph
from omegagnn.ops.draws import Draws


def with_operator(data: Data) -> Data:
    r"""Return the data with the edges of :math:`S = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}` and its entries as ``edge_weight``.

    Sampled from it, with `PygNeighbourSampler.rescale` as transform, ``edge_weight`` is a batch's Ŝ, whose expected value is S:
    hand it to layers that do not normalise again, such as ``OmegaGCNConv(..., normalize=False)``.
    """
    edge_index, weight = Graph.from_pyg(data).gcn_norm().to_edge_index()
    copy = data.clone()
    copy.edge_index, copy.edge_weight = edge_index, weight
    return copy


class PygNeighbourSampler(BaseSampler):
    """Neighbourhoods for ``NodeLoader(data, node_sampler=PygNeighbourSampler(data, [10, 5]), transform=sampler.rescale)``.

    Batches are as PyTorch Geometric makes them: the nodes asked for come first, ``n_id`` and ``e_id`` lead back. Draws come from
    torch's generator, so each epoch and each worker has its own.

    Args:
        data: a `Data` with ``edge_index``.
        fan_outs: neighbours a node of each hop, -1 for all; an existing self-loop is always kept.
    """

    def __init__(self, data: Data, fan_outs: Sequence[int]) -> None:
        """Take the graph of `data`."""
        super().__init__()
        index = data.edge_index
        if index is None or data.num_nodes is None:
            raise ValueError("The data has no edge_index: give a Data with edges.")
        n = int(data.num_nodes)
        graph = Graph.from_edge_index(index, n)
        # Entries carry their place in edge_index, exactly in float64, as `Graph` sorts them.
        self._edge = torch.sort(index[1] * n + index[0], stable=True).indices
        places = torch.arange(index.size(1), dtype=torch.float64)
        self._sampler = NeighbourSampler(Graph(graph.rowptr, graph.col, places), fan_outs)
        self._others = graph.rowptr.diff().long() - torch.bincount(index[0][index[0] == index[1]], minlength=n)

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        """Return the neighbourhood of a batch of nodes."""
        wanted, inverse = torch.unique(index.node, return_inverse=True)
        part = self._sampler.sample(wanted, Draws.from_torch(1).key(0)[0])
        m = part.nodes.numel()
        first = torch.zeros(m, dtype=torch.bool)
        first[part.targets] = True
        seeds = torch.empty(wanted.numel(), dtype=torch.long)
        seeds[inverse.flip(0)] = torch.arange(inverse.numel()).flip(0)  # the first time that each node is asked for
        order = torch.cat([part.targets[seeds.argsort()], (~first).nonzero().flatten()])
        place = torch.empty(m, dtype=torch.long)
        place[order] = torch.arange(m)
        assert part.graph.weight is not None
        return SamplerOutput(
            node=part.nodes[order],
            row=place[part.graph.col.long()],
            col=place[part.graph.row.long()],
            edge=self._edge[part.graph.weight.long()],
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: Any = None) -> SamplerOutput:
        """There are no tasks on edges here."""
        raise NotImplementedError("PygNeighbourSampler samples for nodes: use it in a NodeLoader.")

    @property
    def edge_permutation(self) -> Tensor | None:
        """Edges are numbered as in ``edge_index``."""
        return None

    def rescale(self, batch: Data) -> Data:
        """Multiply ``edge_weight`` of a batch, but for self-loops, by how many neighbours a node has for each one it kept."""
        sender, receiver = batch.edge_index
        away = sender != receiver
        kept = torch.bincount(receiver[away], minlength=batch.num_nodes)
        scale = self._others[batch.n_id].double() / kept.clamp(min=1)
        batch.edge_weight = torch.where(
            away, batch.edge_weight * scale[receiver].to(batch.edge_weight), batch.edge_weight
        )
        return batch

"""Outputs of all nodes, layer by layer: memory for two arrays ``[n, R, c]`` and a piece of the graph, whatever the depth.

Every layer is computed for a piece of the nodes at a time, from the finished features of the layer before. Pieces end where their
entries reach a budget, so that hubs do not make one of them large. Nothing is sampled: the result is the full graph's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from omegagnn.data.sampling import Subgraph
from omegagnn.data.sampling.subgraph import Places, assemble
from omegagnn.graph import Graph
from omegagnn.nn.model import OmegaNet
from omegagnn.ops import SparseFeatures

NUMBERS = 2**22  # of features in a piece: rows, their neighbours, or what enters the opening map
Rows = Callable[[Tensor], Tensor | SparseFeatures]


@dataclass(frozen=True)
class Pieces:
    """A graph cut into runs of rows, each with the neighbours of its rows: together at most `entries`, where a row allows."""

    graph: Graph
    entries: int

    def bounds(self) -> list[tuple[int, int]]:
        """Return begin and end of each run of rows: as many as stay within the budget, one at least."""
        weight = self.graph.rowptr.long() + torch.arange(self.graph.num_nodes + 1)  # rises with every row
        begin, n, bounds = 0, self.graph.num_nodes, []
        while begin < n:
            end = int(torch.searchsorted(weight, weight[begin] + self.entries, right=True)) - 1
            end = min(n, max(begin + 1, end))
            bounds.append((begin, end))
            begin = end
        return bounds

    def __iter__(self) -> Iterator[Subgraph]:
        places = Places(self.graph.num_nodes)
        for begin, end in self.bounds():
            yield rows_with_neighbours(self.graph, begin, end, places)


def rows_with_neighbours(graph: Graph, begin: int, end: int, places: Places) -> Subgraph:
    """Return the nodes `begin` to `end` with all their entries, and their neighbours without any."""
    targets = torch.arange(begin, end)
    first = int(graph.rowptr[begin])
    senders = graph.col[first : int(graph.rowptr[end])].long()
    nodes = torch.unique(torch.cat([targets, senders]))
    columns, taken = places.number(nodes, senders, targets)
    sizes = torch.zeros(nodes.numel(), dtype=torch.long)
    sizes[taken.long()] = graph.rowptr[begin : end + 1].diff().long()
    weight = None if graph.weight is None else graph.weight[first : first + senders.numel()]
    return Subgraph(assemble(graph, nodes, sizes, columns, weight), nodes, taken.long())


def can_go_layerwise(net: object) -> bool:
    """Whether each layer of a network sees the neighbours of a node and nothing else; PairNorm sees the mean of all nodes."""
    return isinstance(net, OmegaNet) and net.task == "node" and all(norm.kind != "pair" for norm in net.norms)


@torch.no_grad()
def layerwise_logits(net: OmegaNet, rows: Rows, graph: Graph, numbers: int = NUMBERS) -> Tensor:
    """Return the logits of all nodes in evaluation, ``[n, R, out]`` on the CPU.

    Args:
        net: the network, on any device; the pieces go there and come back.
        rows: gives the features of some nodes as the network takes them.
        graph: as ``net.operator`` returns it, on the CPU.
        numbers: how many numbers a piece may hold.
    """
    width, device = net.hidden_channels * (net.runs or 1), net.closing.weight.device
    pieces = Pieces(graph, numbers // width)
    hidden = _opened(net, rows, graph.num_nodes, numbers // (net.opening.in_channels + width), device)
    first = hidden if net.residual == "initial" else hidden[:0]
    for layer in range(len(net.convs)):
        behind = torch.empty_like(hidden)
        for piece in pieces:
            here = piece.to(device)
            initial = first[piece.nodes].to(device) if first.numel() else first
            done = net.behind_layer(layer, hidden[piece.nodes].to(device), initial, here.graph, here.targets)
            begin = int(piece.nodes[piece.targets[0]])
            behind[begin : begin + done.size(0)] = done.to(behind.device)
        hidden = behind
    return torch.cat([net.closing(hidden[begin:end].to(device)).cpu() for begin, end in pieces.bounds()])


def _opened(net: OmegaNet, rows: Rows, n: int, piece: int, device: torch.device) -> Tensor:
    """Return what enters the first layer, behind its σ."""
    parts = torch.arange(n).split(max(1, piece))
    first = torch.relu(net.opening(rows(parts[0]).to(device))).cpu()
    hidden = first.new_empty(n, *first.shape[1:])
    for nodes in parts:
        opened = torch.relu(net.opening(rows(nodes).to(device))) if nodes is not parts[0] else first
        hidden[nodes[0] : nodes[-1] + 1] = opened.cpu()
    return hidden


__all__ = ["NUMBERS", "Pieces", "can_go_layerwise", "layerwise_logits", "rows_with_neighbours"]

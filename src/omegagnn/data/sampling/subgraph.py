"""`Subgraph`: some nodes of a graph with some of its edges, and the numbering of the two."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from omegagnn.graph import Graph


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A part of a graph: its own small graph, the numbers of its nodes in the large one, and the nodes it was taken for.

    Args:
        graph: the structure on the nodes taken; where the large graph is an operator S, weighted with entries of S that are
            scaled so that their expected value is the full S (see the samplers).
        nodes: the number of each node in the large graph, rising, ``[m]``.
        targets: places among `nodes` whose outputs are meant, ``[t]``.
    """

    graph: Graph
    nodes: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> Subgraph:
        """Return the subgraph on another device; `nodes` stay where the features are."""
        return self if device.type == "cpu" else Subgraph(self.graph.to(device), self.nodes, self.targets.to(device))


class Places:
    """Where a node of the large graph stands among the nodes taken: an array over all nodes that is lent and cleaned again.

    It costs four bytes a node, once, whatever is taken.
    """

    def __init__(self, num_nodes: int) -> None:
        """Begin with nothing taken."""
        self._place = torch.full((num_nodes,), -1, dtype=torch.int32)

    def number(self, nodes: Tensor, *wanted: Tensor) -> list[Tensor]:
        """Return the places of each of the tensors of nodes `wanted` among `nodes`, -1 for nodes that are not there."""
        self._place[nodes] = torch.arange(nodes.numel(), dtype=torch.int32)
        try:
            return [self._place[each] for each in wanted]
        finally:
            self._place[nodes] = -1


def assemble(graph: Graph, nodes: Tensor, sizes: Tensor, columns: Tensor, weight: Tensor | None) -> Graph:
    """Return the graph of `nodes` with `sizes` entries a row, the places `columns` of their senders, and their weights."""
    rowptr = torch.zeros(nodes.numel() + 1, dtype=graph.rowptr.dtype)
    rowptr[1:] = sizes.cumsum(0)
    taken = Graph(rowptr, columns.to(graph.col.dtype), weight, is_operator=graph.is_operator)
    if graph._cache.get("loops") is graph:
        taken._cache["loops"] = taken  # rows that are wanted have their self-loop; the others stay empty
    return taken

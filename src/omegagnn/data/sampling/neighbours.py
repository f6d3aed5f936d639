r"""`NeighbourSampler`: the neighbourhood of some nodes, hop by hop, with at most so many neighbours a node.

A node with :math:`d` neighbours beside itself keeps :math:`k` of them, drawn evenly without replacement, so each is kept with
probability :math:`k / d`. Where the graph is an operator S its entries come along, scaled by the inverse of that:

.. math::
    Ŝ_{ij} = \frac{d_i}{\min(k, d_i)} S_{ij} \text{ for the neighbours kept}, \qquad Ŝ_{ii} = S_{ii}, \qquad E[Ŝ] = S.

The self-loop is always kept, so the expected propagation is the full one, with the degrees of the full graph in S. Rows of
different nodes are drawn independently. Attention has no entries to scale: its softmax runs over the neighbours that were kept.

Which neighbours a node keeps depends on the key and on the node alone, not on the company it was drawn in.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from omegagnn.data.sampling.blocks import ranges
from omegagnn.data.sampling.subgraph import Places, Subgraph, assemble
from omegagnn.graph import Graph
from omegagnn.ops.random import UNIFORM_BITS, draw_bits

ALL = -1  # a fan-out that takes every neighbour


class NeighbourSampler:
    """Draws neighbourhoods of one graph, in plain torch: the work is proportional to what is kept, not to the degrees."""

    def __init__(self, graph: Graph, fan_outs: Sequence[int]) -> None:
        """Take the graph and the number of neighbours a node of each hop, nearest first; -1 keeps all."""
        if any(fan_out < 1 and fan_out != ALL for fan_out in fan_outs):
            raise ValueError(f"A fan-out is at least 1, or -1 for all neighbours, but they are {list(fan_outs)}.")
        self.graph, self.fan_outs = graph, tuple(fan_outs)
        self._places = Places(graph.num_nodes)
        self._seen = torch.zeros(graph.num_nodes, dtype=torch.bool)

    def sample(self, targets: Tensor, key: Tensor) -> Subgraph:
        """Return the neighbourhood of `targets` (no node twice); `key` ``[2]`` is its randomness, from `Draws.key`."""
        frontier = targets.sort().values
        hops, rows, sizes, edges, scales = [frontier], [], [], [], []
        self._seen[frontier] = True
        for fan_out in self.fan_outs:
            for taken_rows, taken_sizes, taken_edges, scale in self._pick(frontier, fan_out, key):
                rows.append(taken_rows)
                sizes.append(taken_sizes)
                edges.append(taken_edges)
                scales.append(scale)
            senders = torch.cat([self.graph.col[part].long() for part in edges[-2:]])
            frontier = torch.unique(senders[~self._seen[senders]])
            self._seen[frontier] = True
            hops.append(frontier)
        nodes = torch.cat(hops).sort().values
        self._seen[nodes] = False
        return self._assembled(nodes, targets, rows, sizes, edges, scales)

    def _assembled(
        self,
        nodes: Tensor,
        targets: Tensor,
        rows: list[Tensor],
        sizes: list[Tensor],
        edges: list[Tensor],
        scales: list[Tensor],
    ) -> Subgraph:
        """Bring the rows of all hops into the order of the nodes."""
        all_rows, all_sizes = torch.cat([nodes[:0], *rows]), torch.cat([nodes[:0], *sizes])
        order = all_rows.argsort()
        starts = (all_sizes.cumsum(0) - all_sizes)[order]
        entries = ranges(starts, all_sizes[order])
        picked = torch.cat([nodes[:0], *edges])[entries]
        senders = self.graph.col[picked].long()
        columns, receivers, places = self._places.number(nodes, senders, all_rows[order], targets)
        row_sizes = torch.zeros(nodes.numel(), dtype=torch.long)
        row_sizes[receivers.long()] = all_sizes[order]
        weight = None
        if self.graph.weight is not None:
            weight = self.graph.weight[picked]
            if self.graph.is_operator:
                weight = weight * self._entry_scales(nodes, row_sizes, senders, torch.cat(scales)[order]).to(
                    weight.dtype
                )
        return Subgraph(assemble(self.graph, nodes, row_sizes, columns, weight), nodes, places.long())

    def _entry_scales(self, nodes: Tensor, row_sizes: Tensor, senders: Tensor, scales: Tensor) -> Tensor:
        """Return what each entry is multiplied with: the row's scale, 1 for a self-loop."""
        rows = torch.repeat_interleave(nodes, row_sizes)
        filled = torch.repeat_interleave(scales, row_sizes[row_sizes > 0]) if scales.numel() else scales
        return torch.where(rows == senders, 1.0, filled)

    # ------------------------------------------------------------------------------------------------------ one hop

    def _pick(self, rows: Tensor, fan_out: int, key: Tensor) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Return the rows, their numbers of entries, the entries and the scales: of rows kept whole, then of rows drawn from."""
        start = self.graph.rowptr[rows].long()
        size = self.graph.rowptr[rows + 1].long() - start
        loop = self._self_loops(rows, start, size)
        others = size - (loop >= 0).long()
        drawn = (others > fan_out) if fan_out != ALL else torch.zeros_like(others, dtype=torch.bool)
        whole = ~drawn & (size > 0)
        kept = (
            rows[whole],
            size[whole],
            ranges(start[whole], size[whole]),
            torch.ones(int(whole.sum()), dtype=torch.double),
        )
        if not bool(drawn.any()):
            empty = rows[:0]
            return [kept, (empty, empty, empty, torch.ones(0, dtype=torch.double))]
        return [kept, self._draw(rows[drawn], start[drawn], others[drawn], loop[drawn], fan_out, key)]

    def _self_loops(self, rows: Tensor, start: Tensor, size: Tensor) -> Tensor:
        """Return where in its row each node has its self-loop, -1 without: a bisection, as columns rise within a row."""
        low, high = start.clone(), start + size
        col = self.graph.col
        for _ in range(int(size.max()).bit_length() if size.numel() else 0):
            middle = (low + high) // 2
            below = (low < high) & (col[middle.clamp(max=col.numel() - 1)] < rows)
            low, high = torch.where(below, middle + 1, low), torch.where(below | (low >= high), high, middle)
        found = (low < start + size) & (col[low.clamp(max=max(0, col.numel() - 1))] == rows) if col.numel() else low < 0
        return torch.where(found, low - start, -1)

    def _draw(
        self, rows: Tensor, start: Tensor, others: Tensor, loop: Tensor, fan_out: int, key: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Draw `fan_out` of the neighbours of each row (R. Floyd's way: no table of the size of the degree)."""
        chosen = torch.empty(rows.numel(), fan_out, dtype=torch.long)
        for slot in range(fan_out):
            last = others - fan_out + slot
            element = 2 * (rows * fan_out + slot)
            bits = (draw_bits(key, element) << UNIFORM_BITS) | draw_bits(key, element + 1)
            guess = bits % (last + 1)
            taken = (chosen[:, :slot] == guess.unsqueeze(1)).any(1)
            chosen[:, slot] = torch.where(taken, last, guess)
        has_loop = loop >= 0
        chosen += has_loop.unsqueeze(1) & (chosen >= loop.unsqueeze(1))  # the self-loop is not among those drawn
        entries = torch.cat([chosen, torch.where(has_loop, loop, -1).unsqueeze(1)], dim=1).sort(dim=1).values
        present = entries >= 0
        edges = (start.unsqueeze(1) + entries)[present]
        return rows, present.sum(1), edges, others.double() / fan_out

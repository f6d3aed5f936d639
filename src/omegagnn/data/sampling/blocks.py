"""Batches of whole graphs out of one block-diagonal graph."""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.graph import Graph


def ranges(starts: Tensor, sizes: Tensor) -> Tensor:
    """Return the numbers ``starts[k] … starts[k] + sizes[k] - 1`` of every k, one after another."""
    ends = sizes.cumsum(0)
    shift = torch.repeat_interleave(starts - (ends - sizes), sizes)
    return shift + torch.arange(shift.numel(), device=starts.device)


def take_blocks(graph: Graph, ptr: Tensor, blocks: Tensor) -> tuple[Graph, Tensor, Tensor]:
    """Return some blocks of a block-diagonal graph as one graph, their nodes, and the block of each node from 0.

    Weights (a finished S, say) are taken along, and so is what is known of the transpose: nothing is computed twice.
    """
    starts, sizes = ptr[blocks], ptr[blocks + 1] - ptr[blocks]
    nodes = ranges(starts, sizes)
    batch = torch.repeat_interleave(torch.arange(blocks.numel(), device=blocks.device), sizes)
    edges, taken = _take_rows(graph, starts, sizes, nodes)
    transposed = graph.transposed
    first_edge, new_first_edge = graph.rowptr[starts].long(), taken.rowptr[sizes.cumsum(0) - sizes].long()
    edge_sizes = graph.rowptr[ptr[blocks + 1]].long() - first_edge
    shift = torch.repeat_interleave(new_first_edge - first_edge, edge_sizes)
    taken._cache["order"] = graph.transpose_order[edges] + shift
    taken._cache["transposed"] = taken if transposed is graph else _take_rows(transposed, starts, sizes, nodes)[1]
    if graph._cache.get("loops") is graph:
        taken._cache["loops"] = taken
    return taken, nodes, batch


def _take_rows(graph: Graph, starts: Tensor, sizes: Tensor, nodes: Tensor) -> tuple[Tensor, Graph]:
    first = graph.rowptr[starts].long()
    edge_sizes = graph.rowptr[starts + sizes].long() - first
    edges = ranges(first, edge_sizes)
    shift = torch.repeat_interleave(sizes.cumsum(0) - sizes - starts, edge_sizes)
    rowptr = torch.zeros(nodes.numel() + 1, dtype=graph.rowptr.dtype, device=nodes.device)
    rowptr[1:] = graph.rowptr.diff()[nodes].cumsum(0)
    col = (graph.col[edges] + shift).to(graph.col.dtype)
    weight = None if graph.weight is None else graph.weight[edges]
    return edges, Graph(rowptr, col, weight, is_operator=graph.is_operator)

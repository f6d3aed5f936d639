"""What a `Graph` is built from, checked at the border: arrays, node numbers, weights, rows.

Each fault is one sentence that says what was wrong, where, and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt

INT32_LIMIT = 2**31


def as_tensor(array: Tensor | npt.ArrayLike) -> Tensor:
    """Take an array as it is where torch can, and a copy of one that is read-only or runs backwards (pandas, slices)."""
    if isinstance(array, Tensor):
        return array
    flags, strides = getattr(array, "flags", None), getattr(array, "strides", ())
    awkward = (flags is not None and not flags.writeable) or any(stride < 0 for stride in strides)
    return torch.as_tensor(cast("Any", array).copy() if awkward else array)


def weight_unless_ones(values: Tensor) -> Tensor | None:
    """Return weights, or None where all are 1 and nobody learns them."""
    return values if values.requires_grad or not bool((values == 1).all()) else None


def check_integer(name: str, array: Tensor) -> None:
    """Refuse an array that does not hold integers."""
    if array.dtype == torch.bool or array.is_floating_point() or array.is_complex():
        raise TypeError(f"{name} must hold integers, but its dtype is {array.dtype}: convert it with .long().")


def check_edge_index(index: Tensor) -> None:
    """Refuse what is not an integer array ``[2, E]``."""
    if index.dim() != 2 or index.size(0) != 2:
        hint = ": pass its transpose" if index.dim() == 2 and index.size(1) == 2 else ""
        raise ValueError(f"edge_index must have shape [2, E], but its shape is {tuple(index.shape)}{hint}.")
    if index.numel():
        check_integer("edge_index", index)


def checked_num_nodes(index: Tensor, num_nodes: int | None) -> int:
    """Return the number of nodes, refusing indices beyond it."""
    if index.numel() == 0:
        if num_nodes is None:
            raise ValueError("An empty edge_index does not tell the number of nodes: pass num_nodes.")
        low, high = 0, -1
    else:
        low, high = (int(bound) for bound in torch.aminmax(index))
    n = high + 1 if num_nodes is None else int(num_nodes)
    if n < 0:
        raise ValueError(f"num_nodes must be at least 0, but it is {n}.")
    if low < 0 or high >= n:
        bad = low if low < 0 else high
        place = int((index == bad).any(dim=0).nonzero()[0])
        raise ValueError(
            f"edge_index holds node {bad} at edge {place}, but nodes are numbered 0 to {n - 1}: "
            "correct the index or raise num_nodes."
        )
    return n


def checked_weight(weight: Tensor | npt.ArrayLike, num_edges: int, device: torch.device) -> Tensor:
    """Return weights as real, finite numbers, one an edge."""
    weight = as_tensor(weight)
    if weight.dim() != 1 or weight.size(0) != num_edges:
        raise ValueError(
            f"edge_weight must have shape [{num_edges}], one number an edge, but it is {tuple(weight.shape)}."
        )
    if weight.is_complex():
        raise TypeError("edge_weight must be real, but it is complex: take its absolute value.")
    if not weight.is_floating_point():
        weight = weight.to(torch.get_default_dtype())
    finite = torch.isfinite(weight)
    if not bool(finite.all()):
        place = int((~finite).nonzero()[0])
        raise ValueError(
            f"edge_weight is {float(weight.detach()[place])} at edge {place}: weights must be finite; drop or mend the edge."
        )
    return weight.to(device)


def index_dtype(num_nodes: int, num_edges: int) -> torch.dtype:
    """Return int32 where every index fits, else int64."""
    return torch.int32 if max(num_nodes, num_edges) + num_nodes < INT32_LIMIT else torch.int64


def count_rows(sorted_or_not: Tensor, num_nodes: int, dtype: torch.dtype) -> Tensor:
    """Return ``rowptr`` ``[n + 1]`` of entries whose rows are given in any order."""
    rowptr = torch.zeros(num_nodes + 1, dtype=dtype, device=sorted_or_not.device)
    rowptr[1:] = torch.bincount(sorted_or_not, minlength=num_nodes).cumsum(0)
    return rowptr


def expand_rows(rowptr: Tensor, num_edges: int) -> Tensor:
    """Return the row of each entry."""
    nodes = torch.arange(rowptr.numel() - 1, dtype=rowptr.dtype, device=rowptr.device)
    return torch.repeat_interleave(nodes, rowptr.diff().long(), output_size=num_edges)


def equal(one: Tensor | None, other: Tensor | None) -> bool:
    """Return whether two tensors, or their absences, are the same."""
    if one is None or other is None:
        return one is other
    return torch.equal(one, other)

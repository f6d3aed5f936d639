"""One step of Adam over the run axis, in place, on all parameters at once; see `omegagnn.ops.reference.adam_` for the formula."""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.ops.registry import backend_for


@torch.no_grad()
def adam_(
    param: Tensor,
    grad: Tensor,
    average: Tensor,
    square: Tensor,
    *,
    rates: Tensor,
    decays: Tensor,
    correction: Tensor,
    active: Tensor,
    blocks: Tensor,
    largest: int,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> None:
    """Step flat arrays, cut into blocks, on the backend of their device; see `omegagnn.ops.reference.adam_`."""
    flat = tuple(array.detach() for array in (param, grad, average, square))
    if not all(array.dim() == 1 and array.is_contiguous() for array in flat):
        raise ValueError("adam_ works in place on one-dimensional contiguous arrays: lay the parameters out flat.")
    backend_for(param).adam_(*flat, rates, decays, correction, active, blocks, largest, *betas, eps)


@torch.no_grad()
def keep_(kept: Tensor, source: Tensor, chosen: Tensor, blocks: Tensor, largest: int) -> None:
    """Copy the blocks of the chosen runs on the backend of their device; see `omegagnn.ops.reference.keep_`."""
    if not all(array.dim() == 1 and array.is_contiguous() for array in (kept, source)):
        raise ValueError("keep_ copies between one-dimensional contiguous arrays: lay the parameters out flat.")
    backend_for(kept).keep_(kept.detach(), source.detach(), chosen, blocks, largest)

"""One step of Adam over the run axis, in place; see `omegagnn.ops.reference.adam_runs_` for the formula."""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.ops import reference
from omegagnn.ops.registry import backend_for


def adam_(
    param: Tensor,
    grad: Tensor,
    average: Tensor,
    square: Tensor,
    *,
    rate: Tensor,
    decay: Tensor,
    correction1: Tensor,
    correction2: Tensor,
    active: Tensor,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> None:
    """Step the active runs of parameters ``[R, ...]`` with the fused twin of their device, else in plain torch.

    Args:
        param: parameters, changed in place; contiguous, runs first.
        grad: their gradient.
        average: running mean of the gradient, changed in place.
        square: running mean of its square, changed in place.
        rate: learning rate of each run, ``[R]``.
        decay: weight decay of each run, added to the gradient (L2, not AdamW), ``[R]``.
        correction1: ``1 − β₁^t`` of each run, ``[R]``: runs may be at different steps.
        correction2: ``1 − β₂^t`` of each run, ``[R]``.
        active: which runs move, bool ``[R]``; the others are left as they are to the bit.
        betas: β₁ and β₂.
        eps: added to the denominator.
    """
    if not all(tensor.is_contiguous() for tensor in (param, average, square)):
        raise ValueError(
            "adam_ works in place on contiguous parameters and averages: call .contiguous() on them first."
        )
    arrays = [tensor.detach().view(param.size(0), -1) for tensor in (param, average, square)]
    flat, flat_average, flat_square = arrays
    flat_grad = grad.detach().reshape(param.size(0), -1)
    step = getattr(backend_for(param), "adam_runs_", reference.adam_runs_)
    with torch.no_grad():
        step(flat, flat_grad, flat_average, flat_square, rate, decay, *betas, eps, correction1, correction2, active)


@torch.no_grad()
def flat_adam_(
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
        raise ValueError("flat_adam_ works in place on one-dimensional contiguous arrays: lay the parameters out flat.")
    backend_for(param).adam_(*flat, rates, decays, correction, active, blocks, largest, *betas, eps)


@torch.no_grad()
def keep_(kept: Tensor, source: Tensor, chosen: Tensor, blocks: Tensor, largest: int) -> None:
    """Copy the blocks of the chosen runs on the backend of their device; see `omegagnn.ops.reference.keep_`."""
    if not all(array.dim() == 1 and array.is_contiguous() for array in (kept, source)):
        raise ValueError("keep_ copies between one-dimensional contiguous arrays: lay the parameters out flat.")
    backend_for(kept).keep_(kept.detach(), source.detach(), chosen, blocks, largest)

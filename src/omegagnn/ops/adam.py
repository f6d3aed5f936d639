"""One step of Adam over the run axis, in place; see `omegagnn.ops.reference.adam_` for the formula."""

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
    step = getattr(backend_for(param), "adam_", reference.adam_)
    with torch.no_grad():
        step(flat, flat_grad, flat_average, flat_square, rate, decay, *betas, eps, correction1, correction2, active)

"""Starting values, drawn by counter so that a run starts the same alone or in company."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from omegagnn.ops import Draws
from omegagnn.ops.random import uniform


def fresh_key(runs: int | None) -> Tensor:
    """Return a key for each run, ``[R, 2]``, from torch's own generator (`torch.manual_seed` governs it)."""
    return Draws.from_torch(1 if runs is None else runs).key(0)


@torch.no_grad()
def glorot_(tensor: Tensor, key: Tensor, fan: tuple[int, int] | None = None) -> Tensor:
    r"""Fill with :math:`U(-a, a)`, :math:`a = \sqrt{6 / (\mathrm{fan_{in}} + \mathrm{fan_{out}})}`; runs come first."""
    fan_in, fan_out = fan or (tensor.size(-2), tensor.size(-1))
    bound = math.sqrt(6.0 / (fan_in + fan_out))
    key = key.to(tensor.device)
    drawn = uniform(key, tensor.numel() // key.size(0), torch.float64)
    return tensor.copy_(((2 * drawn - 1) * bound).view_as(tensor))


@torch.no_grad()
def identity_(tensor: Tensor, key: Tensor, noise: float = 0.0) -> Tensor:
    """Fill with the identity, plus uniform noise in ``[0, noise)`` where asked for."""
    size = tensor.size(-1)
    tensor.copy_(torch.eye(size, dtype=tensor.dtype, device=tensor.device).expand_as(tensor))
    if noise:
        drawn = uniform(key.to(tensor.device), size * size, torch.float64)
        tensor.add_((noise * drawn).view_as(tensor).to(tensor.dtype))
    return tensor

"""Products and sums on the run axis whose bits do not depend on how many runs there are.

A plain reduction over ``[n, R, c]`` chooses its order from the whole shape, so a run would change by company. A batched
matrix product does not: every sum over nodes here is one, with ones.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def run_matmul(x: Tensor, weight: Tensor) -> Tensor:
    """Return ``x W`` where x is ``[n, c]`` or ``[n, R, c]`` and W is ``[c, d]`` or ``[R, c, d]``."""
    if weight.dim() == 2:
        return x @ weight
    runs_first = x.transpose(0, 1) if x.dim() == 3 else x.expand(weight.size(0), *x.shape)
    return torch.bmm(runs_first, weight).transpose(0, 1)


def _sum_over_nodes(x: Tensor) -> Tensor:
    if x.dim() == 2:
        return x.sum(0)
    ones = x.new_ones(1, 1, x.size(0)).expand(x.size(1), 1, -1)
    return torch.bmm(ones, x.transpose(0, 1)).squeeze(1)


class NodeSum(Function):
    """``[n, ...]`` → the sum over nodes; its gradient is `Spread`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        """Sum."""
        return _sum_over_nodes(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Keep the number of nodes."""
        ctx.n = inputs[0].size(0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Give every node the gradient of the sum."""
        return Spread.apply(grad, ctx.n)


class Spread(Function):
    """A row for every node, ``[...]`` → ``[n, ...]``; its gradient is `NodeSum`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(row: Tensor, n: int) -> Tensor:
        """Repeat (as a view)."""
        return row.expand(n, *row.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
        """Nothing to keep."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Sum what every node gives."""
        return NodeSum.apply(grad), None


def node_sum(x: Tensor) -> Tensor:
    """Return the sum over nodes of ``[n, c]`` or ``[n, R, c]``."""
    return NodeSum.apply(x)


def node_mean(x: Tensor) -> Tensor:
    """Return the mean over nodes of ``[n, c]`` or ``[n, R, c]``."""
    return NodeSum.apply(x) / x.size(0)


def spread(row: Tensor, n: int) -> Tensor:
    """Return a row ``[c]`` or ``[R, c]`` for each of n nodes."""
    return Spread.apply(row, n)


def add_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    """Add a bias ``[d]`` or ``[R, d]`` where there is one."""
    return x if bias is None else x + spread(bias, x.size(0))

"""Products and sums on the run axis whose bits do not depend on how many runs there are.

A plain reduction over ``[n, R, c]`` chooses its order from the whole shape, and a batched matrix product from the number
of runs and from where in memory each of them begins, so a run would change by company. On a CPU every product and every
sum over nodes is therefore made run by run, on copies that begin their own memory; elsewhere runs are batched.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from omegagnn.ops import check_map
from omegagnn.ops.autograd_maps import Linear
from omegagnn.ops.positional import positional
from omegagnn.ops.registry import has_fused

CACHE_LINE = 64  # bytes; what torch aligns its allocations to
FEW_COLUMNS = 8


def with_runs(x: Tensor, runs: int | None) -> Tensor:
    """Give features ``[n, c]`` that all runs share a run axis where a layer has one."""
    return x if runs is None or x.dim() == 3 else x.unsqueeze(1).expand(-1, runs, -1)


def num_runs(x: Tensor) -> int:
    """Return R of ``[n, R, c]``, 1 of ``[n, c]``."""
    return x.size(1) if x.dim() == 3 else 1


def has_own(op: str, x: Tensor) -> bool:
    """Return whether a product of features is made by a kernel of ours (in mixed precision none is)."""
    return not torch.is_autocast_enabled(x.device.type) and has_fused(op, x)


def run_matmul(x: Tensor, weight: Tensor) -> Tensor:
    """Return ``x W`` where x is ``[n, c]`` or ``[n, R, c]`` and W is ``[c, d]`` or ``[R, c, d]``."""
    check_map(x, weight)
    had_runs = x.dim() == 3 or weight.dim() == 3
    lead = x.size(1) if x.dim() == 3 else weight.size(0) if weight.dim() == 3 else 1
    runs_first = x.transpose(0, 1) if x.dim() == 3 else x.expand(lead, *x.shape)
    product = batched_matmul(runs_first, weight if weight.dim() == 3 else weight.expand(lead, *weight.shape))
    return product.transpose(0, 1) if had_runs else product.squeeze(0)


def batched_matmul(left: Tensor, right: Tensor) -> Tensor:
    """Return ``left right`` for each run, ``[R, a, b]`` and ``[R, b, d]`` → ``[R, a, d]``, or without R."""
    if left.dim() == 2:
        return batched_matmul(left.unsqueeze(0), right.unsqueeze(0)).squeeze(0)
    if has_own("linear", left):
        return Linear.apply(left, right)
    if torch.is_autocast_enabled(left.device.type):
        dtype = torch.get_autocast_dtype(left.device.type)
        left, right = left.to(dtype), right.to(dtype)
    return Product.apply(left, right, False, False)


@positional
class Product(Function):
    """``op(left) op(right)`` a run, where a true flag transposes a factor; its gradients are two more of the same."""

    @staticmethod
    def forward(left: Tensor, right: Tensor, flip_left: bool, flip_right: bool) -> Tensor:
        """Multiply."""
        if left.device.type != "cpu":
            return torch.bmm(left.mT if flip_left else left, right.mT if flip_right else right)
        ones = [one.mT if flip_left else one for one in map(_aligned, left.split(1))]
        others = [other.mT if flip_right else other for other in map(_aligned, right.split(1))]
        rows, columns = ones[0].size(1), others[0].size(2)
        if len(ones) == 1:
            return _product(ones[0], others[0])
        if rows * columns * left.element_size() % CACHE_LINE or torch.compiler.is_compiling():
            return torch.cat([_product(one, other) for one, other in zip(ones, others, strict=True)])
        products = left.new_empty(len(ones), rows, columns)  # every run of it begins on a cache line
        for one, other, place in zip(ones, others, products.split(1), strict=True):
            _product(one, other, place)
        return products

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], left: Tensor, right: Tensor, flip_left: bool, flip_right: bool
    ) -> tuple[Tensor, int]:
        """Make more runs of a mapped dimension."""
        folded = []
        for factor, dim in ((left, in_dims[0]), (right, in_dims[1])):
            moved = factor.expand(info.batch_size, *factor.shape) if dim is None else factor.movedim(dim, 0)
            folded.append(moved.flatten(0, 1))
        products = Product.apply(*folded, flip_left, flip_right)
        return products.unflatten(0, (info.batch_size, -1)), 0

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep the factors."""
        left, right, ctx.flip_left, ctx.flip_right = inputs
        ctx.save_for_backward(left, right)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        """Multiply the gradient by the other factor."""
        left, right = ctx.saved_tensors
        grad_left = grad_right = None
        if ctx.needs_input_grad[0]:
            grad_left = (
                Product.apply(right, grad, ctx.flip_right, True)
                if ctx.flip_left
                else Product.apply(grad, right, False, not ctx.flip_right)
            )
        if ctx.needs_input_grad[1]:
            grad_right = (
                Product.apply(grad, left, True, ctx.flip_left)
                if ctx.flip_right
                else Product.apply(left, grad, not ctx.flip_left, False)
            )
        return grad_left, grad_right, None, None


def _product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Multiply one run; a product of few columns is made as rows, which the library does several times faster."""
    # What is exported must serve any number of nodes, so it may not ask for it.
    if right.size(2) < FEW_COLUMNS and not torch.compiler.is_exporting() and left.size(1) >= FEW_COLUMNS:
        narrow = torch.bmm(right.mT.contiguous(), left.mT).mT
        return narrow.contiguous() if out is None else out.copy_(narrow)
    return torch.bmm(left, right) if out is None else torch.bmm(left, right, out=out)


def _aligned(matrix: Tensor) -> Tensor:
    """Return the matrix if it begins on a cache line as fresh memory does, else a copy: the order of a sum depends on it."""
    if torch.compiler.is_compiling():  # a compiler sees no addresses, and removes the copies it can
        return matrix.clone(memory_format=torch.contiguous_format)
    if matrix.is_contiguous() and (matrix.storage_offset() * matrix.element_size()) % CACHE_LINE == 0:
        return matrix
    return matrix.clone(memory_format=torch.contiguous_format)


def _sum_over_nodes(x: Tensor) -> Tensor:
    if x.device.type != "cpu":
        return x.sum(0)
    if x.dim() == 2:
        return _aligned(x).sum(0)
    return torch.stack([_aligned(run).sum(0) for run in x.unbind(1)])


@positional
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


@positional
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

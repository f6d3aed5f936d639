"""The ops that multiply by a map, and the loss, with their gradients; see `omegagnn.ops.autograd`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from omegagnn.ops.autograd import (
    Dropout,
    EdgeDot,
    Propagate,
    into_runs,
    out_of_runs,
    pulled,
    refuse_batched,
    undifferentiated,
)
from omegagnn.ops.positional import positional
from omegagnn.ops.registry import kernels


@positional
class Linear(Function):
    """``x W`` a run with both gradients in one kernel; see `ops.reference.linear`."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        return kernels.linear(x, weight)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        if torch.is_grad_enabled():
            grad_x, grad_weight = Linear.apply(grad, weight.mT), Linear.apply(x.mT, grad)
        else:
            grad_x, grad_weight = undifferentiated(LinearBackward, x, weight, grad, ctx.needs_input_grad[0])
        return grad_x if ctx.needs_input_grad[0] else None, grad_weight if ctx.needs_input_grad[1] else None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor, weight: Tensor) -> tuple[Tensor, int]:
        size = info.batch_size
        folded = Linear.apply(into_runs(size, x, in_dims[0]), into_runs(size, weight, in_dims[1]))
        return out_of_runs(size, folded), 0


@positional
class LinearBackward(Function):
    """The gradients of `Linear` in one kernel, where they need no gradient themselves."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, grad: Tensor, need_x: bool) -> tuple[Tensor, Tensor]:
        return kernels.linear_backward(x, weight, grad.contiguous(), need_x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        """Keep nothing: `Linear` composes its gradients of itself where they are differentiated."""

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, weight: Tensor, grad: Tensor, need_x: bool
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        size = info.batch_size
        folded = [into_runs(size, arg, dim) for arg, dim in zip((x, weight, grad), in_dims, strict=False)]
        grad_x, grad_weight = LinearBackward.apply(*folded, need_x)
        return (out_of_runs(size, grad_x), out_of_runs(size, grad_weight)), (0, 0)


@positional
class Layer(Function):
    """``((1 − ω) σ(x) + ω S σ(x)) K`` as one kernel; see `ops.reference.layer`. The gradients are those of its two parts."""

    @staticmethod
    def forward(
        x: Tensor,
        omega: Tensor,
        weight: Tensor,
        weight_t: Tensor,
        rowptr: Tensor,
        col: Tensor,
        rowptr_t: Tensor,
        col_t: Tensor,
        map_: Tensor,
        relu: bool,
        keep: bool,
    ) -> tuple[Tensor, Tensor]:
        return kernels.layer(rowptr, col, weight, x, omega, map_, relu, keep)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        *tensors, ctx.relu, _ = inputs
        ctx.save_for_backward(*tensors, output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        *parts, map_, z = ctx.saved_tensors
        x, omega, weight, weight_t, *graph = parts
        need_x, need_omega, need_weight = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled() or need_weight:
            mixed = Propagate.apply(*parts, ctx.relu)
            grad_map = Linear.apply(mixed.mT, grad)
            wanted = pulled(tuple(parts), Linear.apply(grad, map_.mT), ctx.relu, (need_x, need_omega, need_weight))
        else:
            arrays = (x, omega, map_, z, grad.contiguous(), weight, weight_t, *graph)
            grad_x, grad_omega, grad_map = undifferentiated(LayerBackward, *arrays, ctx.relu, need_omega)
            wanted = (grad_x if need_x else None, grad_omega if need_omega else None, None)
        return *wanted, *(None,) * 5, grad_map if ctx.needs_input_grad[8] else None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *args: Any
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int | None]]:
        refuse_batched("the graph", *in_dims[2:8])
        (x, omega, *graph, map_, relu, keep), size = args, info.batch_size
        folded = [
            into_runs(size, arg, dim) for arg, dim in zip((x, omega, map_), (*in_dims[:2], in_dims[8]), strict=True)
        ]
        y, z = Layer.apply(folded[0], folded[1], *graph, folded[2], relu, keep)
        return (out_of_runs(size, y), out_of_runs(size, z) if keep else z), (0, 0 if keep else None)


@positional
class LayerBackward(Function):
    """The gradients of `Layer` for x, ω and K, where they need no gradient themselves."""

    @staticmethod
    def forward(
        x: Tensor,
        omega: Tensor,
        map_: Tensor,
        z: Tensor,
        grad: Tensor,
        weight: Tensor,
        weight_t: Tensor,
        rowptr: Tensor,
        col: Tensor,
        rowptr_t: Tensor,
        col_t: Tensor,
        relu: bool,
        need_omega: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        graph, graph_t = (rowptr, col, weight), (rowptr_t, col_t, weight_t)
        return kernels.layer_backward(*graph, *graph_t, x, omega, map_, z, grad, relu, need_omega)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep nothing: `Layer` composes its gradients of its parts where they are differentiated."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        size, (x, omega, map_, z, grad) = info.batch_size, args[:5]
        folded = [into_runs(size, arg, dim) for arg, dim in zip((x, omega, map_), in_dims, strict=False)]
        folded.append(into_runs(size, z, in_dims[3]) if z.numel() else x.new_empty(0))
        folded.append(into_runs(size, grad, in_dims[4]))
        outputs = LayerBackward.apply(*folded, *args[5:])
        return tuple(out_of_runs(size, output) for output in outputs), (0, 0, 0)


@positional
class SparseLinear(Function):
    """``dropout(X) W`` for sparse X with gradients for the stored values and W; see `ops.reference.sparse_linear`."""

    @staticmethod
    def forward(
        value: Tensor,
        weight: Tensor,
        key: Tensor,
        p: float,
        rowptr: Tensor,
        col: Tensor,
        rowptr_t: Tensor,
        col_t: Tensor,
        order_t: Tensor,
    ) -> Tensor:
        return kernels.sparse_linear(rowptr, col, value, weight, p, key)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        value, weight, key, ctx.p, *matrix = inputs
        ctx.save_for_backward(value, weight, key, *matrix)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        value, weight, key, *matrix = ctx.saved_tensors
        rowptr, col, rowptr_t, col_t, _ = matrix
        grad = grad.contiguous()
        grad_value = grad_weight = None
        if ctx.needs_input_grad[1]:
            grad_weight = SparseLinearBackward.apply(value, grad, key, ctx.p, *matrix)
        if ctx.needs_input_grad[0]:
            pull = EdgeDot.apply(grad, weight, rowptr, col, rowptr_t, col_t)
            grad_value = (pull * Dropout.apply(torch.ones_like(pull)[:, None], key, ctx.p)[:, 0]).sum(0)
        return grad_value, grad_weight, None, None, *(None for _ in matrix)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        value: Tensor,
        weight: Tensor,
        key: Tensor,
        p: float,
        *matrix: Tensor,
    ) -> tuple[Tensor, int]:
        refuse_batched("the sparse features", in_dims[0], *in_dims[4:])
        size = info.batch_size
        weight, key = into_runs(size, weight, in_dims[1]), into_runs(size, key, in_dims[2])
        return out_of_runs(size, SparseLinear.apply(value, weight, key, p, *matrix)), 0


@positional
class SparseLinearBackward(Function):
    """``dropout(X)ᵀ g``, linear in g; its own gradient is `SparseLinear`."""

    @staticmethod
    def forward(
        value: Tensor,
        grad: Tensor,
        key: Tensor,
        p: float,
        rowptr: Tensor,
        col: Tensor,
        rowptr_t: Tensor,
        col_t: Tensor,
        order_t: Tensor,
    ) -> Tensor:
        return kernels.sparse_linear_backward(rowptr, col, rowptr_t, col_t, order_t, value, grad, p, key)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        value, _, key, ctx.p, *matrix = inputs
        ctx.save_for_backward(value, key, *matrix)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:
        value, key, *matrix = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            raise NotImplementedError(
                "A second derivative by sparse feature values is not defined: use dense features."
            )
        grad = SparseLinear.apply(value, outer.contiguous(), key, ctx.p, *matrix)
        return None, grad, None, None, *(None for _ in matrix)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], value: Tensor, grad: Tensor, key: Tensor, p: float, *matrix: Tensor
    ) -> tuple[Tensor, int]:
        refuse_batched("the sparse features", in_dims[0], *in_dims[4:])
        size = info.batch_size
        grad, key = into_runs(size, grad, in_dims[1]), into_runs(size, key, in_dims[2])
        return out_of_runs(size, SparseLinearBackward.apply(value, grad, key, p, *matrix)), 0


@positional
class CrossEntropy(Function):
    """Weighted sums of cross-entropies, ``[R, S]``; see `ops.reference.cross_entropy`. Differentiable once, by the logits."""

    @staticmethod
    def forward(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        return kernels.cross_entropy(logits, labels, weights)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return kernels.cross_entropy_backward(*ctx.saved_tensors, grad.contiguous()), None, None

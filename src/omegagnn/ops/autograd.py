"""The ops with their gradients, in the form autograd, `torch.func` and vmap understand.

Each is an `autograd.Function` over the kernels of `registry` with features ``[R, n, c]``. A vmap dimension becomes more
runs. Where a gradient must itself be differentiated, the backward pass is composed of these same functions; otherwise
it is one fused kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from omegagnn.ops.positional import positional
from omegagnn.ops.reference import activated, receivers
from omegagnn.ops.registry import kernels


def into_runs(size: int, tensor: Tensor, dim: int | None) -> Tensor:
    """Fold a vmap dimension of `size` into the leading run axis: ``[R, ...]`` → ``[size · R, ...]``, as kernels read it."""
    moved = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return moved.reshape(size * moved.size(1), *moved.shape[2:]).contiguous()


def out_of_runs(size: int, tensor: Tensor) -> Tensor:
    """Undo `into_runs`: ``[size · R, ...]`` → ``[size, R, ...]``."""
    return tensor.unflatten(0, (size, tensor.size(0) // size))


def undifferentiated(function: type[Function], *args: Any) -> Any:
    """Call a function in a backward pass. Where nothing differentiates or maps it, that is its `forward`, which costs a third."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return function.apply(*args)
    return function.forward(*args)


def refuse_batched(what: str, *dims: int | None) -> None:
    """Refuse to map over what all runs share."""
    if any(dim is not None for dim in dims):
        raise NotImplementedError(f"vmap over {what} is not supported: map over the features, ω or the parameters.")


@positional
class Propagate(Function):
    """``(1 − ω) σ(x) + ω S σ(x)`` with gradients for x, ω and the entries of S; see `ops.reference.propagate`."""

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
        relu: bool,
    ) -> Tensor:
        return kernels.propagate(rowptr, col, weight, x, omega, relu)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.relu = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return *pulled(ctx.saved_tensors, grad.contiguous(), ctx.relu, ctx.needs_input_grad[:3]), *(None,) * 6

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor, omega: Tensor, *graph: Any) -> tuple[Tensor, int]:
        refuse_batched("the graph", *in_dims[2:])
        size = info.batch_size
        folded = Propagate.apply(into_runs(size, x, in_dims[0]), into_runs(size, omega, in_dims[1]), *graph)
        return out_of_runs(size, folded), 0


def pulled(
    saved: tuple[Tensor, ...], grad: Tensor, relu: bool, needs: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of `Propagate` for x, ω and the entries of S as far as they are needed."""
    x, omega, weight, weight_t, rowptr, col, rowptr_t, col_t = saved
    need_x, need_omega, need_weight = needs
    grad_x = grad_omega = grad_weight = None
    if (need_x or need_omega) and not torch.is_grad_enabled():
        grad_x, grad_omega = undifferentiated(
            PropagateBackward, x, omega, grad, weight_t, rowptr_t, col_t, relu, need_omega
        )
    elif need_x or need_omega:
        graph_t = (weight_t, weight, rowptr_t, col_t, rowptr, col, False)
        if need_x:
            grad_x = Propagate.apply(grad, omega, *graph_t)
            grad_x = grad_x * (x > 0) if relu else grad_x
        if need_omega:
            change = Propagate.apply(grad, torch.ones_like(omega), *graph_t) - grad
            grad_omega = (activated(x, relu) * change).sum(1).to(omega.dtype)
    if need_weight:
        grad_weight = EdgeDot.apply(omega[:, None, :] * grad, activated(x, relu), rowptr, col, rowptr_t, col_t).sum(0)
    return grad_x, grad_omega if need_omega else None, grad_weight


@positional
class PropagateBackward(Function):
    """The gradients of `Propagate` for x and ω in one kernel, where they need no gradient themselves."""

    @staticmethod
    def forward(
        x: Tensor,
        omega: Tensor,
        grad: Tensor,
        weight_t: Tensor,
        rowptr_t: Tensor,
        col_t: Tensor,
        relu: bool,
        need_omega: bool,
    ) -> tuple[Tensor, Tensor]:
        return kernels.propagate_backward(rowptr_t, col_t, weight_t, x, omega, grad, relu, need_omega)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        """Keep nothing: `Propagate` composes its gradients of itself where they are differentiated."""

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, omega: Tensor, grad: Tensor, *rest: Any
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        size = info.batch_size
        folded = [into_runs(size, arg, dim) for arg, dim in zip((x, omega, grad), in_dims, strict=False)]
        grad_x, grad_omega = PropagateBackward.apply(*folded, *rest)
        return (out_of_runs(size, grad_x), out_of_runs(size, grad_omega)), (0, 0)


@positional
class EdgeDot(Function):
    """``⟨left_i, right_j⟩`` for each entry ``j → i``, ``[R, E]``: the gradient of a propagation for its weights."""

    @staticmethod
    def forward(left: Tensor, right: Tensor, rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor) -> Tensor:
        return kernels.edge_dot(rowptr, col, left.contiguous(), right.contiguous())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # Second derivatives by edge weight are rare (explainers): gather and scatter in plain torch.
        left, right, rowptr, col, _, _ = ctx.saved_tensors
        row = receivers(rowptr, col.numel())
        grad = grad[..., None]
        grad_left = torch.zeros_like(left).index_add(1, row, grad * right[:, col])
        grad_right = torch.zeros_like(right).index_add(1, col, grad * left[:, row])
        return grad_left, grad_right, None, None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], left: Tensor, right: Tensor, *graph: Tensor
    ) -> tuple[Tensor, int]:
        refuse_batched("the graph", *in_dims[2:])
        size = info.batch_size
        folded = EdgeDot.apply(into_runs(size, left, in_dims[0]), into_runs(size, right, in_dims[1]), *graph)
        return out_of_runs(size, folded), 0


@positional
class Attention(Function):
    """Attention propagation with ω; arguments as in `ops.reference.attention`. Differentiable once.

    (Index arrays are spelt out here and below: of a forward pass with ``*arguments`` the compiler misreads the first.)
    """

    @staticmethod
    def forward(
        x: Tensor,
        maps: Tensor,
        omega: Tensor,
        key: Tensor,
        slope: float,
        p: float,
        relu: bool,
        rowptr: Tensor,
        col: Tensor,
        rowptr_t: Tensor,
        col_t: Tensor,
        order_t: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        return kernels.attention(rowptr, col, x, maps, omega, slope, p, key, relu)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        x, maps, omega, key, *ctx.settings, rowptr, col, rowptr_t, col_t, order_t = inputs
        ctx.save_for_backward(x, maps, omega, key, *output, rowptr, col, rowptr_t, col_t, order_t)
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, maps, omega, key, y, scores, lse, *graph = ctx.saved_tensors
        tensors = (x, maps, omega, key, y, scores, lse, grad.contiguous())
        return *undifferentiated(AttentionBackward, *tensors, *ctx.settings, *graph), *(None,) * 9

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return _vmap_attention(Attention, 4, info, in_dims, args)


@positional
class AttentionBackward(Function):
    """The gradients of `Attention` as a function of their own, so that vmap can fold them into runs as well."""

    @staticmethod
    def forward(
        x: Tensor,
        maps: Tensor,
        omega: Tensor,
        key: Tensor,
        y: Tensor,
        scores: Tensor,
        lse: Tensor,
        grad: Tensor,
        slope: float,
        p: float,
        relu: bool,
        rowptr: Tensor,
        col: Tensor,
        rowptr_t: Tensor,
        col_t: Tensor,
        order_t: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        graph, tensors = (rowptr, col, rowptr_t, col_t, order_t), (x, y, maps, scores, lse, omega, grad)
        return kernels.attention_backward(*graph, *tensors, slope, p, key, relu)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep nothing: there is no second derivative."""

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        raise NotImplementedError(
            "Attention propagation is differentiable once; its second derivative is not defined here."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return _vmap_attention(AttentionBackward, 8, info, in_dims, args)


def _vmap_attention(
    function: type[Function], tensors: int, info: Any, in_dims: tuple[int | None, ...], args: tuple[Any, ...]
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    refuse_batched("the graph", *in_dims[tensors + 3 :])
    size = info.batch_size
    folded = [into_runs(size, arg, dim) for arg, dim in zip(args[:tensors], in_dims, strict=False)]
    outputs = function.apply(*folded, *args[tensors:])
    return tuple(out_of_runs(size, output) for output in outputs), (0,) * len(outputs)


@positional
class Dropout(Function):
    """Dropout by counter: the mask is drawn again in the backward pass instead of being kept."""

    @staticmethod
    def forward(x: Tensor, key: Tensor, p: float) -> Tensor:
        return kernels.dropout(x.contiguous(), p, key)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, key, ctx.p = inputs
        ctx.save_for_backward(key)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (key,) = ctx.saved_tensors
        return Dropout.apply(grad, key, ctx.p), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor, key: Tensor, p: float) -> tuple[Tensor, int]:
        size = info.batch_size
        folded = Dropout.apply(into_runs(size, x, in_dims[0]), into_runs(size, key, in_dims[1]), p)
        return out_of_runs(size, folded), 0


@positional
class Key(Function):
    """The key of each run from its seed; see `ops.reference.draw_key`. A vmap dimension of the seeds becomes more runs."""

    @staticmethod
    def forward(seeds: Tensor, step: Tensor, place: int) -> Tensor:
        return kernels.draw_key(seeds, step, place)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], seeds: Tensor, step: Tensor, place: int) -> tuple[Tensor, int]:
        refuse_batched("the step", in_dims[1])
        size = info.batch_size
        return out_of_runs(size, Key.apply(into_runs(size, seeds, in_dims[0]), step, place)), 0

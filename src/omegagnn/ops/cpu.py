"""The fused CPU twin: the functions of `omegagnn.ops.reference` that `omegagnn.ops.registry` dispatches, compiled by numba.

Each is one or a few passes over the edges with nothing of the size edges × channels in between. The compiled code is
kept on disk; work large enough to be worth it is shared by `torch.get_num_threads()` threads, with the same bits for
every number of them.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import torch
from numba.core import event
from torch import Tensor

from omegagnn.ops import cpu_attention, cpu_elements, cpu_kernels, cpu_layers, cpu_loss, cpu_products
from omegagnn.ops.cpu_calls import chunked, fresh, joined, run_kernel
from omegagnn.ops.cpu_kernels import CHUNK, TILE
from omegagnn.ops.random import drop_threshold

DTYPES = frozenset({torch.float32, torch.float64})
"""What the compiled kernels compute in; other dtypes go to the reference."""

COMPILE_SECONDS = 8
"""About what it takes to compile the kernels of a training step once, on one ordinary core."""

QUICK = 8
"""How many multiplications of a matrix product take as long as one of a propagation."""

SHARES, LEAST_SHARE = 16, 4
"""Into how many shares of rows a sum of products over all of them is cut at most, and the least share in chunks."""


class _CompileNotice(event.Listener):
    """Says once on stderr that kernels are being compiled; code loaded from disk raises no such event."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, happening: Any) -> None:
        function = happening.data["dispatcher"].py_func
        if not self._said and function.__module__.startswith("omegagnn.ops."):
            self._said = True
            print(f"compiling CPU kernels (once, about {COMPILE_SECONDS} s)", file=sys.stderr, flush=True)

    def on_end(self, happening: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _CompileNotice())


def _kind(relu: bool) -> tuple[bool | None]:
    """Return the argument whose type tells a kernel whether ReLU is meant."""
    return (True if relu else None,)


def propagate(rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor, omega: Tensor | None, relu: bool) -> Tensor:
    """See `omegagnn.ops.reference.propagate`: one pass over the edges, the result written once."""
    (runs, rows, width), graph, kinds = x.shape, (rowptr, col), _kind(relu)
    y, work = fresh(x, *x.shape), runs * col.numel() * width
    if omega is None:
        sizes = (runs, rows, rows, 0, width)
        run_kernel(cpu_kernels.product, work, rows, graph, (weight, x, y), (), *sizes, kinds=kinds)
    else:
        run_kernel(cpu_kernels.propagate, work, rows, graph, (weight, x, omega, y), (), runs, rows, width, kinds=kinds)
    return y


def propagate_backward(
    rowptr_t: Tensor,
    col_t: Tensor,
    weight_t: Tensor,
    x: Tensor,
    omega: Tensor,
    grad: Tensor,
    relu: bool,
    need_omega: bool,
) -> tuple[Tensor, Tensor]:
    """See `omegagnn.ops.reference.propagate_backward`: one pass over the edges for both gradients."""
    if not relu and not need_omega:
        return propagate(rowptr_t, col_t, weight_t, grad, omega, False), torch.zeros_like(omega)
    runs, rows, width = x.shape
    grad_x, parts = fresh(x, *x.shape), chunked(rows, omega)
    graph, features, work = (rowptr_t, col_t), (weight_t, x, omega, grad, grad_x), runs * col_t.numel() * width
    run_kernel(
        cpu_kernels.propagate_backward, work, rows, graph, features, (parts,), runs, rows, width, kinds=_kind(relu)
    )
    return grad_x, joined(parts, omega) if need_omega else torch.zeros_like(omega)


def edge_dot(rowptr: Tensor, col: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.edge_dot`."""
    (runs, rows, width), entries = left.shape, col.numel()
    out = left.new_zeros(runs, entries)
    sizes = (runs, rows, right.size(1), entries, width)
    run_kernel(cpu_kernels.edge_dot, runs * entries * width, rows, (rowptr, col), (left, right, out), (), *sizes)
    return out


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.linear`."""
    (runs, rows, width), columns = x.shape, weight.size(2)
    if weight.shape[:2] != (runs, width):
        raise ValueError(
            f"Features {list(x.shape)} do not fit a map {list(weight.shape)}: runs and channels must agree."
        )
    y = fresh(x, runs, rows, columns)
    if not width:
        y.zero_()  # where there is nothing to add up, no kernel writes
    x, apart = _run_by_run(x)
    sizes = (runs, rows, width, columns)
    run_kernel(cpu_products.linear, math.prod(sizes) // QUICK, rows, (), (x, weight, y), (), apart, *sizes)
    return y


def _run_by_run(x: Tensor) -> tuple[Tensor, int]:
    """Return features as they are kept, once where all runs share them, and how many numbers lie between two runs."""
    shared = x.size(0) > 1 and x.stride(0) == 0
    return (x[:1], 0) if shared else (x, x.size(1) * x.size(2))


def linear_backward(x: Tensor, weight: Tensor, grad: Tensor, need_x: bool) -> tuple[Tensor, Tensor]:
    """See `omegagnn.ops.reference.linear_backward`: both products of a tile of rows while it is near."""
    (runs, rows, width), columns = x.shape, weight.size(2)
    grad_x = fresh(x, *x.shape) if need_x else x.new_empty(0)
    if not columns:
        grad_x.zero_()  # where there is nothing to add up, no kernel writes
    parts, share = _shared_out(x, weight)
    x, apart = _run_by_run(x)
    arrays, sizes = (x, weight.mT.contiguous(), grad, grad_x, parts), (runs, rows, width, columns)
    work = 2 * math.prod(sizes) // QUICK
    run_kernel(cpu_products.linear_backward, work, rows, (), arrays, (), need_x, apart, *sizes, share, unit=share)
    return grad_x, _shares_joined(parts)


def _shared_out(x: Tensor, weight: Tensor) -> tuple[Tensor, int]:
    """Return room for what each share of rows adds to the gradient of a map, ``[R, shares, c, d]``, and its rows."""
    rows = x.size(1)
    share = max(LEAST_SHARE, -(-rows // (SHARES * CHUNK))) * CHUNK
    make = x.new_empty if rows else x.new_zeros
    return make(weight.size(0), max(1, -(-rows // share)), *weight.shape[1:]), share


def _shares_joined(parts: Tensor) -> Tensor:
    return parts[:, 0] if parts.size(1) == 1 else parts.sum(1, dtype=torch.float64).to(parts.dtype)


def layer(
    rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor, omega: Tensor, map_: Tensor, relu: bool, keep: bool
) -> tuple[Tensor, Tensor]:
    """See `omegagnn.ops.reference.layer`: a tile of rows is propagated and meets the map while it is near."""
    (runs, rows, width), columns = x.shape, map_.size(2)
    y, z = fresh(x, runs, rows, columns), _room(x, keep)
    if not width:
        y.zero_()  # where there is nothing to add up, no kernel writes
    work = runs * width * (col.numel() + rows * columns // QUICK)
    arrays, sizes = (weight, x, omega, map_, z, y), (runs, rows, width, columns)
    run_kernel(cpu_layers.layer, work, rows, (rowptr, col), arrays, (), keep, *sizes, kinds=_kind(relu))
    return y, z if keep else x.new_empty(0)


def _room(x: Tensor, whole: bool) -> Tensor:
    """Return room for features like x: for all of them, or for a tile of each chunk of rows."""
    return fresh(x, *x.shape) if whole else x.new_empty(-(-x.size(1) // CHUNK), TILE, x.size(2))


def layer_backward(
    rowptr: Tensor,
    col: Tensor,
    weight: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    weight_t: Tensor,
    x: Tensor,
    omega: Tensor,
    map_: Tensor,
    z: Tensor,
    grad: Tensor,
    relu: bool,
    need_omega: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """See `omegagnn.ops.reference.layer_backward`: z that was not kept is made again, a tile at a time."""
    (runs, rows, width), columns, kept = x.shape, map_.size(2), z.numel() > 0
    grad_z = fresh(x, *x.shape)
    if not columns:
        grad_z.zero_()  # where there is nothing to add up, no kernel writes
    parts, share = _shared_out(x, map_)
    room = z if kept else _room(x, False)
    arrays, sizes = (weight, x, omega, map_.mT.contiguous(), room, grad, grad_z, parts), (runs, rows, width, columns)
    work = runs * width * (0 if kept else col.numel()) + 2 * math.prod(sizes) // QUICK
    settings = (kept, *sizes, share)
    run_kernel(
        cpu_layers.layer_backward, work, rows, (rowptr, col), arrays, (), *settings, kinds=_kind(relu), unit=share
    )
    graph_t = (rowptr_t, col_t, weight_t)
    grad_x, grad_omega = propagate_backward(*graph_t, x, omega, grad_z, relu, need_omega)
    return grad_x, grad_omega, _shares_joined(parts)


def _drops(p: float, dtype: torch.dtype) -> tuple[int, float]:
    """Return the threshold of the draws and the factor of what is kept, rounded as torch rounds it."""
    number = np.float32 if dtype == torch.float32 else np.float64
    return drop_threshold(p), float(number(1) / number(1 - p))


def attention(
    rowptr: Tensor,
    col: Tensor,
    x: Tensor,
    maps: Tensor,
    omega: Tensor,
    slope: float,
    p: float,
    key: Tensor,
    relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """See `omegagnn.ops.reference.attention`: scores, softmax, aggregation and ω mix of a tile of rows at a time."""
    (runs, rows, width), columns, entries, kinds = x.shape, maps.size(2), col.numel(), _kind(relu)
    heads = columns // 2
    y, scores, lse = (fresh(x, runs, rows, size) for size in (width, columns, heads))
    if not width:
        scores.zero_()  # where there is nothing to add up, no kernel writes
    seen, few = (x, maps.mT.contiguous(), scores), runs * rows * columns * width
    run_kernel(cpu_attention.scores, few, rows, (), seen, (), runs, rows, columns, width, kinds=kinds)
    features, work = (x, scores, omega, y, lse, fresh(x, entries)), runs * entries * (width + 8 * heads)
    settings = (slope, *_drops(p, x.dtype), runs, rows, heads, width)
    run_kernel(cpu_attention.attention, work, rows, (rowptr, col), features, (key.long(),), *settings, kinds=kinds)
    return y, scores, lse


def attention_backward(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    order_t: Tensor,
    x: Tensor,
    y: Tensor,
    maps: Tensor,
    scores: Tensor,
    lse: Tensor,
    omega: Tensor,
    grad: Tensor,
    slope: float,
    p: float,
    key: Tensor,
    relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """See `omegagnn.ops.reference.attention_backward`: one pass over edges × channels, three over edges × heads."""
    (runs, rows, width), heads, entries, order, kinds = x.shape, lse.size(2), col.numel(), (order_t,), _kind(relu)
    alpha, kept, pull = (fresh(x, runs, heads, entries) for _ in range(3))
    parts, map_parts = chunked(rows, omega), chunked(rows, maps.mT)
    if not width:
        pull.zero_()  # where there is nothing to pull, no kernel writes
    grad_x, grad_scores = fresh(x, *x.shape), fresh(scores, *scores.shape)
    few, many, sizes = runs * entries * heads * 8, runs * entries * width * 2, (runs, rows, entries, heads)
    given, settings = (scores, lse, alpha, kept), (slope, *_drops(p, x.dtype), *sizes)
    run_kernel(cpu_attention.attention_coefficients, few, rows, (rowptr, col), given, (key.long(),), *settings)
    features, graph_t = (kept, pull, x, omega, grad, grad_x), (rowptr_t, col_t)
    run_kernel(
        cpu_attention.attention_pull, many, rows, graph_t, features, (parts,), *sizes, width, order=order, kinds=kinds
    )
    run_kernel(
        cpu_attention.attention_receivers, few, rows, (rowptr,), (alpha, kept, pull, grad_scores), (), slope, *sizes
    )
    run_kernel(cpu_attention.attention_senders, few, rows, (rowptr_t,), (pull, grad_scores), (), *sizes, order=order)
    arrays, sizes = (x, maps.mT.contiguous(), grad_scores, grad_x), (runs, rows, 2 * heads, width)
    run_kernel(cpu_attention.attention_finish, math.prod(sizes), rows, (), arrays, (map_parts,), *sizes, kinds=kinds)
    return grad_x, joined(map_parts, maps).mT.contiguous(), joined(parts, omega)


def _dropped(value: Tensor, p: float, key: Tensor, out: Tensor) -> Tensor:
    """Write value, of one shape for every run or shared by all, to out ``[R, ...]`` under dropout."""
    runs = key.size(0)
    size = out[0].numel() if runs else 0
    settings = (*_drops(p, value.dtype), runs, size if value.dim() == out.dim() else 0, size)
    run_kernel(cpu_elements.dropout, out.numel(), size, (), (value, out), (key.long(),), *settings)
    return out


def sparse_linear(rowptr: Tensor, col: Tensor, value: Tensor, weight: Tensor, p: float, key: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.sparse_linear`."""
    (runs, columns, width), rows, entries = weight.shape, rowptr.numel() - 1, col.numel()
    if p > 0:
        value = _dropped(value, p, key, value.new_empty(runs, entries))
    y = fresh(weight, runs, rows, width)
    sizes = (runs, rows, columns, entries if p > 0 else 0, width)
    run_kernel(
        cpu_kernels.product, runs * entries * width, rows, (rowptr, col), (value, weight, y), (), *sizes, kinds=(None,)
    )
    return y


def sparse_linear_backward(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    order_t: Tensor,
    value: Tensor,
    grad: Tensor,
    p: float,
    key: Tensor,
) -> Tensor:
    """See `omegagnn.ops.reference.sparse_linear_backward`."""
    (runs, rows, width), columns, entries = grad.shape, rowptr_t.numel() - 1, col.numel()
    if p > 0:
        value = _dropped(value, p, key, value.new_empty(runs, entries))
    value_t = torch.empty_like(value)
    run_kernel(
        cpu_elements.reordered,
        value.numel(),
        entries,
        (order_t,),
        (value, value_t),
        (),
        value.numel() // max(entries, 1),
        entries,
    )
    grad_weight = fresh(grad, runs, columns, width)
    sizes = (runs, columns, rows, entries if p > 0 else 0, width)
    run_kernel(
        cpu_kernels.product,
        runs * entries * width,
        columns,
        (rowptr_t, col_t),
        (value_t, grad, grad_weight),
        (),
        *sizes,
        kinds=(None,),
    )
    return grad_weight


def cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.cross_entropy`."""
    (runs, rows, classes), parts = logits.shape, weights.size(1)
    sums, (weights, apart) = torch.zeros(runs, -(-rows // CHUNK), parts, dtype=torch.float64), _run_by_run(weights)
    sizes = (apart, runs, parts, rows, classes)
    run_kernel(cpu_loss.cross_entropy, logits.numel(), rows, (), (logits, weights), (labels.long(), sums), *sizes)
    return joined(sums, logits)


def cross_entropy_backward(logits: Tensor, labels: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.cross_entropy_backward`."""
    (runs, rows, classes), parts, out = logits.shape, weights.size(1), fresh(logits, *logits.shape)
    weights, apart = _run_by_run(weights)
    sizes, arrays = (apart, runs, parts, rows, classes), (logits, weights, grad, out)
    run_kernel(cpu_loss.cross_entropy_backward, logits.numel(), rows, (), arrays, (labels.long(),), *sizes)
    return out


def dropout(x: Tensor, p: float, key: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.dropout`."""
    return _dropped(x, p, key, fresh(x, *x.shape))


def adam_(
    param: Tensor,
    grad: Tensor,
    average: Tensor,
    square: Tensor,
    rates: Tensor,
    decays: Tensor,
    correction: Tensor,
    active: Tensor,
    blocks: Tensor,
    largest: int,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    """See `omegagnn.ops.reference.adam_`: one pass over all four arrays."""
    count, arrays = blocks.size(1), (param, grad, average, square)
    numbers = (rates.double(), decays.double(), correction.double(), active, blocks.long())
    run_kernel(cpu_elements.adam, 0, count, (), arrays, numbers, beta1, beta2, eps, active.numel(), count)
    # autograd does not see what is written through an address; without this a stale saved tensor would go unnoticed.
    torch.autograd.graph.increment_version((param, average, square))


def keep_(kept: Tensor, source: Tensor, chosen: Tensor, blocks: Tensor, largest: int) -> None:
    """See `omegagnn.ops.reference.keep_`."""
    count = blocks.size(1)
    run_kernel(cpu_elements.keep, 0, count, (), (kept, source), (chosen, blocks.long()), count)
    torch.autograd.graph.increment_version((kept,))


def draw_key(seeds: Tensor, step: Tensor, place: int) -> Tensor:
    """See `omegagnn.ops.reference.draw_key`."""
    out = torch.empty(seeds.numel(), 2, dtype=torch.int64)
    run_kernel(cpu_elements.draw_key, 0, seeds.numel(), (), (), (seeds.long(), step.long(), out), place)
    return out

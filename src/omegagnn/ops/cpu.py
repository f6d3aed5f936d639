"""The fused CPU twin: the functions of `omegagnn.ops.reference` that `omegagnn.ops.registry` dispatches, compiled by numba.

Each is one or a few passes over the edges with nothing of the size edges × channels in between. The compiled code is
kept on disk; work large enough to be worth it is shared by `torch.get_num_threads()` threads, with the same bits for
every number of them.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from numba.core import event
from torch import Tensor

from omegagnn.ops import cpu_attention, cpu_elements, cpu_kernels, reference
from omegagnn.ops.cpu_kernels import CHUNK
from omegagnn.ops.random import drop_threshold

_LIKE = {torch.float32: np.float32(0), torch.float64: np.float64(0), torch.int32: np.int32(0), torch.int64: np.int64(0)}

DTYPES = frozenset({torch.float32, torch.float64})
"""What the compiled kernels compute in; other dtypes go to the reference."""

product_gradients = reference.product_gradients

COMPILE_SECONDS = 5
"""About what it takes to compile the kernels of a training step once, on one ordinary core."""

WORTH_SHARING = 200_000_000
"""Multiplications (tens of milliseconds) from which a second thread is asked for help: less is done before it wakes."""

LARGE_PAGES_FROM = 8 * 2**20
"""Bytes from which on a result asks for large pages, whose first touch costs a fraction of that of small ones."""


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


# ----------------------------------------------------------------------------------------------- arrays and threads


@cache
def _advise() -> Callable[..., int] | None:
    """Return the C library's ``madvise`` where the system has large pages."""
    return ctypes.CDLL(None).madvise if hasattr(mmap, "MADV_HUGEPAGE") else None


def _advise_large_pages(address: int, size: int) -> None:
    """Ask for large pages under new memory; where the system declines, nothing is lost but time."""
    advise = _advise()
    if advise is not None:
        start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        advise(ctypes.c_void_p(start), ctypes.c_size_t(address + size - start), mmap.MADV_HUGEPAGE)


def _fresh(like: Tensor, *shape: int) -> Tensor:
    result = like.new_empty(shape)
    if result.nbytes >= LARGE_PAGES_FROM:
        _advise_large_pages(result.data_ptr(), result.nbytes)
    return result


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="omegagnn")


if hasattr(os, "register_at_fork"):  # a forked child inherits the pools without their threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _run(
    kernel: Callable[..., None],
    work: int,
    size: int,
    indices: tuple[Tensor, ...],
    features: tuple[Tensor, ...],
    others: tuple[Tensor, ...],
    *settings: float,
    order: tuple[Tensor, ...] = (),
    kinds: tuple[bool | None, ...] = (),
) -> None:
    """Call ``kernel(dtypes, kinds, addresses, settings, begin, end)`` over ``0 ... size``, shared by threads if worth it.

    The caller works as well and the others take pieces as long as there are any, so a thread that is held up, or never
    gets to start, leaves its share to the rest. Pieces end at multiples of `CHUNK`, over which reductions run.
    """
    likes = []
    for group in (features, indices, order):
        if group:
            dtype = group[0].dtype
            likes.append(_LIKE[dtype])
            for tensor in group:
                if tensor.dtype is not dtype:
                    raise TypeError(f"The tensors of {kernel.__name__} have mixed dtypes: convert them to {dtype}.")
    held = [tensor.contiguous() for tensor in (*indices, *order, *features, *others)]
    args = (*likes, *kinds, *[tensor.data_ptr() for tensor in held], *settings)
    threads = torch.get_num_threads()
    if work < WORTH_SHARING or threads == 1 or size <= CHUNK:
        kernel(*args, 0, size)
        return
    step = -(-size // (16 * threads * CHUNK)) * CHUNK
    pieces = deque(range(0, size, step))

    def take_pieces() -> None:
        while True:
            try:
                begin = pieces.popleft()
            except IndexError:
                return
            kernel(*args, begin, min(begin + step, size))

    helpers = [_pool(threads - 1).submit(take_pieces) for _ in range(threads - 1)]
    take_pieces()
    for helper in helpers:
        if not helper.cancel():
            helper.result()


def _chunked(rows: int, like: Tensor) -> Tensor:
    """Return zeros for the part of a reduction to ``[R, ...]`` that each chunk of rows contributes."""
    return torch.zeros(like.size(0), -(-rows // CHUNK), *like.shape[1:], dtype=torch.float64)


def _joined(parts: Tensor, like: Tensor) -> Tensor:
    return parts.sum(1).to(like.dtype)


# ------------------------------------------------------------------------------------------------------ the ops


def _kind(relu: bool) -> tuple[bool | None]:
    """Return the argument whose type tells a kernel whether ReLU is meant."""
    return (True if relu else None,)


def propagate(rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor, omega: Tensor | None, relu: bool) -> Tensor:
    """See `omegagnn.ops.reference.propagate`: one pass over the edges, the result written once."""
    (runs, rows, width), graph, kinds = x.shape, (rowptr, col), _kind(relu)
    y, work = _fresh(x, *x.shape), runs * col.numel() * width
    if omega is None:
        sizes = (runs, rows, rows, 0, width)
        _run(cpu_kernels.product, work, rows, graph, (weight, x, y), (), *sizes, kinds=kinds)
    else:
        _run(cpu_kernels.propagate, work, rows, graph, (weight, x, omega, y), (), runs, rows, width, kinds=kinds)
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
    grad_x, parts = _fresh(x, *x.shape), _chunked(rows, omega)
    graph, features, work = (rowptr_t, col_t), (weight_t, x, omega, grad, grad_x), runs * col_t.numel() * width
    _run(cpu_kernels.propagate_backward, work, rows, graph, features, (parts,), runs, rows, width, kinds=_kind(relu))
    return grad_x, _joined(parts, omega) if need_omega else torch.zeros_like(omega)


def edge_dot(rowptr: Tensor, col: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.edge_dot`."""
    (runs, rows, width), entries = left.shape, col.numel()
    out = left.new_zeros(runs, entries)
    sizes = (runs, rows, right.size(1), entries, width)
    _run(cpu_kernels.edge_dot, runs * entries * width, rows, (rowptr, col), (left, right, out), (), *sizes)
    return out


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
    y, scores, lse = (_fresh(x, runs, rows, size) for size in (width, columns, heads))
    if not width:
        scores.zero_()  # where there is nothing to add up, no kernel writes
    seen, few = (x, maps.mT.contiguous(), scores), runs * rows * columns * width
    _run(cpu_attention.scores, few, rows, (), seen, (), runs, rows, columns, width, kinds=kinds)
    features, work = (x, scores, omega, y, lse, _fresh(x, entries)), runs * entries * (width + 8 * heads)
    settings = (slope, *_drops(p, x.dtype), runs, rows, heads, width)
    _run(cpu_attention.attention, work, rows, (rowptr, col), features, (key.long(),), *settings, kinds=kinds)
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
    alpha, kept, pull = (_fresh(x, runs, heads, entries) for _ in range(3))
    parts, map_parts = _chunked(rows, omega), _chunked(rows, maps.mT)
    if not width:
        pull.zero_()  # where there is nothing to pull, no kernel writes
    grad_x, grad_scores = _fresh(x, *x.shape), _fresh(scores, *scores.shape)
    few, many, sizes = runs * entries * heads * 8, runs * entries * width * 2, (runs, rows, entries, heads)
    given, settings = (scores, lse, alpha, kept), (slope, *_drops(p, x.dtype), *sizes)
    _run(cpu_attention.attention_coefficients, few, rows, (rowptr, col), given, (key.long(),), *settings)
    features, graph_t = (kept, pull, x, omega, grad, grad_x), (rowptr_t, col_t)
    _run(cpu_attention.attention_pull, many, rows, graph_t, features, (parts,), *sizes, width, order=order, kinds=kinds)
    _run(cpu_attention.attention_receivers, few, rows, (rowptr,), (alpha, kept, pull, grad_scores), (), slope, *sizes)
    _run(cpu_attention.attention_senders, few, rows, (rowptr_t,), (pull, grad_scores), (), *sizes, order=order)
    arrays, sizes = (x, maps.mT.contiguous(), grad_scores, grad_x), (runs, rows, 2 * heads, width)
    _run(cpu_attention.attention_finish, math.prod(sizes), rows, (), arrays, (map_parts,), *sizes, kinds=kinds)
    return grad_x, _joined(map_parts, maps).mT.contiguous(), _joined(parts, omega)


def _dropped(value: Tensor, p: float, key: Tensor, out: Tensor) -> Tensor:
    """Write value, of one shape for every run or shared by all, to out ``[R, ...]`` under dropout."""
    runs = key.size(0)
    size = out[0].numel() if runs else 0
    settings = (*_drops(p, value.dtype), runs, size if value.dim() == out.dim() else 0, size)
    _run(cpu_elements.dropout, out.numel(), size, (), (value, out), (key.long(),), *settings)
    return out


def sparse_linear(rowptr: Tensor, col: Tensor, value: Tensor, weight: Tensor, p: float, key: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.sparse_linear`."""
    (runs, columns, width), rows, entries = weight.shape, rowptr.numel() - 1, col.numel()
    if p > 0:
        value = _dropped(value, p, key, value.new_empty(runs, entries))
    y = _fresh(weight, runs, rows, width)
    sizes = (runs, rows, columns, entries if p > 0 else 0, width)
    _run(
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
    _run(
        cpu_elements.reordered,
        value.numel(),
        entries,
        (order_t,),
        (value, value_t),
        (),
        value.numel() // max(entries, 1),
        entries,
    )
    grad_weight = _fresh(grad, runs, columns, width)
    sizes = (runs, columns, rows, entries if p > 0 else 0, width)
    _run(
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


def dropout(x: Tensor, p: float, key: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.dropout`."""
    return _dropped(x, p, key, _fresh(x, *x.shape))


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
    _run(cpu_elements.adam, 0, count, (), arrays, numbers, beta1, beta2, eps, active.numel(), count)
    # autograd does not see what is written through an address; without this a stale saved tensor would go unnoticed.
    torch.autograd.graph.increment_version((param, average, square))


def keep_(kept: Tensor, source: Tensor, chosen: Tensor, blocks: Tensor, largest: int) -> None:
    """See `omegagnn.ops.reference.keep_`."""
    count = blocks.size(1)
    _run(cpu_elements.keep, 0, count, (), (kept, source), (chosen, blocks.long()), count)
    torch.autograd.graph.increment_version((kept,))


def draw_key(seeds: Tensor, step: Tensor, place: int) -> Tensor:
    """See `omegagnn.ops.reference.draw_key`."""
    out = torch.empty(seeds.numel(), 2, dtype=torch.int64)
    _run(cpu_elements.draw_key, 0, seeds.numel(), (), (), (seeds.long(), step.long(), out), place)
    return out

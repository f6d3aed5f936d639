"""The fused CPU twin: the functions of `omegagnn.ops.reference` that `omegagnn.ops.registry` dispatches, compiled by numba.

Each is one or a few passes over the edges with nothing of the size edges × channels in between. The compiled code is
kept on disk; work large enough to be worth it is shared by `torch.get_num_threads()` threads, with the same bits for
every number of them.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from numba.core import event
from torch import Tensor

from omegagnn.ops import cpu_attention, cpu_kernels
from omegagnn.ops.cpu_kernels import CHUNK
from omegagnn.ops.random import drop_threshold

DTYPES = frozenset({torch.float32, torch.float64})
"""What the compiled kernels compute in; other dtypes go to the reference."""

COMPILE_SECONDS = 8
"""About what it takes to compile the kernels of a training step once, on one ordinary core."""

WORTH_SHARING = 50_000_000
"""Multiplications from which on a second thread pays; below, the hand-over costs more than it saves."""

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


def _flat(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().view(-1).numpy()


@cache
def _advise() -> Callable[..., int] | None:
    """Return the C library's ``madvise`` where the system has large pages."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    return ctypes.CDLL(None).madvise


def _fresh(like: Tensor, *shape: int) -> Tensor:
    result = like.new_empty(shape)
    size, advise = result.nbytes, _advise()
    if size >= LARGE_PAGES_FROM and advise is not None:
        start = -(-result.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        # Only advice: where the system declines it, nothing is lost but time.
        advise(ctypes.c_void_p(start), ctypes.c_size_t(result.data_ptr() + size - start), mmap.MADV_HUGEPAGE)
    return result


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="omegagnn")


if hasattr(os, "register_at_fork"):  # a forked child inherits the pools without their threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def _run(kernel: Callable[..., None], work: int, size: int, *args: Any) -> None:
    """Call ``kernel(*args, begin, end)`` over ``0 ... size``, shared by threads where there is enough work.

    The pieces are more than the threads, so one that is held up leaves the rest to the others; they end at multiples of
    `CHUNK`, over which reductions run.
    """
    threads = torch.get_num_threads()
    chunks = -(-size // CHUNK)
    if threads == 1 or work < WORTH_SHARING or chunks == 1:
        kernel(*args, 0, size)
        return
    step = -(-chunks // (8 * threads)) * CHUNK
    pieces = [_pool(threads).submit(kernel, *args, begin, min(begin + step, size)) for begin in range(0, size, step)]
    for piece in pieces:
        piece.result()


def _chunked(like: Tensor, rows: int) -> np.ndarray:
    """Return zeros for the part of a reduction to ``[R, c]`` that each chunk of rows contributes."""
    return np.zeros((like.size(0), -(-rows // CHUNK), like.size(1)))


def _joined(parts: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(parts.sum(1)).to(like.dtype)


# ------------------------------------------------------------------------------------------------------ the ops


def propagate(rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor, omega: Tensor | None) -> Tensor:
    """See `omegagnn.ops.reference.propagate`: one pass over the edges, the result written once."""
    runs, rows, width = x.shape
    y = _fresh(x, *x.shape)
    graph = (_flat(rowptr), _flat(col), _flat(weight))
    work = runs * col.numel() * width
    if omega is None:
        _run(cpu_kernels.product, work, rows, *graph, _flat(x), _flat(y), runs, width)
    else:
        _run(cpu_kernels.propagate, work, rows, *graph, _flat(x), _flat(omega), _flat(y), runs, width)
    return y


def propagate_backward(
    rowptr_t: Tensor, col_t: Tensor, weight_t: Tensor, x: Tensor, omega: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """See `omegagnn.ops.reference.propagate_backward`: one pass over the edges for both gradients."""
    runs, rows, width = x.shape
    grad_x, parts = _fresh(x, *x.shape), _chunked(omega, rows)
    graph = (_flat(rowptr_t), _flat(col_t), _flat(weight_t))
    arrays = (*graph, _flat(x), _flat(omega), _flat(grad), _flat(grad_x), parts.reshape(-1))
    _run(cpu_kernels.propagate_backward, runs * col_t.numel() * width, rows, *arrays, runs, width)
    return grad_x, _joined(parts, omega)


def edge_dot(rowptr: Tensor, col: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.edge_dot`."""
    runs, rows, width = left.shape
    out = left.new_zeros(runs, col.numel())
    arrays = (_flat(rowptr), _flat(col), _flat(left), _flat(right), _flat(out))
    _run(cpu_kernels.edge_dot, runs * col.numel() * width, rows, *arrays, runs, width)
    return out


def _drops(p: float, dtype: torch.dtype) -> tuple[int, float]:
    """Return the threshold of the draws and the factor of what is kept, rounded as torch rounds it."""
    return drop_threshold(p), float(torch.ones((), dtype=dtype) / (1 - p))


def attention(
    rowptr: Tensor, col: Tensor, x: Tensor, dst: Tensor, src: Tensor, omega: Tensor, slope: float, p: float, key: Tensor
) -> tuple[Tensor, Tensor]:
    """See `omegagnn.ops.reference.attention`: scores, softmax, aggregation and ω mix of a tile of rows at a time."""
    runs, rows, width = x.shape
    heads = dst.size(2)
    y, lse = _fresh(x, *x.shape), torch.empty_like(dst, memory_format=torch.contiguous_format)
    room = _fresh(x, col.numel())
    arrays = tuple(_flat(tensor) for tensor in (rowptr, col, x, dst, src, omega, y, lse, room))
    rest = (slope, _flat(key), *_drops(p, x.dtype), runs, heads, width)
    _run(cpu_attention.attention, runs * col.numel() * (width + 8 * heads), rows, *arrays, *rest)
    return y, lse


def attention_backward(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    order_t: Tensor,
    x: Tensor,
    dst: Tensor,
    src: Tensor,
    lse: Tensor,
    omega: Tensor,
    grad: Tensor,
    slope: float,
    p: float,
    key: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """See `omegagnn.ops.reference.attention_backward`: one pass over edges × channels, three over edges × heads."""
    (runs, rows, width), heads, entries = x.shape, dst.size(2), col.numel()
    graph, graph_t, order = (_flat(rowptr), _flat(col)), (_flat(rowptr_t), _flat(col_t)), _flat(order_t)
    scores, features = (_flat(dst), _flat(src)), (_flat(x), _flat(omega), _flat(grad))
    alpha = np.empty(runs * entries * heads, features[0].dtype)
    kept, pull = np.empty_like(alpha), np.zeros_like(alpha)
    grad_x, parts = _fresh(x, *x.shape), _chunked(omega, rows)
    grad_dst, grad_src = (torch.empty_like(score, memory_format=torch.contiguous_format) for score in (dst, src))
    few, many = runs * entries * heads * 8, runs * entries * width * 2
    drops = (slope, _flat(key), *_drops(p, x.dtype), runs, heads)
    _run(cpu_attention.attention_coefficients, few, rows, *graph, *scores, _flat(lse), alpha, kept, *drops)
    arrays = (*graph_t, order, *features, kept, pull, _flat(grad_x), parts.reshape(-1), runs, heads, width)
    _run(cpu_attention.attention_pull, many, rows, *arrays)
    gradients = (alpha, kept, pull, _flat(grad_dst), slope, runs, heads, entries)
    _run(cpu_attention.attention_receivers, few, rows, graph[0], *gradients)
    _run(cpu_attention.attention_senders, few, rows, graph_t[0], order, pull, _flat(grad_src), runs, heads)
    return grad_x, grad_dst, grad_src, _joined(parts, omega)


def _dropped_values(value: Tensor, p: float, key: Tensor) -> np.ndarray:
    """Return the stored values, ``[E]`` for all runs without dropout, ``[R · E]`` with it."""
    if p == 0:
        return _flat(value)
    return _flat(_dropped(value, value.new_empty(key.size(0), value.numel()), p, key))


def sparse_linear(rowptr: Tensor, col: Tensor, value: Tensor, weight: Tensor, p: float, key: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.sparse_linear`."""
    runs, _, width = weight.shape
    rows = rowptr.numel() - 1
    y = _fresh(weight, runs, rows, width)
    arrays = (_flat(rowptr), _flat(col), _dropped_values(value, p, key), _flat(weight), _flat(y))
    _run(cpu_kernels.product, runs * col.numel() * width, rows, *arrays, runs, width)
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
    runs, _, width = grad.shape
    columns = rowptr_t.numel() - 1
    values = _dropped_values(value, p, key)
    values_t = np.empty_like(values)
    if values.size:
        cpu_kernels.reordered(values, _flat(order_t), values_t)
    grad_weight = _fresh(grad, runs, columns, width)
    arrays = (_flat(rowptr_t), _flat(col_t), values_t, _flat(grad), _flat(grad_weight))
    _run(cpu_kernels.product, runs * col.numel() * width, columns, *arrays, runs, width)
    return grad_weight


def _dropped(x: Tensor, out: Tensor, p: float, key: Tensor) -> Tensor:
    """Fill out, ``[R, ...]``, with x (its shape, or that of one run shared by all) under dropout."""
    runs = out.size(0)
    size = out.numel() // max(runs, 1)
    arrays = (_flat(x), _flat(out), _flat(key), *_drops(p, x.dtype), runs, size)
    _run(cpu_kernels.dropout, out.numel(), size, *arrays)
    return out


def dropout(x: Tensor, p: float, key: Tensor) -> Tensor:
    """See `omegagnn.ops.reference.dropout`."""
    return _dropped(x, _fresh(x, *x.shape), p, key)


def adam_(
    param: Tensor,
    grad: Tensor,
    average: Tensor,
    square: Tensor,
    rate: Tensor,
    decay: Tensor,
    beta1: float,
    beta2: float,
    eps: float,
    correction1: Tensor,
    correction2: Tensor,
    active: Tensor,
) -> None:
    """See `omegagnn.ops.reference.adam_`: one pass over all four arrays."""
    runs = param.size(0)
    rates = torch.stack([each.to(torch.float64) for each in (rate, decay, correction1, correction2, active)])
    arrays = [tensor.detach().view(-1).numpy() for tensor in (param, grad, average, square)]
    size = param.numel() // max(runs, 1)
    _run(cpu_kernels.adam, 8 * param.numel(), size, *arrays, _flat(rates), beta1, beta2, eps, runs)

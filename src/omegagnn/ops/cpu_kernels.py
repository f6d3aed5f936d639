"""The compiled CPU kernels of `omegagnn.ops.cpu` for propagation, sparse products, dropout and Adam.

All arrays are flat and contiguous, runs first. A kernel works on the rows (or elements) from `begin` to `end` of every
run, so that several threads can share a call; `begin` is a multiple of `CHUNK`, over which reductions run, so that the
split changes no bit. Within a tile of rows the channels are taken in spans as wide as the registers hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from omegagnn.ops.cpu_lanes import FAST, WIDEST, at, drawn, every, full_span, last_span, load, square_root, store, total

# Rows that are worked on together, before the next channels; rows whose part of a reduction is kept apart.
TILE = 64
CHUNK = 32 * TILE

Array = Any
compiled = {"nogil": True, "no_cfunc_wrapper": True, "cache": True, "fastmath": set(FAST), "error_model": "numpy"}
inlined = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "fastmath": set(FAST), "error_model": "numpy"}


def over_channels(work: Callable[..., None], widest: int = WIDEST) -> Callable[..., None]:
    """Return a function that calls ``work(span, start, ...)`` for the channels from `begin` to `end`, wide spans first."""

    @njit(**inlined)
    def drive(array: Array, begin: int, end: int, *args: Any) -> None:
        size = array.itemsize
        if widest > 256:
            while begin + widest // size <= end:
                work(full_span(array, widest), begin, *args)
                begin += widest // size
        while begin + 256 // size <= end:
            work(full_span(array, 256), begin, *args)
            begin += 256 // size
        if begin + 128 // size <= end:
            work(full_span(array, 128), begin, *args)
            begin += 128 // size
        if begin + 64 // size <= end:
            work(full_span(array, 64), begin, *args)
            begin += 64 // size
        if begin < end:
            work(last_span(array, 64, end - begin), begin, *args)

    return drive


@njit(inline="always", **inlined)
def weighted_sum(
    span: Any,
    rows: Array,
    origin: int,
    width: int,
    col: Array,
    weight: Array,
    base: int,
    stride: int,
    begin: int,
    end: int,
) -> Any:
    """Return the sum over entries ``e`` of ``weight[base + e · stride] · row[col[e]]`` in the channels of a span."""
    result = every(span, 0)
    for e in range(begin, end):
        factor = every(span, at(weight, base + e * stride))
        result = result + factor * load(rows, origin + at(col, e) * width, span)
    return result


# -------------------------------------------------------------------------------------------------- propagation


@njit(**inlined)
def _mixed_rows(
    span: Any,
    channel: int,
    rowptr: Array,
    col: Array,
    weight: Array,
    base: int,
    stride: int,
    x: Array,
    omega: Array,
    y: Array,
    width: int,
    begin: int,
    end: int,
    origin: int,
    omega_origin: int,
) -> None:
    factor = load(omega, omega_origin + channel, span)
    rest = every(span, 1) - factor
    for i in range(begin, end):
        low, high = at(rowptr, i), at(rowptr, i + 1)
        h = weighted_sum(span, x, origin + channel, width, col, weight, base, stride, low, high)
        place = origin + i * width + channel
        store(y, place, span, rest * load(x, place, span) + factor * h)


mix = over_channels(_mixed_rows)


@njit(**compiled)
def propagate(
    rowptr: Array,
    col: Array,
    weight: Array,
    x: Array,
    omega: Array,
    y: Array,
    runs: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Write (1 − ω) x + ω S x to y."""
    size = (rowptr.size - 1) * width
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            mix(x, 0, width, rowptr, col, weight, 0, 1, x, omega, y, width, first, last, run * size, run * width)


@njit(**inlined)
def _mixed_rows_backward(
    span: Any,
    channel: int,
    rowptr: Array,
    col: Array,
    weight: Array,
    x: Array,
    omega: Array,
    grad: Array,
    grad_x: Array,
    grad_omega: Array,
    width: int,
    begin: int,
    end: int,
    origin: int,
    omega_origin: int,
) -> None:
    factor = load(omega, omega_origin + channel, span)
    rest = every(span, 1) - factor
    change = every(span, 0)
    for j in range(begin, end):
        low, high = at(rowptr, j), at(rowptr, j + 1)
        h = weighted_sum(span, grad, origin + channel, width, col, weight, 0, 1, low, high)
        place = origin + j * width + channel
        g = load(grad, place, span)
        store(grad_x, place, span, rest * g + factor * h)
        change = change + load(x, place, span) * (h - g)
    store(grad_omega, channel, span, change)


_mix_backward = over_channels(_mixed_rows_backward)


@njit(**compiled)
def propagate_backward(
    rowptr: Array,
    col: Array,
    weight: Array,
    x: Array,
    omega: Array,
    grad: Array,
    grad_x: Array,
    grad_omega: Array,
    runs: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Write (1 − ω) g + ω Sᵀ g and, for each chunk of rows, Σ x ⊙ (Sᵀ g − g) in float64; the structure is the transpose."""
    rows = rowptr.size - 1
    size, chunks = rows * width, -(-rows // CHUNK)
    change = np.empty(width, x.dtype)
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            _mix_backward(
                x, 0, width, rowptr, col, weight, x, omega, grad, grad_x, change,
                width, first, last, run * size, run * width,
            )  # fmt: skip
            place = (run * chunks + first // CHUNK) * width
            for k in range(width):
                grad_omega[place + k] += change[k]


# ------------------------------------------------------------------------------------- sums of rows, dots of rows


@njit(**inlined)
def _summed_rows(
    span: Any,
    channel: int,
    rowptr: Array,
    col: Array,
    weight: Array,
    base: int,
    rows: Array,
    y: Array,
    width: int,
    begin: int,
    end: int,
    origin: int,
    y_origin: int,
) -> None:
    for i in range(begin, end):
        low, high = at(rowptr, i), at(rowptr, i + 1)
        h = weighted_sum(span, rows, origin + channel, width, col, weight, base, 1, low, high)
        store(y, y_origin + i * width + channel, span, h)


_sum = over_channels(_summed_rows)


@njit(**compiled)
def product(
    rowptr: Array, col: Array, weight: Array, rows: Array, y: Array, runs: int, width: int, begin: int, end: int
) -> None:
    """Write ``S rows`` to y for a matrix S of any shape, shared by the runs or, with R · E weights, each run's own."""
    size, y_size = rows.size // runs, (rowptr.size - 1) * width
    entries = 0 if weight.size == col.size else col.size
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            _sum(
                y, 0, width, rowptr, col, weight, run * entries, rows, y,
                width, first, last, run * size, run * y_size,
            )  # fmt: skip


@njit(**compiled)
def reordered(value: Array, order: Array, out: Array) -> None:
    """Write each run's entries in another order."""
    for start in range(0, value.size, order.size):
        for e in range(order.size):
            out[start + e] = at(value, start + at(order, e))


@njit(**inlined)
def _dotted_rows(
    span: Any,
    channel: int,
    rowptr: Array,
    col: Array,
    left: Array,
    right: Array,
    out: Array,
    width: int,
    begin: int,
    end: int,
    left_origin: int,
    right_origin: int,
    out_origin: int,
) -> None:
    for i in range(begin, end):
        row = load(left, left_origin + i * width + channel, span)
        for e in range(at(rowptr, i), at(rowptr, i + 1)):
            place = right_origin + at(col, e) * width + channel
            out[out_origin + e] += total(row * load(right, place, span))


_dot = over_channels(_dotted_rows, 256)


@njit(**compiled)
def edge_dot(
    rowptr: Array, col: Array, left: Array, right: Array, out: Array, runs: int, width: int, begin: int, end: int
) -> None:
    """Add ``⟨left_i, right_j⟩`` to each entry of out."""
    size, right_size = (rowptr.size - 1) * width, right.size // runs
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            _dot(
                left, 0, width, rowptr, col, left, right, out,
                width, first, last, run * size, run * right_size, run * col.size,
            )  # fmt: skip


# -------------------------------------------------------------------------------------------- element by element


@njit(**inlined)
def _dropped(
    span: Any,
    place: int,
    x: Array,
    y: Array,
    x_origin: int,
    y_origin: int,
    key0: int,
    key1: int,
    threshold: int,
    scale: float,
) -> None:
    mask = drawn(span, key0, key1, place, threshold, scale)
    store(y, y_origin + place, span, load(x, x_origin + place, span) * mask)


_drop = over_channels(_dropped, 256)


@njit(**compiled)
def dropout(
    x: Array, y: Array, key: Array, threshold: int, scale: float, runs: int, size: int, begin: int, end: int
) -> None:
    """Write x, of `size` elements a run or shared by the runs, to y with elements dropped and the rest scaled."""
    shared = x.size < y.size
    for run in range(runs):
        x_origin = 0 if shared else run * size
        _drop(x, begin, end, x, y, x_origin, run * size, key[2 * run], key[2 * run + 1], threshold, scale)


@njit(**inlined)
def _adam_step(
    span: Any,
    place: int,
    param: Array,
    grad: Array,
    average: Array,
    square: Array,
    decay: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: float,
    root: float,
) -> None:
    value = load(param, place, span)
    g = load(grad, place, span) + every(span, decay) * value
    mean = load(average, place, span)
    mean = mean + every(span, 1 - beta1) * (g - mean)
    spread = every(span, beta2) * load(square, place, span) + every(span, 1 - beta2) * (g * g)
    store(average, place, span, mean)
    store(square, place, span, spread)
    size = square_root(spread) * every(span, root) + every(span, eps)
    store(param, place, span, value - every(span, step) * (mean / size))


_step = over_channels(_adam_step, 256)


@njit(**compiled)
def adam(
    param: Array,
    grad: Array,
    average: Array,
    square: Array,
    rates: Array,
    beta1: float,
    beta2: float,
    eps: float,
    runs: int,
    begin: int,
    end: int,
) -> None:
    """Step the active runs; `rates` holds rate, decay, 1 − β1^t, 1 − β2^t and activity of each run, ``[5, R]``."""
    size = param.size // runs
    for run in range(runs):
        if rates[4 * runs + run] != 0:
            step, root = rates[run] / rates[2 * runs + run], 1 / np.sqrt(rates[3 * runs + run])
            low, high = run * size + begin, run * size + end
            _step(param, low, high, param, grad, average, square, rates[runs + run], beta1, beta2, eps, step, root)

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

from omegagnn.ops.cpu_lanes import (
    FAST,
    WIDEST,
    at,
    data,
    drawn,
    every,
    full_span,
    last_span,
    length,
    load,
    put,
    square_root,
    store,
    total,
    wide,
    wide_span,
)

# Rows that are worked on together, before the next channels; rows whose part of a reduction is kept apart.
TILE = 64
CHUNK = 32 * TILE

Array = Any
Pointer = Any
inlined = {
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "fastmath": set(FAST),
    "error_model": "numpy",
}
compiled = {"nogil": True, "cache": True, "no_cfunc_wrapper": True, "fastmath": set(FAST), "error_model": "numpy"}


def over_channels(work: Callable[..., None], widest: int = WIDEST) -> Callable[..., None]:
    """Return a function that calls ``work(span, begin, ...)`` for the channels from `begin` to `end`, wide spans first."""

    @njit(**inlined)
    def drive(like: Pointer, begin: int, end: int, *args: Any) -> None:
        if widest > 256:
            largest = full_span(like, widest)
            while begin + length(largest) <= end:
                work(largest, begin, *args)
                begin += length(largest)
        large, half, line = full_span(like, 256), full_span(like, 128), full_span(like, 64)
        while begin + length(large) <= end:
            work(large, begin, *args)
            begin += length(large)
        if begin + length(half) <= end:
            work(half, begin, *args)
            begin += length(half)
        if begin + length(line) <= end:
            work(line, begin, *args)
            begin += length(line)
        if begin < end:
            work(last_span(like, 64, end - begin), begin, *args)

    return drive


def over_lines(work: Callable[..., None]) -> Callable[..., None]:
    """Return a function that calls ``work(span, place, ...)`` for the elements from `begin` to `end`, a cache line each."""

    @njit(**inlined)
    def drive(like: Pointer, begin: int, end: int, *args: Any) -> None:
        line = full_span(like, 64)
        while begin + length(line) <= end:
            work(line, begin, *args)
            begin += length(line)
        if begin < end:
            work(last_span(like, 64, end - begin), begin, *args)

    return drive


@njit(**inlined)
def add_wide(sums: Pointer, place: int, span: Any, lanes: Any) -> None:
    """Add lanes to sums kept in float64."""
    doubled = wide_span(span)
    store(sums, place, doubled, load(sums, place, doubled) + wide(lanes))


@njit(**inlined)
def weighted_sum(
    span: Any,
    rows: Pointer,
    origin: int,
    width: int,
    col: Pointer,
    weight: Pointer,
    base: int,
    begin: int,
    end: int,
) -> Any:
    """Return the sum over entries ``e`` of ``weight[base + e] · row[col[e]]`` in the channels of a span."""
    result = every(span, 0)
    for e in range(begin, end):
        factor = every(span, at(weight, base + e))
        result = result + factor * load(rows, origin + at(col, e) * width, span)
    return result


# -------------------------------------------------------------------------------------------------- propagation


@njit(**inlined)
def _mixed_rows(
    span: Any,
    channel: int,
    rowptr: Pointer,
    col: Pointer,
    weight: Pointer,
    base: int,
    x: Pointer,
    omega: Pointer,
    y: Pointer,
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
        h = weighted_sum(span, x, origin + channel, width, col, weight, base, low, high)
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
    graph, features = (data(rowptr), data(col), data(weight)), (data(x), data(omega), data(y))
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            mix(data(x), 0, width, *graph, 0, *features, width, first, last, run * size, run * width)


@njit(**inlined)
def _mixed_rows_backward(
    span: Any,
    channel: int,
    rowptr: Pointer,
    col: Pointer,
    weight: Pointer,
    x: Pointer,
    omega: Pointer,
    grad: Pointer,
    grad_x: Pointer,
    grad_omega: Pointer,
    width: int,
    begin: int,
    end: int,
    origin: int,
    omega_origin: int,
    omega_part: int,
) -> None:
    factor = load(omega, omega_origin + channel, span)
    rest = every(span, 1) - factor
    change = every(span, 0)
    for j in range(begin, end):
        low, high = at(rowptr, j), at(rowptr, j + 1)
        h = weighted_sum(span, grad, origin + channel, width, col, weight, 0, low, high)
        place = origin + j * width + channel
        g = load(grad, place, span)
        store(grad_x, place, span, rest * g + factor * h)
        change = change + load(x, place, span) * (h - g)
    add_wide(grad_omega, omega_part + channel, span, change)


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
    graph = (data(rowptr), data(col), data(weight))
    features = (data(x), data(omega), data(grad), data(grad_x), data(grad_omega))
    for run in range(runs):
        for first in range(begin, end, TILE):
            last, part = min(first + TILE, end), (run * chunks + first // CHUNK) * width
            _mix_backward(data(x), 0, width, *graph, *features, width, first, last, run * size, run * width, part)


# ------------------------------------------------------------------------------------- sums of rows, dots of rows


@njit(**inlined)
def _summed_rows(
    span: Any,
    channel: int,
    rowptr: Pointer,
    col: Pointer,
    weight: Pointer,
    base: int,
    rows: Pointer,
    y: Pointer,
    width: int,
    begin: int,
    end: int,
    origin: int,
    y_origin: int,
) -> None:
    for i in range(begin, end):
        low, high = at(rowptr, i), at(rowptr, i + 1)
        h = weighted_sum(span, rows, origin + channel, width, col, weight, base, low, high)
        store(y, y_origin + i * width + channel, span, h)


_sum = over_channels(_summed_rows)


@njit(**compiled)
def product(
    rowptr: Array, col: Array, weight: Array, rows: Array, y: Array, runs: int, width: int, begin: int, end: int
) -> None:
    """Write ``S rows`` to y for a matrix S of any shape, shared by the runs or, with R · E weights, each run's own."""
    size, y_size = rows.size // runs, (rowptr.size - 1) * width
    entries = 0 if weight.size == col.size else col.size
    graph, features = (data(rowptr), data(col), data(weight)), (data(rows), data(y))
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            _sum(data(y), 0, width, *graph, run * entries, *features, width, first, last, run * size, run * y_size)


@njit(**compiled)
def reordered(value: Array, order: Array, out: Array) -> None:
    """Write each run's entries in another order."""
    for start in range(0, value.size, order.size):
        for e in range(order.size):
            put(data(out), start + e, at(data(value), start + at(data(order), e)))


@njit(**inlined)
def _dotted_rows(
    span: Any,
    channel: int,
    rowptr: Pointer,
    col: Pointer,
    left: Pointer,
    right: Pointer,
    out: Pointer,
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
            put(out, out_origin + e, at(out, out_origin + e) + total(span, row * load(right, place, span)))


_dot = over_channels(_dotted_rows, 256)


@njit(**compiled)
def edge_dot(
    rowptr: Array, col: Array, left: Array, right: Array, out: Array, runs: int, width: int, begin: int, end: int
) -> None:
    """Add ``⟨left_i, right_j⟩`` to each entry of out."""
    size, right_size = (rowptr.size - 1) * width, right.size // runs
    arrays = (data(rowptr), data(col), data(left), data(right), data(out))
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            _dot(data(left), 0, width, *arrays, width, first, last, run * size, run * right_size, run * col.size)


# -------------------------------------------------------------------------------------------- element by element


@njit(**inlined)
def _dropped(
    span: Any,
    place: int,
    x: Pointer,
    y: Pointer,
    x_origin: int,
    y_origin: int,
    key0: int,
    key1: int,
    threshold: int,
    scale: float,
) -> None:
    mask = drawn(span, key0, key1, place, 1, threshold, scale)
    store(y, y_origin + place, span, load(x, x_origin + place, span) * mask)


_drop = over_lines(_dropped)


@njit(**compiled)
def dropout(
    x: Array, y: Array, key: Array, threshold: int, scale: float, runs: int, size: int, begin: int, end: int
) -> None:
    """Write x, of `size` elements a run or shared by the runs, to y with elements dropped and the rest scaled."""
    shared = x.size < y.size
    for run in range(runs):
        origins = (0 if shared else run * size, run * size)
        _drop(data(x), begin, end, data(x), data(y), *origins, key[2 * run], key[2 * run + 1], threshold, scale)


@njit(**inlined)
def _adam_step(
    span: Any,
    place: int,
    param: Pointer,
    grad: Pointer,
    average: Pointer,
    square: Pointer,
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


_step = over_lines(_adam_step)


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
    arrays = (data(param), data(grad), data(average), data(square))
    for run in range(runs):
        if rates[4 * runs + run] != 0:
            step, root = rates[run] / rates[2 * runs + run], 1 / np.sqrt(rates[3 * runs + run])
            low, high = run * size + begin, run * size + end
            _step(data(param), low, high, *arrays, rates[runs + run], beta1, beta2, eps, step, root)

"""The compiled CPU kernels of `omegagnn.ops.cpu` for propagation and products with a sparse matrix.

All arrays are contiguous, runs first, and come as addresses: unpacking array objects takes longer than a small graph
takes to compute. `like` is a number of the dtype of features, `index` one of the dtype of the graph's indices. A kernel
works on the rows (or elements) from `begin` to `end` of every run, so that several threads can share a call; `begin` is a
multiple of `CHUNK`, over which reductions run, so that the split changes no bit. Within a tile of rows the channels are
taken in spans as wide as the registers hold. `relu` is True where ReLU of the features is meant and None where they are
taken as they are: a type of its own each, so that the choice is made by the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from omegagnn.ops.cpu_disk import kept_on_disk
from omegagnn.ops.cpu_lanes import (
    CONTRACT,
    WIDEST,
    activated,
    at,
    every,
    fetch,
    full_span,
    last_span,
    length,
    let_through,
    load,
    pointer,
    put,
    store,
    total,
    wide,
    wide_span,
)

# Rows that are worked on together, before the next channels; rows whose part of a reduction is kept apart.
TILE = 64
CHUNK = 32 * TILE

# How many entries ahead a row is fetched where a run's features, from so many numbers on, do not fit the nearer caches.
AHEAD, FAR = 8, 2**20

Address = int
Pointer = Any
Relu = bool | None
inlined = {
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "fastmath": set(CONTRACT),
    "error_model": "numpy",
}
compiled = {"nogil": True, "no_cfunc_wrapper": True, "fastmath": set(CONTRACT), "error_model": "numpy"}


def over_channels(work: Callable[..., None], widest: int = WIDEST) -> Callable[..., None]:
    """Return a function that calls ``work(span, begin, ...)`` for the channels from `begin` to `end`, wide spans first."""

    @njit(**inlined)
    def drive(like: float, begin: int, end: int, *args: Any) -> None:
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
    def drive(like: float, begin: int, end: int, *args: Any) -> None:
        line = full_span(like, 64)
        while begin + length(line) <= end:
            work(line, begin, *args)
            begin += length(line)
        if begin < end:
            work(last_span(like, 64, end - begin), begin, *args)

    return drive


@njit(**inlined)
def fetch_limit(rowptr: Pointer, end: int, numbers: int) -> int:
    """Return the entry up to which fetching ahead pays for a table of so many numbers."""
    return at(rowptr, end) if numbers >= FAR else 0


@njit(**inlined)
def fetch_row(span: Any, table: Pointer, origin: int, width: int, col: Pointer, entry: int, limit: int) -> None:
    """Ask for the row of an entry below the limit."""
    if entry < limit:
        fetch(table, origin + at(col, entry) * width, span)


@njit(**inlined)
def add_wide(sums: Pointer, place: int, span: Any, lanes: Any) -> None:
    """Add lanes to sums kept in float64."""
    doubled = wide_span(span)
    store(sums, place, doubled, load(sums, place, doubled) + wide(lanes))


@njit(**inlined)
def weighted_sum(
    span: Any,
    table: Pointer,
    origin: int,
    width: int,
    col: Pointer,
    weight: Pointer,
    base: int,
    begin: int,
    end: int,
    limit: int,
    relu: Relu,
) -> Any:
    """Return the sum over entries ``e`` of ``weight[base + e] · σ(row[col[e]])`` in the channels of a span.

    Rows are fetched `AHEAD` entries before their turn, for entries below `limit`.
    """
    result = every(span, 0)
    for e in range(begin, end):
        fetch_row(span, table, origin, width, col, e + AHEAD, limit)
        factor = every(span, at(weight, base + e))
        result = result + factor * activated(relu, load(table, origin + at(col, e) * width, span))
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
    limit: int,
    origin: int,
    omega_origin: int,
    relu: Relu,
) -> None:
    factor = load(omega, omega_origin + channel, span)
    rest = every(span, 1) - factor
    for i in range(begin, end):
        low, high = at(rowptr, i), at(rowptr, i + 1)
        h = weighted_sum(span, x, origin + channel, width, col, weight, base, low, high, limit, relu)
        place = origin + i * width + channel
        store(y, place, span, rest * activated(relu, load(x, place, span)) + factor * h)


mix = over_channels(_mixed_rows)


@kept_on_disk
@njit(**compiled)
def propagate(
    like: float,
    index: int,
    relu: Relu,
    rowptr: Address,
    col: Address,
    weight: Address,
    x: Address,
    omega: Address,
    y: Address,
    runs: int,
    rows: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Write (1 − ω) σ(x) + ω S σ(x) to y."""
    graph = (pointer(rowptr, index), pointer(col, index), pointer(weight, like))
    features = (pointer(x, like), pointer(omega, like), pointer(y, like))
    limit = fetch_limit(graph[0], end, rows * width)
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            places = (width, first, last, limit, run * rows * width, run * width)
            mix(like, 0, width, *graph, 0, *features, *places, relu)


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
    limit: int,
    origin: int,
    omega_origin: int,
    omega_part: int,
    relu: Relu,
) -> None:
    factor = load(omega, omega_origin + channel, span)
    rest = every(span, 1) - factor
    change = every(span, 0)
    for j in range(begin, end):
        low, high = at(rowptr, j), at(rowptr, j + 1)
        h = weighted_sum(span, grad, origin + channel, width, col, weight, 0, low, high, limit, None)
        place = origin + j * width + channel
        g, own = load(grad, place, span), load(x, place, span)
        store(grad_x, place, span, let_through(relu, own, rest * g + factor * h))
        change = change + activated(relu, own) * (h - g)
    add_wide(grad_omega, omega_part + channel, span, change)


_mix_backward = over_channels(_mixed_rows_backward)


@kept_on_disk
@njit(**compiled)
def propagate_backward(
    like: float,
    index: int,
    relu: Relu,
    rowptr: Address,
    col: Address,
    weight: Address,
    x: Address,
    omega: Address,
    grad: Address,
    grad_x: Address,
    grad_omega: Address,
    runs: int,
    rows: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Write σ'(x) ((1 − ω) g + ω Sᵀ g) and add, a chunk of rows each, Σ σ(x) ⊙ (Sᵀ g − g) in float64; S comes transposed."""
    chunks = -(-rows // CHUNK)
    graph = (pointer(rowptr, index), pointer(col, index), pointer(weight, like))
    features = (pointer(x, like), pointer(omega, like), pointer(grad, like), pointer(grad_x, like))
    sums, limit = pointer(grad_omega, 0.0), fetch_limit(graph[0], end, rows * width)
    for run in range(runs):
        for first in range(begin, end, TILE):
            last, part = min(first + TILE, end), (run * chunks + first // CHUNK) * width
            origins = (run * rows * width, run * width, part)
            _mix_backward(like, 0, width, *graph, *features, sums, width, first, last, limit, *origins, relu)


# ------------------------------------------------------------------------------------- sums of rows, dots of rows


@njit(**inlined)
def _summed_rows(
    span: Any,
    channel: int,
    rowptr: Pointer,
    col: Pointer,
    weight: Pointer,
    base: int,
    table: Pointer,
    y: Pointer,
    width: int,
    begin: int,
    end: int,
    limit: int,
    origin: int,
    y_origin: int,
    relu: Relu,
) -> None:
    for i in range(begin, end):
        low, high = at(rowptr, i), at(rowptr, i + 1)
        h = weighted_sum(span, table, origin + channel, width, col, weight, base, low, high, limit, relu)
        store(y, y_origin + i * width + channel, span, h)


_sum = over_channels(_summed_rows)


@kept_on_disk
@njit(**compiled)
def product(
    like: float,
    index: int,
    relu: Relu,
    rowptr: Address,
    col: Address,
    weight: Address,
    table: Address,
    y: Address,
    runs: int,
    rows: int,
    table_rows: int,
    entries: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Write S times σ of a table to y for S ``[rows, table_rows]``; `entries` lie between the weights of two runs (0: shared)."""
    graph = (pointer(rowptr, index), pointer(col, index), pointer(weight, like))
    features = (pointer(table, like), pointer(y, like))
    limit = fetch_limit(graph[0], end, table_rows * width)
    for run in range(runs):
        for first in range(begin, end, TILE):
            last, origins = min(first + TILE, end), (run * table_rows * width, run * rows * width)
            _sum(like, 0, width, *graph, run * entries, *features, width, first, last, limit, *origins, relu)


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


@kept_on_disk
@njit(**compiled)
def edge_dot(
    like: float,
    index: int,
    rowptr: Address,
    col: Address,
    left: Address,
    right: Address,
    out: Address,
    runs: int,
    rows: int,
    right_rows: int,
    entries: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Add ``⟨left_i, right_j⟩`` to each entry of out."""
    graph = (pointer(rowptr, index), pointer(col, index))
    features = (pointer(left, like), pointer(right, like), pointer(out, like))
    for run in range(runs):
        for first in range(begin, end, TILE):
            last, origins = min(first + TILE, end), (run * rows * width, run * right_rows * width, run * entries)
            _dot(like, 0, width, *graph, *features, width, first, last, *origins)

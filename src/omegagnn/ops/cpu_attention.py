"""The compiled CPU kernels of `omegagnn.ops.cpu` for attention; see `omegagnn.ops.cpu_kernels` for their conventions.

Coefficients stand head by head, those of a row side by side: entry ``e`` of head ``h`` at ``h · E + e`` of a run.
Nothing of the size edges × channels is ever stored: the forward pass keeps the coefficients of one tile of rows, the
backward pass three numbers an entry and head.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omegagnn.ops.cpu_kernels import (
    CHUNK,
    TILE,
    Array,
    Pointer,
    add_wide,
    compiled,
    inlined,
    mix,
    over_channels,
    over_lines,
)
from omegagnn.ops.cpu_lanes import (
    at,
    data,
    drawn,
    every,
    exponential,
    load,
    one_by_one,
    put,
    rounded,
    store,
    total,
    where_positive,
)


@njit(**inlined)
def _steepness(score: float, one: float, slope: float) -> float:
    """Return the slope of LeakyReLU: a choice of two numbers, since a branch would be guessed wrong half the time."""
    return one if score > 0 else slope


@njit(**inlined)
def _exponentiated(span: Any, place: int, values: Pointer) -> None:
    store(values, place, span, exponential(load(values, place, span)))


@njit(**inlined)
def _masked(
    span: Any,
    place: int,
    values: Pointer,
    base: int,
    head: int,
    heads: int,
    key0: int,
    key1: int,
    threshold: int,
    scale: float,
) -> None:
    mask = drawn(span, key0, key1, (place - base) * heads + head, heads, threshold, scale)
    store(values, place, span, load(values, place, span) * mask)


_exponentiate, _mask = over_lines(_exponentiated), over_lines(_masked)


@njit(**inlined)
def _softmax(
    rowptr: Pointer,
    col: Pointer,
    dst: Pointer,
    src: Pointer,
    lse: Pointer,
    alpha: Pointer,
    heads: int,
    slope: float,
    begin: int,
    end: int,
    origin: int,
) -> None:
    """Write one head's coefficients of a tile of rows to alpha and their log-sum-exp to lse."""
    one, low_slope = rounded(alpha, 1), rounded(alpha, slope)
    for i in range(begin, end):
        receiver, largest = origin + i * heads, rounded(alpha, -np.inf)
        for e in range(at(rowptr, i), at(rowptr, i + 1)):
            one_by_one()
            score = at(dst, receiver) + at(src, origin + at(col, e) * heads)
            score = score * _steepness(score, one, low_slope)
            put(alpha, e, score)
            largest = max(score, largest)
        for e in range(at(rowptr, i), at(rowptr, i + 1)):
            one_by_one()
            put(alpha, e, at(alpha, e) - largest)
        put(lse, receiver, largest)
    _exponentiate(alpha, at(rowptr, begin), at(rowptr, end), alpha)
    for i in range(begin, end):
        receiver, sum_ = origin + i * heads, rounded(alpha, 0)
        for e in range(at(rowptr, i), at(rowptr, i + 1)):
            one_by_one()
            sum_ += at(alpha, e)
        if sum_ > 0:
            put(lse, receiver, at(lse, receiver) + np.log(sum_))
            inverse = one / sum_
            for e in range(at(rowptr, i), at(rowptr, i + 1)):
                one_by_one()
                put(alpha, e, at(alpha, e) * inverse)
        else:  # an empty row, or scores without a softmax: the reference takes 0 for the log-sum-exp
            put(lse, receiver, 0)
            for e in range(at(rowptr, i), at(rowptr, i + 1)):
                score = at(dst, receiver) + at(src, origin + at(col, e) * heads)
                put(alpha, e, np.exp(score * _steepness(score, one, low_slope)))


@njit(**compiled)
def attention(
    rowptr: Array,
    col: Array,
    x: Array,
    dst: Array,
    src: Array,
    omega: Array,
    y: Array,
    lse: Array,
    alpha: Array,
    slope: float,
    key: Array,
    threshold: int,
    scale: float,
    runs: int,
    heads: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Write (1 − ω) x + ω Ŝ x to y and the log-sum-exp of each row and head to lse; alpha ``[E]`` is room to work in."""
    rows, block = rowptr.size - 1, width // heads
    graph, features = (data(rowptr), data(col)), (data(x), data(omega), data(y))
    scores = (data(dst), data(src), data(lse), data(alpha))
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            for head in range(heads):
                _softmax(*graph, *scores, heads, slope, first, last, run * rows * heads + head)
                if threshold > 0:
                    _mask(
                        data(alpha), at(data(rowptr), first), at(data(rowptr), last), data(alpha),
                        0, head, heads, key[2 * run], key[2 * run + 1], threshold, scale,
                    )  # fmt: skip
                mix(
                    data(x), head * block, (head + 1) * block, *graph, data(alpha), 0, *features,
                    width, first, last, run * rows * width, run * width,
                )  # fmt: skip


@njit(**inlined)
def _restored(
    span: Any,
    place: int,
    alpha: Pointer,
    kept: Pointer,
    base: int,
    head: int,
    heads: int,
    key0: int,
    key1: int,
    threshold: int,
    scale: float,
) -> None:
    score, value = load(kept, place, span), exponential(load(alpha, place, span))
    store(alpha, place, span, where_positive(score, value, every(span, 0) - value))
    if threshold > 0:
        value = value * drawn(span, key0, key1, (place - base) * heads + head, heads, threshold, scale)
    store(kept, place, span, value)


_restore = over_lines(_restored)


@njit(**compiled)
def attention_coefficients(
    rowptr: Array,
    col: Array,
    dst: Array,
    src: Array,
    lse: Array,
    alpha: Array,
    kept: Array,
    slope: float,
    key: Array,
    threshold: int,
    scale: float,
    runs: int,
    heads: int,
    begin: int,
    end: int,
) -> None:
    """Write what dropout leaves of the coefficients to `kept` and the whole ones, with the sign of the score, to alpha."""
    rows, entries, one, low_slope = rowptr.size - 1, col.size, rounded(data(alpha), 1), rounded(data(alpha), slope)
    places, columns, coefficients = data(rowptr), data(col), (data(alpha), data(kept))
    for run in range(runs):
        for head in range(heads):
            origin, base = run * rows * heads + head, (run * heads + head) * entries
            for first in range(begin, end, TILE):
                last = min(first + TILE, end)
                for i in range(first, last):
                    for e in range(at(places, i), at(places, i + 1)):
                        one_by_one()
                        score = at(data(dst), origin + i * heads) + at(data(src), origin + at(columns, e) * heads)
                        put(data(kept), base + e, score)
                        logit = score * _steepness(score, one, low_slope)
                        put(data(alpha), base + e, logit - at(data(lse), origin + i * heads))
                _restore(
                    data(alpha), base + at(places, first), base + at(places, last), *coefficients,
                    base, head, heads, key[2 * run], key[2 * run + 1], threshold, scale,
                )  # fmt: skip


@njit(**inlined)
def _pulled_rows(
    span: Any,
    channel: int,
    rowptr: Pointer,
    col: Pointer,
    order: Pointer,
    kept: Pointer,
    pull: Pointer,
    base: int,
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
        place = origin + j * width + channel
        row = load(x, place, span)
        mixed, h = factor * row, every(span, 0)
        for e in range(at(rowptr, j), at(rowptr, j + 1)):
            entry = base + at(order, e)
            g = load(grad, origin + at(col, e) * width + channel, span)
            h = h + every(span, at(kept, entry)) * g
            put(pull, entry, at(pull, entry) + total(span, mixed * g))
        g = load(grad, place, span)
        store(grad_x, place, span, rest * g + factor * h)
        change = change + row * (h - g)
    add_wide(grad_omega, omega_part + channel, span, change)


_pull = over_channels(_pulled_rows, 256)


@njit(**compiled)
def attention_pull(
    rowptr: Array,
    col: Array,
    order: Array,
    x: Array,
    omega: Array,
    grad: Array,
    kept: Array,
    pull: Array,
    grad_x: Array,
    grad_omega: Array,
    runs: int,
    heads: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Go over the transpose: write grad_x and grad_omega (a chunk at a time), add ⟨ω g_i, x_j⟩ of each entry to pull."""
    rows, block = rowptr.size - 1, width // heads
    chunks = -(-rows // CHUNK)
    graph, coefficients = (data(rowptr), data(col), data(order)), (data(kept), data(pull))
    features = (data(x), data(omega), data(grad), data(grad_x), data(grad_omega))
    for run in range(runs):
        for first in range(begin, end, TILE):
            last, part = min(first + TILE, end), (run * chunks + first // CHUNK) * width
            for head in range(heads):
                _pull(
                    data(x), head * block, (head + 1) * block, *graph, *coefficients, (run * heads + head) * col.size,
                    *features, width, first, last, run * rows * width, run * width, part,
                )  # fmt: skip


@njit(**compiled)
def attention_receivers(
    rowptr: Array,
    alpha: Array,
    kept: Array,
    pull: Array,
    grad_dst: Array,
    slope: float,
    runs: int,
    heads: int,
    entries: int,
    begin: int,
    end: int,
) -> None:
    """Turn the pull of each entry into the gradient of its score, and sum it over each row."""
    rows, one, low_slope = rowptr.size - 1, rounded(data(alpha), 1), rounded(data(alpha), slope)
    for run in range(runs):
        for head in range(heads):
            base = (run * heads + head) * entries
            for i in range(begin, end):
                low, high = base + at(data(rowptr), i), base + at(data(rowptr), i + 1)
                mean = sum_ = rounded(data(alpha), 0)
                for place in range(low, high):
                    one_by_one()
                    mean += at(data(kept), place) * at(data(pull), place)
                for place in range(low, high):
                    one_by_one()
                    share = at(data(alpha), place)  # negative where the score is, and there LeakyReLU has its slope
                    drive = at(data(kept), place) * at(data(pull), place) - abs(share) * mean
                    score = drive * _steepness(share, one, low_slope)
                    put(data(pull), place, score)
                    sum_ += score
                put(data(grad_dst), (run * rows + i) * heads + head, sum_)


@njit(**compiled)
def attention_senders(
    rowptr: Array, order: Array, pull: Array, grad_src: Array, runs: int, heads: int, begin: int, end: int
) -> None:
    """Sum the gradients of the scores over the entries of each sender."""
    rows = rowptr.size - 1
    for run in range(runs):
        for head in range(heads):
            base = (run * heads + head) * order.size
            for j in range(begin, end):
                sum_ = rounded(data(pull), 0)
                for e in range(at(data(rowptr), j), at(data(rowptr), j + 1)):
                    one_by_one()
                    sum_ += at(data(pull), base + at(data(order), e))
                put(data(grad_src), (run * rows + j) * heads + head, sum_)

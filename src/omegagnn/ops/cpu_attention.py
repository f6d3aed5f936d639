"""The compiled CPU kernels of `omegagnn.ops.cpu` for attention; see `omegagnn.ops.cpu_kernels` for their conventions.

Scores and coefficients stand at ``e · heads + h`` of a run, in the order of the graph's entries. Nothing of the size
edges × channels is ever stored: the forward pass keeps the coefficients of one tile of rows, the backward pass three
numbers an entry and head.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omegagnn.ops.cpu_kernels import CHUNK, TILE, Array, compiled, inlined, mix, over_channels
from omegagnn.ops.cpu_lanes import at, drawn, every, exponential, load, store, total


@njit(**inlined)
def _exponentiated(span: Any, place: int, values: Array) -> None:
    store(values, place, span, exponential(load(values, place, span)))


@njit(**inlined)
def _masked(
    span: Any, place: int, source: Array, out: Array, offset: int, key: Array, run: int, threshold: int, scale: float
) -> None:
    mask = drawn(span, key[2 * run], key[2 * run + 1], place + offset, threshold, scale)
    store(out, place, span, load(source, place, span) * mask)


_exponentiate = over_channels(_exponentiated, 256)
_mask = over_channels(_masked, 256)


@njit(**inlined)
def _score(dst: Array, src: Array, receiver: int, sender: int, slope: float) -> Any:
    score = at(dst, receiver) + at(src, sender)
    return score if score > 0 else score * dst.dtype.type(slope)


@njit(**inlined)
def _softmax(
    rowptr: Array,
    col: Array,
    dst: Array,
    src: Array,
    lse: Array,
    alpha: Array,
    heads: int,
    slope: float,
    begin: int,
    end: int,
    origin: int,
) -> None:
    """Write the coefficients of the rows of a tile to alpha, which starts at the tile's first entry, and their lse."""
    start = at(rowptr, begin)
    for i in range(begin, end):
        low, high = at(rowptr, i), at(rowptr, i + 1)
        for head in range(heads):
            receiver, largest = origin + i * heads + head, alpha.dtype.type(-np.inf)
            for e in range(low, high):
                score = _score(dst, src, receiver, origin + at(col, e) * heads + head, slope)
                alpha[(e - start) * heads + head] = score
                largest = max(largest, score)
            for e in range(low, high):
                alpha[(e - start) * heads + head] -= largest
            lse[receiver] = largest
    _exponentiate(alpha, 0, (at(rowptr, end) - start) * heads, alpha)
    for i in range(begin, end):
        low, high = at(rowptr, i), at(rowptr, i + 1)
        for head in range(heads):
            receiver, sum_ = origin + i * heads + head, 0.0
            for e in range(low, high):
                sum_ += alpha[(e - start) * heads + head]
            if sum_ > 0:
                lse[receiver] += np.log(sum_)
                inverse = alpha.dtype.type(1 / sum_)
                for e in range(low, high):
                    alpha[(e - start) * heads + head] *= inverse
            else:  # an empty row, or scores without a softmax: the reference takes 0 for the log-sum-exp
                lse[receiver] = 0
                for e in range(low, high):
                    score = _score(dst, src, receiver, origin + at(col, e) * heads + head, slope)
                    alpha[(e - start) * heads + head] = np.exp(score)


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
    """Write (1 − ω) x + ω Ŝ x to y and the log-sum-exp of each row and head to lse."""
    rows, block = rowptr.size - 1, width // heads
    most = 0
    for first in range(begin, end, TILE):
        most = max(most, at(rowptr, min(first + TILE, end)) - at(rowptr, first))
    alpha = np.empty(most * heads, x.dtype)
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            start, stop = at(rowptr, first) * heads, at(rowptr, last) * heads
            _softmax(rowptr, col, dst, src, lse, alpha, heads, slope, first, last, run * rows * heads)
            if threshold > 0:
                _mask(alpha, 0, stop - start, alpha, alpha, start, key, run, threshold, scale)
            for head in range(heads):
                mix(
                    x, head * block, (head + 1) * block, rowptr, col, alpha, head - start, heads, x, omega, y,
                    width, first, last, run * rows * width, run * width,
                )  # fmt: skip


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
    """Write the coefficients again, and what dropout leaves of them to `kept` (the same array without dropout)."""
    rows, entries = rowptr.size - 1, col.size * heads
    for run in range(runs):
        origin = run * rows * heads
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            for i in range(first, last):
                for e in range(at(rowptr, i), at(rowptr, i + 1)):
                    for head in range(heads):
                        receiver, sender = origin + i * heads + head, origin + at(col, e) * heads + head
                        score = _score(dst, src, receiver, sender, slope)
                        alpha[run * entries + e * heads + head] = score - at(lse, receiver)
            start, stop = at(rowptr, first) * heads, at(rowptr, last) * heads
            _exponentiate(alpha, run * entries + start, run * entries + stop, alpha)
            if threshold > 0:
                low, high = run * entries + start, run * entries + stop
                _mask(alpha, low, high, alpha, kept, -run * entries, key, run, threshold, scale)


@njit(**inlined)
def _pulled_rows(
    span: Any,
    channel: int,
    rowptr: Array,
    col: Array,
    order: Array,
    kept: Array,
    pull: Array,
    base: int,
    heads: int,
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
        place = origin + j * width + channel
        row = load(x, place, span)
        mixed, h = factor * row, every(span, 0)
        for e in range(at(rowptr, j), at(rowptr, j + 1)):
            entry = base + at(order, e) * heads
            g = load(grad, origin + at(col, e) * width + channel, span)
            h = h + every(span, at(kept, entry)) * g
            pull[entry] += total(mixed * g)
        g = load(grad, place, span)
        store(grad_x, place, span, rest * g + factor * h)
        change = change + row * (h - g)
    store(grad_omega, channel, span, change)


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
    rows, entries, block = rowptr.size - 1, col.size * heads, width // heads
    chunks = -(-rows // CHUNK)
    change = np.empty(width, x.dtype)
    for run in range(runs):
        for first in range(begin, end, TILE):
            last = min(first + TILE, end)
            for head in range(heads):
                _pull(
                    x, head * block, (head + 1) * block, rowptr, col, order, kept, pull, run * entries + head, heads,
                    x, omega, grad, grad_x, change, width, first, last, run * rows * width, run * width,
                )  # fmt: skip
            place = (run * chunks + first // CHUNK) * width
            for k in range(width):
                grad_omega[place + k] += change[k]


@njit(**compiled)
def attention_receivers(
    rowptr: Array,
    col: Array,
    dst: Array,
    src: Array,
    alpha: Array,
    kept: Array,
    pull: Array,
    grad_dst: Array,
    slope: float,
    runs: int,
    heads: int,
    begin: int,
    end: int,
) -> None:
    """Turn the pull of each entry into the gradient of its score, and sum it over each row."""
    rows, entries = rowptr.size - 1, col.size * heads
    for run in range(runs):
        for i in range(begin, end):
            for head in range(heads):
                receiver, base = run * rows * heads + i * heads + head, run * entries + head
                mean = sum_ = 0.0
                for e in range(at(rowptr, i), at(rowptr, i + 1)):
                    place = base + e * heads
                    mean += kept[place] * pull[place]
                for e in range(at(rowptr, i), at(rowptr, i + 1)):
                    place, sender = base + e * heads, run * rows * heads + at(col, e) * heads + head
                    steepness = 1.0 if at(dst, receiver) + at(src, sender) > 0 else slope
                    pull[place] = (kept[place] * pull[place] - alpha[place] * mean) * steepness
                    sum_ += pull[place]
                grad_dst[receiver] = sum_


@njit(**compiled)
def attention_senders(
    rowptr: Array, order: Array, pull: Array, grad_src: Array, runs: int, heads: int, begin: int, end: int
) -> None:
    """Sum the gradients of the scores over the entries of each sender."""
    rows, entries = rowptr.size - 1, order.size * heads
    for run in range(runs):
        for j in range(begin, end):
            for head in range(heads):
                sum_ = 0.0
                for e in range(at(rowptr, j), at(rowptr, j + 1)):
                    sum_ += at(pull, run * entries + at(order, e) * heads + head)
                grad_src[run * rows * heads + j * heads + head] = sum_

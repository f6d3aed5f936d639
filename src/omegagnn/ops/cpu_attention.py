"""The compiled CPU kernels of `omegagnn.ops.cpu` for attention; see `omegagnn.ops.cpu_kernels` for their conventions.

Coefficients stand head by head, those of a row side by side: entry ``e`` of head ``h`` at ``h · E + e`` of a run.
Nothing of the size edges × channels is ever stored: the forward pass keeps the coefficients of one tile of rows, the
backward pass three numbers an entry and head.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omegagnn.ops.cpu_disk import kept_on_disk
from omegagnn.ops.cpu_kernels import (
    AHEAD,
    CHUNK,
    TILE,
    Address,
    Pointer,
    Relu,
    add_wide,
    compiled,
    fetch_limit,
    fetch_row,
    inlined,
    mix,
    over_channels,
    over_lines,
)
from omegagnn.ops.cpu_lanes import (
    activated,
    at,
    drawn,
    every,
    exponential,
    let_through,
    load,
    one_by_one,
    pointer,
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
    like: float,
    rowptr: Pointer,
    col: Pointer,
    scores: Pointer,
    lse: Pointer,
    alpha: Pointer,
    heads: int,
    slope: float,
    begin: int,
    end: int,
    run_row: int,
    head: int,
) -> None:
    """Write one head's coefficients of a tile of rows to alpha and their log-sum-exp to lse."""
    one, low_slope, stride = rounded(like, 1), rounded(like, slope), 2 * heads
    origin, senders = run_row * stride + head, run_row * stride + heads + head
    for i in range(begin, end):
        receiver, largest = (run_row + i) * heads + head, rounded(like, -np.inf)
        own = at(scores, origin + i * stride)
        for e in range(at(rowptr, i), at(rowptr, i + 1)):
            one_by_one()
            score = own + at(scores, senders + at(col, e) * stride)
            score = score * _steepness(score, one, low_slope)
            put(alpha, e, score)
            largest = max(score, largest)
        for e in range(at(rowptr, i), at(rowptr, i + 1)):
            one_by_one()
            put(alpha, e, at(alpha, e) - largest)
        put(lse, receiver, largest)
    _exponentiate(like, at(rowptr, begin), at(rowptr, end), alpha)
    for i in range(begin, end):
        receiver, sum_ = (run_row + i) * heads + head, rounded(like, 0)
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
                score = at(scores, origin + i * stride) + at(scores, senders + at(col, e) * stride)
                put(alpha, e, np.exp(score * _steepness(score, one, low_slope)))


@njit(**inlined)
def _scored_rows(
    span: Any,
    channel: int,
    x: Pointer,
    maps: Pointer,
    scores: Pointer,
    columns: int,
    width: int,
    begin: int,
    end: int,
    run_row: int,
    map_origin: int,
    relu: Relu,
) -> None:
    for k in range(columns):
        map_ = load(maps, map_origin + k * width + channel, span)
        for i in range(run_row + begin, run_row + end):
            dot = total(span, map_ * activated(relu, load(x, i * width + channel, span)))
            put(scores, i * columns + k, dot if channel == 0 else at(scores, i * columns + k) + dot)


_score = over_channels(_scored_rows, 256)


@kept_on_disk
@njit(**compiled)
def scores(
    like: float,
    relu: Relu,
    x: Address,
    maps: Address,
    out: Address,
    runs: int,
    rows: int,
    columns: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Write σ(x) times the maps to out ``[R, n, columns]``; the maps come transposed, ``[R, columns, c]``."""
    features = (pointer(x, like), pointer(maps, like), pointer(out, like))
    for run in range(runs):
        for first in range(begin, end, TILE):
            places = (width, first, min(first + TILE, end), run * rows, run * columns * width)
            _score(like, 0, width, *features, columns, *places, relu)


@kept_on_disk
@njit(**compiled)
def attention(
    like: float,
    index: int,
    relu: Relu,
    rowptr: Address,
    col: Address,
    x: Address,
    scores: Address,
    omega: Address,
    y: Address,
    lse: Address,
    alpha: Address,
    key: Address,
    slope: float,
    threshold: int,
    scale: float,
    runs: int,
    rows: int,
    heads: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Write (1 − ω) σ(x) + ω Ŝ σ(x) to y and each row's and head's log-sum-exp to lse; alpha ``[E]`` is room to work in."""
    places, columns, keys, block = pointer(rowptr, index), pointer(col, index), pointer(key, 0), width // heads
    limit = fetch_limit(places, end, rows * width)
    sums = (pointer(scores, like), pointer(lse, like))
    room, features = pointer(alpha, like), (pointer(x, like), pointer(omega, like), pointer(y, like))
    for run in range(runs):
        for first in range(begin, end, TILE):
            last, origins = min(first + TILE, end), (run * rows * width, run * width)
            for head in range(heads):
                _softmax(like, places, columns, *sums, room, heads, slope, first, last, run * rows, head)
                if threshold > 0:
                    draws = (at(keys, 2 * run), at(keys, 2 * run + 1), threshold, scale)
                    _mask(like, at(places, first), at(places, last), room, 0, head, heads, *draws)
                channels = (head * block, (head + 1) * block)
                mix(like, *channels, places, columns, room, 0, *features, width, first, last, limit, *origins, relu)


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


@kept_on_disk
@njit(**compiled)
def attention_coefficients(
    like: float,
    index: int,
    rowptr: Address,
    col: Address,
    scores: Address,
    lse: Address,
    alpha: Address,
    kept: Address,
    key: Address,
    slope: float,
    threshold: int,
    scale: float,
    runs: int,
    rows: int,
    entries: int,
    heads: int,
    begin: int,
    end: int,
) -> None:
    """Write what dropout leaves of the coefficients to `kept` and the whole ones, with the sign of the score, to alpha."""
    places, columns, keys = pointer(rowptr, index), pointer(col, index), pointer(key, 0)
    seen, sums, stride = pointer(scores, like), pointer(lse, like), 2 * heads
    whole, left, one, low_slope = pointer(alpha, like), pointer(kept, like), rounded(like, 1), rounded(like, slope)
    for run in range(runs):
        draws = (at(keys, 2 * run), at(keys, 2 * run + 1), threshold, scale)
        for head in range(heads):
            origin, base = run * rows * stride + head, (run * heads + head) * entries
            for first in range(begin, end, TILE):
                last = min(first + TILE, end)
                for i in range(first, last):
                    own, sum_ = at(seen, origin + i * stride), at(sums, (run * rows + i) * heads + head)
                    for e in range(at(places, i), at(places, i + 1)):
                        one_by_one()
                        score = own + at(seen, origin + heads + at(columns, e) * stride)
                        put(left, base + e, score)
                        put(whole, base + e, score * _steepness(score, one, low_slope) - sum_)
                span = (base + at(places, first), base + at(places, last))
                _restore(like, *span, whole, left, base, head, heads, *draws)


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
    start: int,
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
        place = origin + j * width + channel
        row = activated(relu, load(x, place, span))
        mixed, h = factor * row, every(span, 0)
        for e in range(at(rowptr, j), at(rowptr, j + 1)):
            fetch_row(span, grad, origin + channel, width, col, e + AHEAD, limit)
            entry = base + at(order, e)
            g = load(grad, origin + at(col, e) * width + channel, span)
            h = h + every(span, at(kept, entry)) * g
            dot = total(span, mixed * g)
            put(pull, entry, dot if channel == start else at(pull, entry) + dot)
        g = load(grad, place, span)
        store(grad_x, place, span, rest * g + factor * h)
        change = change + row * (h - g)
    add_wide(grad_omega, omega_part + channel, span, change)


_pull = over_channels(_pulled_rows, 256)


@kept_on_disk
@njit(**compiled)
def attention_pull(
    like: float,
    index: int,
    order_index: int,
    relu: Relu,
    rowptr: Address,
    col: Address,
    order: Address,
    kept: Address,
    pull: Address,
    x: Address,
    omega: Address,
    grad: Address,
    grad_x: Address,
    grad_omega: Address,
    runs: int,
    rows: int,
    entries: int,
    heads: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Go over the transpose: write (1 − ω) g + ω Ŝᵀ g to grad_x and ⟨ω g_i, σ(x_j)⟩ of each entry to pull; add grad_omega."""
    chunks, block = -(-rows // CHUNK), width // heads
    graph = (pointer(rowptr, index), pointer(col, index), pointer(order, order_index))
    coefficients, sums = (pointer(kept, like), pointer(pull, like)), pointer(grad_omega, 0.0)
    limit = fetch_limit(graph[0], end, rows * width)
    features = (pointer(x, like), pointer(omega, like), pointer(grad, like), pointer(grad_x, like))
    for run in range(runs):
        for first in range(begin, end, TILE):
            last, part = min(first + TILE, end), (run * chunks + first // CHUNK) * width
            origins = (run * rows * width, run * width, part)
            for head in range(heads):
                channels, starts = (head * block, (head + 1) * block), ((run * heads + head) * entries, head * block)
                places = (width, first, last, limit, *origins)
                _pull(like, *channels, *graph, *coefficients, *starts, *features, sums, *places, relu)


@kept_on_disk
@njit(**compiled)
def attention_receivers(
    like: float,
    index: int,
    rowptr: Address,
    alpha: Address,
    kept: Address,
    pull: Address,
    grad_scores: Address,
    slope: float,
    runs: int,
    rows: int,
    entries: int,
    heads: int,
    begin: int,
    end: int,
) -> None:
    """Turn the pull of each entry into the gradient of its score, and sum it over each row."""
    places, pulls, sums = pointer(rowptr, index), pointer(pull, like), pointer(grad_scores, like)
    whole, left, one, low_slope = pointer(alpha, like), pointer(kept, like), rounded(like, 1), rounded(like, slope)
    for run in range(runs):
        for head in range(heads):
            base = (run * heads + head) * entries
            for i in range(begin, end):
                low, high = base + at(places, i), base + at(places, i + 1)
                mean = sum_ = rounded(like, 0)
                for e in range(low, high):
                    one_by_one()
                    mean += at(left, e) * at(pulls, e)
                for e in range(low, high):
                    one_by_one()
                    share = at(whole, e)  # negative where the score is, and there LeakyReLU has its slope
                    drive = at(left, e) * at(pulls, e) - abs(share) * mean
                    score = drive * _steepness(share, one, low_slope)
                    put(pulls, e, score)
                    sum_ += score
                put(sums, (run * rows + i) * 2 * heads + head, sum_)


@kept_on_disk
@njit(**compiled)
def attention_senders(
    like: float,
    index: int,
    order_index: int,
    rowptr: Address,
    order: Address,
    pull: Address,
    grad_scores: Address,
    runs: int,
    rows: int,
    entries: int,
    heads: int,
    begin: int,
    end: int,
) -> None:
    """Sum the gradients of the scores over the entries of each sender."""
    places, orders, pulls = pointer(rowptr, index), pointer(order, order_index), pointer(pull, like)
    sums = pointer(grad_scores, like)
    for run in range(runs):
        for head in range(heads):
            base = (run * heads + head) * entries
            for j in range(begin, end):
                sum_ = rounded(like, 0)
                for e in range(at(places, j), at(places, j + 1)):
                    one_by_one()
                    sum_ += at(pulls, base + at(orders, e))
                put(sums, (run * rows + j) * 2 * heads + heads + head, sum_)


@njit(**inlined)
def _finished_rows(
    span: Any,
    channel: int,
    x: Pointer,
    maps: Pointer,
    grad_scores: Pointer,
    grad_x: Pointer,
    grad_maps: Pointer,
    columns: int,
    width: int,
    begin: int,
    end: int,
    run_row: int,
    map_origin: int,
    map_part: int,
    relu: Relu,
) -> None:
    for k in range(columns):
        map_, change = load(maps, map_origin + k * width + channel, span), every(span, 0)
        for i in range(run_row + begin, run_row + end):
            asked, place = every(span, at(grad_scores, i * columns + k)), i * width + channel
            own = load(x, place, span)
            change = change + asked * activated(relu, own)
            store(grad_x, place, span, let_through(relu, own, load(grad_x, place, span) + asked * map_))
        add_wide(grad_maps, map_part + k * width + channel, span, change)


_finish = over_channels(_finished_rows)


@kept_on_disk
@njit(**compiled)
def attention_finish(
    like: float,
    relu: Relu,
    x: Address,
    maps: Address,
    grad_scores: Address,
    grad_x: Address,
    grad_maps: Address,
    runs: int,
    rows: int,
    columns: int,
    width: int,
    begin: int,
    end: int,
) -> None:
    """Add what the scores ask to grad_x, which passes ReLU, and each chunk's σ(x)ᵀ G to grad_maps; maps are transposed."""
    chunks = -(-rows // CHUNK)
    features = (pointer(x, like), pointer(maps, like), pointer(grad_scores, like), pointer(grad_x, like))
    sums = pointer(grad_maps, 0.0)
    for run in range(runs):
        for first in range(begin, end, TILE):
            origins = (run * rows, run * columns * width, (run * chunks + first // CHUNK) * columns * width)
            _finish(like, 0, width, *features, sums, columns, width, first, min(first + TILE, end), *origins, relu)

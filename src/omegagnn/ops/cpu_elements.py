"""The compiled CPU kernels of `omegagnn.ops.cpu` that go element by element: draws, dropout, reordering, Adam.

For their conventions see `omegagnn.ops.cpu_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omegagnn.ops.cpu_disk import kept_on_disk
from omegagnn.ops.cpu_kernels import Address, Pointer, compiled, inlined, over_lines
from omegagnn.ops.cpu_lanes import at, drawn, every, load, pointer, put, square_root, store
from omegagnn.ops.random import GOLDEN, MASK, MULTIPLIER_A, MULTIPLIER_B


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


@kept_on_disk
@njit(**compiled)
def dropout(
    like: float,
    x: Address,
    y: Address,
    key: Address,
    threshold: int,
    scale: float,
    runs: int,
    shift: int,
    size: int,
    begin: int,
    end: int,
) -> None:
    """Write x to y with elements dropped and the rest scaled; the runs of x lie `shift` apart (0: shared by all)."""
    keys = pointer(key, 0)
    for run in range(runs):
        places = (pointer(x, like), pointer(y, like), run * shift, run * size)
        _drop(like, begin, end, *places, at(keys, 2 * run), at(keys, 2 * run + 1), threshold, scale)


@kept_on_disk
@njit(**compiled)
def reordered(
    like: float, index: int, order: Address, value: Address, out: Address, runs: int, size: int, begin: int, end: int
) -> None:
    """Write the entries of each run in another order."""
    values, places, target = pointer(value, like), pointer(order, index), pointer(out, like)
    for run in range(runs):
        for e in range(begin, end):
            put(target, run * size + e, at(values, run * size + at(places, e)))


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


@kept_on_disk
@njit(**compiled)
def adam(
    like: float,
    param: Address,
    grad: Address,
    average: Address,
    square: Address,
    rates: Address,
    decays: Address,
    correction: Address,
    active: Address,
    blocks: Address,
    beta1: float,
    beta2: float,
    eps: float,
    runs: int,
    count: int,
    begin: int,
    end: int,
) -> None:
    """Step the blocks of active runs; rates and decays ``[G, R]`` and the correction in float64, activity in a byte."""
    arrays = (pointer(param, like), pointer(grad, like), pointer(average, like), pointer(square, like))
    rate, decay, moves = pointer(rates, 0.0), pointer(decays, 0.0), pointer(active, np.uint8(0))
    numbers, places = pointer(correction, 0.0), pointer(blocks, 0)
    step, root = at(numbers, 0) / at(numbers, 1), 1 / np.sqrt(at(numbers, 2))
    for block in range(begin, end):
        run = at(places, 2 * count + block)
        if at(moves, run) != 0:
            setting = at(places, 3 * count + block) * runs + run
            settings = (at(decay, setting), beta1, beta2, eps, at(rate, setting) * step, root)
            _step(like, at(places, block), at(places, count + block), *arrays, *settings)


@njit(**inlined)
def _copied(span: Any, place: int, kept: Pointer, source: Pointer) -> None:
    store(kept, place, span, load(source, place, span))


_copy = over_lines(_copied)


@kept_on_disk
@njit(**compiled)
def keep(
    like: float, kept: Address, source: Address, chosen: Address, blocks: Address, count: int, begin: int, end: int
) -> None:
    """Copy the blocks of the chosen runs."""
    arrays, wanted, places = (
        (pointer(kept, like), pointer(source, like)),
        pointer(chosen, np.uint8(0)),
        pointer(blocks, 0),
    )
    for block in range(begin, end):
        if at(wanted, at(places, 2 * count + block)) != 0:
            _copy(like, at(places, block), at(places, count + block), *arrays)


@njit(**inlined)
def _mixed(word: int) -> int:
    word = word ^ (word >> 16)
    word = (word * MULTIPLIER_A) & MASK
    word = word ^ (word >> 15)
    word = (word * MULTIPLIER_B) & MASK
    return word ^ (word >> 16)


@kept_on_disk
@njit(**compiled)
def draw_key(seeds: Address, step: Address, out: Address, place: int, begin: int, end: int) -> None:
    """Write the two words of each run's key."""
    numbers, moved, words = pointer(seeds, 0), at(pointer(step, 0), 0) * GOLDEN, pointer(out, 0)
    for run in range(begin, end):
        low, high = at(numbers, run) & MASK, (at(numbers, run) >> 32) & MASK
        for number in range(2):
            salt = GOLDEN if number == 0 else MULTIPLIER_A
            word = _mixed((low + salt) & MASK)
            word = _mixed(((word ^ high) + salt) & MASK)
            word = _mixed((word + moved) & MASK)
            put(words, 2 * run + number, _mixed(word ^ ((place * MULTIPLIER_B) & MASK)))

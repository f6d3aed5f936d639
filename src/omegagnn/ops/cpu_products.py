"""The compiled CPU kernels of `omegagnn.ops.cpu` for products of features with a map; see `omegagnn.ops.cpu_kernels`.

Four rows of a result are summed in registers at once, which keeps the processor's multipliers busy: a library that does
not know the processor reaches less than half of that. The order of every sum is fixed by the sizes of one run alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from omegagnn.ops.cpu_disk import kept_on_disk
from omegagnn.ops.cpu_kernels import TILE, Address, Pointer, compiled, inlined
from omegagnn.ops.cpu_lanes import WIDEST, at, every, full_span, last_span, length, load, pointer, size_of, store

# Channels, and rows, over which a sum is made before it is added to the result: what they touch stays in the nearest cache.
DEPTH, BLOCK = 128, 32

SPAN = min(WIDEST // 4, 256)  # bytes of a row: the sums of four, and the map's row besides, must fit the registers


def _over_columns(work: Callable[..., None]) -> Callable[..., None]:
    """Return a function that calls ``work(span, begin, ...)`` for the columns from `begin` to `end`.

    There are but two kinds of span, as each is compiled for itself.
    """

    @njit(**inlined)
    def drive(like: float, begin: int, end: int, *args: Any) -> None:
        full, line = full_span(like, SPAN), full_span(like, 64)
        while begin + length(full) <= end:
            work(full, begin, *args)
            begin += length(full)
        while begin < end:
            work(last_span(like, 64, end - begin), begin, *args)
            begin += length(line)

    return drive


@njit(**inlined)
def _keep_sums(span: Any, y: Pointer, places: Any, sums: Any, fresh: bool) -> None:
    """Write four sums, or add them to what is there. A place that is named twice gets the same sum twice."""
    one, two, three, four = sums
    if not fresh:
        one = load(y, places[0], span) + one
        two = load(y, places[1], span) + two
        three = load(y, places[2], span) + three
        four = load(y, places[3], span) + four
    store(y, places[0], span, one)
    store(y, places[1], span, two)
    store(y, places[2], span, three)
    store(y, places[3], span, four)


@njit(**inlined)
def _four(begin: int, end: int, step: int) -> Any:
    """Return where four rows begin; what would lie behind the last is the last once more."""
    last = end - 1
    return begin * step, min(begin + 1, last) * step, min(begin + 2, last) * step, min(begin + 3, last) * step


@njit(**inlined)
def _multiplied_rows(
    span: Any,
    column: int,
    x: Pointer,
    weight: Pointer,
    y: Pointer,
    width: int,
    columns: int,
    first: int,
    last: int,
    begin: int,
    end: int,
) -> None:
    for row in range(begin, end, 4):
        one, two, three, four = _four(row, end, width)
        sum1 = sum2 = sum3 = sum4 = every(span, 0)
        for k in range(first, last):
            factor = load(weight, k * columns + column, span)
            sum1 = sum1 + every(span, at(x, one + k)) * factor
            sum2 = sum2 + every(span, at(x, two + k)) * factor
            sum3 = sum3 + every(span, at(x, three + k)) * factor
            sum4 = sum4 + every(span, at(x, four + k)) * factor
        one, two, three, four = _four(row, end, columns)
        places = (one + column, two + column, three + column, four + column)
        _keep_sums(span, y, places, (sum1, sum2, sum3, sum4), first == 0)


_multiply = _over_columns(_multiplied_rows)


@njit(**inlined)
def multiply_tile(
    like: float, x: Pointer, weight: Pointer, y: Pointer, width: int, columns: int, begin: int, end: int
) -> None:
    """Write the rows from `begin` to `end` of ``x W``."""
    for first in range(0, width, DEPTH):
        _multiply(like, 0, columns, x, weight, y, width, columns, first, min(first + DEPTH, width), begin, end)


@njit(**inlined)
def _summed_products(
    span: Any,
    column: int,
    x: Pointer,
    grad: Pointer,
    out: Pointer,
    width: int,
    columns: int,
    begin: int,
    end: int,
    fresh: bool,
) -> None:
    for channel in range(0, width, 4):
        one, two, three, four = _four(channel, width, 1)
        sum1 = sum2 = sum3 = sum4 = every(span, 0)
        for row in range(begin, end):
            factor, origin = load(grad, row * columns + column, span), row * width
            sum1 = sum1 + every(span, at(x, origin + one)) * factor
            sum2 = sum2 + every(span, at(x, origin + two)) * factor
            sum3 = sum3 + every(span, at(x, origin + three)) * factor
            sum4 = sum4 + every(span, at(x, origin + four)) * factor
        one, two, three, four = _four(channel, width, columns)
        places = (one + column, two + column, three + column, four + column)
        _keep_sums(span, out, places, (sum1, sum2, sum3, sum4), fresh)


sum_products = _over_columns(_summed_products)


@njit(**inlined)
def shifted(like: float, address: Address, numbers: int) -> Pointer:
    """Return the pointer to what lies so many numbers behind an address."""
    return pointer(address + numbers * size_of(like), like)


@kept_on_disk
@njit(**compiled)
def linear(
    like: float,
    x: Address,
    weight: Address,
    y: Address,
    apart: int,
    runs: int,
    rows: int,
    width: int,
    columns: int,
    begin: int,
    end: int,
) -> None:
    """Write x W to y, ``[R, n, c]`` and ``[R, c, d]`` to ``[R, n, d]``; the runs of x lie `apart` (0: shared by all)."""
    for run in range(runs):
        features, product = shifted(like, x, run * apart), shifted(like, y, run * rows * columns)
        map_ = shifted(like, weight, run * width * columns)
        for first in range(begin, end, TILE):
            multiply_tile(like, features, map_, product, width, columns, first, min(first + TILE, end))


@kept_on_disk
@njit(**compiled)
def linear_backward(
    like: float,
    x: Address,
    weight: Address,
    grad: Address,
    grad_x: Address,
    grad_weight: Address,
    need_x: bool,
    apart: int,
    runs: int,
    rows: int,
    width: int,
    columns: int,
    share: int,
    begin: int,
    end: int,
) -> None:
    """Write g Wᵀ to grad_x if needed, and xᵀ g of each share of rows to grad_weight ``[R, shares, c, d]``; W is transposed."""
    shares = -(-rows // share)
    for run in range(runs):
        features, given = shifted(like, x, run * apart), shifted(like, grad, run * rows * columns)
        map_, wanted = shifted(like, weight, run * width * columns), shifted(like, grad_x, run * rows * width)
        for first in range(begin, end, BLOCK):
            last = min(first + BLOCK, end)
            if need_x:
                multiply_tile(like, given, map_, wanted, columns, width, first, last)
            sums = shifted(like, grad_weight, (run * shares + first // share) * width * columns)
            sum_products(like, 0, columns, features, given, sums, width, columns, first, last, first % share == 0)

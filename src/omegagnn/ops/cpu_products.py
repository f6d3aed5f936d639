"""The compiled CPU kernels of `omegagnn.ops.cpu` for products of features with a map; see `omegagnn.ops.cpu_kernels`.

Four rows of a result are summed in registers at once, which keeps the processor's multipliers busy: a library that does
not know the processor reaches less than half of that. The order of every sum is fixed by the sizes of one run alone.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from omegagnn.ops.cpu_disk import kept_on_disk
from omegagnn.ops.cpu_kernels import TILE, Address, Pointer, compiled, inlined, over_channels, over_lines
from omegagnn.ops.cpu_lanes import WIDEST, at, every, load, pointer, size_of, store

# Channels, and rows, over which a sum is made before it is added to the result: what they touch stays in the nearest cache.
DEPTH, BLOCK = 128, 32

_over_columns = (
    over_channels if WIDEST > 256 else over_lines
)  # four times the span, besides the map's, must fit registers


@njit(**inlined)
def _keep_sum(place: int, span: Any, y: Pointer, sums: Any, fresh: bool) -> None:
    """Write a sum, or add it to what is there."""
    store(y, place, span, sums if fresh else load(y, place, span) + sums)


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
    fresh, row = first == 0, begin
    while row + 4 <= end:
        place, one = row * columns + column, row * width
        two, three, four = one + width, one + 2 * width, one + 3 * width
        sum1 = sum2 = sum3 = sum4 = every(span, 0)
        for k in range(first, last):
            factor = load(weight, k * columns + column, span)
            sum1 = sum1 + every(span, at(x, one + k)) * factor
            sum2 = sum2 + every(span, at(x, two + k)) * factor
            sum3 = sum3 + every(span, at(x, three + k)) * factor
            sum4 = sum4 + every(span, at(x, four + k)) * factor
        _keep_sum(place, span, y, sum1, fresh)
        _keep_sum(place + columns, span, y, sum2, fresh)
        _keep_sum(place + 2 * columns, span, y, sum3, fresh)
        _keep_sum(place + 3 * columns, span, y, sum4, fresh)
        row += 4
    while row < end:
        sum1 = every(span, 0)
        for k in range(first, last):
            sum1 = sum1 + every(span, at(x, row * width + k)) * load(weight, k * columns + column, span)
        _keep_sum(row * columns + column, span, y, sum1, fresh)
        row += 1


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
    channel = 0
    while channel + 4 <= width:
        place = channel * columns + column
        sum1 = sum2 = sum3 = sum4 = every(span, 0)
        for row in range(begin, end):
            factor, one = load(grad, row * columns + column, span), row * width + channel
            sum1 = sum1 + every(span, at(x, one)) * factor
            sum2 = sum2 + every(span, at(x, one + 1)) * factor
            sum3 = sum3 + every(span, at(x, one + 2)) * factor
            sum4 = sum4 + every(span, at(x, one + 3)) * factor
        _keep_sum(place, span, out, sum1, fresh)
        _keep_sum(place + columns, span, out, sum2, fresh)
        _keep_sum(place + 2 * columns, span, out, sum3, fresh)
        _keep_sum(place + 3 * columns, span, out, sum4, fresh)
        channel += 4
    while channel < width:
        sum1 = every(span, 0)
        for row in range(begin, end):
            sum1 = sum1 + every(span, at(x, row * width + channel)) * load(grad, row * columns + column, span)
        _keep_sum(channel * columns + column, span, out, sum1, fresh)
        channel += 1


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

"""Triton kernels of small dense products and sums: both gradients of a layer's map at once, and sums over columns.

A layer of a small graph multiplies some thousand rows with a map of 64 × 64. Of the library's two products for its gradients the
second sums over all rows and needs three launches; here one program reads its rows once and makes its share of both.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def linear_backward_kernel(
    x, weight, grad, grad_x, weight_part, n, c, d, runs, PRECISION: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr,
    BLOCK_C: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Store ``grad Wᵀ`` of some rows and what they add to ``xᵀ grad``."""
    program, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, i, o = program * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK_C), tl.arange(0, BLOCK_D)
    in_row, in_c, in_d = row < n, i < c, o < d
    place = run * n + row
    g = tl.load(grad + place[:, None] * d + o[None, :], mask=in_row[:, None] & in_d[None, :], other=0.0)
    w_t = tl.load(weight + run * c * d + i[None, :] * d + o[:, None], mask=in_c[None, :] & in_d[:, None], other=0.0)
    x_t = tl.load(x + place[None, :] * c + i[:, None], mask=in_row[None, :] & in_c[:, None], other=0.0)
    pulled = tl.dot(g, w_t, input_precision=PRECISION, out_dtype=ACC)
    tl.store(grad_x + place[:, None] * c + i[None, :], pulled, mask=in_row[:, None] & in_c[None, :])
    part = tl.dot(x_t, g, input_precision=PRECISION, out_dtype=ACC)
    at = (program * runs + run) * c * d + i[:, None] * d + o[None, :]
    tl.store(weight_part + at, part, mask=in_c[:, None] & in_d[None, :])


@triton.jit
def column_sum_kernel(
    values, out, rows, columns, chunk, ACC: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):  # fmt: skip
    """Store the sums of the columns of ``[rows, columns]`` over each chunk of rows, in an order that nothing changes."""
    column, number = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C), tl.program_id(1)
    in_c, last = column < columns, tl.minimum(rows, (number + 1) * chunk)
    total = tl.zeros([BLOCK_C], ACC)
    for first in range(number * chunk, last, BLOCK_R):
        row = (first + tl.arange(0, BLOCK_R)).to(tl.int64)
        inside = (row < last)[:, None] & in_c[None, :]
        total += tl.sum(tl.load(values + row[:, None] * columns + column[None, :], mask=inside, other=0.0), axis=0)
    tl.store(out + number.to(tl.int64) * columns + column, total, mask=in_c)

"""Triton kernels that gather over the rows of a sparse matrix: propagation, its gradient, and sparse features.

One program takes a few rows and all their channels (up to `BLOCK_C`). Rows are read a block of entries at a time, so that
many loads are under way at once, and added up in float32 (float64 for float64) in a fixed order: no atomics, the same bits
every time. Rows of more than `limit` entries are cut into segments that other programs add up beside; a second kernel
finishes those rows from the segments' sums (`plan.Plan`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from omegagnn.ops.gpu_elements import draw_bits


@triton.jit
def positive(x):
    """Return max(x, 0); NaN stays NaN."""
    return tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def channels_of(first, block, width, EVEN: tl.constexpr, BLOCK_C: tl.constexpr):
    """Return the channels of a block of `width` channels from `first` on, and which exist: all where EVEN blocks divide them."""
    local = block * BLOCK_C + tl.arange(0, BLOCK_C)
    return first + local, tl.full([BLOCK_C], 1, tl.int1) if EVEN else local < width


@triton.jit
def index_of(node, WIDE: tl.constexpr):
    """Return a number to index with: 64-bit products take several times as many instructions, and a gather is made of them."""
    return node.to(tl.int64) if WIDE else node.to(tl.int32)


@triton.jit
def gather_rows(
    start, stop, col, weight, base, c, channel, in_c, RELU: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Return Σ_e weight[e] · σ(base[col[e]]) over the entries from start to stop, ``[BLOCK_C]``."""
    total = tl.zeros([BLOCK_C], ACC)
    for first in range(start, stop, BLOCK_E):
        entry = first + tl.arange(0, BLOCK_E)
        in_e = entry < stop
        node = index_of(tl.load(col + entry, mask=in_e, other=0), WIDE)
        factor = tl.load(weight + entry, mask=in_e, other=0.0).to(ACC)
        inside = in_e[:, None] & in_c[None, :]
        rows = tl.load(base + (node * c)[:, None] + channel[None, :], mask=inside, other=0.0).to(ACC)
        if RELU:
            rows = positive(rows)
        # Where a row holds infinity, an entry that is not there must not make it NaN: it is masked, not multiplied.
        total += tl.sum(factor[:, None] * rows, axis=0)
    return total


@triton.jit
def own_row(at, in_c, x, grad, MIX: tl.constexpr, BACKWARD: tl.constexpr, ACC: tl.constexpr, BLOCK_C: tl.constexpr):
    """Return what a row itself holds of x and of the gradient, as far as `finish_row` needs it."""
    own, incoming = tl.zeros([BLOCK_C], ACC), tl.zeros([BLOCK_C], ACC)
    if MIX:
        own = tl.load(x + at, mask=in_c, other=0.0).to(ACC)
        if BACKWARD:
            incoming = tl.load(grad + at, mask=in_c, other=0.0).to(ACC)
    return own, incoming


@triton.jit
def finish_row(
    total, own, incoming, factor, at, in_c, out,
    MIX: tl.constexpr, BACKWARD: tl.constexpr, RELU: tl.constexpr, OMEGA: tl.constexpr,
):  # fmt: skip
    """Mix a row's sum with the row itself and store it; return what the row adds to the gradient of ω."""
    pull = tl.zeros_like(total)
    result = total
    if MIX:
        signal = positive(own) if RELU else own
        if BACKWARD:
            result = (1 - factor) * incoming + factor * total
            if OMEGA:
                pull = signal * (total - incoming)
            if RELU:
                result = tl.where(own > 0, result, 0.0)
        else:
            result = (1 - factor) * signal + factor * total
    tl.store(out + at, result.to(out.dtype.element_ty), mask=in_c)
    return pull


@triton.jit
def omega_of(omega, run, c, channel, in_c, MIX: tl.constexpr, ACC: tl.constexpr, BLOCK_C: tl.constexpr):
    """Return ω of a run's channels, 0 where there is none."""
    mix = tl.zeros([BLOCK_C], ACC)
    if MIX:
        mix = tl.load(omega + run * c + channel, mask=in_c, other=0.0).to(ACC)
    return mix


@triton.jit
def propagate_kernel(
    rowptr, col, weight, x, omega, grad, out, omega_part, segment_start, segment_stop, segment_sum,
    n, c, runs, row_programs, segments, limit,
    MIX: tl.constexpr, BACKWARD: tl.constexpr, RELU: tl.constexpr, OMEGA: tl.constexpr, SPLIT: tl.constexpr,
    EVEN: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK_E: tl.constexpr,
    BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Propagate rows that are short, and add up the segments of those that are long."""
    program, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel, in_c = channels_of(0, tl.program_id(2), c, EVEN, BLOCK_C)
    source = (grad if BACKWARD else x) + run * n * c
    gathers_relu: tl.constexpr = RELU and not BACKWARD
    if program < row_programs:
        mix = omega_of(omega, run, c, channel, in_c, MIX, ACC, BLOCK_C)
        pull = tl.zeros([BLOCK_C], ACC)
        for row in range(program * ROWS, tl.minimum(program * ROWS + ROWS, n)):
            start, stop = tl.load(rowptr + row), tl.load(rowptr + row + 1)
            if stop - start <= limit:
                at = (run * n + row) * c + channel
                own, incoming = own_row(at, in_c, x, grad, MIX, BACKWARD, ACC, BLOCK_C)
                total = gather_rows(
                    start, stop, col, weight, source, c, channel, in_c, gathers_relu, WIDE, ACC, BLOCK_E, BLOCK_C
                )
                pull += finish_row(total, own, incoming, mix, at, in_c, out, MIX, BACKWARD, RELU, OMEGA)
        if OMEGA:
            tl.store(omega_part + (program.to(tl.int64) * runs + run) * c + channel, pull, mask=in_c)
    elif SPLIT:
        segment = program - row_programs
        begin, end = tl.load(segment_start + segment), tl.load(segment_stop + segment)
        whole = gather_rows(
            begin, end, col, weight, source, c, channel, in_c, gathers_relu, WIDE, ACC, BLOCK_E, BLOCK_C
        )
        tl.store(segment_sum + (run * segments + segment) * c + channel, whole, mask=in_c)


@triton.jit
def finish_long_rows_kernel(
    long_row, long_first, x, omega, grad, out, omega_part, segment_sum, n, c, runs, segments, row_programs,
    MIX: tl.constexpr, BACKWARD: tl.constexpr, RELU: tl.constexpr, OMEGA: tl.constexpr, ACC: tl.constexpr,
    BLOCK_S: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Add up the segments of each long row and finish it."""
    program, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    in_c = channel < c
    row = tl.load(long_row + program).to(tl.int64)
    first, last = tl.load(long_first + program), tl.load(long_first + program + 1)
    total = tl.zeros([BLOCK_C], ACC)
    for begin in range(first, last, BLOCK_S):
        segment = begin + tl.arange(0, BLOCK_S)
        inside = (segment < last)[:, None] & in_c[None, :]
        at = (run * segments + segment.to(tl.int64))[:, None] * c + channel[None, :]
        total += tl.sum(tl.load(segment_sum + at, mask=inside, other=0.0), axis=0)
    at = (run * n + row) * c + channel
    own, incoming = own_row(at, in_c, x, grad, MIX, BACKWARD, ACC, BLOCK_C)
    mix = omega_of(omega, run, c, channel, in_c, MIX, ACC, BLOCK_C)
    pull = finish_row(total, own, incoming, mix, at, in_c, out, MIX, BACKWARD, RELU, OMEGA)
    if OMEGA:
        place = row_programs + program
        tl.store(omega_part + (place.to(tl.int64) * runs + run) * c + channel, pull, mask=in_c)


@triton.jit
def sparse_rows(
    start, stop, col, value, order, base, c, channel, in_c, key0, key1,
    THRESHOLD: tl.constexpr, SCALE: tl.constexpr, ORDER: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Return Σ_e dropped(value[e]) · base[col[e]]; with ORDER entry e is the `order[e]`-th of the stored values."""
    total = tl.zeros([BLOCK_C], ACC)
    for first in range(start, stop, BLOCK_E):
        entry = first + tl.arange(0, BLOCK_E)
        in_e = entry < stop
        element = tl.load(order + entry, mask=in_e, other=0) if ORDER else entry
        node = index_of(tl.load(col + entry, mask=in_e, other=0), WIDE)
        factor = tl.load(value + element, mask=in_e, other=0.0).to(ACC)
        if THRESHOLD > 0:
            kept = draw_bits(key0, key1, element) >= THRESHOLD
            factor = tl.where(kept, factor * SCALE, 0.0)
        inside = in_e[:, None] & in_c[None, :]
        rows = tl.load(base + (node * c)[:, None] + channel[None, :], mask=inside, other=0.0).to(ACC)
        total += tl.sum(factor[:, None] * rows, axis=0)
    return total


@triton.jit
def sparse_kernel(
    rowptr, col, value, order, factor, key, out, segment_start, segment_stop, segment_sum,
    n, f, c, row_programs, segments, limit,
    THRESHOLD: tl.constexpr, SCALE: tl.constexpr, ORDER: tl.constexpr, SPLIT: tl.constexpr, EVEN: tl.constexpr,
    WIDE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Multiply a sparse matrix of n rows with ``[R, f, c]``."""
    program, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel, in_c = channels_of(0, tl.program_id(2), c, EVEN, BLOCK_C)
    source = factor + run * f * c
    key0, key1 = tl.load(key + 2 * run), tl.load(key + 2 * run + 1)
    if program < row_programs:
        for offset in range(ROWS):
            row = program * ROWS + offset
            if row < n:
                start, stop = tl.load(rowptr + row), tl.load(rowptr + row + 1)
                if stop - start <= limit:
                    total = sparse_rows(
                        start, stop, col, value, order, source, c, channel, in_c, key0, key1,
                        THRESHOLD, SCALE, ORDER, WIDE, ACC, BLOCK_E, BLOCK_C,
                    )  # fmt: skip
                    at = (run * n + row).to(tl.int64) * c + channel
                    tl.store(out + at, total.to(out.dtype.element_ty), mask=in_c)
    elif SPLIT:
        segment = program - row_programs
        start, stop = tl.load(segment_start + segment), tl.load(segment_stop + segment)
        total = sparse_rows(
            start, stop, col, value, order, source, c, channel, in_c, key0, key1,
            THRESHOLD, SCALE, ORDER, WIDE, ACC, BLOCK_E, BLOCK_C,
        )  # fmt: skip
        tl.store(segment_sum + (run * segments + segment) * c + channel, total, mask=in_c)

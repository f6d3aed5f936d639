"""Triton kernels of attention with ω: one gather forward, one gather backward, nothing of edges × channels.

One program takes one head of a few rows. The coefficients are computed where they are used, from the scores of the two
ends and the row's log-sum-exp; what the backward pass keeps of an entry is one number a head, the gradient of its score.
Rows of more than `limit` entries are cut into segments as in `gpu_rows`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from omegagnn.ops.gpu_elements import draw_bits
from omegagnn.ops.gpu_rows import channels_of, index_of, positive


@triton.jit
def scores_kernel(
    x, maps, out, n, c, width, RELU: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK_C: tl.constexpr
):  # fmt: skip
    """Store σ(x) @ maps, ``[R, n, width]``."""
    run = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    channel = tl.arange(0, BLOCK_C)
    place = run * n + row
    inside = (row < n)[:, None] & (channel < c)[None, :]
    tile = tl.load(x + place[:, None] * c + channel[None, :], mask=inside, other=0.0).to(ACC)
    if RELU:
        tile = positive(tile)
    for k in range(width):
        column = tl.load(maps + (run * c + channel) * width + k, mask=channel < c, other=0.0).to(ACC)
        tl.store(out + place * width + k, tl.sum(tile * column[None, :], axis=1), mask=row < n)


@triton.jit
def rows_of(rows, n, limit, rowptr, LISTED: tl.constexpr, ROWS: tl.constexpr):
    """Return the rows of this program (those listed, or all that are short), their entries and which of them exist."""
    index = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = index < n
    row = index.to(tl.int64)
    if LISTED:
        row = tl.load(rows + index, mask=inside, other=0).to(tl.int64)
    start = tl.load(rowptr + row, mask=inside, other=0)
    stop = tl.load(rowptr + row + 1, mask=inside, other=0)
    if not LISTED:
        inside = inside & (stop - start <= limit)
    return row, start, tl.where(inside, stop, start), inside


@triton.jit
def log_sum_kernel(
    rowptr, col, scores, lse, rows, count, n, heads, limit,
    SLOPE: tl.constexpr, LISTED: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK_E: tl.constexpr,
):  # fmt: skip
    """Store log Σ_j exp LeakyReLU(d_i + s_j) of each row, 0 where it is empty."""
    run, head = tl.program_id(1).to(tl.int64), tl.program_id(2)
    row, start, stop, inside = rows_of(rows, count, limit, rowptr, LISTED, ROWS)
    receiver = tl.load(scores + (run * n + row) * 2 * heads + head, mask=inside, other=0.0)
    senders = scores + run * n * 2 * heads + heads + head
    largest = tl.full([ROWS], -float("inf"), ACC)
    total = tl.zeros([ROWS], ACC)
    for offset in range(0, tl.max(stop - start), BLOCK_E):
        entry = start[:, None] + offset + tl.arange(0, BLOCK_E)[None, :]
        in_e = entry < stop[:, None]
        node = tl.load(col + entry, mask=in_e, other=0).to(tl.int64)
        score = receiver[:, None] + tl.load(senders + node * 2 * heads, mask=in_e, other=0.0)
        logit = tl.where(in_e, tl.where(score > 0, score, score * SLOPE), -float("inf"))
        highest = tl.maximum(largest, tl.max(logit, axis=1))
        anchor = tl.where(highest == -float("inf"), 0.0, highest)
        total = total * tl.exp(largest - anchor) + tl.sum(tl.exp(logit - anchor[:, None]), axis=1)
        largest = highest
    empty = total == 0  # where NaN is not, and stays
    result = tl.where(empty, 0.0, largest + tl.log(tl.where(empty, 1.0, total)))
    tl.store(lse + (run * n + row) * heads + head, result, mask=inside)


@triton.jit
def row_sum_kernel(
    rowptr, values, out, rows, count, n, entries, heads, limit,
    LISTED: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK_E: tl.constexpr,
):  # fmt: skip
    """Store Σ_e values[e, head] of each row as the first `heads` columns of ``[R, n, 2 heads]``."""
    run, head = tl.program_id(1).to(tl.int64), tl.program_id(2)
    row, start, stop, inside = rows_of(rows, count, limit, rowptr, LISTED, ROWS)
    total = tl.zeros([ROWS], ACC)
    for offset in range(0, tl.max(stop - start), BLOCK_E):
        entry = (start[:, None] + offset + tl.arange(0, BLOCK_E)[None, :]).to(tl.int64)
        value = tl.load(values + (run * entries + entry) * heads + head, mask=entry < stop[:, None], other=0.0)
        total += tl.sum(value, axis=1)
    tl.store(out + (run * n + row) * 2 * heads + head, total, mask=inside)


@triton.jit
def attend(
    start, stop, col, senders, receiver, lse, base, heads, head, c, channel, in_c, key0, key1, THRESHOLD: tl.constexpr,
    SCALE: tl.constexpr, SLOPE: tl.constexpr, RELU: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
    BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Return Σ_e ᾱ_e · σ(base[col[e]]) over the entries from start to stop."""
    total = tl.zeros([BLOCK_C], ACC)
    for first in range(start, stop, BLOCK_E):
        entry = first + tl.arange(0, BLOCK_E)
        in_e = entry < stop
        node = index_of(tl.load(col + entry, mask=in_e, other=0), WIDE)
        inside = in_e[:, None] & in_c[None, :]
        rows = tl.load(base + (node * c)[:, None] + channel[None, :], mask=inside, other=0.0).to(ACC)
        score = receiver + tl.load(senders + node * (2 * heads), mask=in_e, other=0.0)
        alpha = tl.exp(tl.where(score > 0, score, score * SLOPE) - lse)
        if THRESHOLD > 0:
            kept = draw_bits(key0, key1, entry.to(tl.int64) * heads + head) >= THRESHOLD
            alpha = tl.where(kept, alpha * SCALE, 0.0)
        if RELU:
            rows = positive(rows)
        total += tl.sum(tl.where(in_e, alpha, 0.0)[:, None] * rows, axis=0)
    return total


@triton.jit
def attention_kernel(
    rowptr, col, x, scores, lse, omega, key, out, segment_row, segment_start, segment_stop, segment_sum,
    n, c, heads, width, row_programs, segments, limit,
    THRESHOLD: tl.constexpr, SCALE: tl.constexpr, SLOPE: tl.constexpr, RELU: tl.constexpr, SPLIT: tl.constexpr,
    EVEN: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK_E: tl.constexpr,
    BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Store (1 − ω) σ(x) + ω Ŝ σ(x) of short rows, and the sums of segments of long ones."""
    program, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    blocks = tl.cdiv(width, BLOCK_C)  # of a head: coefficients are as cheap to compute again as to load
    head = tl.program_id(2) // blocks
    channel, in_c = channels_of(head * width, tl.program_id(2) % blocks, width, EVEN, BLOCK_C)
    key0, key1 = tl.load(key + 2 * run), tl.load(key + 2 * run + 1)
    base, senders = x + run * n * c, scores + run * n * 2 * heads + heads + head
    if program < row_programs:
        factor = tl.load(omega + run * c + channel, mask=in_c, other=0.0).to(ACC)
        for row in range(program * ROWS, tl.minimum(program * ROWS + ROWS, n)):
            place = run * n + row
            start, stop = tl.load(rowptr + row), tl.load(rowptr + row + 1)
            if stop - start <= limit:
                own = tl.load(x + place * c + channel, mask=in_c, other=0.0).to(ACC)
                receiver, log_sum = tl.load(scores + place * 2 * heads + head), tl.load(lse + place * heads + head)
                total = attend(
                    start, stop, col, senders, receiver, log_sum, base, heads, head, c, channel, in_c, key0, key1,
                    THRESHOLD, SCALE, SLOPE, RELU, WIDE, ACC, BLOCK_E, BLOCK_C,
                )  # fmt: skip
                if RELU:
                    own = positive(own)
                result = (1 - factor) * own + factor * total
                tl.store(out + place * c + channel, result.to(out.dtype.element_ty), mask=in_c)
    elif SPLIT:
        segment = program - row_programs
        hub = run * n + tl.load(segment_row + segment)
        begin, end = tl.load(segment_start + segment), tl.load(segment_stop + segment)
        whole = attend(
            begin, end, col, senders, tl.load(scores + hub * 2 * heads + head), tl.load(lse + hub * heads + head), base,
            heads, head, c, channel, in_c, key0, key1, THRESHOLD, SCALE, SLOPE, RELU, WIDE, ACC, BLOCK_E, BLOCK_C,
        )  # fmt: skip
        tl.store(segment_sum + (run * segments + segment) * c + channel, whole, mask=in_c)


@triton.jit
def pull_kernel(
    x, y, omega, grad, pull, n, c, heads, width, RELU: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr,
    BLOCK_C: tl.constexpr,
):  # fmt: skip
    r"""Store δ_i = Σ_c g_ic (y_ic − (1 − ω_c) σ(x_ic)) of each head: Σ_k α_ik q_ik without looking at an entry."""
    run, head = tl.program_id(1).to(tl.int64), tl.program_id(2)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    local = tl.arange(0, BLOCK_C)
    channel = head * width + local
    inside = (row < n)[:, None] & (local < width)[None, :]
    at = (run * n + row)[:, None] * c + channel[None, :]
    own = tl.load(x + at, mask=inside, other=0.0).to(ACC)
    if RELU:
        own = positive(own)
    factor = tl.load(omega + run * c + channel, mask=local < width, other=0.0).to(ACC)
    mixed = tl.load(y + at, mask=inside, other=0.0).to(ACC) - (1 - factor)[None, :] * own
    product = tl.load(grad + at, mask=inside, other=0.0).to(ACC) * mixed
    tl.store(pull + (run * n + row) * heads + head, tl.sum(product, axis=1), mask=row < n)


@triton.jit
def attend_backward(
    start, stop, col_t, order_t, scores, lse, pull, score_grad, sender, base, wanted, heads, head, c, channel, in_c,
    key0, key1, THRESHOLD: tl.constexpr, SCALE: tl.constexpr, SLOPE: tl.constexpr, WIDE: tl.constexpr,
    ACC: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Return Σ_e ᾱ_e · g[col[e]] and Σ_e of the scores' gradients, and store the latter entry by entry."""
    total, senders = tl.zeros([BLOCK_C], ACC), tl.zeros([BLOCK_E], ACC)
    for first in range(start, stop, BLOCK_E):
        place = first + tl.arange(0, BLOCK_E)
        in_e = place < stop
        node = index_of(tl.load(col_t + place, mask=in_e, other=0), WIDE)
        element = index_of(tl.load(order_t + place, mask=in_e, other=0), WIDE) * heads + head
        inside = in_e[:, None] & in_c[None, :]
        rows = tl.load(base + (node * c)[:, None] + channel[None, :], mask=inside, other=0.0).to(ACC)
        score = sender + tl.load(scores + node * (2 * heads) + head, mask=in_e, other=0.0)
        at_head = node * heads + head
        mean = tl.load(pull + at_head, mask=in_e, other=0.0)
        logit = tl.where(score > 0, score, score * SLOPE)
        alpha = tl.exp(logit - tl.load(lse + at_head, mask=in_e, other=0.0))
        asked = tl.sum(rows * wanted[None, :], axis=1)
        passed = alpha
        if THRESHOLD > 0:
            kept = draw_bits(key0, key1, element) >= THRESHOLD
            asked = tl.where(kept, asked * SCALE, 0.0)
            passed = tl.where(kept, alpha * SCALE, 0.0)
        change = tl.where(in_e, alpha * (asked - mean), 0.0)
        change = tl.where(score > 0, change, change * SLOPE)
        tl.store(score_grad + element, change, mask=in_e)
        senders += change
        total += tl.sum(tl.where(in_e, passed, 0.0)[:, None] * rows, axis=0)
    return total, tl.sum(senders, axis=0)


@triton.jit
def attention_backward_kernel(
    rowptr_t, col_t, order_t, x, scores, lse, pull, omega, grad, key, gathered, grad_scores, score_grad,
    segment_row, segment_start, segment_stop, segment_sum, segment_sender,
    n, c, heads, width, entries, row_programs, segments, limit,
    THRESHOLD: tl.constexpr, SCALE: tl.constexpr, SLOPE: tl.constexpr, RELU: tl.constexpr, SPLIT: tl.constexpr,
    EVEN: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK_E: tl.constexpr,
    BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Gather ᾱᵀ g and the scores' gradients over the rows of the transpose."""
    program, run, head = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2)
    channel, in_c = channels_of(head * width, 0, width, EVEN, BLOCK_C)
    key0, key1 = tl.load(key + 2 * run), tl.load(key + 2 * run + 1)
    factor = tl.load(omega + run * c + channel, mask=in_c, other=0.0).to(ACC)
    base = grad + run * n * c
    scores_run, lse_run, pull_run = scores + run * n * 2 * heads, lse + run * n * heads, pull + run * n * heads
    score_grad_run = score_grad + run * entries * heads
    if program < row_programs:
        for row in range(program * ROWS, tl.minimum(program * ROWS + ROWS, n)):
            start, stop = tl.load(rowptr_t + row), tl.load(rowptr_t + row + 1)
            if stop - start <= limit:
                place = run * n + row
                own = tl.load(x + place * c + channel, mask=in_c, other=0.0).to(ACC)
                if RELU:
                    own = positive(own)
                total, sender = attend_backward(
                    start, stop, col_t, order_t, scores_run, lse_run, pull_run, score_grad_run,
                    tl.load(scores + place * 2 * heads + heads + head), base, factor * own, heads, head, c, channel,
                    in_c, key0, key1, THRESHOLD, SCALE, SLOPE, WIDE, ACC, BLOCK_E, BLOCK_C,
                )  # fmt: skip
                tl.store(gathered + place * c + channel, total.to(gathered.dtype.element_ty), mask=in_c)
                tl.store(grad_scores + place * 2 * heads + heads + head, sender)
    elif SPLIT:
        segment = program - row_programs
        hub = run * n + tl.load(segment_row + segment)
        begin, end = tl.load(segment_start + segment), tl.load(segment_stop + segment)
        signal = tl.load(x + hub * c + channel, mask=in_c, other=0.0).to(ACC)
        if RELU:
            signal = positive(signal)
        whole, sent = attend_backward(
            begin, end, col_t, order_t, scores_run, lse_run, pull_run, score_grad_run,
            tl.load(scores + hub * 2 * heads + heads + head), base, factor * signal, heads, head, c, channel, in_c, key0,
            key1, THRESHOLD, SCALE, SLOPE, WIDE, ACC, BLOCK_E, BLOCK_C,
        )  # fmt: skip
        tl.store(segment_sum + (run * segments + segment) * c + channel, whole, mask=in_c)
        tl.store(segment_sender + (run * segments + segment) * heads + head, sent)


@triton.jit
def add_segments_kernel(
    long_row, long_first, sums, out, n, width, out_width, column, segments,
    ACC: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Add up the segments of each long row, ``[R, segments, width]``, into columns of ``out[R, n, out_width]``."""
    program, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    channel = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    in_c = channel < width
    row = tl.load(long_row + program).to(tl.int64)
    first, last = tl.load(long_first + program), tl.load(long_first + program + 1)
    total = tl.zeros([BLOCK_C], ACC)
    for begin in range(first, last, BLOCK_S):
        segment = begin + tl.arange(0, BLOCK_S)
        inside = (segment < last)[:, None] & in_c[None, :]
        at = (run * segments + segment.to(tl.int64))[:, None] * width + channel[None, :]
        total += tl.sum(tl.load(sums + at, mask=inside, other=0.0), axis=0)
    at = (run * n + row) * out_width + column + channel
    tl.store(out + at, total.to(out.dtype.element_ty), mask=in_c)


@triton.jit
def attention_finish_kernel(
    x, gathered, grad, maps, grad_scores, omega, grad_x, omega_part, maps_part, n, c, runs, width,
    RELU: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Mix the gathered gradient with the row's own and with what its scores ask; add up the gradients of ω and maps."""
    program, run = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    channel, k = tl.arange(0, BLOCK_C), tl.arange(0, BLOCK_K)
    in_c, in_k = channel < c, k < width
    factor = tl.load(omega + run * c + channel, mask=in_c, other=0.0).to(ACC)
    inside = in_c[:, None] & in_k[None, :]
    maps_at = (run * c + channel)[:, None] * width + k[None, :]
    table = tl.load(maps + maps_at, mask=inside, other=0.0).to(ACC)
    omega_sum, maps_sum = tl.zeros([BLOCK_C], ACC), tl.zeros([BLOCK_C, BLOCK_K], ACC)
    for offset in range(ROWS):
        row = program * ROWS + offset
        if row < n:
            at = (run * n + row) * c + channel
            own = tl.load(x + at, mask=in_c, other=0.0).to(ACC)
            incoming = tl.load(grad + at, mask=in_c, other=0.0).to(ACC)
            total = tl.load(gathered + at, mask=in_c, other=0.0).to(ACC)
            asked = tl.load(grad_scores + (run * n + row) * width + k, mask=in_k, other=0.0)
            signal = positive(own) if RELU else own
            omega_sum += signal * (total - incoming)
            maps_sum += signal[:, None] * asked[None, :]
            result = (1 - factor) * incoming + factor * total + tl.sum(table * asked[None, :], axis=1)
            if RELU:
                result = tl.where(own > 0, result, 0.0)
            tl.store(grad_x + at, result.to(grad_x.dtype.element_ty), mask=in_c)
    tl.store(omega_part + (program * runs + run) * c + channel, omega_sum, mask=in_c)
    part = (program * runs + run) * c * width
    tl.store(maps_part + part + channel[:, None] * width + k[None, :], maps_sum, mask=inside)

"""The ops in Triton, for CUDA: the functions of `reference`, each a few kernels; see `gpu_rows` and `gpu_attention`.

Features are float32, float64, bfloat16 or float16 and summed in float32 (float64 for float64); ω, the entries of S and the
maps of attention keep their own dtype. No atomics: the same bits every time.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from omegagnn.ops import reference
from omegagnn.ops.gpu_attention import (
    add_segments_kernel,
    attention_backward_kernel,
    attention_finish_kernel,
    attention_kernel,
    log_sum_kernel,
    pull_kernel,
    row_sum_kernel,
    scores_kernel,
)
from omegagnn.ops.gpu_elements import adam_kernel, dropout_kernel, keep_kernel, key_kernel
from omegagnn.ops.gpu_plan import Plan, plan_of, rows_a_program
from omegagnn.ops.gpu_products import column_sum_kernel, linear_backward_kernel
from omegagnn.ops.gpu_rows import finish_long_rows_kernel, propagate_kernel, sparse_kernel
from omegagnn.ops.gpu_tiles import TILES
from omegagnn.ops.random import drop_threshold

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
TILE = 4096  # numbers that a program holds at once
MOST_CHANNELS = 512  # of a row that a program finishes at once
LONG_BLOCK = 1024
MOST_SUMMED, CHUNK = 4096, 512  # rows that are added up in one step; of a chunk where they are more
# Where both gradients of a map are made at once: elsewhere the library's two products are quicker.
WIDEST_MAP, MOST_SHARED_ROWS, FEW_ROWS = 64, 2**15, 2**12

edge_dot = reference.edge_dot


def _sums(dtype: torch.dtype) -> tuple[Any, torch.dtype]:
    """Return the type in which features of a dtype are added up, for Triton and for torch."""
    return (tl.float64, torch.float64) if dtype == torch.float64 else (tl.float32, torch.float32)


def _tile(kind: str, width: int, dtype: torch.dtype, few: bool, whole: bool = False) -> dict[str, Any]:
    """Return the measured tile for rows of `width` channels; `whole` ones take them all at once, as scores of attention do.

    Of fewer channels than were measured more entries are read at once, of more (or wider ones) fewer.
    """
    channels, entries, warps = TILES[f"{kind} {'few' if few else min(4, dtype.itemsize)}"]
    block = triton.next_power_of_2(width) if whole else min(channels, triton.next_power_of_2(width))
    elements = channels * entries * 4 // max(4, dtype.itemsize)
    return {
        "BLOCK_C": block,
        "BLOCK_E": max(2, min(32, elements // block)),
        "EVEN": width % block == 0,
        "num_warps": warps,
    }


def _wide(*sizes: int) -> bool:
    """Return whether numbers up to the largest of these need 64 bits."""
    return max(sizes) >= 2**31


def _dropping(p: float) -> dict[str, float]:
    return {"THRESHOLD": drop_threshold(p), "SCALE": 1 / (1 - p)} if p > 0 else {"THRESHOLD": 0, "SCALE": 1.0}


def _column_sums(parts: Tensor) -> Tensor:
    """Return the sum over the first axis of ``[P, ...]``, which holds float32 or float64: of many in two steps."""
    rows, columns = parts.size(0), math.prod(parts.shape[1:])
    if rows > MOST_SUMMED:
        parts = _sums_of_chunks(parts, rows, columns, CHUNK, {"BLOCK_R": 128, "BLOCK_C": 32, "num_warps": 4})
        rows = parts.size(0)
    block = min(1024, triton.next_power_of_2(rows))
    tile = {"BLOCK_R": block, "BLOCK_C": 8, "num_warps": 8 if block > 256 else 4}
    return _sums_of_chunks(parts, rows, columns, rows, tile)[0]


def _sums_of_chunks(parts: Tensor, rows: int, columns: int, chunk: int, tile: dict[str, int]) -> Tensor:
    chunks = triton.cdiv(rows, chunk)
    out = parts.new_empty(chunks, *parts.shape[1:])
    column_sum_kernel[(triton.cdiv(columns, tile["BLOCK_C"]), chunks)](
        parts, out, rows, columns, chunk, ACC=_sums(parts.dtype)[0], **tile
    )
    return out


def _segments(plan: Plan, runs: int, channels: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.empty(runs, plan.segments, channels, dtype=dtype, device=device)


def _propagate(
    rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor, omega: Tensor | None, grad: Tensor | None, relu: bool,
    need_omega: bool,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Run `propagate_kernel` forward, or backward where there is a gradient."""
    runs, n, c = x.shape
    out = torch.empty_like(x)
    if not x.numel():
        return out, torch.zeros_like(omega) if need_omega and omega is not None else None
    plan, rows, (acc, total) = plan_of(rowptr), rows_a_program(n, runs), _sums(x.dtype)
    shape = _tile("rows" if grad is None else "rows_backward", c, x.dtype, few=rows == 1)
    if need_omega:
        rows = max(2, rows)  # half as many partial sums to add up
    programs, blocks = triton.cdiv(n, rows), triton.cdiv(c, shape["BLOCK_C"])
    part = x.new_empty(programs + plan.long_rows, runs, c, dtype=total) if need_omega else out
    sums = _segments(plan, runs, c, total, x.device)
    omega_or_x, grad_or_x = x if omega is None else omega, x if grad is None else grad
    flags: dict[str, Any] = {"MIX": omega is not None, "BACKWARD": grad is not None, "RELU": relu, "OMEGA": need_omega}
    split = plan.long_rows > 0
    propagate_kernel[(programs + plan.segments, runs, blocks)](
        rowptr, col, weight, x, omega_or_x, grad_or_x, out, part, plan.segment_start, plan.segment_stop, sums,
        n, c, runs, programs, plan.segments, plan.limit, **flags, SPLIT=split, WIDE=_wide(n * c),
        ACC=acc, ROWS=rows, **shape,
    )  # fmt: skip
    if split:
        finish_long_rows_kernel[(plan.long_rows, runs, blocks)](
            plan.long_row, plan.long_first, x, omega_or_x, grad_or_x, out, part, sums, n, c, runs, plan.segments,
            programs, **flags, ACC=acc, BLOCK_S=16, BLOCK_C=shape["BLOCK_C"],
        )  # fmt: skip
    return out, _column_sums(part) if need_omega else None


def propagate(rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor, omega: Tensor | None, relu: bool) -> Tensor:
    """See `reference.propagate`."""
    return _propagate(rowptr, col, weight, x, omega, None, relu, need_omega=False)[0]


def propagate_backward(
    rowptr_t: Tensor, col_t: Tensor, weight_t: Tensor, x: Tensor, omega: Tensor, grad: Tensor, relu: bool,
    need_omega: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """See `reference.propagate_backward`."""
    grad_x, grad_omega = _propagate(rowptr_t, col_t, weight_t, x, omega, grad, relu, need_omega)
    return grad_x, torch.zeros_like(omega) if grad_omega is None else grad_omega.to(omega.dtype)


def _listed(plan: Plan, n: int, row_block: int) -> list[tuple[Tensor, int, dict[str, Any]]]:
    """Return the launches over rows: one for the short rows, one for the long ones where there are any."""
    short = {"LISTED": False, "ROWS": row_block, "BLOCK_E": 16, "num_warps": 4}
    launches: list[tuple[Tensor, int, dict[str, Any]]] = [(plan.long_row, n, short)]
    if plan.long_rows:
        launches.append(
            (plan.long_row, plan.long_rows, {"LISTED": True, "ROWS": 1, "BLOCK_E": LONG_BLOCK, "num_warps": 4})
        )
    return launches


def attention(
    rowptr: Tensor, col: Tensor, x: Tensor, maps: Tensor, omega: Tensor, slope: float, p: float, key: Tensor, relu: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """See `reference.attention`."""
    (runs, n, c), heads = x.shape, maps.size(2) // 2
    acc, total = _sums(x.dtype)
    y, scores = torch.empty_like(x), x.new_empty(runs, n, 2 * heads, dtype=total)
    lse = x.new_empty(runs, n, heads, dtype=total)
    if not x.numel():
        return y, scores.zero_(), lse.zero_()
    plan, block = plan_of(rowptr), triton.next_power_of_2(c)
    tile = max(1, min(32, 2 * TILE // block))
    scores_kernel[(triton.cdiv(n, tile), runs)](x, maps, scores, n, c, 2 * heads, relu, acc, tile, block)
    for rows, count, options in _listed(plan, n, 32):
        log_sum_kernel[(triton.cdiv(count, options["ROWS"]), runs, heads)](
            rowptr, col, scores, lse, rows, count, n, heads, plan.limit, SLOPE=slope, ACC=acc, **options
        )
    per_program = rows_a_program(n, runs * heads)
    shape = _tile("attend", c // heads, x.dtype, few=per_program == 1)
    programs, blocks = triton.cdiv(n, per_program), triton.cdiv(c // heads, shape["BLOCK_C"])
    sums = _segments(plan, runs, c, total, x.device)
    split = plan.long_rows > 0
    attention_kernel[(programs + plan.segments, runs, heads * blocks)](
        rowptr, col, x, scores, lse, omega, key, y, plan.segment_row, plan.segment_start, plan.segment_stop, sums,
        n, c, heads, c // heads, programs, plan.segments, plan.limit, **_dropping(p), SLOPE=slope, RELU=relu, SPLIT=split,
        WIDE=_wide(n * c), ACC=acc, ROWS=per_program, **shape,
    )  # fmt: skip
    if split:
        whole = min(MOST_CHANNELS, triton.next_power_of_2(c))
        finish_long_rows_kernel[(plan.long_rows, runs, triton.cdiv(c, whole))](
            plan.long_row, plan.long_first, x, omega, x, y, y, sums, n, c, runs, plan.segments, programs,
            MIX=True, BACKWARD=False, RELU=relu, OMEGA=False, ACC=acc, BLOCK_S=16, BLOCK_C=whole,
        )  # fmt: skip
    return y, scores, lse


def attention_backward(
    rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, order_t: Tensor, x: Tensor, y: Tensor, maps: Tensor,
    scores: Tensor, lse: Tensor, omega: Tensor, grad: Tensor, slope: float, p: float, key: Tensor, relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """See `reference.attention_backward`."""
    (runs, n, c), heads = x.shape, maps.size(2) // 2
    acc, total = _sums(x.dtype)
    grad_x = torch.empty_like(x)
    if not x.numel():
        return grad_x, torch.zeros_like(maps), torch.zeros_like(omega)
    plan, plan_t, entries = plan_of(rowptr), plan_of(rowptr_t), col.numel()
    pull, grad_scores = torch.empty_like(lse), torch.empty_like(scores)
    score_grad = x.new_empty(runs, entries, heads, dtype=total)
    block = triton.next_power_of_2(c // heads)
    tile = max(1, min(32, 2 * TILE // block))
    pull_kernel[(triton.cdiv(n, tile), runs, heads)](
        x, y, omega, grad, pull, n, c, heads, c // heads, relu, acc, tile, block
    )
    per_program = rows_a_program(n, runs * heads)
    shape = _tile("attend_backward", c // heads, x.dtype, few=per_program == 1, whole=True)
    programs = triton.cdiv(n, per_program)
    sums = _segments(plan_t, runs, c, total, x.device)
    sender = _segments(plan_t, runs, heads, total, x.device)
    attention_backward_kernel[(programs + plan_t.segments, runs, heads)](
        rowptr_t, col_t, order_t, x, scores, lse, pull, omega, grad, key, grad_x, grad_scores, score_grad,
        plan_t.segment_row, plan_t.segment_start, plan_t.segment_stop, sums, sender,
        n, c, heads, c // heads, entries, programs, plan_t.segments, plan_t.limit,
        **_dropping(p), SLOPE=slope, RELU=relu, SPLIT=plan_t.long_rows > 0,
        WIDE=_wide(n * c, entries * heads), ACC=acc, ROWS=per_program, **shape,
    )  # fmt: skip
    if plan_t.long_rows:
        for segment_sums, out, column in ((sums, grad_x, 0), (sender, grad_scores, heads)):
            width = segment_sums.size(2)
            block = min(MOST_CHANNELS, triton.next_power_of_2(width))
            add_segments_kernel[(plan_t.long_rows, runs, triton.cdiv(width, block))](
                plan_t.long_row, plan_t.long_first, segment_sums, out, n, width, out.size(2), column, plan_t.segments,
                ACC=acc, BLOCK_S=16, BLOCK_C=block,
            )  # fmt: skip
    for rows, count, options in _listed(plan, n, 32):
        row_sum_kernel[(triton.cdiv(count, options["ROWS"]), runs, heads)](
            rowptr, score_grad, grad_scores, rows, count, n, entries, heads, plan.limit, ACC=acc, **options
        )
    per_program = 4 * rows_a_program(n, runs)
    programs = triton.cdiv(n, per_program)
    omega_part = x.new_empty(programs, runs, c, dtype=total)
    maps_part = x.new_empty(programs, runs, c, 2 * heads, dtype=total)
    attention_finish_kernel[(programs, runs)](
        x, grad_x, grad, maps, grad_scores, omega, grad_x, omega_part, maps_part, n, c, runs, 2 * heads,
        RELU=relu, ACC=acc, ROWS=per_program, BLOCK_C=triton.next_power_of_2(c),
        BLOCK_K=triton.next_power_of_2(2 * heads), num_warps=4,
    )  # fmt: skip
    return grad_x, _column_sums(maps_part).to(maps.dtype), _column_sums(omega_part).to(omega.dtype)


def _sparse(
    rowptr: Tensor, col: Tensor, value: Tensor, order: Tensor | None, factor: Tensor, p: float, key: Tensor
) -> Tensor:
    runs, f, c = factor.shape
    n = rowptr.numel() - 1
    out = factor.new_empty(runs, n, c)
    if not out.numel():
        return out
    plan, rows, (acc, total) = plan_of(rowptr), rows_a_program(n, runs), _sums(factor.dtype)
    shape = _tile("rows", c, factor.dtype, few=rows == 1)
    programs, blocks = triton.cdiv(n, rows), triton.cdiv(c, shape["BLOCK_C"])
    sums = _segments(plan, runs, c, total, factor.device)
    sparse_kernel[(programs + plan.segments, runs, blocks)](
        rowptr, col, value, col if order is None else order, factor, key, out, plan.segment_start, plan.segment_stop,
        sums, n, f, c, programs, plan.segments, plan.limit, **_dropping(p), ORDER=order is not None,
        SPLIT=plan.long_rows > 0, WIDE=_wide(f * c), ACC=acc, ROWS=rows, **shape,
    )  # fmt: skip
    if plan.long_rows:
        finish_long_rows_kernel[(plan.long_rows, runs, blocks)](
            plan.long_row, plan.long_first, out, out, out, out, out, sums, n, c, runs, plan.segments, programs,
            MIX=False, BACKWARD=False, RELU=False, OMEGA=False, ACC=acc, BLOCK_S=16, BLOCK_C=shape["BLOCK_C"],
        )  # fmt: skip
    return out


def sparse_linear(rowptr: Tensor, col: Tensor, value: Tensor, weight: Tensor, p: float, key: Tensor) -> Tensor:
    """See `reference.sparse_linear`."""
    return _sparse(rowptr, col, value, None, weight, p, key)


def sparse_linear_backward(
    rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, order_t: Tensor, value: Tensor, grad: Tensor,
    p: float, key: Tensor,
) -> Tensor:  # fmt: skip
    """See `reference.sparse_linear_backward`."""
    return _sparse(rowptr_t, col_t, value, order_t, grad, p, key)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """See `reference.linear`."""
    return torch.bmm(x, weight)


def linear_backward(x: Tensor, weight: Tensor, grad: Tensor, need_x: bool) -> tuple[Tensor, Tensor]:
    """See `reference.linear_backward`: where the library's two products are slow, one kernel makes both."""
    (runs, n, c), d = x.shape, weight.size(2)
    small = max(c, d) <= WIDEST_MAP and runs * n <= MOST_SHARED_ROWS
    if not (need_x and small and x.numel() and x.dtype == torch.float32):
        return reference.linear_backward(x, weight, grad, need_x)
    rows = 32 if runs * n <= FEW_ROWS else 64
    programs = triton.cdiv(n, rows)
    grad_x, part = x.new_empty(x.shape), x.new_empty(programs, runs, c, d)
    widths = {name: max(16, triton.next_power_of_2(size)) for name, size in (("BLOCK_C", c), ("BLOCK_D", d))}
    linear_backward_kernel[(programs, runs)](
        x.contiguous(), weight.contiguous(), grad.contiguous(), grad_x, part, n, c, d, runs, ACC=tl.float32, ROWS=rows,
        num_warps=4, **widths,
        # Three products of tf32 parts have the error of one in float32, and matrix units make them.
        PRECISION="tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3",
    )  # fmt: skip
    return grad_x, _column_sums(part)


def dropout(x: Tensor, p: float, key: Tensor) -> Tensor:
    """See `reference.dropout`."""
    out, size = torch.empty_like(x), math.prod(x.shape[1:])
    if x.numel():
        dropout_kernel[(triton.cdiv(size, 1024), x.size(0))](x, key, out, size, **_dropping(p), BLOCK=1024)
    return out


def draw_key(seeds: Tensor, step: Tensor, place: int) -> Tensor:
    """See `reference.draw_key`."""
    out = torch.empty(seeds.numel(), 2, dtype=torch.int64, device=seeds.device)
    key_kernel[(triton.cdiv(seeds.numel(), 128),)](seeds, step, out, seeds.numel(), place, BLOCK=128)
    return out


def adam_(
    param: Tensor, grad: Tensor, average: Tensor, square: Tensor, rates: Tensor, decays: Tensor, correction: Tensor,
    active: Tensor, blocks: Tensor, largest: int, beta1: float, beta2: float, eps: float,
) -> None:  # fmt: skip
    """See `reference.adam_`."""
    acc, _ = _sums(param.dtype)
    adam_kernel[(blocks.size(1),)](
        param, grad, average, square, rates, decays, correction, active, blocks, blocks.size(1), active.numel(),
        BETA1=beta1, BETA2=beta2, EPS=eps, ACC=acc, BLOCK=triton.next_power_of_2(largest),
    )  # fmt: skip


def keep_(kept: Tensor, source: Tensor, chosen: Tensor, blocks: Tensor, largest: int) -> None:
    """See `reference.keep_`."""
    keep_kernel[(blocks.size(1),)](kept, source, chosen, blocks, blocks.size(1), BLOCK=triton.next_power_of_2(largest))

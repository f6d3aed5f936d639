"""How the rows of a sparse matrix are dealt to programs: short rows a few at a time, long ones in segments."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

# A row that one program takes whole must not outlast the others: on a graph of many entries a hub among hubs would. A graph of
# few is done before a second kernel, which adds up segments, would have begun.
LIMIT_OF_MANY, LIMIT_OF_FEW = 128, 256
MANY_ENTRIES = 10**6
MOST_ROWS, PROGRAMS_WANTED = 8, 16384

_plans: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


@dataclass(frozen=True)
class Plan:
    """Rows of more than `limit` entries and their segments; the segments of long row k are ``first[k] … first[k + 1]``."""

    limit: int
    long_row: Tensor
    long_first: Tensor
    segment_row: Tensor
    segment_start: Tensor
    segment_stop: Tensor

    @property
    def long_rows(self) -> int:
        """Number of long rows."""
        return self.long_row.numel()

    @property
    def segments(self) -> int:
        """Number of segments of all long rows."""
        return self.segment_row.numel()


def plan_of(rowptr: Tensor) -> Plan:
    """Return the plan of a matrix, made once and kept as long as its `rowptr` lives."""
    plan: Plan | None = _plans.get(rowptr)
    if plan is None:
        plan = make_plan(rowptr)
        _plans[rowptr] = plan
    return plan


def make_plan(rowptr: Tensor, limit: int | None = None) -> Plan:
    """Cut rows of more than `limit` entries into segments of that many."""
    counts = rowptr.diff()
    if limit is None:
        limit = LIMIT_OF_MANY if int(rowptr[-1]) > MANY_ENTRIES else LIMIT_OF_FEW
    long_row = (counts > limit).nonzero().squeeze(1)
    pieces = (counts[long_row] + limit - 1) // limit
    first = torch.zeros(long_row.numel() + 1, dtype=torch.int64, device=rowptr.device)
    first[1:] = pieces.cumsum(0)
    owner = torch.repeat_interleave(torch.arange(long_row.numel(), device=rowptr.device), pieces)
    rank = torch.arange(owner.numel(), device=rowptr.device) - first[:-1][owner]
    row = long_row[owner]
    start = rowptr[row].long() + rank * limit
    stop = torch.minimum(start + limit, rowptr[row + 1].long())
    return Plan(limit, long_row, first, row, start, stop)


def rows_a_program(rows: int, runs: int) -> int:
    """Return how many rows one program takes: enough programs to fill the device, few partial sums to add up."""
    per_program = rows * runs // PROGRAMS_WANTED
    return min(MOST_ROWS, 1 << max(0, per_program.bit_length() - 1))

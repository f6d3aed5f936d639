"""The compiled CPU kernels of `omegagnn.ops.cpu` for cross-entropy; see `omegagnn.ops.cpu_kernels` for their conventions."""

from __future__ import annotations

import numpy as np
from numba import njit

from omegagnn.ops.cpu_disk import kept_on_disk
from omegagnn.ops.cpu_kernels import CHUNK, Address, Pointer, compiled, inlined
from omegagnn.ops.cpu_lanes import at, one_by_one, pointer, put, rounded


@njit(**inlined)
def _log_sum(like: float, logits: Pointer, begin: int, classes: int) -> float:
    """Return the log-sum-exp of a row."""
    largest, sum_ = at(logits, begin), rounded(like, 0)
    for k in range(1, classes):
        one_by_one()
        largest = max(largest, at(logits, begin + k))
    for k in range(classes):
        one_by_one()
        sum_ += np.exp(at(logits, begin + k) - largest)
    return largest + np.log(sum_)


@kept_on_disk
@njit(**compiled)
def cross_entropy(
    like: float,
    logits: Address,
    weights: Address,
    labels: Address,
    sums: Address,
    apart: int,
    runs: int,
    parts: int,
    rows: int,
    classes: int,
    begin: int,
    end: int,
) -> None:
    """Add each row's cross-entropy times its weight in each part to sums ``[R, chunks, S]``; rows without weight are skipped.

    The weights ``[R, S, n]`` of two runs lie `apart` (0: shared by all). A label that is no class makes the sum NaN.
    """
    values, shares, classes_of = pointer(logits, like), pointer(weights, like), pointer(labels, 0)
    out, chunks = pointer(sums, 0.0), -(-rows // CHUNK)
    for run in range(runs):
        for row in range(begin, end):
            known, loss = False, rounded(like, 0)
            for part in range(parts):
                share = at(shares, run * apart + part * rows + row)
                if share != 0:
                    if not known:
                        place = (run * rows + row) * classes
                        label = max(at(classes_of, row), 0)
                        own = at(values, place + label) if label < classes else rounded(like, np.nan)
                        loss = _log_sum(like, values, place, classes) - own
                        known = True
                    sum_ = (run * chunks + row // CHUNK) * parts + part
                    put(out, sum_, at(out, sum_) + np.float64(loss) * np.float64(share))


@kept_on_disk
@njit(**compiled)
def cross_entropy_backward(
    like: float,
    logits: Address,
    weights: Address,
    grad: Address,
    out: Address,
    labels: Address,
    apart: int,
    runs: int,
    parts: int,
    rows: int,
    classes: int,
    begin: int,
    end: int,
) -> None:
    """Write (softmax − one-hot) times what reaches each row to out; `grad` is ``[R, S]``."""
    values, shares, classes_of = pointer(logits, like), pointer(weights, like), pointer(labels, 0)
    pulls, wanted = pointer(grad, like), pointer(out, like)
    for run in range(runs):
        for row in range(begin, end):
            place, pull = (run * rows + row) * classes, rounded(like, 0)
            for part in range(parts):
                share = at(shares, run * apart + part * rows + row)
                if share != 0:
                    pull += share * at(pulls, run * parts + part)
            if pull != 0:
                sum_ = _log_sum(like, values, place, classes)
                for k in range(classes):
                    one_by_one()
                    put(wanted, place + k, pull * np.exp(at(values, place + k) - sum_))
                label = max(at(classes_of, row), 0)
                if label < classes:
                    put(wanted, place + label, at(wanted, place + label) - pull)
            else:
                for k in range(classes):
                    put(wanted, place + k, rounded(like, 0))

"""`EpochRecord`: what the engine tells of one epoch."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of a batch, on the CPU: who trained ``[R]``, loss and score of each part ``[R, 3, 2]``, mean ω ``[R]``."""

    epoch: int
    trained: Tensor
    metrics: Tensor
    omega: Tensor | None

"""What the studies share: a plan is trained once on the CPU, and validation is read where the honest rule chooses."""

from __future__ import annotations

import torch

from omegagnn.training import once
from omegagnn.training.engine import Plan
from omegagnn.training.fit import Result
from omegagnn.training.journal import Journal


def trained_once(plan: Plan, journal: Journal, at_once: int | None = None) -> Result:
    """Return the result of a plan, taken from the journal as far as it is there."""
    return once.trained_once(plan, journal, torch.device("cpu"), at_once=at_once)


def validation_scores(result: Result) -> list[float]:
    """Return the validation accuracy (per cent) of each member at the epoch that the honest rule chooses."""
    epochs = result.outcome("honest").epochs
    return [100 * float(curve.validation.score[k - 1]) for curve, k in zip(result.curves, epochs, strict=True)]

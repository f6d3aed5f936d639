"""Train a plan once: what a journal holds already is taken from it, what was broken off goes on."""

from __future__ import annotations

import json
from typing import Any

import torch

from omegagnn.training.engine import Plan, Trainer
from omegagnn.training.fit import Result
from omegagnn.training.journal import Journal


def trained_once(plan: Plan, journal: Journal, at_once: int | None = None) -> Result:
    """Return the result of a plan; a run is the same where configuration, seeds, splits and settings are.

    `at_once` is how many members train at once (all that fit, if None): many thin runs are quicker a few at a time, in the cache.
    """
    before = next((row for row in journal.runs() if _is_run_of(plan, row, journal)), None)
    if before is not None and before["status"] == "done":
        return Result(journal, before["run"])
    device = torch.device("cpu")
    if before is None:
        trainer = Trainer.start(plan, journal, device, at_once=at_once)
    else:
        trainer = Trainer.resume(before["run"], journal, plan.dataset, device)
    trainer.train()
    return Result(journal, trainer.run_name)


def validation_scores(result: Result) -> list[float]:
    """Return the validation accuracy (per cent) of each member at the epoch that the honest rule chooses."""
    epochs = result.outcome("honest").epochs
    return [100 * float(curve.validation.score[k - 1]) for curve, k in zip(result.curves, epochs, strict=True)]


def _is_run_of(plan: Plan, row: dict[str, Any], journal: Journal) -> bool:
    if row["config_hash"] != plan.config.hash or row["status"] == "failed":
        return False
    wanted = [
        (seed, split.hash, plan.settings_of(k))
        for k, (seed, split) in enumerate(zip(plan.seeds, plan.splits, strict=True))
    ]
    found = [(m["seed"], m["split_hash"], json.loads(m["settings"])) for m in journal.members(row["run"])]
    return found == wanted

"""Train a plan once: what a journal holds already is taken from it, what was broken off goes on."""

from __future__ import annotations

import json
from typing import Any

import torch

from omegagnn.training.engine import Plan, Trainer
from omegagnn.training.fit import Result
from omegagnn.training.journal import Journal


def run_of(plan: Plan, journal: Journal) -> dict[str, Any] | None:
    """Return the newest run of a plan that is done or can go on; None where there is none.

    A run is of a plan where configuration, seeds, splits (by their hashes) and the members' own settings are the same.
    """
    wanted = [
        (seed, split.hash, plan.settings_of(k))
        for k, (seed, split) in enumerate(zip(plan.seeds, plan.splits, strict=True))
    ]
    for row in journal.runs_of(plan.config.hash):
        members = journal.members(row["run"])
        found = [(m["seed"], m["split_hash"], json.loads(m["settings"])) for m in members]
        if row["status"] != "failed" and found == wanted:
            return row
    return None


def trained_once(plan: Plan, journal: Journal, device: torch.device, fresh: bool = False, **options: Any) -> Result:
    """Return the result of a plan, training what is missing of it; `fresh` overlooks what there is.

    `options` are `Trainer`'s: `at_once` says how many members train at once (many thin runs are quicker a few at a time on a
    CPU, in its cache), `progress` is told.
    """
    before = None if fresh else run_of(plan, journal)
    if before is not None and before["status"] == "done":
        return Result(journal, before["run"])
    if before is None:
        trainer = Trainer.start(plan, journal, device, **options)
    else:
        trainer = Trainer.resume(before["run"], journal, plan.dataset, device, **options)
    trainer.train()
    return Result(journal, trainer.run_name)


__all__ = ["run_of", "trained_once"]

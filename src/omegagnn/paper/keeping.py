"""What is kept of a finished training: its members by every rule, and what figures need of its networks.

A record holds plain numbers only. Its rows are the raw ones: for each member the epoch that a rule chose, with validation loss,
validation score and test score there; every mean and interval of the tables is computed from them (`omegagnn.paper.outcome`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from omegagnn.analysis import dirichlet_energy, gat_energy, trace
from omegagnn.data.dataset import Dataset
from omegagnn.nn.stacked import StackedRuns
from omegagnn.paper.trainings import Training
from omegagnn.training.batch import DTYPES
from omegagnn.training.config import RunConfig
from omegagnn.training.fit import Result
from omegagnn.training.presets.preset import differences
from omegagnn.training.protocol import NotApplicable, protocol
from omegagnn.training.tasks import make_task

BEST_TEST = "authors-tu"  # always kept: the optimism gap is measured against it


def record_of(training: Training, result: Result, dataset: Dataset) -> dict[str, Any]:
    """Return what is kept of a training, ready for JSON."""
    row, members = result.row, result.journal.members(result.run)
    splits = list(dict.fromkeys((member["split"], member["split_hash"][:16]) for member in members))
    places = {digest: place for place, (_, digest) in enumerate(splits)}
    choices = [dict(choice) for choice in training.choices]
    found = {
        "values": differences(RunConfig(), training.config),
        "config_hash": row["config_hash"],
        "preset": row["preset"],
        "preset_hash": row["preset_hash"],
        "command": training.command,
        "run": row["run"],
        "created": row["created"],
        "seconds": round(row["seconds"], 2),
        "peak_mib": None if row["peak_mib"] is None else round(row["peak_mib"], 1),
        "parameters": row["parameters"],
        "environment": json.loads(row["environment"]),
        "note": row["note"],
        "choices": choices,
        "splits": splits,
        # split, seed, choice, last epoch, whether no more epochs were allowed
        "members": [
            [
                places[member["split_hash"][:16]],
                member["seed"],
                choices.index(json.loads(member["settings"])),
                member["stopped"],
                member["complete"],
            ]
            for member in members
        ],
        "rules": {rule: _rows(result, rule) for rule in dict.fromkeys(("honest", BEST_TEST, *training.rules))},
    }
    if row["status"] == "done" and (result.folder / "model.safetensors").exists():
        found |= {name: KEEPERS[name](result, dataset) for name in ("omega", *training.also)}
    else:
        found |= dict.fromkeys(training.also)
    return found


def lacks(record: dict[str, Any], training: Training) -> bool:
    """Return whether a record was made before the training was asked for something more."""
    return any(rule not in record["rules"] for rule in training.rules) or any(n not in record for n in training.also)


def _rows(result: Result, rule: str) -> list[list[float | int | None]] | str:
    """Return epoch, validation loss, validation score, test score of each member; or why the rule has none."""
    try:
        outcome = protocol(rule).outcome(result.curves)
    except NotApplicable as reason:
        return str(reason)
    rows = []
    for curve, epoch, score in zip(result.curves, outcome.epochs.tolist(), outcome.scores.tolist(), strict=True):
        validation = curve.validation
        values = (float(validation.loss[epoch - 1]), float(validation.score[epoch - 1]), score)
        rows.append([epoch, *(_rounded(value) for value in values)])
    return rows


def _omega(result: Result, _: Dataset) -> dict[str, Any] | None:
    """Return the mean ω of each member and of each layer, at the honest epoch."""
    if not result.config.model.name.startswith("omega-") or isinstance(result.config.model.omega, float):
        return None
    layers = torch.stack([_learnt(result, member) for member in range(len(result.curves))])  # [R, L, 1 or c]
    return {
        "members": [_rounded(value) for value in layers.mean((1, 2)).tolist()],
        "layers": [_rounded(value) for value in layers.mean((0, 2)).tolist()],
        "lowest": _rounded(float(layers.min())),
        "highest": _rounded(float(layers.max())),
    }


def _map(result: Result, _: Dataset) -> list[list[float | None]]:
    """Return ω of the first member, a row of channels for each layer."""
    return [[_rounded(value, 4) for value in layer] for layer in _learnt(result, 0).tolist()]


def _energy(result: Result, dataset: Dataset) -> list[float | None]:
    """Return the energy of f⁰ … f^L in the first member's network, after training."""
    training, model = result.config.training, result.config.model
    dtype = DTYPES[training.precision]
    task = make_task(dataset, result.config.data, [], dtype, training.batch_size)
    net: nn.Module = result.network(0).to(dtype)
    net = net.extract(0) if isinstance(net, StackedRuns) else net
    energy = gat_energy if model.name == "omega-gat" else dirichlet_energy
    seen = trace(
        net, task.features, task.graph, layers=["convs.*", "closing"], side="input", energy=energy, rank_limit=0
    )
    return [_rounded(float(layer.energy.mean())) for layer in seen.layers]


def _learnt(result: Result, member: int) -> torch.Tensor:
    omega = result.network(member).omega
    assert isinstance(omega, torch.Tensor)
    return omega.detach()[:, 0].double()


def _rounded(value: float, digits: int = 6) -> float | None:
    """Return a number as JSON has it: `digits` significant ones, None for what is not finite."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124  (NaN is not itself)
        return None
    return float(f"{value:.{digits}g}")


KEEPERS: dict[str, Callable[[Result, Dataset], Any]] = {"omega": _omega, "map": _map, "energy": _energy}

__all__ = ["BEST_TEST", "lacks", "record_of"]

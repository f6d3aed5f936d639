"""What a report shows of a run, gathered once: scores, curves, ω, diagnosis, embedding, the slowest parts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from omegagnn.analysis import Diagnosis, principal_components
from omegagnn.data.audit import Audit, audit
from omegagnn.data.dataset import Dataset
from omegagnn.errors import WrongUse
from omegagnn.report.slowest import Part, slowest_parts
from omegagnn.training.batch import DTYPES, RunBatch
from omegagnn.training.diagnosing import diagnose_run
from omegagnn.training.environment import one_thread_where_it_wins
from omegagnn.training.evaluation import CPU, Evaluation, own_data, splits_of_members
from omegagnn.training.fit import Result
from omegagnn.training.metrics import Summary
from omegagnn.training.protocol import PROTOCOLS, NotApplicable
from omegagnn.training.repeat import plan_of, preset_of, repeat_command
from omegagnn.training.tasks import make_task

MOST_POINTS = 3000  # that are drawn of an embedding
CURVES = ("train_loss", "val_loss", "test_loss", "train_score", "val_score", "test_score", "omega")


@dataclass(frozen=True)
class Embedding:
    """Two principal components of what enters the closing map of a member, for some of the items."""

    places: Tensor  # [items, 2]
    shares: tuple[float, float]  # of the variance
    labels: Tensor  # the class of each item, -1 where unknown
    right: Tensor  # whether the member gives that class
    items: int  # of which these are some


@dataclass(frozen=True)
class Curves:
    """Mean, lowest and highest of a recorded quantity over the members that still trained, by epoch from 1."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False)
class RunFindings:
    """Everything about one run that its report shows."""

    result: Result
    dataset: Dataset
    audit: Audit
    evaluation: Evaluation
    diagnosis: Diagnosis
    rules: dict[str, Summary | str]  # or why a rule does not apply
    curves: dict[str, Curves]
    omega_map: Tensor | None  # [layers, channels] of member 0
    embedding: Embedding | None
    slowest: tuple[Part, ...]
    epoch_milliseconds: float
    repeat: str | None
    environment: dict[str, Any]


def gather(result: Result, data_root: Path | str | None = None) -> RunFindings:
    """Look at a run from all sides; its data set must be there and what it was."""
    if result.row["status"] != "done":
        raise WrongUse(
            f"Run {result.run} is {result.row['status']}, not done: finish it with `omegagnn train --resume {result.run}`."
        )
    dataset = own_data(result, data_root)
    slowest, whole = _slowest_parts(result, dataset)
    plan = plan_of(result, dataset)
    places = {
        "--data-root": data_root,
        "--runs-dir": None if str(result.journal.folder) == "runs" else result.journal.folder,
    }
    return RunFindings(
        result=result,
        dataset=dataset,
        audit=audit(dataset),
        evaluation=result.evaluate(dataset),
        diagnosis=diagnose_run(result, dataset),
        rules=_rules(result),
        curves=_curves(result),
        omega_map=_omega_map(result),
        embedding=_embedding(result, dataset),
        slowest=slowest,
        epoch_milliseconds=whole,
        repeat=repeat_command(plan, preset_of(result.row), places),
        environment=json.loads(result.row["environment"]),
    )


def _rules(result: Result) -> dict[str, Summary | str]:
    found: dict[str, Summary | str] = {}
    for name in PROTOCOLS:
        try:
            found[name] = result.test(name)
        except NotApplicable as reason:
            found[name] = str(reason)
    return found


def _curves(result: Result) -> dict[str, Curves]:
    rows = result.journal.epochs(result.run)
    found = {}
    for name in CURVES:
        by_epoch: dict[int, list[float]] = {}
        for row in rows:
            if row[name] is not None:
                by_epoch.setdefault(row["epoch"], []).append(row[name])
        if by_epoch:
            last = max(by_epoch)
            values = [by_epoch.get(epoch, [np.nan]) for epoch in range(1, last + 1)]
            ends = (np.array([function(each) for each in values]) for function in (np.mean, np.min, np.max))
            found[name] = Curves(*ends)
    return found


def _omega_map(result: Result) -> Tensor | None:
    omega: Any = getattr(result.network(0), "omega", None)
    if omega is None or not omega.numel():
        return None
    layers: Tensor = omega.detach()[:, 0].double()  # [L, 1 or c]
    order = layers.mean(0).argsort()
    return layers[:, order]


def _embedding(result: Result, dataset: Dataset) -> Embedding | None:
    """Return the embedding of member 0, or None where items have no class of their own."""
    if dataset.is_multilabel or dataset.labels.dim() != 1:
        return None
    predictor = result.predictor
    with predictor.working(dataset, CPU) as task:
        features = predictor.embedding(task, 0, "honest", CPU)
        answers = predictor.outputs(task, 0, "honest", CPU)[:, 0].argmax(-1)
    places, shares = principal_components(features)
    count = places.size(0)
    # Spread evenly over the items: no draw, so that the same run gives the same picture.
    chosen = torch.linspace(0, count - 1, min(count, MOST_POINTS)).round().long()
    labels = dataset.labels[chosen]
    return Embedding(
        places[chosen], (float(shares[0]), float(shares[1])), labels, answers[chosen] == labels, items=count
    )


def _slowest_parts(result: Result, dataset: Dataset) -> tuple[tuple[Part, ...], float]:
    """Clock the quickest of three epochs of one member trained anew, behind one that warms up; the outcome is thrown away."""
    config = result.config
    member = result.journal.members(result.run)[0]
    split = splits_of_members(result, dataset)[0]
    training = config.training
    with one_thread_where_it_wins(CPU):
        task = make_task(dataset, config.data, [split], DTYPES[training.precision], training.batch_size)
        batch = RunBatch(config, task, [0], torch.tensor([member["seed"]]), [json.loads(member["settings"])], CPU)
        batch.advance()
        return min((slowest_parts(batch.advance) for _ in range(3)), key=lambda found: found[1])


__all__ = ["Curves", "Embedding", "RunFindings", "gather"]

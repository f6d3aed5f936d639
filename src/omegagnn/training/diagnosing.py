"""From a finished run to its diagnosis: the networks, the labels they were trained on, the settings to change."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from omegagnn.analysis.diagnosis import Diagnosis, diagnose, merged
from omegagnn.analysis.layer_measures import Facts
from omegagnn.data.dataset import Dataset
from omegagnn.data.homophily import edge_homophily
from omegagnn.errors import WrongUse
from omegagnn.nn.stacked import StackedRuns
from omegagnn.training.batch import DTYPES
from omegagnn.training.build import OMEGA_MODELS
from omegagnn.training.config import RunConfig
from omegagnn.training.fit import Result
from omegagnn.training.metrics import binary_nll
from omegagnn.training.tasks import TRAIN, make_task

CHEAP = 2e10  # multiplications for the ranks of all layers of all members: about ten seconds
GENTLE_RATE = 0.005  # a learning rate of ω that was not seen to drift in 60 epochs
CAREFUL_RATE = 1e-3  # a learning rate of K above this is the first suspect of a deep network


def diagnose_run(result: Result, dataset: Dataset, member: int | None = None) -> Diagnosis:
    """Return the diagnosis of one member of a run, or of all where that is cheap, else of member 0 (the subject says which)."""
    if result.row["status"] != "done":
        raise WrongUse(
            f"Run {result.run} is {result.row['status']}, not done: finish it with `omegagnn train --resume {result.run}`."
        )
    count = len(result.journal.members(result.run))
    if member is not None and not 0 <= member < count:
        raise WrongUse(f"Run {result.run} has members 0 to {count - 1}, not {member}.")
    members = [member] if member is not None else list(range(count)) if _is_cheap(result, dataset, count) else [0]
    found = [_diagnose_member(result, dataset, each) for each in members]
    which = f"member {members[0]} of {count}" if len(members) == 1 else f"mean of {count} members"
    model = result.config.model
    subject = f"{model.name}, {model.layers} layers on {result.row['dataset']} ({result.run}, {which})"
    return merged(found, subject).with_remedies(remedies(result.config))


def _is_cheap(result: Result, dataset: Dataset, count: int) -> bool:
    model = result.config.model
    return count * (model.layers + 1) * dataset.num_nodes * model.channels**2 <= CHEAP


def _diagnose_member(result: Result, dataset: Dataset, member: int) -> Diagnosis:
    row = result.journal.members(result.run)[member]
    split = next((each for each in dataset.splits if each.hash == row["split_hash"]), None)
    if split is None:
        raise WrongUse(
            f"Split {row['split']!r} of {dataset.name} is not what {result.run} was trained on: use the same data."
        )
    training = result.config.training
    task = make_task(dataset, result.config.data, [split], DTYPES[training.precision], training.batch_size)
    net: nn.Module = result.network(member).to(DTYPES[training.precision])
    net = net.extract(0) if isinstance(net, StackedRuns) else net
    options: dict[str, Any] = {"num_classes": dataset.num_classes, "facts": _facts(result, dataset, member)}
    if dataset.task == "graph":
        options |= {"batch": dataset.batch, "num_graphs": dataset.num_graphs}
    shown = task.weights[0, TRAIN] > 0
    if dataset.is_multilabel:
        return diagnose(net, task.features, task.graph, loss=multilabel_loss(task.labels, shown), **options)
    return diagnose(net, task.features, task.graph, y=torch.where(shown, task.labels, -1), **options)


def multilabel_loss(labels: Tensor, shown: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the binary cross-entropy of the items that are shown."""

    def loss(scores: Tensor) -> Tensor:
        by_run = scores if scores.dim() == 3 else scores.unsqueeze(1)
        return binary_nll(by_run[shown], labels[shown]).mean()

    return loss


def _facts(result: Result, dataset: Dataset, member: int) -> Facts:
    """Return the graph's homophily, and from the journal where ω and validation loss went after the kept epoch."""
    alike = edge_homophily(dataset) if dataset.task == "node" and not dataset.is_multilabel else None
    epochs = [row for row in result.journal.epochs(result.run) if row["member"] == member]
    losses = [row["val_loss"] if row["val_loss"] is not None else math.inf for row in epochs]
    if not losses:
        return Facts(homophily=alike)
    best = min(range(len(losses)), key=losses.__getitem__)
    return Facts(
        homophily=alike,
        omega_kept=epochs[best]["omega"],
        omega_last=epochs[-1]["omega"],
        loss_rise=losses[-1] / losses[best] if losses[best] > 0 else None,
    )


def remedies(config: RunConfig) -> dict[str, str]:
    """Return what to change in the configuration of a run, by the topic of a finding."""
    model, training = config.model, config.training
    fewer = f"--layers {max(1, model.layers // 4)}"
    slower = f"--set training.lr_gnn={min(training.lr_gnn / 10, CAREFUL_RATE / 10):g}"
    careful = f" {slower}" if training.lr_gnn > CAREFUL_RATE else ""
    if model.name not in OMEGA_MODELS:
        smoothing = f"Learn how much it smooths: --model omega-gcn --set training.lr_gnn=1e-4; or use {fewer}."
        vanish = f"Use {fewer}, or --model omega-gcn --set training.lr_gnn=1e-4."
        if model.name == "gcn":
            vanish = f"Start the square maps at the identity: --set 'model.options={{init: identity}}'{careful}; or use {fewer}."
    else:
        scope = "" if model.omega in ("channel", "layer", "global") else " --omega channel"
        smoothing = f"Let ω move: --set training.lr_omega={10 * training.lr_omega:g}{scope}{careful}; or use {fewer}."
        vanish = "model.init=identity" if model.init != "identity" else "model.residual=previous"
        vanish = f"Use --set {vanish}{careful}{scope}."
    decay = max(10 * training.wd_omega, 5e-4)
    return {
        "smoothing": smoothing,
        "input": f"Let the first map learn: --set training.lr_oc={2 * training.lr_oc:g}, or --set data.row_normalize=true.",
        "rank": f"Use {fewer}, --set model.channels={2 * model.channels}, or more training: --epochs {2 * training.epochs}.",
        "vanish": vanish,
        "explode": f"Use {slower} --set training.clip=1.",
        "broken": f"Use {slower} --set training.lr_oc={training.lr_oc / 10:g} --set training.clip=1.",
        "omega": f"Hold it with --set training.wd_omega={decay:g} "
        f"--set training.lr_omega={min(training.lr_omega / 5, GENTLE_RATE):g}, unless the graph is heterophilous "
        "(`omegagnn data audit` tells).",
        "drift": f"Hold it with --set training.wd_omega={decay:g}, or stop earlier with --set training.patience=50.",
        "fit": "Mend what stands above first; else try other rates or more epochs: "
        f"--set training.lr_oc={2 * training.lr_oc:g} --epochs {2 * training.epochs}.",
    }


__all__ = ["diagnose_run", "multilabel_loss", "remedies"]

"""`evaluate`: measure the networks of a run anew, hold them against the journal, and count what they confuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from omegagnn.analysis.calibration import Calibration, calibration
from omegagnn.data import choose_splits, load
from omegagnn.data.dataset import Dataset, Split
from omegagnn.errors import DataError, OmegaError, WrongUse
from omegagnn.training.batch import KEPT
from omegagnn.training.metrics import Summary, summarise
from omegagnn.training.prediction import CPU, Predictor, Source
from omegagnn.training.tasks import TrainingTask

if TYPE_CHECKING:
    from omegagnn.training.fit import Result

PARTS = ("train", "val", "test")
ALL = "all"
# Other devices, versions and thread counts sum in another order; beyond this a network or its data is another one.
ROUNDING = 1e-3
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MemberScore:
    """One member: its seed and the split it was trained on, the epoch of its weights, and what came out (score in [0, 1])."""

    member: int
    seed: int
    split: str
    epoch: int
    score: float
    loss: float
    items: int


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found.

    `counts` are ``[classes, classes]``, row the true class and column the predicted one, added over members; of a task of
    several labels an item they are ``[classes, 3]``: right, wrongly given, missed. `calibration` is over all answers of all
    members. `difference` is the largest one between a recomputed number and the recorded one, None where nothing was recorded.
    """

    run: str
    dataset: str
    part: str
    protocol: str
    members: list[MemberScore]
    class_names: tuple[str, ...]
    counts: Counts = field(repr=False)
    calibration: Calibration = field(repr=False)
    multilabel: bool = False
    difference: float | None = None

    @property
    def score(self) -> Summary:
        """Mean, spread and interval of the members' scores in per cent."""
        return summarise(np.array([member.score for member in self.members]))

    @property
    def classes(self) -> list[dict[str, Any]]:
        """Precision, recall and F1 in per cent and the number of items of each class, over all members; NaN where undefined."""
        if self.multilabel:
            right, given, true = self.counts[:, 0], self.counts[:, :2].sum(1), self.counts[:, [0, 2]].sum(1)
        else:
            right, given, true = self.counts.diagonal(), self.counts.sum(0), self.counts.sum(1)
        return [
            {
                "name": name,
                "precision": _percent(right[k], given[k]),
                "recall": _percent(right[k], true[k]),
                "f1": _percent(2 * right[k], given[k] + true[k]),
                "items": int(true[k]),
            }
            for k, name in enumerate(self.class_names)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``omegagnn evaluate --json`` prints; scores in per cent."""
        return {
            "run": self.run,
            "dataset": self.dataset,
            "part": self.part,
            "protocol": self.protocol,
            "score": self.score.to_dict(),
            "members": [{**vars(member), "score": 100 * member.score} for member in self.members],
            "classes": self.classes,
            "confusion": None if self.multilabel else self.counts.tolist(),
            "calibration_error": 100 * self.calibration.error,
            "journal": None if self.difference is None else {"equal": True, "largest_difference": self.difference},
        }


def evaluate(
    result: Result,
    data: Source = None,
    *,
    part: str | None = None,
    split: str | None = None,
    protocol: str | None = None,
    member: int | None = None,
    device: torch.device = CPU,
    data_root: Path | str | None = None,
) -> Evaluation:
    """Recompute the scores of a run's members, one after another, without gradients.

    On the run's own data each member is measured on its own split, and loss and score of all three parts must be what the
    journal recorded for the epoch of its weights. On other data that fits the model, all labelled items count, or a `part` of
    its one split.

    Args:
        result: the run.
        data: other data, see `Predictor.read` [the run's own, by its name].
        part: ``train``, ``val``, ``test`` or ``all`` labelled items [``test`` of the run's own data, else ``all``].
        split: the split of other data, such as ``ratio:0.6,0.2``.
        protocol: the rule whose weights are measured [the run's own where its weights are kept, else ``honest``].
        member: one member alone.
        device: where to compute.
        data_root: where data sets lie.
    """
    predictor, own = result.predictor, data is None or (split is None and _is_own(result, data))
    rule = protocol or kept_rule(result)
    part = _checked_part(part or ("test" if own else ALL), own, split)
    if own:
        dataset = data if isinstance(data, Dataset) else own_data(result, data_root)
    else:
        dataset = _other_data(predictor, data, split, data_root)
    splits = splits_of_members(result, dataset) if own else [_only_split(dataset, part)] * predictor.members
    recorded = result.journal.members(result.run)
    scores: list[MemberScore] = []
    counts: list[Counts] = []
    answers: list[Tensor] = []
    differences: list[float] = []
    with predictor.working(dataset, device) as task:
        for k in range(predictor.members) if member is None else [member]:
            outputs = predictor.outputs(task, k, rule, device)
            epoch, row = predictor.epochs[rule][k], recorded[k]
            task.use_splits([splits[k]])
            if own:
                differences.append(_compare(task.measure(outputs), result, k, epoch))
            score, loss, items = _measure(task, outputs, part)
            scores.append(MemberScore(k, row["seed"], row["split"], epoch, score, loss, items.numel()))
            counts.append(_count(task, outputs[:, 0], items))
            answers.append(_answers(task, outputs[:, 0], items))
    return Evaluation(
        run=result.run,
        dataset=dataset.name,
        part=part,
        protocol=rule,
        members=scores,
        class_names=predictor.signature.names_of_classes,
        counts=np.sum(counts, axis=0),
        calibration=calibration(*torch.cat(answers, dim=1).numpy()),
        multilabel=dataset.is_multilabel,
        difference=max(differences) if own else None,
    )


def _checked_part(part: str, own: bool, split: str | None) -> str:
    if part not in (ALL, *PARTS):
        raise WrongUse(f"There is no part {part!r}: choose one of {', '.join((*PARTS, ALL))}.")
    if own and split is not None:
        raise WrongUse("A run is measured on the splits of its members: give --split together with --data.")
    return part


def _measure(task: TrainingTask, outputs: Tensor, part: str) -> tuple[float, float, Tensor]:
    """Return score and loss on a part of the task's split, and the items that are in it."""
    if part == ALL:
        known = labelled_items(task.dataset)
        task.use_splits([Split(ALL, known, known, known)])
    place = PARTS.index("test" if part == ALL else part)
    loss, score = task.measure(outputs)[0, place].tolist()
    return score, loss, (task.weights[0, place] > 0).nonzero().flatten()


def kept_rule(result: Result) -> str:
    """Return the rule of the run where its weights are kept, else ``honest``."""
    own: str = result.row["protocol"]
    return own if own in KEPT else "honest"


def score_predictions(predictor: Predictor, dataset: Dataset, probabilities: Tensor) -> tuple[float, int]:
    """Return accuracy (micro-F1 of several labels an item) of predictions in ``[0, 1]``, and on how many labelled items."""
    labels = dataset.labels
    if predictor.signature.multilabel:
        given, true = probabilities > 0.5, labels > 0.5
        whole = int(given.sum() + true.sum())
        return (2 * int((given & true).sum()) / whole if whole else 0.0), labels.size(0)
    known = labelled_items(dataset)
    right = probabilities.argmax(-1)[known] == labels[known]
    return int(right.sum()) / known.numel(), known.numel()


# -------------------------------------------------------------------------------------------------------- the right data


def _is_own(result: Result, data: Source) -> bool:
    """Whether a data set at hand is the one of the run, with the splits of its members."""
    if not isinstance(data, Dataset) or result.predictor.signature.changes(data):
        return False
    members = result.journal.members(result.run)
    return {member["split_hash"] for member in members} <= {split.hash for split in data.splits}


def own_data(result: Result, data_root: Path | str | None = None) -> Dataset:
    """Return the data set of a run, which must be what it was."""
    config = result.config.data
    try:
        dataset = load(config.name, split=config.split, root=data_root)
    except WrongUse:
        raise WrongUse(
            f"The data of {result.run}, {config.name!r}, is not here any more: say where with --data-root."
        ) from None
    changed = result.predictor.signature.changes(dataset)
    if changed:
        raise DataError(
            f"{dataset.name} is not what {result.run} was trained on (other {' and '.join(changed)}): restore it, or measure the "
            f"run on it as on other data with --data {config.name}."
        )
    return dataset


def splits_of_members(result: Result, dataset: Dataset) -> list[Split]:
    """Return the split of each member, by its hash, from the data set of a run."""
    by_hash = {split.hash: split for split in dataset.splits}
    members = result.journal.members(result.run)
    lost = next((member["split"] for member in members if member["split_hash"] not in by_hash), None)
    if lost is not None:
        raise DataError(f"Split {lost!r} of {dataset.name} is not what {result.run} was trained on: use the same data.")
    return [by_hash[member["split_hash"]] for member in members]


def _other_data(predictor: Predictor, data: Source, split: str | None, data_root: Path | str | None) -> Dataset:
    dataset = predictor.read(data, data_root, labels=True)
    return dataset if split is None else dataset.with_splits(choose_splits(dataset, split))


def _only_split(dataset: Dataset, part: str) -> Split:
    """Return a split of other data whose parts are all the labelled items of `part`."""
    items = labelled_items(dataset)
    if part != ALL:
        if len(dataset.splits) != 1:
            raise WrongUse(
                f"{dataset.name} has {len(dataset.splits)} splits, so it is not clear what its part {part!r} is: name one with "
                "--split, or measure on --part all."
            )
        items = items[torch.isin(items, getattr(dataset.splits[0], part))]
    return Split(part, items, items, items)


def labelled_items(dataset: Dataset) -> Tensor:
    """Return the items with a label: nodes or graphs, whichever a split counts."""
    if dataset.task == "inductive":
        return torch.arange(dataset.num_graphs)
    labels = dataset.labels
    known = torch.ones(labels.size(0), dtype=torch.bool) if labels.dim() == 2 else labels >= 0
    items = known.nonzero().flatten()
    if not items.numel():
        raise WrongUse(f"{dataset.name} has no label that a score could be made from: give it some.")
    return items


# ---------------------------------------------------------------------------------------------------------- comparisons


def _compare(measured: Tensor, result: Result, member: int, epoch: int) -> float:
    """Return the largest difference to what the journal holds; one beyond rounding is an error."""
    row = result.journal.epoch(result.run, member, epoch)
    largest = 0.0
    for place, part in enumerate(PARTS):
        for column, kind in enumerate(("loss", "score")):
            found, recorded = float(measured[0, place, column]), row[f"{part}_{kind}"]
            if recorded is None and math.isnan(found):
                continue  # a part without items
            difference = math.inf if recorded is None else abs(found - recorded)
            if not difference <= ROUNDING * max(1.0, abs(found)):
                raise OmegaError(
                    f"Member {member} of {result.run} has {part} {kind} {found:.6g} where the journal recorded {recorded} at "
                    f"epoch {epoch}: its weights or its journal were changed; restore them or train again."
                )
            largest = max(largest, difference)
    return largest


def _count(task: TrainingTask, outputs: Tensor, items: Tensor) -> Counts:
    labels, outputs = task.labels[items], outputs[items]
    if task.dataset.is_multilabel:
        given, true = outputs > 0, labels > 0.5
        columns: Sequence[Tensor] = (given & true, given & ~true, ~given & true)
        return torch.stack([column.sum(0) for column in columns], dim=1).cpu().numpy()
    classes = outputs.size(1)
    cells = labels * classes + outputs.argmax(-1)
    return torch.bincount(cells, minlength=classes * classes).view(classes, classes).cpu().numpy()


def _answers(task: TrainingTask, outputs: Tensor, items: Tensor) -> Tensor:
    """Return the confidence of each answer and whether it is right, ``[2, answers]``; of several labels each is an answer."""
    labels, outputs = task.labels[items], outputs[items].double()
    if task.dataset.is_multilabel:
        given = torch.sigmoid(outputs)
        confidence, right = torch.maximum(given, 1 - given), (given > 0.5) == (labels > 0.5)
    else:
        confidence, answer = torch.softmax(outputs, dim=-1).max(-1)
        right = answer == labels
    return torch.stack([confidence.flatten(), right.flatten().double()]).cpu()


def _percent(part: Any, whole: Any) -> float:
    return 100 * float(part) / float(whole) if whole else math.nan


__all__ = [
    "Evaluation",
    "MemberScore",
    "evaluate",
    "kept_rule",
    "labelled_items",
    "own_data",
    "score_predictions",
    "splits_of_members",
]

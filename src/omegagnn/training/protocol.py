"""Selection rules: which epoch of a recorded curve counts, and what may be looked at to choose it.

A run records train, validation and test metrics of every epoch; a rule reads them afterwards. A rule that selects on
validation receives a `ValidationCurve`, which has no test fields. Rules that look at test labels are *optimistic* and are
called so wherever they are printed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omegagnn.errors import WrongUse


@dataclass(frozen=True)
class ValidationCurve:
    """What an honest selection sees of one run: validation loss and score of each epoch, and whether it ran to its end."""

    loss: np.ndarray
    score: np.ndarray
    complete: bool = False  # no more epochs were allowed: patience never would have mattered


@dataclass(frozen=True)
class Curve:
    """Everything recorded of one run; scores are accuracies or F1 in ``[0, 1]``."""

    validation: ValidationCurve
    test_score: np.ndarray

    def __len__(self) -> int:
        return len(self.test_score)


@dataclass(frozen=True)
class Outcome:
    """What a rule makes of several runs: a test score each, and the epoch (from 1) it was read at."""

    protocol: str
    optimistic: bool
    scores: np.ndarray
    epochs: np.ndarray


class Protocol(ABC):
    """A named rule."""

    name: str
    summary: str
    optimistic = False

    @abstractmethod
    def outcome(self, curves: Sequence[Curve]) -> Outcome:
        """Apply the rule to the curves of several runs of one configuration."""


class ValidationProtocol(Protocol):
    """A rule that chooses an epoch for each run by itself, from validation alone."""

    @abstractmethod
    def select(self, curve: ValidationCurve) -> int:
        """Return the chosen epoch's position; ties go to the earliest."""

    def outcome(self, curves: Sequence[Curve]) -> Outcome:
        """Read the test score at the epoch that validation chose."""
        chosen = [self.select(curve.validation) for curve in curves]
        scores = np.array([curve.test_score[k] for curve, k in zip(curves, chosen, strict=True)])
        return Outcome(self.name, self.optimistic, scores, np.array(chosen) + 1)


class Honest(ValidationProtocol):
    """Best validation loss over the whole run."""

    name = "honest"
    summary = "best validation loss; the run stops when neither validation loss nor score improved for its patience"

    def select(self, curve: ValidationCurve) -> int:
        """Return the first epoch of lowest validation loss."""
        return _first_best(-curve.loss)


class ValidationAccuracy(ValidationProtocol):
    """The authors' script for semi-supervised nodes: best validation accuracy, patience 400 on it."""

    name = "validation-accuracy"
    summary = "best validation accuracy, patience 400 on accuracy (the released script)"
    patience = 400

    def select(self, curve: ValidationCurve) -> int:
        """Return the first epoch of highest validation accuracy before patience runs out."""
        return _best_with_patience(curve.score, self.patience, curve.complete, self.name)


class Gcnii(ValidationProtocol):
    """The scheme the paper says it follows: best validation loss, patience 100, at most 1,500 epochs."""

    name = "gcnii"
    summary = "best validation loss, patience 100, at most 1,500 epochs (the scheme the paper says it follows)"
    patience, longest = 100, 1500

    def select(self, curve: ValidationCurve) -> int:
        """Return the first epoch of lowest validation loss before patience runs out."""
        loss = curve.loss[: self.longest]
        complete = curve.complete or len(curve.loss) >= self.longest
        return _best_with_patience(-loss, self.patience, complete, self.name)


class Gin(Protocol):
    """The GIN scheme: the one epoch with the best mean *test* curve over all folds."""

    name = "gin"
    summary = "optimistic: the epoch whose test accuracy, averaged over the folds, is best"
    optimistic = True

    def outcome(self, curves: Sequence[Curve]) -> Outcome:
        """Choose one epoch for all runs by their mean test score."""
        tests = _same_length(curves, self.name)
        epoch = _first_best(tests.mean(0))
        return Outcome(self.name, True, tests[:, epoch], np.full(len(tests), epoch + 1))


class AuthorsTu(Protocol):
    """The authors' script for graph classification: each fold's own best *test* epoch."""

    name = "authors-tu"
    summary = "optimistic: each run's best test epoch (the released script)"
    optimistic = True

    def outcome(self, curves: Sequence[Curve]) -> Outcome:
        """Take each run's highest test score."""
        chosen = np.array([_first_best(curve.test_score) for curve in curves])
        scores = np.array([curve.test_score[k] for curve, k in zip(curves, chosen, strict=True)])
        return Outcome(self.name, True, scores, chosen + 1)


PROTOCOLS: dict[str, Protocol] = {
    rule.name: rule for rule in (Honest(), ValidationAccuracy(), Gcnii(), Gin(), AuthorsTu())
}


class NotApplicable(WrongUse):
    """The recorded curves do not allow a rule."""


def protocol(name: str) -> Protocol:
    """Return a rule by its name."""
    if name not in PROTOCOLS:
        raise WrongUse(f"There is no protocol {name!r}: choose one of {', '.join(PROTOCOLS)}.")
    return PROTOCOLS[name]


def optimism_gap(curves: Sequence[Curve]) -> float:
    """Return how much higher the mean would be if each run were read at its best test epoch instead of honestly."""
    return float(AuthorsTu().outcome(curves).scores.mean() - Honest().outcome(curves).scores.mean())


def _first_best(values: np.ndarray) -> int:
    """Return the first position of the largest value; NaN never wins."""
    return int(np.argmax(np.where(np.isnan(values), -np.inf, values)))


def _best_with_patience(values: np.ndarray, patience: int, complete: bool, name: str) -> int:
    """Return the first position of the best value seen before `patience` epochs passed without a better one."""
    best = 0
    for epoch in range(1, len(values)):
        if values[epoch] > values[best] or np.isnan(values[best]):
            best = epoch
        elif epoch - best >= patience:
            return best
    if not complete and len(values) - 1 - best < patience:
        raise NotApplicable(
            f"Protocol {name!r} needs runs that go on for {patience} epochs after their best: train with "
            f"--set training.patience={patience} or more."
        )
    return best


def _same_length(curves: Sequence[Curve], name: str) -> np.ndarray:
    if len({len(curve) for curve in curves}) != 1:
        raise NotApplicable(
            f"Protocol {name!r} needs every run to have the same number of epochs: train with --set training.patience=null."
        )
    return np.stack([curve.test_score for curve in curves])

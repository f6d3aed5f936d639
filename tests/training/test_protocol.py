"""Selection rules: what each picks, what it may see, and what it refuses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from omegagnn.errors import WrongUse
from omegagnn.training.protocol import PROTOCOLS, Curve, NotApplicable, ValidationCurve, optimism_gap, protocol


def curve(loss: list[float], score: list[float], test: list[float], complete: bool = True) -> Curve:
    return Curve(ValidationCurve(np.array(loss), np.array(score), complete), np.array(test))


def test_honest_takes_the_first_epoch_of_lowest_validation_loss() -> None:
    outcome = protocol("honest").outcome([curve([3, 1, 2, 1], [0.1, 0.2, 0.9, 0.2], [0.5, 0.6, 0.99, 0.7])])
    assert outcome.epochs.tolist() == [2]
    assert outcome.scores.tolist() == [0.6]
    assert not outcome.optimistic


def test_nan_losses_are_never_the_best() -> None:
    outcome = protocol("honest").outcome([curve([np.nan, 2, np.nan], [0, 0, 0], [0.1, 0.2, 0.3])])
    assert outcome.epochs.tolist() == [2]


def test_honest_cannot_read_test_metrics() -> None:
    fields = {field.name for field in dataclasses.fields(ValidationCurve)}
    assert fields == {"loss", "score", "complete"}

    class Trap(np.ndarray):
        """A test curve that may be read at one place only: the epoch that was chosen without it."""

        def __getitem__(self, key: object) -> object:
            assert key == 1
            return super().__getitem__(key)

        def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
            raise AssertionError("the whole test curve was read")

    trapped = Curve(
        ValidationCurve(np.array([3.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.0])), np.array([0.5, 0.6, 0.9]).view(Trap)
    )
    for name in ("honest",):
        assert protocol(name).outcome([trapped]).scores.tolist() == [0.6]
    with pytest.raises(AssertionError):
        protocol("authors-tu").outcome([trapped])


def test_validation_accuracy_stops_looking_when_patience_is_out() -> None:
    score = np.zeros(1000)
    score[10], score[450] = 0.5, 0.9  # 440 epochs later: never reached with patience 400
    chosen = protocol("validation-accuracy").outcome(
        [Curve(ValidationCurve(np.ones(1000), score), np.arange(1000) / 1000)]
    )
    assert chosen.epochs.tolist() == [11]


def test_validation_accuracy_ties_go_to_the_earliest() -> None:
    chosen = protocol("validation-accuracy").outcome([curve([1] * 5, [0.1, 0.7, 0.7, 0.7, 0.2], [0, 1, 2, 3, 4])])
    assert chosen.epochs.tolist() == [2]


def test_gcnii_looks_at_1500_epochs_and_waits_100() -> None:
    loss = np.linspace(2, 1, 1600)
    chosen = protocol("gcnii").outcome([Curve(ValidationCurve(loss, -loss, False), np.zeros(1600))])
    assert chosen.epochs.tolist() == [1500]
    loss = np.full(400, 1.0)
    loss[20], loss[200] = 0.5, 0.1
    assert protocol("gcnii").outcome([Curve(ValidationCurve(loss, -loss), np.zeros(400))]).epochs.tolist() == [21]


@pytest.mark.parametrize("name", ["validation-accuracy", "gcnii"])
def test_a_curve_that_ended_too_early_is_refused_unless_it_was_complete(name: str) -> None:
    short = [curve([3, 2, 1], [0.1, 0.2, 0.3], [0.1, 0.2, 0.3], complete=False)]
    with pytest.raises(NotApplicable, match=r"--set training\.patience="):
        protocol(name).outcome(short)
    assert protocol(name).outcome([curve([3, 2, 1], [0.1, 0.2, 0.3], [0.1, 0.2, 0.3])]).epochs.tolist() == [3]


def test_gin_takes_one_epoch_for_all_folds_and_authors_each_its_best() -> None:
    folds = [curve([1, 1, 1], [0, 0, 0], [0.9, 0.5, 0.1]), curve([1, 1, 1], [0, 0, 0], [0.1, 0.6, 0.8])]
    gin, authors = protocol("gin").outcome(folds), protocol("authors-tu").outcome(folds)
    assert gin.epochs.tolist() == [2, 2]
    assert gin.scores.mean() == pytest.approx(0.55)
    assert authors.epochs.tolist() == [1, 3]
    assert authors.scores.mean() == pytest.approx(0.85)
    assert gin.optimistic
    assert authors.optimistic


def test_gin_needs_equally_long_runs() -> None:
    with pytest.raises(NotApplicable, match="same number of epochs"):
        protocol("gin").outcome([curve([1], [0], [0.1]), curve([1, 1], [0, 0], [0.1, 0.2])])


def test_optimism_gap_is_the_best_test_epoch_less_the_honest_one() -> None:
    runs = [curve([1, 2], [0, 0], [0.5, 0.9]), curve([2, 1], [0, 0], [0.2, 0.6])]
    assert optimism_gap(runs) == pytest.approx((0.9 + 0.6) / 2 - (0.5 + 0.6) / 2)


def test_unknown_protocols_are_refused_with_the_choices() -> None:
    with pytest.raises(WrongUse, match=r"no protocol 'hones': choose one of honest, validation-accuracy"):
        protocol("hones")
    assert all(rule.summary for rule in PROTOCOLS.values())

"""From raw rows to numbers: the choice never sees a test label, means are over the right members, verdicts are right."""

from __future__ import annotations

import numpy as np
import pytest
from records import record

from omegagnn.paper.outcome import (
    best_by_validation,
    chosen_members,
    scores,
    seeds_and_splits,
    summary,
    validation_mean,
    verdict,
)
from omegagnn.paper.published import Cell
from omegagnn.training.metrics import Summary


def test_each_split_takes_the_choice_with_the_best_mean_validation() -> None:
    random = np.random.default_rng(0)
    validation, test = random.random((3, 4, 5)), random.random((3, 4, 5))
    found = record(validation, test)
    expected = [test[s, :, validation[s].mean(0).argmax()] for s in range(3)]
    ours = scores(found)
    assert ours is not None
    assert sorted(ours) == sorted(np.concatenate(expected))
    assert seeds_and_splits(found) == "4 × 3"


def test_no_test_score_moves_the_choice() -> None:
    random = np.random.default_rng(1)
    validation = random.random((2, 3, 4))
    members = chosen_members(record(validation, random.random((2, 3, 4))))
    for _ in range(5):
        assert chosen_members(record(validation, random.random((2, 3, 4)))) == members


def test_equal_choices_go_to_the_earlier_and_a_single_one_takes_all() -> None:
    same = np.ones((2, 2, 3))
    assert [m % 3 for m in chosen_members(record(same, same))] == [0, 0, 0, 0]
    single = np.ones((2, 2, 1))
    assert chosen_members(record(single, single)) == [0, 1, 2, 3]


def test_a_choice_that_diverged_is_not_taken() -> None:
    validation = np.array([[[0.2, 0.9]]])
    found = record(validation, validation)
    found["rules"]["honest"][1] = [3, None, None, None]
    assert chosen_members(found) == [0]


def test_a_rule_without_outcome_gives_nothing() -> None:
    found = record(np.ones((1, 2, 1)), np.ones((1, 2, 1)))
    found["rules"]["gin"] = "Protocol 'gin' needs every run to have the same number of epochs."
    assert summary(found, "gin") is None
    assert summary(found, "gcnii") is None
    assert summary(None) is None


def test_the_best_network_is_chosen_by_validation() -> None:
    good, better = np.full((1, 2, 1), 0.6), np.full((1, 2, 1), 0.7)
    weak_on_test, strong_on_test = record(better, good), record(good, better)
    assert best_by_validation([strong_on_test, weak_on_test]) is weak_on_test
    assert validation_mean(weak_on_test) == pytest.approx(0.7)
    assert best_by_validation([]) is None


@pytest.mark.parametrize(
    ("printed", "mean", "words"),
    [
        (82.6, 82.4, "reached"),
        (83.05, 82.4, "reached"),
        (85.9, 82.4, "below by 3.5"),
        (80.0, 82.4, "above by 2.4"),
    ],
)
def test_verdicts(printed: float, mean: float, words: str) -> None:
    ours = Summary(mean, 1.0, mean - 0.6, mean + 0.6, 10)
    assert verdict(Cell(str(printed), printed), ours) == words


def test_verdicts_without_numbers() -> None:
    assert verdict(None, Summary(1, 1, 1, 1, 2)) == "nothing printed"
    assert verdict(Cell("1", 1.0), None) == "not run"

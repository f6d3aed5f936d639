"""Calibration against counting by hand, and its behaviour at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from omegagnn.analysis import calibration


def test_bins_errors_and_lean_are_those_of_counting_by_hand() -> None:
    draws = np.random.default_rng(3)
    confidence = draws.random(500)
    right = draws.random(500) < confidence**2
    found = calibration(confidence, right, bins=7)
    total, lean = 0.0, 0.0
    for k in range(7):
        inside = (confidence > k / 7) & (confidence <= (k + 1) / 7)
        assert found.counts[k] == inside.sum()
        assert found.confidence[k] == pytest.approx(confidence[inside].mean())
        assert found.right[k] == pytest.approx(right[inside].mean())
        total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
        lean += inside.mean() * (confidence[inside].mean() - right[inside].mean())
    assert found.error == pytest.approx(total)
    assert found.bias == pytest.approx(lean) == pytest.approx(confidence.mean() - right.mean())


def test_a_network_that_is_right_as_often_as_it_says_has_no_error() -> None:
    found = calibration([0.75] * 8, [True] * 6 + [False] * 2)
    assert found.error == pytest.approx(0)
    assert calibration([1.0, 1.0], [True, True]).error == 0
    assert calibration([1.0, 1.0], [False, False]).bias == 1


def test_ends_belong_to_bins_and_nothing_is_nan_where_there_is_something() -> None:
    found = calibration([0.0, 1.0, 0.5], [False, True, True], bins=2)
    assert found.counts.tolist() == [2, 1]
    assert np.isnan(calibration([], []).error)
    assert np.isnan(calibration([0.9], [True], bins=2).confidence[0])


@pytest.mark.parametrize(
    ("confidence", "right", "bins", "words"),
    [
        ([0.5], [True, False], 2, "one length"),
        ([1.5], [True], 2, "between 0 and 1"),
        ([0.5], [True], 0, "at least 1"),
        ([[0.5]], [[True]], 2, "vectors"),
    ],
)
def test_wrong_arguments_are_told(confidence: list[float], right: list[bool], bins: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        calibration(confidence, right, bins)

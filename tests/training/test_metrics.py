"""Losses, scores and statistics against plain formulas and scikit-free re-computation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from omegagnn.ops import fused_twin
from omegagnn.training.metrics import (
    binary_nll,
    commonest_class_score,
    f1_counts,
    micro_f1,
    nll,
    paired_test,
    summarise,
    weighted_nll,
    weighted_sums,
)


def test_nll_equals_cross_entropy_of_each_run() -> None:
    logits, labels = torch.randn(7, 3, 4, dtype=torch.float64), torch.randint(0, 4, (7,))
    values = nll(logits, labels)
    for run in range(3):
        torch.testing.assert_close(values[run], cross_entropy(logits[:, run], labels, reduction="none"))


def test_unknown_labels_do_not_break_the_loss_of_others() -> None:
    labels = torch.tensor([0, -1, 2])
    assert torch.isfinite(nll(torch.randn(3, 1, 4), labels)).all()


@pytest.mark.parametrize("runs", [1, 3])
def test_weighted_cross_entropy_is_torchs(runs: int) -> None:
    logits = torch.randn(9, runs, 4, dtype=torch.float64, requires_grad=True)
    labels, weights = torch.tensor([0, 1, 2, 3, 3, -1, 0, 1, -1]), torch.rand(runs, 2, 9, dtype=torch.float64)
    weights[:, :, labels < 0] = 0
    weights[:, 0, ::2] = 0
    expected = weighted_sums(nll(logits, labels), weights)
    torch.testing.assert_close(weighted_nll(logits, labels, weights), expected)
    shared = weights[:1].expand_as(weights)
    torch.testing.assert_close(weighted_nll(logits, labels, weights[:1]), weighted_nll(logits, labels, shared))
    assert torch.autograd.gradcheck(lambda logits: weighted_nll(logits, labels, weights), logits)


def test_a_label_that_is_no_class_is_seen_in_the_loss() -> None:
    weights = torch.ones(1, 1, 2)
    if fused_twin("cpu") is not None:
        assert weighted_nll(torch.randn(2, 1, 3), torch.tensor([0, 3]), weights).isnan().all()


def test_weighted_sums_is_the_sum() -> None:
    values, weights = torch.randn(2, 5, dtype=torch.float64), torch.rand(2, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(weighted_sums(values, weights), (weights * values[:, None]).sum(-1))


def test_micro_f1_counts_over_items_and_labels() -> None:
    logits, labels = torch.randn(20, 2, 5), (torch.rand(20, 5) > 0.6).float()
    counts = f1_counts(logits, labels).sum(-1)
    for run in range(2):
        predicted = logits[:, run] > 0
        tp = int((predicted & (labels > 0)).sum())
        expected = 2 * tp / (int(predicted.sum()) + int(labels.sum()))
        assert float(micro_f1(counts[run])) == pytest.approx(expected)
    assert float(micro_f1(torch.zeros(3))) == 0.0


def test_binary_nll_averages_over_labels() -> None:
    logits, labels = torch.randn(6, 1, 3), torch.rand(6, 3).round()
    expected = binary_cross_entropy_with_logits(logits[:, 0], labels, reduction="none").mean(-1)
    torch.testing.assert_close(binary_nll(logits, labels)[0], expected)


def test_the_interval_covers_the_mean_and_repeats_exactly() -> None:
    scores = np.random.default_rng(0).normal(0.8, 0.02, 30)
    one, again = summarise(scores), summarise(scores)
    assert one == again
    assert one.low < one.mean < one.high
    assert one.sd == pytest.approx(100 * scores.std(ddof=1))
    # For normal data the bootstrap interval is near mean ± 1.96 standard errors.
    half = 1.96 * one.sd / np.sqrt(30)
    assert one.high - one.mean == pytest.approx(half, rel=0.15)


def test_one_run_has_no_interval() -> None:
    assert str(summarise(np.array([0.5]))) == "50.00 (one run)"


def test_paired_test_is_exact_for_few_pairs() -> None:
    # Five differences of one sign: 2 of the 32 flips are as extreme.
    assert paired_test(np.array([1.0, 2, 3, 4, 5]), np.zeros(5)) == pytest.approx(2 / 32)
    assert paired_test(np.ones(4), np.ones(4)) == 1.0


def test_paired_test_by_sampling_agrees_with_the_exact_one() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(0.1, 1, 14), rng.normal(0, 1, 14)
    signs = 1 - 2 * ((np.arange(2**14)[:, None] >> np.arange(14)) & 1)
    difference = ours - theirs
    exact = np.mean(np.abs((signs * difference).mean(1)) >= abs(difference.mean()) - 1e-12)
    assert paired_test(ours, theirs) == pytest.approx(exact, abs=0.02)


def test_paired_test_needs_pairs() -> None:
    with pytest.raises(ValueError, match="not 3 and 2"):
        paired_test(np.zeros(3), np.zeros(2))


def test_the_commonest_class_is_that_of_training() -> None:
    labels = torch.tensor([0, 0, 1, 1, 1, 1, 2, -1])
    train, test = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5, 6])
    assert commonest_class_score(labels, train, test) == 0.0
    assert commonest_class_score(labels, test, train) == pytest.approx(1 / 3)
    assert commonest_class_score(labels, torch.tensor([0, 2]), test) == pytest.approx((0 + 3 / 4) / 2), "a tie"

"""Losses and scores a run, and the statistics over runs: mean, spread, bootstrap interval, paired test."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax

from omegagnn.nn.runs import batched_matmul
from omegagnn.ops.autograd_maps import CrossEntropy
from omegagnn.ops.registry import has_fused

BOOTSTRAP_SAMPLES = 10_000


def nll(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each item in each run, ``[R, items]``, from ``[items, R, classes]``."""
    runs_first = logits.transpose(0, 1)
    target = labels.clamp(min=0)[None, :, None].expand(runs_first.size(0), -1, 1)
    return -log_softmax(runs_first, dim=-1).gather(2, target).squeeze(2)


def binary_nll(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the binary cross-entropy of each item, averaged over its labels, ``[R, items]``."""
    runs_first = logits.transpose(0, 1)
    losses = binary_cross_entropy_with_logits(runs_first, labels.expand_as(runs_first), reduction="none")
    return losses.mean(-1)


def weighted_sums(values: Tensor, weights: Tensor) -> Tensor:
    """Return ``Σ_i weights[r, s, i] · values[r, i]``, ``[R, s]``, as a product a run (no bit depends on R)."""
    return batched_matmul(weights, values.unsqueeze(2)).squeeze(2)


def weighted_nll(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return ``Σ_i weights[r, s, i] · nll[r, i]``, ``[R, s]``, in one kernel where there is one."""
    if not has_fused("cross_entropy", logits):
        return weighted_sums(nll(logits, labels), weights)
    runs_first = logits.transpose(0, 1).contiguous()
    return CrossEntropy.apply(runs_first, labels, weights.expand(runs_first.size(0), -1, -1))


def f1_counts(logits: Tensor, labels: Tensor) -> Tensor:
    """Return true positives, false positives and false negatives of each item in each run, ``[R, 3, items]``."""
    predicted = logits.transpose(0, 1) > 0
    actual = (labels > 0.5).expand_as(predicted)
    parts = (predicted & actual, predicted & ~actual, ~predicted & actual)
    return torch.stack([part.sum(-1) for part in parts], dim=1).to(logits.dtype)


def micro_f1(counts: Tensor) -> Tensor:
    """Return 2 tp / (2 tp + fp + fn) over the last dimension ``[..., 3]``; 0 where nothing is positive."""
    tp, fp, fn = counts.unbind(-1)
    whole = 2 * tp + fp + fn
    return torch.where(whole > 0, 2 * tp / whole.clamp(min=1), 0.0)


def commonest_class_score(labels: Tensor, train: Tensor, test: Tensor) -> float:
    """Return the accuracy on `test` of always answering the commonest class of `train`; of several the mean over them."""
    counts = torch.bincount(labels[train][labels[train] >= 0])
    commonest = (counts == counts.max()).nonzero().flatten()
    return float(torch.isin(labels[test], commonest).double().mean()) / commonest.numel()


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation (n − 1) and 95 % bootstrap interval of the mean, in per cent."""

    mean: float
    sd: float
    low: float
    high: float
    n: int

    def to_dict(self) -> dict[str, float | int]:
        """Return the fields."""
        return asdict(self)

    def __str__(self) -> str:
        if self.n == 1:
            return f"{self.mean:.2f} (one run)"
        return f"{self.mean:.2f} ± {self.sd:.2f} (95 % interval {self.low:.2f} to {self.high:.2f}, n = {self.n})"


def summarise(scores: np.ndarray, seed: int = 0) -> Summary:
    """Summarise scores in ``[0, 1]``; the bootstrap draws from a fixed seed, so equal scores give equal intervals."""
    percent = 100 * np.asarray(scores, dtype=np.float64)
    n = len(percent)
    if n == 1:
        return Summary(float(percent[0]), 0.0, float(percent[0]), float(percent[0]), 1)
    samples = np.random.Generator(np.random.PCG64(seed)).integers(0, n, (BOOTSTRAP_SAMPLES, n))
    low, high = np.quantile(percent[samples].mean(1), [0.025, 0.975])
    return Summary(float(percent.mean()), float(percent.std(ddof=1)), float(low), float(high), n)


def paired_test(ours: np.ndarray, theirs: np.ndarray, seed: int = 0, samples: int = BOOTSTRAP_SAMPLES) -> float:
    """Return the two-sided p-value of a sign-flip permutation test on runs paired by seed and split.

    Exact (every one of the 2^n flips) up to 13 pairs, else by `samples` random flips with the usual +1 correction.
    """
    if len(ours) != len(theirs) or not len(ours):
        raise ValueError(f"A paired test needs as many runs on both sides, not {len(ours)} and {len(theirs)}.")
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    n, observed = len(difference), abs(difference.mean())
    tolerance = 1e-12
    if n <= 13:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs((signs * difference).mean(1)) >= observed - tolerance))
    signs = 1 - 2 * np.random.Generator(np.random.PCG64(seed)).integers(0, 2, (samples, n))
    extreme = np.sum(np.abs((signs * difference).mean(1)) >= observed - tolerance)
    return float((extreme + 1) / (samples + 1))

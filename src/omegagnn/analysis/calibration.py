r"""Calibration: whether a network is right as often as it says.

Answers are sorted by their confidence into bins of equal width. With the mean confidence :math:`c_b` and the share
:math:`a_b` of right answers of bin b, which holds :math:`n_b` of n answers, the expected calibration error is

.. math::
    \mathrm{ECE} = \sum_b \frac{n_b}{n} \, |a_b - c_b|
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Confidence held against the share of right answers, bin by bin; means of empty bins are NaN."""

    edges: Numbers = field(repr=False)  # [bins + 1]
    counts: npt.NDArray[np.int64] = field(repr=False)
    confidence: Numbers = field(repr=False)
    right: Numbers = field(repr=False)

    @property
    def error(self) -> float:
        """The expected calibration error, in ``[0, 1]``; NaN without answers."""
        full = self.counts > 0
        gaps = np.abs(self.right[full] - self.confidence[full])
        return float(np.average(gaps, weights=self.counts[full])) if full.any() else float("nan")

    @property
    def bias(self) -> float:
        """Mean confidence minus the share of right answers: above 0 the network is too sure of itself."""
        full = self.counts > 0
        gaps = self.confidence[full] - self.right[full]
        return float(np.average(gaps, weights=self.counts[full])) if full.any() else float("nan")


def calibration(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = 10) -> Calibration:
    """Sort answers into `bins` of equal width by their confidence; the upper edge belongs to a bin.

    Args:
        confidence: probability given to each answer, in ``[0, 1]``.
        right: whether each answer was right.
        bins: number of bins.

    >>> found = calibration([0.9, 0.8, 0.6, 0.7], [True, True, False, True])
    >>> round(found.error, 3), round(found.bias, 3)
    (0.3, 0.0)
    """
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if sure.shape != hit.shape or sure.ndim != 1:
        raise ValueError(f"confidence and right must be vectors of one length, not {sure.shape} and {hit.shape}.")
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}.")
    if sure.size and not (sure.min() >= 0 and sure.max() <= 1 + 1e-6):
        raise ValueError("confidence must lie between 0 and 1.")
    edges = np.linspace(0.0, 1.0, bins + 1)
    place = np.clip(np.digitize(sure, edges, right=True) - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(place, weights=values, minlength=bins) / counts for values in (sure, hit)]
    return Calibration(edges, counts, *means)


__all__ = ["Calibration", "calibration"]

"""The numbers behind each layer of a network, from a trace."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, cast

from torch import Tensor

from omegagnn.analysis.spectrum import Thresholds
from omegagnn.analysis.trace import LayerTrace, Trace

OUTPUT = "output of the last layer"
MEASURES = ("energy", "energy_ratio", "relative_energy", "distance", "within", "rank", "gradient", "norm")


@dataclass(frozen=True)
class OmegaMeasures:
    """The ω of a layer, and which share of its channels lies where on the graph (NaN where it has no thresholds)."""

    mean: float
    min: float
    max: float
    smooths: float  # 0 ≤ ω ≤ 1 + 1/d_max: non-negative weights
    mixes: float  # up to ω₀: weights of both signs, the same leading eigenvector
    sharpens: float  # ω < 0 or ω > ω₀


@dataclass(frozen=True)
class LayerMeasures:
    """The features behind one layer (`position` 0: before the first)."""

    position: int
    layer: str
    channels: int
    energy: float
    energy_ratio: float  # E / E⁰
    relative_energy: float  # E / ‖f‖²
    distance: float  # mean cosine distance of all pairs of nodes
    within: float  # of the pairs within one component
    rank: float
    gradient: float | None
    norm: float
    omega: OmegaMeasures | None = None
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # lowest and highest over several members


@dataclass(frozen=True)
class Facts:
    """What is known beside the features; None where it is not."""

    classes: int | None = None
    score: float | None = None  # share of the labels shown that the network gives
    chance: float | None = None  # share of the most frequent one
    homophily: float | None = None  # share of the edges that join nodes of one class
    omega_kept: float | None = None  # mean ω at the kept epoch and at the last
    omega_last: float | None = None
    loss_rise: float | None = None  # validation loss at the last epoch over its best

    @property
    def gain(self) -> float | None:
        """How far the score is on the way from the most frequent class to 1."""
        if self.score is None or self.chance is None or self.chance >= 1:
            return None
        return (self.score - self.chance) / (1 - self.chance)


def layer_rows(result: Trace, convs: list[str], omegas: dict[str, OmegaMeasures]) -> tuple[LayerMeasures, ...]:
    """Keep what entered the layers and, behind the last of them, what entered the next map, else what left the layer."""
    seen = result.layers
    calls = [k for k, each in enumerate(seen) if each.name in convs]
    last = calls[-1] if calls else -1
    behind = [each for each in seen[last + 1 :] if each.name != OUTPUT] or list(seen[last + 1 :])
    kept = [*(seen[k] for k in calls), *behind[:1]]
    first = kept[0].energy
    rows = [_row(0, "input", kept[0], first, None)]
    for k, (before, seen_here) in enumerate(pairwise(kept), start=1):
        label = before.name if before.call == 1 else f"{before.name}, call {before.call}"
        rows.append(_row(k, label, seen_here, first, omegas.get(before.name)))
    return tuple(rows)


def _row(position: int, label: str, seen: LayerTrace, first: Tensor, omega: OmegaMeasures | None) -> LayerMeasures:
    energy = _number(seen.energy)
    return LayerMeasures(
        position=position,
        layer=label,
        channels=seen.channels,
        energy=energy,
        energy_ratio=_number(seen.energy / first),
        relative_energy=_number(seen.relative_energy),
        distance=_number(seen.distance),
        within=_number(seen.within),
        rank=_number(seen.rank),
        gradient=None if seen.gradient is None else _number(seen.gradient),
        norm=_number(seen.norm),
        omega=omega,
    )


def _number(value: Tensor) -> float:
    return float(value.mean())


def omega_measures(omega: Tensor, limits: Thresholds | None) -> OmegaMeasures:
    """Return where the ω of a layer lie with respect to the thresholds of a graph."""
    flat = omega.double().flatten().cpu()
    shares = [math.nan] * 3
    if limits is not None:
        tolerance = 1 + 1e-6  # ω is float32: at 1 it must not lie beyond a threshold of 1
        sharpens = (flat < 0) | (flat > limits.critical * tolerance)
        mixes = ~sharpens & (flat > limits.signs * tolerance)
        shares = [float(kind.double().mean()) for kind in (~sharpens & ~mixes, mixes, sharpens)]
    return OmegaMeasures(float(flat.mean()), float(flat.min()), float(flat.max()), *shares)


def merged_row(rows: Sequence[LayerMeasures]) -> LayerMeasures:
    """Return the mean of the same layer of several members, with the ends of each measure."""
    means = {name: mean([getattr(row, name) for row in rows]) for name in MEASURES}
    spread = {
        name: (min(values), max(values))
        for name in MEASURES
        if (values := [v for row in rows if (v := getattr(row, name)) is not None and math.isfinite(v)])
    }
    omegas = [row.omega for row in rows if row.omega is not None]
    omega = None
    if omegas:
        merged_omega = {
            each.name: cast("float", mean([getattr(o, each.name) for o in omegas])) for each in fields(OmegaMeasures)
        }
        merged_omega |= {"min": min(o.min for o in omegas), "max": max(o.max for o in omegas)}
        omega = OmegaMeasures(**merged_omega)
    return replace(rows[0], **cast("dict[str, Any]", means), omega=omega, spread=spread)


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


__all__ = [
    "OUTPUT",
    "Facts",
    "LayerMeasures",
    "OmegaMeasures",
    "layer_rows",
    "mean",
    "merged_row",
    "omega_measures",
]

"""From the numbers of a diagnosis to plain sentences: a few rules, each with one stated threshold.

The thresholds are justified with measurements in ``docs/diagnosis.md``. A rule says what it found, well or not, and which
numbers it read; what to change is added by whoever knows the settings (`Finding.topic` names the cause).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from omegagnn.analysis.layer_measures import Facts, LayerMeasures

Status = Literal["well", "note", "problem"]

ALIKE = 0.01  # mean cosine distance below which the nodes of a component count as one: an angle of 8 degrees
RANK_SHARE = 0.75  # of the directions that the classes need
CHANNELS_A_DIRECTION = 8  # no more directions than one for so many channels are asked for
VANISHED, EXPLODED = 1e-2, 1e2  # gradient at the first layer over gradient at the last
GROWN = 1e3  # size of a feature at the last layer over its size at the first
FAR_NEGATIVE, MOST = -0.5, 0.5  # mean ω of a layer; share of the channels that sharpen
MIXED = 0.5  # share of the edges between alike nodes below which pushing neighbours apart is right
LEARNT = 0.1  # of the way from the most frequent class to a perfect score
TELLS_APART = 0.5  # of the same way: a network that comes so far has its nodes distinguishable
RISEN = 1.25  # validation loss at the end over its best


@dataclass(frozen=True)
class Finding:
    """One sentence of a reading: what it is about, whether it is well, and what to change where it is not."""

    topic: str
    status: Status
    sentence: str
    remedy: str | None = None
    whose: str = ""  # "In 3 of 10 members: "

    def __str__(self) -> str:
        return f"{self.whose}{self.sentence}" + ("" if self.remedy is None else f" {self.remedy}")

    def to_dict(self) -> dict[str, str | None]:
        """Return the fields."""
        sentence = f"{self.whose}{self.sentence}"
        return {"topic": self.topic, "status": self.status, "sentence": sentence, "remedy": self.remedy}


def read(rows: Sequence[LayerMeasures], facts: Facts) -> list[Finding]:
    """Return the findings of one network, the most telling first."""
    broken = _size(rows)
    if broken is not None and broken.topic == "broken":
        return [broken, *_present(_fit(facts))]
    smoothing = _smoothing(rows, facts)
    return _present(
        smoothing, _rank(rows, facts), _gradient(rows), broken, _omega(rows, facts), _drift(facts), _fit(facts)
    )


def headline(findings: Sequence[Finding], width: int = 130) -> str:
    """Return what the findings that are not well begin with (or, where all is well, the first), in one line."""
    told = [each for each in findings if each.status != "well"] or list(findings[:1])
    line = " · ".join(f"{each.whose}{each.sentence.split(': ')[0].rstrip('.')}" for each in told)
    return line if len(line) <= width else f"{line[: width - 2]} …"


def _present(*findings: Finding | None) -> list[Finding]:
    return [finding for finding in findings if finding is not None]


def depth(row: LayerMeasures) -> str:
    """Name the place of a row in a sentence."""
    return "the input of the first layer" if row.position == 0 else f"layer {row.position} ({row.layer})"


def _reference(rows: Sequence[LayerMeasures]) -> LayerMeasures:
    """Return the row that the last is compared with: the first, unless it holds raw features of another width."""
    return rows[0] if len(rows) < 2 or rows[0].channels == rows[1].channels else rows[1]


def _smoothing(rows: Sequence[LayerMeasures], facts: Facts) -> Finding:
    first, last = rows[0], rows[-1]
    if math.isnan(last.within):
        return Finding("smoothing", "well", "It cannot over-smooth: the graph has no two connected nodes.")
    if last.within >= ALIKE:
        sentence = (
            f"It does not over-smooth: behind {depth(last)} connected nodes differ by a mean cosine distance of "
            f"{last.within:.3g} ({first.within:.3g} before the first; below {ALIKE:g} they are alike)."
        )
        return Finding("smoothing", "well", sentence)
    since = last
    for row in reversed(rows):
        if not row.within < ALIKE:
            break
        since = row
    if since.position == 0:
        sentence = (
            f"The nodes are alike before the first layer (mean cosine distance {first.within:.3g}, below {ALIKE:g}) and stay "
            "so: it is not the depth that smooths, the features bring no differences in."
        )
        topic = "input"
    else:
        sentence = (
            f"It over-smooths: from {depth(since)} on the connected nodes are alike, at a mean cosine distance of "
            f"{since.within:.2g} and {last.within:.2g} at the end (below {ALIKE:g}; {first.within:.2g} before the first layer)."
        )
        topic = "smoothing"
    if facts.gain is not None and facts.gain >= TELLS_APART:
        told = (
            f" Yet the network tells them apart: it gives {100 * (facts.score or 0):.0f} % of the labels it was shown."
        )
        return Finding(topic, "note", sentence + told)
    return Finding(topic, "problem", sentence)


def _rank(rows: Sequence[LayerMeasures], facts: Facts) -> Finding | None:
    last = rows[-1]
    if facts.classes is None or math.isnan(last.rank):
        return None
    needed = min(facts.classes - 1, last.channels / CHANNELS_A_DIRECTION)
    numbers = f"effective rank {last.rank:.1f} of {last.channels} channels behind {depth(last)}"
    if last.rank < RANK_SHARE * needed:
        sentence = f"The features are rank-poor: {numbers}, where {facts.classes} classes want about {needed:.0f}."
        return Finding("rank", "problem", sentence)
    return Finding("rank", "well", f"The features span enough directions for {facts.classes} classes: {numbers}.")


def _gradient(rows: Sequence[LayerMeasures]) -> Finding | None:
    first, last = _reference(rows), rows[-1]
    if first.gradient is None or last.gradient is None or first is last:
        return None
    if not math.isfinite(first.gradient + last.gradient):
        return Finding(
            "explode", "problem", "The gradient of the loss is not finite: the network cannot be trained on."
        )
    if last.gradient == 0:
        sentence = f"No gradient flows: it is 0 behind {depth(last)}, since the loss has no slope there."
        return Finding("gradient", "note", sentence)
    numbers = f"‖∂loss/∂f‖ is {first.gradient:.2g} at {depth(first)} and {last.gradient:.2g} behind {depth(last)}"
    if first.gradient <= VANISHED * last.gradient:
        sentence = f"The gradients vanish: {numbers}; less than a hundredth arrives, so the first layers hardly learn."
        return Finding("vanish", "problem", sentence)
    if first.gradient >= EXPLODED * last.gradient:
        return Finding("explode", "problem", f"The gradients explode on their way back: {numbers}.")
    return Finding("gradient", "well", f"The gradients arrive: {numbers}.")


def _size(rows: Sequence[LayerMeasures]) -> Finding | None:
    for row in rows:
        if not math.isfinite(row.norm):
            return Finding("broken", "problem", f"The features explode: they are not finite from {depth(row)} on.")
        if row.norm == 0:
            return Finding("broken", "problem", f"The network is dead: all features are zero from {depth(row)} on.")
    first, last = _reference(rows), rows[-1]
    if last.norm > GROWN * first.norm:
        sentence = (
            f"The features explode: from {depth(first)} to {depth(last)} they grow {last.norm / first.norm:.2g}-fold."
        )
        return Finding("explode", "problem", sentence)
    return None


def _omega(rows: Sequence[LayerMeasures], facts: Facts) -> Finding | None:
    learnt = [row for row in rows if row.omega is not None]
    if not learnt:
        return None
    omegas = [row.omega for row in learnt if row.omega is not None]
    mean = sum(omega.mean for omega in omegas) / len(omegas)
    numbers = f"ω is {mean:.2f} on average, from {min(o.min for o in omegas):.2f} to {max(o.max for o in omegas):.2f}"
    shares = [sum(getattr(omega, kind) for omega in omegas) / len(omegas) for kind in ("smooths", "mixes", "sharpens")]
    lowest = min(learnt, key=lambda row: row.omega.mean if row.omega is not None else math.inf)
    assert lowest.omega is not None
    if lowest.omega.mean < FAR_NEGATIVE:
        what = f"ω is far negative: {lowest.omega.mean:.2f} on average at {depth(lowest)}"
        return _anti_smoothing(f"{what}; there the layer pushes neighbours apart (anti-smoothing)", facts)
    if shares[2] >= MOST:
        what = f"It anti-smooths: {100 * shares[2]:.0f} % of the channels sharpen, {numbers}"
        return _anti_smoothing(what, facts)
    if any(math.isnan(share) for share in shares):
        return Finding("omega", "well", f"{numbers}.")
    parts = ", ".join(
        f"{100 * share:.0f} % {what}"
        for share, what in zip(shares, ("smooth", "mix signs", "sharpen"), strict=True)
        if share > 0
    )
    return Finding("omega", "well", f"{numbers}: of the channels {parts}.")


def _anti_smoothing(what: str, facts: Facts) -> Finding:
    """Judge an ω that pushes neighbours apart by whether neighbours differ."""
    if facts.homophily is None:
        return Finding("omega", "note", f"{what}: right where neighbours differ in class, overfitting elsewhere.")
    alike = f"{100 * facts.homophily:.0f} % of the edges join nodes of one class"
    if facts.homophily < MIXED:
        return Finding("omega", "well", f"{what}: {alike}, so that is what this graph asks for.")
    return Finding("omega", "problem", f"{what}: {alike}, so that fits noise.")


def _drift(facts: Facts) -> Finding | None:
    if facts.omega_kept is None or facts.omega_last is None or facts.loss_rise is None:
        return None
    falls = facts.omega_last < min(0.0, facts.omega_kept)
    if falls and facts.loss_rise > RISEN:
        sentence = (
            f"ω drifted on after the kept epoch, from {facts.omega_kept:.2f} to {facts.omega_last:.2f}, while the validation "
            f"loss rose {facts.loss_rise:.1f}-fold: longer training overfits by anti-smoothing (the kept weights are older)."
        )
        return Finding("drift", "note", sentence)
    return None


def _fit(facts: Facts) -> Finding | None:
    if facts.gain is None or facts.score is None or facts.chance is None:
        return None
    numbers = f"it gives {100 * facts.score:.0f} % of the labels it was shown, the most frequent class {100 * facts.chance:.0f} %"
    if facts.gain < LEARNT:
        return Finding("fit", "problem", f"It has not learnt (or was not trained yet): {numbers}.")
    if facts.gain < TELLS_APART:
        return Finding("fit", "note", f"It has learnt little: {numbers}.")
    return Finding("fit", "well", f"It has learnt: {numbers}.")


__all__ = ["ALIKE", "EXPLODED", "FAR_NEGATIVE", "GROWN", "VANISHED", "Finding", "depth", "headline", "read"]

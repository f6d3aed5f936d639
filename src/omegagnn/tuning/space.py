"""`Space`: which settings a study searches, in what range, and which of them may differ between runs of one batch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from omegagnn.errors import WrongUse
from omegagnn.training.batch import RATES
from omegagnn.training.config import RunConfig, parse_number

# Each run of a batch has its own of these; whatever else is searched changes the network or its steps, and parts batches.
OWN = frozenset(f"training.{name}" for names in RATES.values() for name in names)
_RANGE = re.compile(r"^\s*(?P<low>[^\s:]+?)\s*\.\.\s*(?P<high>[^\s:]+?)\s*(?P<log>:log)?\s*$")


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, drawn evenly or, with `log`, evenly in their logarithm."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        """Check that there is something between the ends."""
        if not self.low < self.high or (self.log and self.low <= 0):
            raise WrongUse(
                f"{self} is no range: the first number must be smaller than the second, and above 0 for :log."
            )

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}{':log' if self.log else ''}"


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Check that there is a choice, of values that a study can write down."""
        if not self.values:
            raise WrongUse("A choice needs values, such as [0.3, 0.5].")
        odd = next((v for v in self.values if not isinstance(v, (bool, int, float, str, type(None)))), None)
        if odd is not None:
            raise WrongUse(f"A choice is among numbers, words, true, false and null, not {odd!r}.")

    def __str__(self) -> str:
        return yaml.safe_dump(list(self.values), default_flow_style=True, width=10_000).strip()


Dimension = Range | Choice


@dataclass(frozen=True)
class Space:
    """What a study searches: a range or a choice for each dotted key of the configuration."""

    dimensions: Mapping[str, Dimension]

    def own(self) -> dict[str, Dimension]:
        """Return the dimensions in which the runs of one batch may differ."""
        return {key: dimension for key, dimension in self.dimensions.items() if key in OWN}

    def shared(self) -> dict[str, Dimension]:
        """Return the dimensions that all runs of one batch share: shapes, dropouts, the course of the training."""
        return {key: dimension for key, dimension in self.dimensions.items() if key not in OWN}

    def replaced(self, others: Mapping[str, Dimension]) -> Space:
        """Return this space with some dimensions added or replaced."""
        return Space({**self.dimensions, **others})

    def without(self, keys: Any) -> Space:
        """Return this space without some dimensions."""
        return Space({key: dimension for key, dimension in self.dimensions.items() if key not in set(keys)})

    def to_dict(self) -> dict[str, str]:
        """Return the dimensions as they are written, by key."""
        return {key: str(self.dimensions[key]) for key in sorted(self.dimensions)}

    @classmethod
    def from_dict(cls, written: Mapping[str, str]) -> Space:
        """Read what `to_dict` returned."""
        return cls({key: parse_dimension(text) for key, text in written.items()})


def parse_dimension(text: str) -> Dimension:
    """Read ``1e-4..1e-1:log``, ``0.2..0.8`` or ``[64, 128]``."""
    found = _RANGE.match(text)
    if found:
        low, high = parse_number(found["low"]), parse_number(found["high"])
        if not isinstance(low, float) or not isinstance(high, float):
            raise WrongUse(f"{text!r} is no range: its ends must be numbers, such as 1e-4..1e-1:log.")
        return Range(low, high, found["log"] is not None)
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError:
        values = None
    if not isinstance(values, list):
        raise WrongUse(f"{text!r} is neither a range, such as 1e-4..1e-1:log, nor a choice, such as [0.3, 0.5].")
    return Choice(tuple(parse_number(value) for value in values))


def parse_search(word: str) -> tuple[str, Dimension]:
    """Read ``key=range or choice`` as given to ``--search``."""
    key, equals, text = word.partition("=")
    if not equals:
        raise WrongUse(f"--search takes key=range, such as training.lr_oc=1e-3..1e-1:log, not {word!r}.")
    return key.strip(), parse_dimension(text)


def default_space(config: RunConfig) -> Space:
    """Return what is searched for a network unless a study says otherwise: the rates and decays it has, dropouts, depth."""
    model = config.model.name
    ours = model.startswith("omega-")
    layer_dropout = "model.layer_dropout" if ours else "model.options.layer_dropout"
    dimensions: dict[str, Dimension] = {
        "training.lr_oc": Range(1e-3, 1e-1, log=True),
        "training.wd_oc": Range(1e-5, 1e-2, log=True),
        "training.lr_gnn": Range(1e-5, 3e-2, log=True),
        "training.wd_gnn": Range(1e-6, 1e-2, log=True),
        "model.dropout": Choice((0.2, 0.4, 0.5, 0.6, 0.7, 0.8)),
        layer_dropout: Choice((0.0, 0.3, 0.6)),
        "model.layers": Choice((2, 4, 8)),
    }
    if ours:
        dimensions["training.lr_omega"] = Range(1e-4, 1e-1, log=True)
        dimensions["training.wd_omega"] = Range(1e-6, 1e-2, log=True)
    if model == "mlp":
        dimensions["model.layers"] = Choice((1, 2, 3))
    if model in ("sgc", "appnp"):  # their steps have no maps
        dimensions = {key: value for key, value in dimensions.items() if not key.endswith(("_gnn", "layer_dropout"))}
        dimensions["model.layers"] = Choice((2, 4, 8, 10, 16))
    if model == "appnp":
        dimensions["model.options.alpha"] = Choice((0.05, 0.1, 0.2))
    if model == "gcnii":
        dimensions["model.options.alpha"] = Choice((0.1, 0.2, 0.5))
    return Space(dimensions)

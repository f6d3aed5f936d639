"""`Training`: a configuration with its seeds, splits and choices, trained as one run of the journal."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from omegagnn.data.dataset import Dataset
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Plan
from omegagnn.training.presets.preset import Preset, differences, read_preset
from omegagnn.training.repeat import setting_words

QUICK_EPOCHS, QUICK_SEEDS, QUICK_SPLITS, QUICK_CHOICES = 2, 2, 2, 2
Rates = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Training:
    """What is trained for a cell: every seed on every split, with every choice of rates, as the members of one run.

    Args:
        name: what it is called in tables and searched by; no other training has it.
        group: the file of the results that keeps it.
        config: the configuration.
        preset: the preset that the configuration comes from, if it does.
        seeds: seeds on each split.
        splits: how many of the data set's splits, the first ones; None takes all.
        choices: training values, such as rates, to choose from on validation; a single empty one leaves no choice.
        rules: selection rules to keep the outcome of; ``honest`` is always kept.
        also: what else is kept of the trained networks, see `omegagnn.paper.keeping`.
    """

    name: str
    group: str
    config: RunConfig
    preset: Preset | None = None
    seeds: int = 1
    splits: int | None = None
    choices: tuple[Rates, ...] = ({},)
    rules: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @cached_property
    def tag(self) -> str:
        """What makes it this training and no other; it does not depend on what the training is called."""
        content = {
            "config": self.config.canonical(),
            "seeds": self.seeds,
            "splits": self.splits,
            "choices": [dict(choice) for choice in self.choices],
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def plan(self, dataset: Dataset) -> Plan:
        """Return its members: split by split, seed by seed, choice by choice."""
        splits = dataset.splits if self.splits is None else dataset.splits[: self.splits]
        members = [
            (seed, split, dict(choice)) for split in splits for seed in range(self.seeds) for choice in self.choices
        ]
        seeds, of_members, settings = (list(column) for column in zip(*members, strict=True))
        name, digest = (None, None) if self.preset is None else (self.preset.name, self.preset.hash)
        return Plan(
            self.config,
            dataset,
            seeds,
            of_members,
            settings if any(settings) else (),
            name,
            preset_hash=digest,
        )

    def quick(self) -> Training:
        """Return it with so few epochs, seeds, splits and choices that it says whether everything runs, and nothing else."""
        epochs = min(self.config.training.epochs, QUICK_EPOCHS)
        return replace(
            self,
            config=self.config.with_values({"training.epochs": epochs}),
            seeds=min(self.seeds, QUICK_SEEDS),
            splits=min(self.splits or QUICK_SPLITS, QUICK_SPLITS),
            choices=self.choices[:QUICK_CHOICES],
        )

    @property
    def command(self) -> str | None:
        """The command that trains it alone, or None where there is none but that of the table."""
        if self.preset is None or self.splits is not None or len(self.choices) > 1:
            return None
        words = ["omegagnn", "train", "--preset", self.preset.name]
        for key, value in differences(self.preset.config, self.config).items():
            words += setting_words(key, value)
        if self.seeds != self.preset.runs_per_split:
            words += ["--seeds", str(self.seeds)]
        return shlex.join(words)


def from_preset(
    name: str, group: str, called: str, values: Mapping[str, Any] | None = None, **options: Any
) -> Training:
    """Return the training of a preset, with its number of seeds and the rule behind the published score."""
    preset = _preset(name)
    rule = None if preset.published is None or preset.published.rule is None else str(preset.published.rule.value)
    options.setdefault("rules", () if rule is None else (rule,))
    options.setdefault("seeds", preset.runs_per_split)
    return Training(called, group, preset.config.with_values(dict(values or {})), preset, **options)


@cache
def _preset(name: str) -> Preset:
    return read_preset(name)


def unique(trainings: Sequence[Training]) -> list[Training]:
    """Return trainings without repetitions; of equal ones the first, with all that any of them wants kept."""
    found: dict[str, Training] = {}
    for training in trainings:
        known = found.setdefault(training.tag, training)
        rules = tuple(dict.fromkeys((*known.rules, *training.rules)))
        also = tuple(dict.fromkeys((*known.also, *training.also)))
        if (rules, also) != (known.rules, known.also):
            found[training.tag] = replace(known, rules=rules, also=also)
    return list(found.values())


__all__ = ["Rates", "Training", "from_preset", "unique"]

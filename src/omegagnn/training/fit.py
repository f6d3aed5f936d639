"""`fit`: train on a data set from Python, and `Result`: what came of it, read from the journal."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from omegagnn.data import choose_splits as splits_of
from omegagnn.data import load
from omegagnn.data.dataset import Dataset, Split
from omegagnn.errors import DataError, WrongUse
from omegagnn.files import CONFIG, MODEL
from omegagnn.nn.groups import Grouped
from omegagnn.training.build import check_model
from omegagnn.training.checkpoint import read_tensors
from omegagnn.training.config import RunConfig, parse_config
from omegagnn.training.engine import Plan, Progress, Trainer
from omegagnn.training.environment import choose_device
from omegagnn.training.evaluation import Evaluation, evaluate, kept_rule
from omegagnn.training.journal import Journal
from omegagnn.training.metrics import Summary, summarise
from omegagnn.training.prediction import Predictor, Source
from omegagnn.training.presets.preset import Preset, read_preset
from omegagnn.training.presets.settle import settle
from omegagnn.training.protocol import Curve, Outcome, optimism_gap, protocol
from omegagnn.training.sampled import check_steps

if TYPE_CHECKING:
    import pandas as pd


def runs_folder(folder: Path | str | None = None) -> Path:
    """Return where runs are kept: the argument, else ``$OMEGAGNN_RUNS``, else ``./runs``."""
    return Path(folder or os.environ.get("OMEGAGNN_RUNS") or "runs")


@dataclass(frozen=True)
class Result:
    """A run of the journal: its curves under any rule, its ω, its networks."""

    journal: Journal
    run: str

    @cached_property
    def row(self) -> dict[str, Any]:
        """What the journal holds of the run as a whole."""
        return self.journal.run(self.run)

    @cached_property
    def config(self) -> RunConfig:
        """The configuration."""
        return parse_config(json.loads(self.row["config"]))

    @cached_property
    def curves(self) -> list[Curve]:
        """The recorded curve of each member."""
        return self.journal.curves(self.run)

    @property
    def folder(self) -> Path:
        """The run's own folder."""
        return self.journal.folder / self.run

    def outcome(self, rule: str | None = None) -> Outcome:
        """Return what a rule (the run's own by default) makes of the members."""
        return protocol(rule or self.row["protocol"]).outcome(self.curves)

    def scores(self, rule: str | None = None) -> np.ndarray:
        """Return the test score of each member in ``[0, 1]`` under a rule (the run's own by default)."""
        return self.outcome(rule).scores

    def test(self, rule: str | None = None) -> Summary:
        """Return mean, spread and interval of the test score in per cent under a rule."""
        return summarise(self.scores(rule))

    @property
    def optimism_gap(self) -> float:
        """How many points higher the mean would be if each member were read at its best test epoch."""
        return 100 * optimism_gap(self.curves)

    @cached_property
    def _weights(self) -> dict[str, torch.Tensor]:
        return read_tensors(self.folder / MODEL)[0]

    @cached_property
    def predictor(self) -> Predictor:
        """The trained networks at work on any graph that fits them."""
        return Predictor.open(self.folder)

    def network(self, member: int = 0, rule: str = "honest") -> Grouped:
        """Return the network of one member with its best weights, as a batch of one run."""
        return self.predictor.network(member, rule)

    def predict(self, graph: Source, member: int | None = None, data_root: Path | str | None = None) -> pd.DataFrame:
        """Return predictions for a graph with ids and class names: ``id``, ``predicted``, ``p(CLASS)`` for each class.

        Args:
            graph: a `Dataset`, a name, a folder or file, or data frames ``(nodes, edges)``; labels are not looked at.
            member: one member; None takes the mean of the probabilities of all.
            data_root: where data sets lie.
        """
        return self.predictor.table(graph, member, kept_rule(self), data_root=data_root)

    def save_pretrained(self, folder: Path | str, dataset: Dataset | None = None) -> None:
        """Write the trained networks into a folder of their own, with a card; `dataset`, the run's own, is audited there."""
        from omegagnn.training.model_card import run_card
        from omegagnn.training.model_folder import save_model

        predictor = replace(self.predictor, rule=kept_rule(self))
        save_model(predictor, folder, run_card(self, dataset))

    def evaluate(self, data: Source = None, **options: Any) -> Evaluation:
        """Recompute scores on the run's own data or on `data`; the options are those of `omegagnn.training.evaluation`."""
        return evaluate(self, data, **options)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What was written down when the run began: its configuration, and the sizes of its data."""
        found: dict[str, Any] = json.loads((self.folder / CONFIG).read_text(encoding="utf-8"))
        return found

    @cached_property
    def omega(self) -> dict[str, Any] | None:
        """Mean, smallest and largest learnt ω over members, layers and channels, and the mean a layer; None without ω."""
        names = [n for n in self._weights if n.startswith("honest/") and "omega_weight" in n]
        if not names:
            return None
        layers = [self._weights[name].double() for name in names]
        whole = torch.cat([layer.flatten() for layer in layers])
        return {
            "mean": float(torch.stack([layer.mean() for layer in layers]).mean()),
            "min": float(whole.min()),
            "max": float(whole.max()),
            "per_layer": [round(float(layer.mean()), 6) for layer in layers],
        }

    @property
    def split_hashes(self) -> list[str]:
        """The hash of each split that was trained on, in order."""
        return list(dict.fromkeys(member["split_hash"] for member in self.journal.members(self.run)))

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that ``omegagnn train --json`` prints."""
        row = self.row
        return {
            "run": self.run,
            "dataset": row["dataset"],
            "model": row["model"],
            "preset": row["preset"],
            "preset_hash": row["preset_hash"],
            "config_hash": row["config_hash"],
            "split_hashes": self.split_hashes,
            "protocol": row["protocol"],
            "test": self.test().to_dict(),
            "omega": self.omega,
            "seconds": round(row["seconds"], 2),
        }


def choose_splits(dataset: Dataset, splits: str | Sequence[int]) -> list[Split]:
    """Return the splits meant by ``"all"``, by ``"0,3"`` or by their numbers."""
    if not dataset.splits:
        raise WrongUse(f"{dataset.name} has no split: name one, such as --split ratio:0.6,0.2.")
    if splits == "all":
        return list(dataset.splits)
    try:
        numbers = [int(part) for part in splits.split(",")] if isinstance(splits, str) else list(splits)
    except ValueError:
        raise WrongUse(f"Splits are 'all' or numbers such as 0,3, not {splits!r}.") from None
    for number in numbers:
        if not 0 <= number < len(dataset.splits):
            raise WrongUse(f"{dataset.name} has splits 0 to {len(dataset.splits) - 1}, not {number}.")
    return [dataset.splits[number] for number in numbers]


def make_plan(
    dataset: Dataset,
    config: RunConfig,
    seeds: int | Sequence[int] = 1,
    splits: str | Sequence[int] = "all",
    protocol_name: str = "honest",
    preset: Preset | None = None,
) -> Plan:
    """Return every seed on every chosen split as the members of one run."""
    protocol(protocol_name)
    check_model(config.model)
    check_steps(dataset, config)
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not numbers:
        raise WrongUse("At least one seed is needed.")
    chosen = choose_splits(dataset, splits)
    for split in chosen:
        if not split.test.numel():
            raise DataError(f"Split {split.name!r} of {dataset.name} has no test items: choose another split.")
    pairs = [(seed, split) for split in chosen for seed in numbers]
    name, digest = (None, None) if preset is None else (preset.name, preset.hash)
    return Plan(config, dataset, [s for s, _ in pairs], [p for _, p in pairs], (), name, protocol_name, digest)


def fit(
    dataset: str | Dataset | None = None,
    config: RunConfig | None = None,
    *,
    preset: str | None = None,
    seeds: int | Sequence[int] | None = None,
    splits: str | Sequence[int] = "all",
    protocol: str = "honest",
    device: str | None = "cpu",
    runs_dir: Path | str | None = None,
    data_root: Path | str | None = None,
    runs_at_once: int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Result:
    """Train on a data set and return the result.

    All seeds and splits train as one batch and are recorded in the journal of `runs_dir`. `preset` is a name such as
    ``"semi/cora-omega-gcn-64"`` or the path of one's own file; it brings its data set and its number of seeds (else 1). Further
    keywords set values of the configuration, with ``__`` for the dot. Defaults give way to the preset, that to `config`, that
    to `dataset`, that to single values:

    >>> from omegagnn import fit
    >>> result = fit("karate", training__epochs=5, runs_dir=getfixture("tmp_path"))  # doctest: +SKIP
    >>> result.test().n  # doctest: +SKIP
    1
    """
    chosen = None if preset is None else read_preset(preset)
    values = {key.replace("__", "."): value for key, value in settings.items()}
    config = settle(dataset.name if isinstance(dataset, Dataset) else dataset, chosen, config, values)
    if isinstance(dataset, Dataset):
        wanted, config = config.data.split, config.with_values({"data.name": dataset.name})
        data = dataset if wanted is None else dataset.with_splits(splits_of(dataset, wanted))
    else:
        data = load(config.data.name, split=config.data.split, root=data_root)
    if seeds is None:
        seeds = 1 if chosen is None else chosen.runs_per_split
    plan = make_plan(data, config, seeds, splits, protocol, chosen)
    journal = Journal(runs_folder(runs_dir))
    trainer = Trainer.start(plan, journal, choose_device(device), at_once=runs_at_once, progress=progress)
    trainer.train()
    return Result(journal, trainer.run_name)

"""The command that repeats a run, and the plan and preset of a run that the journal holds."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from omegagnn.data.dataset import Dataset
from omegagnn.errors import OmegaError
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Plan
from omegagnn.training.evaluation import splits_of_members
from omegagnn.training.fit import Result
from omegagnn.training.presets.preset import Preset, differences, read_preset

# Keys of the configuration that have an option of their own.
OPTIONS = {
    "data.split": "--split",
    "model.name": "--model",
    "model.layers": "--layers",
    "model.omega": "--omega",
    "training.epochs": "--epochs",
}


def plan_of(result: Result, dataset: Dataset) -> Plan:
    """Return the plan of a run that was trained, from the journal and its data set."""
    members = result.journal.members(result.run)
    settings = [json.loads(member["settings"]) for member in members]
    return Plan(
        result.config,
        dataset,
        [member["seed"] for member in members],
        splits_of_members(result, dataset),
        settings if any(settings) else (),
        result.row["preset"],
        result.row["protocol"],
        result.row["preset_hash"],
    )


def preset_of(row: dict[str, Any]) -> Preset | None:
    """Return the preset of a run, a row of the journal, if it is there and still what it was."""
    if row["preset"] is None:
        return None
    try:
        preset = read_preset(row["preset"])
    except OmegaError:
        return None
    return preset if preset.hash == row["preset_hash"] else None


def repeat_command(plan: Plan, preset: Preset | None, places: dict[str, Path | str | None]) -> str | None:
    """Return the command that trains the same again, without a configuration file; None where there is none.

    Only Python can ask for other seeds than 0, 1, ... and for members with settings of their own.
    """
    seeds = sorted(set(plan.seeds))
    if any(plan.settings) or seeds != list(range(len(seeds))):
        return None
    config, words = plan.config, ["omegagnn", "train"]
    if preset is None:
        words.append(config.data.name)
        base = RunConfig().with_values({"data.name": config.data.name})
    else:
        words += ["--preset", preset.name]
        base = preset.config
    for key, value in differences(base, config).items():
        words += setting_words(key, value)
    words += ["--seeds", str(len(seeds))]
    chosen = {split.hash for split in plan.splits}
    numbers = [k for k, split in enumerate(plan.dataset.splits) if split.hash in chosen]
    if len(numbers) < len(plan.dataset.splits):
        words += ["--splits", ",".join(map(str, numbers))]
    if plan.protocol != "honest":
        words += ["--protocol", plan.protocol]
    return shlex.join(words) + place_words(places)


def place_words(places: dict[str, Path | str | None]) -> str:
    """Return the options about folders and the device as they stand behind a command."""
    return "".join(f" {option} {shlex.quote(str(place))}" for option, place in places.items() if place is not None)


def setting_words(key: str, value: Any) -> list[str]:
    """Return a value of the configuration as options of ``omegagnn train``."""
    if key == "model.options":
        return [word for name, item in value.items() for word in setting_words(f"{key}.{name}", item)]
    if key in OPTIONS and value is not None:
        return [OPTIONS[key], str(value)]
    text = value if isinstance(value, str) else json.dumps(value)
    return ["--set", f"{key}={text}"]


__all__ = ["place_words", "plan_of", "preset_of", "repeat_command", "setting_words"]

"""One configuration from several layers: the defaults, below a preset, below a configuration file, below single values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omegagnn.data.registry import find_or_none
from omegagnn.errors import WrongUse
from omegagnn.training.config import DEFAULT_JOB, RunConfig
from omegagnn.training.presets.names import preset_names
from omegagnn.training.presets.preset import Preset


def settle(
    dataset: str | None = None,
    preset: Preset | None = None,
    config: RunConfig | None = None,
    values: Mapping[str, Any] | None = None,
) -> RunConfig:
    """Return the defaults, replaced by the preset, by what `config` names, by `dataset`, by `values` (dotted keys).

    A preset is for one data set. Another one named by `dataset` or `config` is refused; ``data.name`` among `values` says that
    it is meant. With nothing named at all it is the default job on the embedded data.
    """
    values = dict(values or {})
    layers = preset.config if preset is not None else RunConfig()
    if config is not None:
        layers = layers.with_values(_given(config))
    if dataset is not None:
        layers = layers.with_values({"data.name": registered_name(dataset)})
    if preset is not None and "data.name" not in values:
        _check_dataset(preset, layers.data.name)
    if dataset is None and preset is None and config is None and "data.name" not in values:
        layers = layers.with_values(DEFAULT_JOB)
    if isinstance(values.get("data.name"), str):
        values["data.name"] = registered_name(values["data.name"])
    return layers.with_values(values)


def registered_name(dataset: str) -> str:
    """Return a data set's name as the registry has it (``Cora`` is ``cora``); names it does not know stay as they are."""
    short, colon, arguments = dataset.partition(":")
    entry = find_or_none(short)
    return dataset if entry is None else f"{entry.name}{colon}{arguments}"


def _given(config: RunConfig) -> dict[str, Any]:
    parts = config.model_dump(exclude_unset=True)
    return {f"{part}.{key}": value for part, keys in parts.items() for key, value in keys.items()}


def _check_dataset(preset: Preset, name: str) -> None:
    own = preset.config.data.name
    if name == own:
        return
    task, _, stem = preset.name.partition("/")
    other = f"{task}/{name}{stem.removeprefix(own)}"
    there = f"take --preset {other}, " if other in preset_names() else ""
    raise WrongUse(
        f"Preset {preset.name} is for {own}, not for {name}: {there}leave {name} out, or write --set data.name={name} "
        "to train it with these settings all the same."
    )

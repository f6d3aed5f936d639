"""`Preset`: settings with the source of each value, as a checked, immutable model of its file."""

from __future__ import annotations

import difflib
import hashlib
import json
from functools import cached_property
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from omegagnn.errors import WrongUse
from omegagnn.training.config import RunConfig, parse_config
from omegagnn.training.presets.names import ENDINGS, preset_path
from omegagnn.training.protocol import PROTOCOLS

Source = Literal["paper", "script", "assumed", "measured"]
SOURCES: dict[str, str] = {
    "paper": "printed in the paper",
    "script": "not in the paper, but in a training script of its authors",
    "assumed": "in neither: what the paper refers to, or our choice",
    "measured": "chosen on validation by a study of this repository",
}
PARTS = ("data", "model", "training")

# What a preset must say, so that a later default of this package changes no published recipe.
ALWAYS = (
    "data.name", "data.split", "data.row_normalize", "data.symmetrize", "model.name", "model.layers", "model.channels",
    "model.dropout", "training.lr_gnn", "training.lr_oc", "training.wd_gnn", "training.wd_oc", "training.epochs",
    "training.patience", "training.schedule",
)  # fmt: skip
WITH_OMEGA = (
    "model.omega",
    "model.variant",
    "model.init",
    "model.activation",
    "training.lr_omega",
    "training.wd_omega",
)
WITH_STEPS = ("training.schedule_every", "training.schedule_factor")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Value(_Strict):
    """A value, where it comes from, and what there is to say about that."""

    value: Any = Field(description="the value")
    source: Source = Field(description="paper, script, assumed or measured")
    note: str | None = Field(None, description="why, where the source alone does not tell")

    @property
    def origin(self) -> str:
        """The source with the note, for people."""
        return self.source if self.note is None else f"{self.source}: {self.note}"


class Score(_Strict):
    """A score that stands somewhere, to compare a run with."""

    score: float = Field(ge=0, le=100, description="per cent")
    sd: float | None = Field(None, description="standard deviation, where one is given")
    where: str = Field(description="the table or the file that has it")
    rule: Value | None = Field(None, description="the selection rule behind it; not stated if unset")

    def __str__(self) -> str:
        spread = "" if self.sd is None else f" ± {self.sd:g}"
        if self.rule is None:
            return f"{self.score:g}{spread} ({self.where}; rule not stated)"
        return f"{self.score:g}{spread} ({self.where}; rule {self.rule.value}, {self.rule.origin})"


class _File(_Strict):
    about: str = Field(description="one line")
    rows: tuple[str, ...] = Field(description="tables and rows, or files, that the values stand in")
    published: Score | None = Field(None, description="what the paper reports for it")
    measured: Score | None = Field(None, description="what a study of this repository found with it")
    seeds: Value = Field(description="seeds on each split")
    data: dict[str, Value]
    model: dict[str, Value]
    training: dict[str, Value]


class Preset(_File):
    """A preset: `config` is what it sets, `values` each value with its source by dotted key."""

    name: str

    @cached_property
    def config(self) -> RunConfig:
        """The configuration; whatever the preset does not name is at its default."""
        return parse_config(_tree(self), f"preset {self.name}")

    @property
    def values(self) -> dict[str, Value]:
        """Every value by its dotted key."""
        return {f"{part}.{key}": value for part in PARTS for key, value in getattr(self, part).items()}

    @property
    def runs_per_split(self) -> int:
        """The number of seeds on each split."""
        return int(self.seeds.value)

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON of all values and the number of seeds: sources and notes may be mended."""
        named = {key: _get(self.config.model_dump(mode="json"), key) for key in self.values}
        content = {"values": named, "seeds": self.runs_per_split}
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def reference(self) -> Score | None:
        """What a run of it is compared with: the published score, else the measured one."""
        return self.published or self.measured

    def differences(self, config: RunConfig) -> dict[str, Any]:
        """Return every value of a configuration that is not this preset's, by its dotted key."""
        return differences(self.config, config)


def differences(base: RunConfig, config: RunConfig) -> dict[str, Any]:
    """Return the values, by dotted key, that make `base` into `config`."""
    ours, theirs = base.model_dump(mode="json"), config.model_dump(mode="json")
    return {f"{p}.{key}": value for p in theirs for key, value in theirs[p].items() if ours[p][key] != value}


def read_preset(name: str) -> Preset:
    """Read and check a preset: one of the package by its name, or one's own by its path."""
    path = preset_path(name)
    try:
        # The C loader where PyYAML was built with it: ten times quicker.
        tree = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise WrongUse(f"preset {name} is not YAML: {' '.join(str(error).split())}.") from None
    return parse_preset(tree, name)


def parse_preset(tree: Any, name: str) -> Preset:
    """Check the content of a preset file; every fault is one sentence."""
    if not isinstance(tree, dict):
        raise WrongUse(f"preset {name} must be a mapping with about, rows, seeds, data, model and training.")
    if "name" in tree:
        raise WrongUse(f"preset {name} must not have a key 'name': its file is its name.")
    try:
        preset = Preset.model_validate({**tree, "name": name})
        preset = preset.model_copy(update={"seeds": _positive(preset.seeds)})
    except ValidationError as error:
        raise WrongUse(f"preset {name}: {_explain(error)}") from None
    _check_complete(preset)
    _check_rules(preset)
    if not name.endswith(ENDINGS):
        _check_name(preset)
    return preset


def text_of(tree: dict[str, Any]) -> str:
    """Return the file: a line a value, so that a value and its source are read and changed together."""
    lines = [f"{key}: {_flow(tree[key])}" for key in ("about", "rows", "published", "measured", "seeds") if key in tree]
    for part in PARTS:
        lines.append(f"{part}:")
        lines += [f"  {key}: {_flow(leaf)}" for key, leaf in tree[part].items()]
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    return text.removesuffix("...\n").strip()


class _Seeds(BaseModel):
    value: PositiveInt


def _positive(seeds: Value) -> Value:
    return seeds.model_copy(update={"value": _Seeds.model_validate({"value": seeds.value}).value})


def needed_keys(config: RunConfig) -> list[str]:
    """Return the keys that a preset with a configuration must name, in the order of a file."""
    needed = list(ALWAYS)
    if config.model.name.startswith("omega-"):
        needed += WITH_OMEGA
    if config.model.name == "omega-gat":
        needed.append("model.heads")
    if config.training.schedule == "step":
        needed += WITH_STEPS
    return needed


def _check_complete(preset: Preset) -> None:
    config, given = preset.config, preset.values
    needed = needed_keys(config)
    if preset.name.startswith(("graph/", "inductive/")):
        needed.append("training.batch_size")
    missing = [key for key in needed if key not in given]
    if missing:
        raise WrongUse(f"preset {preset.name} lacks {missing[0]}: give it a value and a source.")


def _check_rules(preset: Preset) -> None:
    for score in (preset.published, preset.measured):
        if score is not None and score.rule is not None and score.rule.value not in PROTOCOLS:
            near = _near(str(score.rule.value), PROTOCOLS) or ": "
            raise WrongUse(
                f"preset {preset.name} names a rule {score.rule.value!r} that does not exist{near}"
                f"choose one of {', '.join(PROTOCOLS)}."
            )


def _check_name(preset: Preset) -> None:
    expected = name_of(preset.config)
    if preset.name.split("/", 1)[1] != expected:
        raise WrongUse(f"preset {preset.name} holds the settings of {expected}: rename the file or mend its values.")


def name_of(config: RunConfig) -> str:
    """Return what a preset with a configuration is called: ``<dataset>-<model>-<depth>[-<scope>]``."""
    model = config.model
    scope = f"-{model.omega}" if model.name.startswith("omega-") and model.omega != "channel" else ""
    return f"{config.data.name}-{model.name}-{model.layers}{scope}"


def _tree(preset: Preset) -> dict[str, dict[str, Any]]:
    return {part: {key: value.value for key, value in getattr(preset, part).items()} for part in PARTS}


def _get(tree: dict[str, Any], key: str) -> Any:
    part, name = key.split(".", 1)
    return tree[part][name]


def _explain(error: ValidationError) -> str:
    """Say the first fault in a sentence, with the nearest word that would do."""
    fault = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in fault["loc"])
    last = str(fault["loc"][-1])
    if fault["type"] == "extra_forbidden":
        inside = len(fault["loc"]) > 1
        known = [*Value.model_fields, *Score.model_fields] if inside else list(_File.model_fields)
        return f"there is no key {key!r}{_near(last, known)}"
    if fault["type"] == "literal_error" and last == "source":
        words = get_args(Source)
        return f"{key} cannot be {fault['input']!r}{_near(str(fault['input']), words) or ': '}choose one of {', '.join(words)}."
    if fault["type"] == "missing":
        return f"{key} is missing."
    if fault["type"] == "model_type":
        return f"{key} must be written {{value: ..., source: ...}}, not {fault['input']!r}."
    return f"{key} cannot be {fault['input']!r}: {fault['msg'].lower()}."


def _near(word: str, words: Any) -> str:
    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f", did you mean {near[0]!r}? " if near else ""

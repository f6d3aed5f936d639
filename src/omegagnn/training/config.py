"""What a run is made of, as checked, immutable models: data, network, training. YAML in and out."""

from __future__ import annotations

import difflib
import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    field_validator,
)

from omegagnn.errors import WrongUse

ROW_NORMALISED = frozenset({"cora", "citeseer", "pubmed"})  # citation bags of words, as every published script has them

# What `omegagnn train` does without arguments, chosen on validation accuracy alone: `results/default_job.json`.
DEFAULT_JOB: dict[str, Any] = {"data.name": "citeseer", "training.lr_oc": 0.08}

# Training values that came later than the first hashes.
LATER = ("sampler", "batch_nodes", "fan_outs", "shards")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataConfig(_Part):
    """The data set and what is done to it before training."""

    name: str = Field("citeseer", description="data set: a registered name or an imported one")
    split: str | None = Field(
        None, description="which splits, such as public, geom, random-20:100; the data set's own if unset"
    )
    row_normalize: bool | None = Field(
        None, description="scale each feature row to sum 1; unset: for citation data only"
    )
    symmetrize: bool = Field(True, description="add the missing direction of directed edges")

    @property
    def normalizes_rows(self) -> bool:
        """Whether feature rows are normalised for this data set."""
        return self.name in ROW_NORMALISED if self.row_normalize is None else self.row_normalize


class ModelConfig(_Part):
    """The network. Options beyond `dropout` describe OmegaNet; a baseline takes its own under `options`."""

    name: str = Field("omega-gcn", description="omega-gcn, omega-gat or a baseline such as gcn, gat, gcnii, appnp, mlp")
    layers: NonNegativeInt = Field(2, description="number of ωGNN layers L")
    channels: PositiveInt = Field(64, description="hidden channels c")
    omega: Literal["channel", "layer", "global"] | float = Field("channel", description="scope of ω, or a fixed number")
    dropout: float = Field(0.5, ge=0.0, lt=1.0, description="p of the paper's two dropouts")
    layer_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="p of dropout between layers (the paper has none)")
    heads: PositiveInt = Field(1, description="attention heads")
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="p of dropout on attention coefficients")
    variant: Literal["paper", "authors"] = Field(
        "paper", description="the paper's architecture or the released script's"
    )
    init: Literal["identity", "glorot"] = Field("identity", description="start of square K")
    norm: Literal["batch", "layer", "pair"] | None = Field(None, description="normalisation after each layer")
    activation: Literal["relu"] | None = Field("relu", description="σ of the layers")
    residual: Literal["previous", "initial"] | None = Field(None, description="residual connection")
    bias: bool = Field(False, description="biases in every map (the paper has none)")
    options: dict[str, Any] = Field(default_factory=dict, description="further options of a baseline")


class TrainingConfig(_Part):
    """Optimiser, length and arithmetic. The three groups are the paper's: ωGNN layers, opening/closing, ω."""

    lr_gnn: NonNegativeFloat = Field(1e-4, description="learning rate of K and attention")
    lr_oc: NonNegativeFloat = Field(0.01, description="learning rate of opening, closing, norms and 1×1 maps")
    lr_omega: NonNegativeFloat = Field(0.005, description="learning rate of ω")
    wd_gnn: NonNegativeFloat = Field(1e-4, description="weight decay of K and attention")
    wd_oc: NonNegativeFloat = Field(5e-4, description="weight decay of opening, closing, norms and 1×1 maps")
    wd_omega: NonNegativeFloat = Field(0.0, description="weight decay of ω")
    epochs: PositiveInt = Field(1500, description="longest training")
    patience: PositiveInt | None = Field(
        100, description="stop when neither validation loss nor score improved for so long"
    )
    batch_size: PositiveInt = Field(32, description="graphs a step, for tasks of many graphs")
    sampler: Literal["none", "neighbor", "cluster", "node"] = Field(
        "none", description="what a step on one graph sees: all of it, neighbourhoods, clusters or random nodes"
    )
    batch_nodes: PositiveInt = Field(
        1024,
        description="nodes a step of a sampler: training nodes for neighbor, nodes of the part for cluster and node",
    )
    fan_outs: tuple[int, ...] = Field(
        (10,), description="neighbours kept a hop by neighbor, -1 for all; the last number holds for further layers"
    )
    shards: PositiveInt = Field(1, description="parts of a step, which the processes of torchrun share")
    schedule: Literal["constant", "step", "cosine"] = Field("constant", description="course of the learning rates")
    schedule_every: PositiveInt = Field(50, description="epochs between two drops of the step schedule")
    schedule_factor: PositiveFloat = Field(0.5, description="factor of each drop of the step schedule")
    clip: PositiveFloat | None = Field(None, description="largest gradient norm of a run")
    precision: Literal["float32", "float64", "tf32", "bfloat16"] = Field("float32", description="arithmetic")

    @field_validator("fan_outs")
    @classmethod
    def _check_fan_outs(cls, fan_outs: tuple[int, ...]) -> tuple[int, ...]:
        if not fan_outs or any(fan_out < 1 and fan_out != -1 for fan_out in fan_outs):
            raise ValueError("give a list of numbers of at least 1, or -1 for all neighbours")
        return fan_outs

    def rate_factor(self, epoch: int) -> float:
        """Return what the learning rates are multiplied with in an epoch (counted from 1)."""
        if self.schedule == "step":
            return self.schedule_factor ** ((epoch - 1) // self.schedule_every)
        if self.schedule == "cosine":
            import math

            return 0.5 * (1 + math.cos(math.pi * (epoch - 1) / self.epochs))
        return 1.0


class RunConfig(_Part):
    """Everything that decides a result, apart from seeds and the choice among the splits."""

    data: DataConfig = Field(default_factory=DataConfig)
    model: ModelConfig = Field(default_factory=ModelConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON: equal hashes, equal runs."""
        text = json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def canonical(self) -> dict[str, Any]:
        """Return all values as JSON holds them, without what came later than the first hashes and is at its default."""
        tree = self.model_dump(mode="json")
        defaults = TrainingConfig()
        for key in LATER:
            if getattr(self.training, key) == getattr(defaults, key):
                del tree["training"][key]
        return tree

    def with_values(self, values: dict[str, Any]) -> RunConfig:
        """Return a copy with dotted keys replaced, such as ``{"training.lr_omega": 0.01}``."""
        tree = self.model_dump()
        for key, value in values.items():
            *path, last = key.split(".")
            node = tree
            for part in path:
                if not isinstance(node.get(part), dict):
                    raise WrongUse(_unknown_key(key))
                node = node[part]
            if last not in node and path != ["model", "options"]:
                raise WrongUse(_unknown_key(key))
            node[last] = value
        return parse_config(tree)

    def to_yaml(self) -> str:
        """Return the configuration as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def config_keys() -> list[str]:
    """Return every dotted key that can be set."""
    parts: dict[str, type[BaseModel]] = {"data": DataConfig, "model": ModelConfig, "training": TrainingConfig}
    return [f"{part}.{key}" for part, model in parts.items() for key in model.model_fields]


def parse_config(tree: Any, source: str = "the configuration") -> RunConfig:
    """Check a nested mapping; every fault is one sentence with the key, the value and what would do."""
    if not isinstance(tree, dict):
        raise WrongUse(f"{source} must be a mapping with the parts data, model and training.")
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in fault["loc"] if not str(part).startswith(("literal", "float", "int")))
        if fault["type"] == "extra_forbidden":
            raise WrongUse(f"{source}: {_unknown_key(key)}") from None
        raise WrongUse(
            f"{source}: {key} cannot be {fault['input']!r}: {fault['msg'].lower().removeprefix('value error, ')}."
        ) from None


def read_config(path: Path) -> RunConfig:
    """Read a YAML file."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WrongUse(f"There is no configuration file {path}: check the path.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise WrongUse(f"{path} is not YAML: {' '.join(str(error).split())}.") from None
    return parse_config(tree, str(path))


def parse_setting(setting: str) -> tuple[str, Any]:
    """Parse ``key=value`` as given to ``--set``; the value is read as YAML."""
    key, equals, value = setting.partition("=")
    if not equals:
        raise WrongUse(f"--set takes key=value, such as training.lr_omega=0.01, not {setting!r}.")
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError:
        raise WrongUse(
            f"--set {key.strip()} takes a value as YAML has it, such as 0.01, null or [a, b], not {value!r}."
        ) from None
    return key.strip(), parse_number(parsed)


def parse_number(value: Any) -> Any:
    """Return a number that YAML 1.1 takes for text, such as 1e-3, as a number; anything else as it is."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value)
    return value


def _unknown_key(key: str) -> str:
    near = difflib.get_close_matches(key, config_keys(), n=1, cutoff=0.4)
    last = difflib.get_close_matches(
        key.rsplit(".", 1)[-1], [k.rsplit(".", 1)[-1] for k in config_keys()], n=1, cutoff=0.6
    )
    if last:
        near = [k for k in config_keys() if k.endswith("." + last[0])]
    return f"there is no setting {key!r}" + (f", did you mean {near[0]!r}?" if near else ".")

"""Configurations: round trips, hashes, and one sentence for each fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from omegagnn.errors import WrongUse
from omegagnn.training.config import RunConfig, config_keys, parse_config, parse_setting, read_config


def test_yaml_round_trip_keeps_the_hash(tmp_path: Path) -> None:
    config = RunConfig().with_values({"training.lr_omega": 0.005, "model.omega": "global", "data.name": "cora"})
    path = tmp_path / "c.yaml"
    path.write_text(config.to_yaml())
    again = read_config(path)
    assert again == config
    assert again.hash == config.hash
    assert config.hash != RunConfig().hash


def test_configurations_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        RunConfig().model.layers = 3  # type: ignore[misc]


def test_omega_may_be_a_scope_or_a_number() -> None:
    assert RunConfig().with_values({"model.omega": 0.5}).model.omega == 0.5
    assert RunConfig().with_values({"model.omega": "layer"}).model.omega == "layer"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("training.lr_omega=0.01", ("training.lr_omega", 0.01)),
        ("training.wd_oc=1e-4", ("training.wd_oc", 1e-4)),
        ("training.patience=null", ("training.patience", None)),
        ("data.symmetrize=false", ("data.symmetrize", False)),
        ("model.name=gcn", ("model.name", "gcn")),
    ],
)
def test_settings_are_read_as_values(setting: str, expected: tuple[str, object]) -> None:
    assert parse_setting(setting) == expected


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"training.lr_omga": 1}, r"there is no setting 'training.lr_omga', did you mean 'training.lr_omega'\?"),
        ({"trainng.lr_omega": 1}, r"there is no setting 'trainng.lr_omega', did you mean 'training.lr_omega'\?"),
        ({"zzz": 1}, "there is no setting 'zzz'"),
        ({"model.layers": -1}, "model.layers cannot be -1: input should be greater than or equal to 0"),
        ({"model.dropout": 1.0}, "model.dropout cannot be 1.0: input should be less than 1"),
        ({"training.precision": "float8"}, "training.precision cannot be 'float8'"),
        ({"model.omega": "chanel"}, "model.omega cannot be 'chanel'"),
    ],
)
def test_faults_are_one_sentence(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(WrongUse, match=sentence) as caught:
        RunConfig().with_values(values)
    assert "\n" not in str(caught.value)


def test_unknown_keys_in_files_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("model: {layer: 3}\n")
    with pytest.raises(WrongUse, match=r"c.yaml: there is no setting 'model.layer', did you mean 'model.layers'\?"):
        read_config(path)
    path.write_text("- 1\n")
    with pytest.raises(WrongUse, match="must be a mapping"):
        read_config(path)
    path.write_text("a: [\n")
    with pytest.raises(WrongUse, match="is not YAML"):
        read_config(path)
    with pytest.raises(WrongUse, match="no configuration file"):
        read_config(tmp_path / "none.yaml")
    with pytest.raises(WrongUse, match="--set takes key=value"):
        parse_setting("training.epochs")


def test_every_key_is_described() -> None:
    assert "training.lr_omega" in config_keys()
    for part in ("data", "model", "training"):
        fields = type(getattr(RunConfig(), part)).model_fields
        assert all(field.description for field in fields.values())


def test_schedules() -> None:
    constant = RunConfig().training
    step = RunConfig().with_values({"training.schedule": "step", "training.schedule_every": 10}).training
    cosine = RunConfig().with_values({"training.schedule": "cosine", "training.epochs": 100}).training
    assert constant.rate_factor(99) == 1.0
    assert [step.rate_factor(epoch) for epoch in (1, 10, 11, 21)] == [1.0, 1.0, 0.5, 0.25]
    assert cosine.rate_factor(1) == 1.0
    assert cosine.rate_factor(51) == pytest.approx(0.5)


def test_citation_features_are_normalised_unless_told() -> None:
    assert RunConfig().data.normalizes_rows
    assert not RunConfig().with_values({"data.row_normalize": False}).data.normalizes_rows
    assert not parse_config({"data": {"name": "chameleon"}}).data.normalizes_rows

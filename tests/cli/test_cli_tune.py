"""`omegagnn tune` and `omegagnn presets create` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omegagnn.cli import main
from omegagnn.training.presets.preset import read_preset

SMALL = [
    "tune", "karate", "--trials", "3", "--seeds", "2", "--epochs", "10", "--batch", "2", "--set", "model.channels=8",
]  # fmt: skip


def call(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def test_a_search_is_told_its_winner_becomes_a_preset_and_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*SMALL, "--runs-dir", tmp_path, "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["budget"] == {"trials": 3, "seeds": 2, "splits": 1, "epochs": 10}
    assert "0 of 3 trials are done" in err
    assert "3 of 3 trials, best accuracy" in err
    assert call(*SMALL, "--runs-dir", tmp_path) == 0  # the same command finds its study, which has nothing left to do
    out, err = capsys.readouterr()
    assert "3 of 3 trials are done" in err
    assert found["hash"] in out
    (line,) = (line.split(None, 1)[1] for line in out.splitlines() if line.startswith("  next"))
    assert line == f"omegagnn presets create {found['study']} --runs-dir {tmp_path}"
    path = tmp_path / "best.yaml"
    assert call(*line.split()[1:], "--out", path) == 0
    assert found["hash"] in capsys.readouterr().out
    assert read_preset(str(path)).config.hash == found["config_hash"]
    assert call("train", "--preset", path, "--seeds", "1", "--runs-dir", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["config_hash"] == found["config_hash"]


def test_what_is_set_is_not_searched_and_only_searches_what_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--search", "training.lr_gnn=1e-3..1e-2:log", "--runs-dir", tmp_path, "--json"]
    assert call(*SMALL, "--set", "training.lr_oc=0.02", "--set", "model.layers=1", *options) == 0
    settings = json.loads(capsys.readouterr().out)["winner"]["settings"]
    assert {"training.lr_oc", "model.layers"}.isdisjoint(settings)
    assert 1e-3 <= settings["training.lr_gnn"] <= 1e-2
    assert call(*SMALL, "--only", *options) == 0
    assert list(json.loads(capsys.readouterr().out)["winner"]["settings"]) == ["training.lr_gnn"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--search", "training.lr_oc=fast"], "neither a range, such as 1e-4..1e-1:log, nor a choice"),
        (["--search", "training.lr=[0.1]"], "there is no setting 'training.lr'"),
        (["--objective", "test"], "There is no objective 'test': choose one of accuracy, loss."),
        (["--only"], "A study needs something to search"),
        (["--model", "gnc"], "There is no model 'gnc'"),
        (["--storage", "no-such://place"], "The storage no-such://place cannot be opened"),
    ],
)
def test_wrong_use_is_one_sentence(
    more: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*SMALL, *more, "--runs-dir", tmp_path) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.glob("studies/*/*-gcn-*"))  # no run was begun


def test_a_preset_of_no_study_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("presets", "create", "nothing", "--runs-dir", tmp_path) == 2
    assert "There is no study 'nothing'" in capsys.readouterr().err

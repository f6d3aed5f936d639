"""Presets on the command line: listed, shown, trained, and told of at the end."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from omegagnn.cli import main
from omegagnn.data import load
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Plan, Trainer
from omegagnn.training.fit import make_plan
from omegagnn.training.journal import Journal
from omegagnn.training.presets.names import TASKS, preset_names
from omegagnn.training.presets.preset import read_preset
from omegagnn.training.repeat import repeat_command

TUNED = "tuned/citeseer-omega-gcn-2"  # on the data set that comes with the package
PUBLISHED = "semi/citeseer-omega-gcn-2"


def call(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def run_again(command: str, *more: str) -> dict[str, object]:
    """Run a command that was printed, in a shell of its own, and return its JSON."""
    words = shlex.split(command)
    assert words[0] == "omegagnn"
    whole = [sys.executable, "-m", "omegagnn", *words[1:], *more, "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(whole, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lines_of(summary: str) -> dict[str, str]:
    return {line[2:16].strip(): line[17:] for line in summary.splitlines() if line.startswith("  ")}


def test_presets_are_listed_by_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("presets", "list") == 0
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header == ["preset", "published", "measured", "what"]
    assert [row[0] for row in rows] == preset_names()
    for task in TASKS:
        assert call("presets", "list", "--task", task, "--json") == 0
        listed = json.loads(capsys.readouterr().out)
        assert [row["name"] for row in listed] == preset_names(task)
    assert listed[-1]["measured"] == read_preset(preset_names("tuned")[-1]).measured.score  # type: ignore[union-attr]


def test_a_preset_is_shown_with_the_source_of_each_value(capsys: pytest.CaptureFixture[str]) -> None:
    preset = read_preset("semi/cora-omega-gcn-64")
    assert call("presets", "show", preset.name) == 0
    shown = capsys.readouterr().out
    assert preset.hash in shown
    assert "85.9 (Table 2; rule validation-accuracy, script" in shown
    for row in ("training.lr_gnn\t0.01\tpaper\n", "training.patience\t400\tscript\n", "model.norm\tnull\tpaper\n"):
        assert row in shown
    assert "assumed: in neither" in shown
    assert "note on training.schedule: no schedule is mentioned\n" in shown
    assert call("presets", "show", preset.name, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hash"] == preset.hash
    assert found["values"]["training.wd_oc"] == {"value": 8e-05, "source": "paper", "note": None}
    assert found["values"].keys() == {"seeds", *preset.values}


def test_a_preset_brings_its_data_set_and_seeds_and_options_win(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("training: {lr_oc: 0.5, lr_gnn: 0.5, epochs: 9}\n")
    line = ["--preset", TUNED, "--config", config, "--epochs", "2", "--set", "training.lr_gnn=0.25"]
    assert call("train", *line, "--runs-dir", tmp_path, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    preset = read_preset(TUNED)
    assert (result["dataset"], result["preset"], result["preset_hash"]) == ("citeseer", preset.name, preset.hash)
    assert result["test"]["n"] == preset.runs_per_split == 5
    wanted = {"training.lr_oc": 0.5, "training.lr_gnn": 0.25, "training.epochs": 2}
    assert result["config_hash"] == preset.config.with_values(wanted).hash
    assert call("runs", "show", "last", "--runs-dir", tmp_path) == 0
    shown = capsys.readouterr().out
    for words in (f"preset: {TUNED}  # {preset.hash}", f"hash: {result['config_hash']}", result["split_hashes"][0]):
        assert words in shown
    rules = {row.split("\t")[0]: row.split("\t") for row in shown.splitlines() if "\t" in row}
    assert list(rules)[1:] == ["honest", "validation-accuracy", "gcnii", "gin", "authors-tu"]
    assert all(len(row) == 8 for row in rules.values())
    assert rules["gin"][1] == "test (optimistic)"
    assert call("runs", "show", "last", "--runs-dir", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["preset_hash"] == preset.hash


def test_the_summary_compares_and_tells_how_to_repeat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["--preset", PUBLISHED, "--seeds", "2", "--epochs", "3", "--set", "training.clip=1.5"]
    assert call("train", *line, "--runs-dir", tmp_path / "my runs") == 0
    out = capsys.readouterr().out
    assert out.startswith("omega-gcn, 2 layers × 256 channels on citeseer: 2 seeds × 1 split, ")
    lines = lines_of(out)
    assert lines["published"].startswith("71.3 (Table 2, rule validation-accuracy); by that rule this run has ")
    assert lines["preset"] == f"{PUBLISHED}, changed: training.epochs=3 training.clip=1.5"
    assert "95 % interval" in lines["test accuracy"]
    assert Path(lines["model"]).is_file()
    assert lines["next"].startswith(f"omegagnn runs show {lines['run']} --runs-dir ")
    again = run_again(lines["repeat"])
    assert call("runs", "show", lines["run"], "--runs-dir", tmp_path / "my runs", "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert again["test"] == first["test"]["honest"]
    for key in ("preset", "preset_hash", "config_hash", "split_hashes"):
        assert again[key] == first[key]


def test_a_run_without_a_preset_is_repeated_without_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        "data: {name: 'csbm:nodes=80', split: 'ratio:0.5,0.2:3'}\nmodel: {name: gcnii, options: {alpha: 0.2}}\n"
    )
    line = ["--config", config, "--epochs", "2", "--seeds", "2", "--splits", "0,2", "--protocol", "authors-tu"]
    assert call("train", *line, "--set", "training.patience=null", "--runs-dir", tmp_path) == 0
    out = capsys.readouterr().out
    assert "authors-tu (optimistic: looks at test labels)" in out
    lines = lines_of(out)
    config.unlink()
    again = run_again(lines["repeat"])
    assert call("runs", "show", lines["run"], "--runs-dir", tmp_path, "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert again["test"] == first["test"]["authors-tu"]
    assert (again["config_hash"], again["split_hashes"]) == (first["config_hash"], first["split_hashes"])
    assert "published" not in lines


def test_what_the_command_line_cannot_ask_for_has_no_command() -> None:
    data = load("karate")
    config = RunConfig().with_values({"data.name": "karate"})
    assert repeat_command(make_plan(data, config, [3, 7]), None, {}) is None
    plan = Plan(config, data, [0, 1], [data.splits[0]] * 2, [{"lr_oc": 0.1}, {"lr_oc": 0.2}])
    assert repeat_command(plan, None, {}) is None
    assert repeat_command(make_plan(data, config, 3), None, {"--device": "cpu"}) == (
        "omegagnn train karate --seeds 3 --device cpu"
    )


def test_a_measured_preset_is_compared_with_its_measurement(
    tmp_path: Path, shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["--preset", "tuned/cora-omega-gcn-2", "--epochs", "2", "--seeds", "1", "--data-root", shared_data]
    assert call("train", *line, "--runs-dir", tmp_path) == 0
    measured = read_preset("tuned/cora-omega-gcn-2").measured
    assert measured is not None
    lines = lines_of(capsys.readouterr().out)
    assert lines["measured"] == f"{measured.score:g} ± {measured.sd:g} (results/depth_cora.json, rule honest)"
    assert "changed: training.epochs=2" in lines["preset"]
    assert "--data-root" in lines["repeat"]


def test_another_network_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["--preset", PUBLISHED, "--seeds", "1", "--epochs", "2", "--layers", "1", "--omega", "layer"]
    assert call("train", *line, "--runs-dir", tmp_path) == 0
    out = capsys.readouterr().out
    assert out.startswith("omega-gcn, 1 layer × 256 channels, ω: layer on citeseer: 1 seed × 1 split, ")
    lines = lines_of(out)
    assert "published" not in lines
    assert "--layers 1 --omega layer" in lines["repeat"]


def test_elsewhere_nothing_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["--preset", PUBLISHED, "--set", "data.name=karate", "--set", "data.split=leaders", "--epochs", "2"]
    assert call("train", *line, "--seeds", "1", "--runs-dir", tmp_path) == 0
    lines = lines_of(capsys.readouterr().out)
    assert "published" not in lines
    assert "--set data.name=karate" in lines["repeat"]


def test_names_have_their_case_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("train", "CiteSeer", "--epochs", "2", "--seeds", "1", "--runs-dir", tmp_path, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["config_hash"] == RunConfig().with_values({"training.epochs": 2}).hash


@pytest.mark.parametrize("state", ["same", "changed", "gone"])
def test_a_resumed_run_is_compared_with_its_preset_if_that_is_still_the_same(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = read_preset(PUBLISHED)
    plan = make_plan(load("citeseer"), preset.config.with_values({"training.epochs": 2}), 1, preset=preset)
    journal = Journal(tmp_path)
    run = Trainer.start(plan, journal, torch.device("cpu")).run_name
    if state == "changed":
        journal.update(run, preset_hash="0" * 64)
    elif state == "gone":
        journal.update(run, preset="semi/of-another-version")
    assert call("train", "--resume", run, "--runs-dir", tmp_path) == 0
    lines = lines_of(capsys.readouterr().out)
    assert ("preset" in lines) == ("published" in lines) == (state == "same")
    assert lines["repeat"].startswith(f"omegagnn train {f'--preset {PUBLISHED}' if state == 'same' else 'citeseer'} ")

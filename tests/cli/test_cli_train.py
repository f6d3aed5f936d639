"""``omegagnn train`` and ``omegagnn runs`` as a user calls them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omegagnn.cli import main

QUICK = ["--seeds", "2", "--epochs", "4"]


def call(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def test_training_the_embedded_data_ends_with_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("train", *QUICK, "--runs-dir", tmp_path) == 0
    out = capsys.readouterr()
    for words in ("omega-gcn, 2 layers × 64 channels on citeseer", "test accuracy", "selected by    honest", "ω  "):
        assert words in out.out
    assert "best test epoch would add" in out.out
    assert "warning:" in out.err
    # Its six classes are equally common in training.
    assert re.search(r"^  guessing +16\.67 % by always answering the commonest class", out.out, re.MULTILINE)
    assert "not written yet: omegagnn report citeseer-" in out.out


def test_the_page_about_a_run_is_written_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("train", "karate", *QUICK, "--runs-dir", tmp_path, "--report") == 0
    lines = capsys.readouterr().out
    found = re.search(r"^  report +(\S+report\.html)$", lines, re.MULTILINE)
    assert found is not None, lines
    assert found[1].startswith(str(tmp_path))
    assert "karate" in Path(found[1]).read_text(encoding="utf-8")


def test_json_is_one_line_of_the_designed_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        call("train", "karate", *QUICK, "--runs-dir", tmp_path, "--json", "--model", "omega-gat", "--omega", "0.5") == 0
    )
    result = json.loads(capsys.readouterr().out)
    designed = {"run", "dataset", "model", "preset", "protocol", "test", "omega", "seconds"}
    assert set(result) == designed | {"preset_hash", "config_hash", "split_hashes"}
    assert set(result["test"]) == {"mean", "sd", "low", "high", "n"}
    assert set(result["omega"]) == {"mean", "min", "max", "per_layer"}
    assert result["omega"]["mean"] == 0.5
    assert result["test"]["n"] == 2


def test_a_file_options_and_settings_are_taken_in_that_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("data: {name: karate}\nmodel: {layers: 3, channels: 4}\ntraining: {epochs: 50}\n")
    arguments = [
        "--config",
        config,
        "--layers",
        "5",
        "--set",
        "training.epochs=3",
        "--runs-dir",
        tmp_path,
        "--seeds",
        "1",
    ]
    assert call("train", *arguments) == 0
    assert "omega-gcn, 5 layers × 4 channels on karate" in capsys.readouterr().out
    assert call("runs", "show", "last", "--runs-dir", tmp_path) == 0
    assert "epochs: 3" in capsys.readouterr().out


def test_baselines_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("train", "karate", *QUICK, "--runs-dir", tmp_path, "--model", "gcn") == 0
    out = capsys.readouterr().out
    assert "gcn, 2 layers" in out
    assert "ω" not in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "karat"], "There is no data set 'karat'"),
        (["train", "--set", "training.lr_omga=1"], "did you mean 'training.lr_omega'?"),
        (["train", "--set", "epochs"], "--set takes key=value"),
        (["train", "--protocol", "best"], "There is no protocol 'best'"),
        (["train", "--model", "gnc"], "There is no model 'gnc'"),
        (["train", "--device", "tpu"], "There is no device 'tpu'"),
        (["train", "--seeds", "0"], "--seeds"),
        (["train", "--omega", "chanel"], "model.omega cannot be 'chanel'"),
        (["train", "--splits", "9"], "has splits 0 to 0, not 9"),
        (["train", "--split", "nonsense"], "There is no split 'nonsense' for citeseer"),
        (["train", "--config", "none.yaml"], "There is no configuration file none.yaml"),
        (["train", "--resume", "last"], "There is no journal in"),
        (["runs", "list"], "There is no journal in"),
        (["runs", "show"], "Missing argument"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*arguments, "--runs-dir", tmp_path / "runs") == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert sentence in error


def test_runs_are_listed_shown_exported_and_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert call("train", "karate", *QUICK, "--runs-dir", tmp_path, "--json") == 0
    name = json.loads(capsys.readouterr().out.splitlines()[-1])["run"]
    assert call("runs", "list", "--runs-dir", tmp_path, "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert call("runs", "list", "--runs-dir", tmp_path) == 0
    assert name in capsys.readouterr().out
    assert call("runs", "show", name, "--runs-dir", tmp_path) == 0
    shown = capsys.readouterr().out
    for words in ("honest", "authors-tu\ttest (optimistic)", "gin\ttest (optimistic)", "lr_omega"):
        assert words in shown
    assert call("runs", "show", name, "--protocol", "honest", "--runs-dir", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["test"]["honest"]["n"] == 2
    assert call("runs", "export", tmp_path / "all.csv", "--runs-dir", tmp_path) == 0
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + 2 * 2 * 4
    assert call("runs", "delete", name, "--runs-dir", tmp_path) == 0
    assert not (tmp_path / name).exists()
    assert call("runs", "show", name, "--runs-dir", tmp_path) == 2


def test_a_rule_that_does_not_apply_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    still = [
        f"training.lr_{group}=0" for group in ("gnn", "oc", "omega")
    ]  # nothing moves, so patience runs out at once
    arguments = [part for value in [*still, "training.patience=1"] for part in ("--set", value)]
    assert call("train", "karate", "--seeds", "2", *arguments, "--runs-dir", tmp_path) == 0
    assert call("runs", "show", "last", "--runs-dir", tmp_path) == 0
    assert "train with --set training.patience=" in capsys.readouterr().out
    assert call("runs", "show", "last", "--protocol", "gcnii", "--runs-dir", tmp_path) == 2


def test_ctrl_c_saves_and_the_run_goes_on(tmp_path: Path) -> None:
    arguments = ["train", "karate", "--seeds", "2", "--set", "training.epochs=600", "--set", "training.patience=null"]
    command = [sys.executable, "-m", "omegagnn", *arguments, "--runs-dir", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # A shell's background jobs ignore the signal, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("training "):
            break
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "go on with `omegagnn train --resume" in error
    assert call("train", "--resume", "last", "--runs-dir", tmp_path, "--json") == 0
    assert call("train", "--resume", "last", "--runs-dir", tmp_path) == 2

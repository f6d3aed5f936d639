"""Killed searches: nothing finished is lost, nothing is stuck, the budget is spent once, by whoever lives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omegagnn.data.cache import save_dataset
from omegagnn.errors import OmegaError
from omegagnn.tuning.study import Study, find_study
from omegagnn.tuning.workers import ABANDONED, RETRY_OF

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))
from tiny import node_dataset

TRIALS = 6


def worker(folder: Path, storage: Path | None, runs: str = "runs") -> subprocess.Popen[str]:
    words = [
        "tiny", "--trials", str(TRIALS), "--batch", "2", "--seeds", "2", "--splits", "0", "--epochs", "400", "--only",
        "--study", "night", "--no-prune", "--set", "training.patience=null", "--set", "model.channels=8",
        "--search", "training.lr_oc=1e-3..1e-1:log", "--search", "model.layers=[1, 2]", "--json",
        "--runs-dir", str(folder / runs), "--data-root", str(folder / "data"),
    ]  # fmt: skip
    if storage is not None:
        words += ["--storage", str(storage)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "omegagnn", "tune", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def finished(folder: Path, storage: Path | None) -> tuple[int, int]:
    """Return how many trials have ended and how many run."""
    try:
        study = find_study("night", folder / "runs", None if storage is None else str(storage))
        states = [trial.state.name for trial in study.trials]
    except OmegaError:
        return 0, 0
    return states.count("COMPLETE"), states.count("RUNNING")


def kill_under_way(victim: subprocess.Popen[str], folder: Path, storage: Path | None, after: int) -> None:
    """Kill with SIGKILL while trials run, once `after` of them have ended."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and victim.poll() is None:
        done, running = finished(folder, storage)
        if done >= after and running:
            victim.send_signal(signal.SIGKILL)
            break
        time.sleep(0.02)
    _, err = victim.communicate()
    assert victim.returncode == -signal.SIGKILL, err


def check(study: Study) -> None:
    everyone = study.storage.get_trials()
    assert study.complete
    assert len(study.finished) == TRIALS
    assert all(trial.state.is_finished() for trial in everyone), "a trial is stuck"
    abandoned = {trial.number for trial in everyone if trial.user_attrs.get(ABANDONED)}
    assert abandoned, "no trial was under way at the kill"
    assert {trial.user_attrs[RETRY_OF] for trial in everyone if RETRY_OF in trial.user_attrs} == abandoned


@pytest.mark.parametrize("shared", [False, True])
def test_a_killed_search_goes_on_with_nothing_lost(shared: bool, tmp_path: Path) -> None:
    save_dataset(node_dataset(), tmp_path / "data" / "own" / "tiny" / "dataset.npz")
    storage = tmp_path / "shared" / "study.log" if shared else None
    kept: dict[int, float | None] = {}
    for after in (2,) if shared else (0, 2):
        victim = worker(tmp_path, storage)
        kill_under_way(victim, tmp_path, storage, after)
        study = find_study("night", tmp_path / "runs", None if storage is None else str(storage))
        kept |= {trial.number: trial.value for trial in study.finished}
    last = worker(tmp_path, storage)
    out, err = last.communicate(timeout=300)
    assert last.returncode == 0, err
    assert "were left by a worker that died: they are tried again" in err
    study = find_study("night", tmp_path / "runs", None if storage is None else str(storage))
    check(study)
    assert json.loads(out)["trials"]["finished"] == TRIALS
    values = {trial.number: trial.value for trial in study.storage.get_trials()}
    assert kept
    assert kept.items() <= values.items(), "a finished trial was lost or changed"


def test_workers_share_a_study_and_take_up_the_trials_of_a_killed_one(tmp_path: Path) -> None:
    save_dataset(node_dataset(), tmp_path / "data" / "own" / "tiny" / "dataset.npz")
    storage = tmp_path / "study.log"
    victim = worker(tmp_path, storage)
    others = [worker(tmp_path, storage, runs=f"runs-{k}") for k in range(2)]
    kill_under_way(victim, tmp_path, storage, after=0)
    outs = [other.communicate(timeout=300) for other in others]
    assert [other.returncode for other in others] == [0, 0], outs
    hashes = {json.loads(out)["hash"] for out, _ in outs}
    study = find_study("night", tmp_path / "runs", str(storage))
    assert hashes == {study.hash}
    everyone = study.storage.get_trials()
    assert len(study.finished) == TRIALS
    assert all(trial.state.is_finished() for trial in everyone)
    running = {trial.number for trial in everyone if trial.user_attrs.get(ABANDONED)}
    assert {trial.user_attrs[RETRY_OF] for trial in everyone if RETRY_OF in trial.user_attrs} == running
    assert len({trial.user_attrs["worker"] for trial in study.finished}) >= 1

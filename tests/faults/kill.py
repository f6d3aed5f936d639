"""Kill a training with SIGKILL at random moments, resume it until it is done, and compare it with an uninterrupted one.

Run as a program it makes many kills and writes their outcome: ``python tests/faults/kill.py 50 results/kills.json``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training"))
from tiny import DATASETS

from omegagnn.data.cache import save_dataset
from omegagnn.training.checkpoint import read_tensors
from omegagnn.training.journal import Journal

EPOCHS = {"node": 2500, "graph": 250, "inductive": 400}


@dataclass
class Outcome:
    """What was seen of one task."""

    task: str
    kills: int = 0
    kills_in_training: int = 0
    resumes: int = 0
    same_weights: bool = False
    same_rows: bool = False
    epochs: int = 0


def command(folder: Path, *arguments: str) -> list[str]:
    options = ["--runs-dir", str(folder / "runs"), "--data-root", str(folder / "data"), "--checkpoint-seconds", "0.2"]
    return [sys.executable, "-m", "omegagnn", "train", *options, *arguments]


def start_arguments(task: str) -> list[str]:
    settings = [
        f"training.epochs={EPOCHS[task]}", "training.patience=null", "model.channels=8", "training.batch_size=8",
        "training.clip=5",
    ]  # fmt: skip
    return [f"tiny-{task}", "--seeds", "3", "--splits", "0", *(part for value in settings for part in ("--set", value))]


def rows(journal: Journal, run: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "run"} for row in journal.epochs(run)]


def quiet(arguments: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def torment(task: str, kills: int, seed: int, folder: Path) -> Outcome:
    """Train once in peace and once with kills; return how they compare."""
    save_dataset(DATASETS[task](), folder / "data" / "own" / f"tiny-{task}" / "dataset.npz")
    assert quiet(command(folder, *start_arguments(task))).wait() == 0
    journal = Journal(folder / "runs")
    (whole,) = (row["run"] for row in journal.runs())
    lasted = journal.run(whole)["seconds"]
    outcome, draw = Outcome(task), random.Random(seed)
    victim = quiet(command(folder, *start_arguments(task)))
    while len(journal.runs()) < 2:
        time.sleep(0.01)
    run = next(row["run"] for row in journal.runs() if row["run"] != whole)
    while True:
        if outcome.kills < kills:
            before = len(journal.epochs(run))
            deadline = time.monotonic() + 60
            # Wait for a sign of life, so that most kills fall into the training and not into the imports.
            while len(journal.epochs(run)) == before and victim.poll() is None and time.monotonic() < deadline:
                if draw.random() < 0.002:
                    break
                time.sleep(0.01)
            # All waits together stay below the time an undisturbed training takes, so that every kill finds it under way.
            time.sleep(draw.uniform(0, 0.7 * lasted / kills))
            outcome.kills_in_training += len(journal.epochs(run)) > before
            if victim.poll() is None:
                victim.send_signal(signal.SIGKILL)
                outcome.kills += 1
        code = victim.wait()
        assert code in (0, -signal.SIGKILL), f"exit code {code}"
        if journal.run(run)["status"] == "done":  # perhaps killed on its way out, when nothing was left to do
            break
        assert code != 0, "the command reported success before its run was done"
        outcome.resumes += 1
        victim = quiet(command(folder, "--resume", run))
    left, right = (read_tensors(folder / "runs" / name / "model.safetensors")[0] for name in (whole, run))
    outcome.same_weights = left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
    expected, found = rows(journal, whole), rows(journal, run)
    outcome.same_rows, outcome.epochs = expected == found, len(found)
    return outcome


def main() -> None:
    total, path = int(sys.argv[1]), Path(sys.argv[2])
    outcomes = []
    for k, task in enumerate(EPOCHS):
        done = 0
        wanted = total // 3 + (k < total % 3)
        while done < wanted:
            with tempfile.TemporaryDirectory() as folder:
                outcome = torment(task, min(6, wanted - done), 1000 * k + done, Path(folder))
            print(outcome, flush=True)
            outcomes.append(vars(outcome))
            assert outcome.kills, "the training was over before it could be killed: raise EPOCHS"
            done += outcome.kills
    summary = {
        "command": f"python tests/faults/kill.py {total} {path}",
        "kills": sum(outcome["kills"] for outcome in outcomes),
        "kills_in_training": sum(outcome["kills_in_training"] for outcome in outcomes),
        "all_bits_equal": all(outcome["same_weights"] and outcome["same_rows"] for outcome in outcomes),
        "runs": outcomes,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()

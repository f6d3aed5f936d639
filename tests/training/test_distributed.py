"""Several processes give the bits of one: runs dealt, shares of a step dealt; what they say, and how they go wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from processes import (
    SETTINGS,
    assert_same_bits,
    environment,
    epochs_of,
    finish,
    latest,
    run_alone,
    start_ranks,
    store_tiny,
    torchrun,
    weights_of,
    words,
)
from tiny import DATASETS

from omegagnn.cli import main
from omegagnn.errors import OmegaError
from omegagnn.training import distributed
from omegagnn.training.config import RunConfig
from omegagnn.training.distributed import ALONE, joined_team, launched
from omegagnn.training.fit import Result, fit
from omegagnn.training.journal import Journal

CASES = {
    "runs": ("node", {"seeds": 3, "splits": "0,1"}, {}),
    "graph": ("graph", {"seeds": 2, "splits": "0"}, {"training.shards": 4}),
    "inductive": ("inductive", {"seeds": 1, "splits": "0"}, {"training.shards": 4, "model.norm": "batch"}),
    "neighbor": (
        "node",
        {"seeds": 2, "splits": "0"},
        {
            "training.shards": 4, "training.sampler": "neighbor", "training.fan_outs": [2, 2], "training.batch_nodes": 9,
            "model.omega": "global",
        },
    ),
}  # fmt: skip
COMMON = {
    "data.name": "tiny",
    "training.epochs": 6, "training.patience": None, "training.clip": 5.0, "training.batch_size": 8, "model.channels": 8,
}  # fmt: skip

# What each process does: train every case with the team, and write down its own network after every epoch.
PROCESS = """
import json, sys
sys.path.insert(0, sys.argv[2])
import torch
from tiny import DATASETS
from omegagnn.training import engine
from omegagnn.training.batch import RunBatch
from omegagnn.training.config import RunConfig
from omegagnn.training.distributed import joined_team
from omegagnn.training.fit import make_plan
from test_distributed import CASES, COMMON

seen = []
class Watched(RunBatch):
    def compute_epoch(self, *arguments):
        measured = super().compute_epoch(*arguments)
        seen.append({name: tensor.detach().clone() for name, tensor in self._state().items()})
        return measured

engine.RunBatch = Watched
torch.set_num_threads(1)
with joined_team("cpu") as team:
    for case, (task, members, values) in CASES.items():
        plan = make_plan(DATASETS[task](), RunConfig().with_values({**COMMON, **values}), **members)
        seen.clear()
        engine.Trainer.start(plan, team.opened(f"{sys.argv[1]}/{case}"), team.device, team=team).train()
        torch.save(seen, f"{sys.argv[1]}/{case}/state-{team.rank}.pt")

from omegagnn.__main__ import leave
leave(0)
"""


@pytest.fixture(scope="module")
def trained_by_three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases, trained by three processes: a number that divides neither the members nor the shards."""
    folder = tmp_path_factory.mktemp("three")
    (folder / "process.py").write_text(PROCESS, encoding="utf-8")
    here = str(Path(__file__).parent)
    finish(start_ranks(3, [sys.executable, str(folder / "process.py"), str(folder), here]))
    return folder


@pytest.mark.parametrize("case", CASES)
def test_three_processes_give_the_bits_of_one(case: str, trained_by_three: Path, tmp_path: Path) -> None:
    task, members, values = CASES[case]
    config = RunConfig().with_values({**COMMON, **values})
    alone = fit(DATASETS[task](), config, runs_dir=tmp_path, **members)
    journal = Journal(trained_by_three / case)
    together = Result(journal, journal.run("last")["run"])
    assert together.row["status"] == "done"
    assert_same_bits(alone, together)


@pytest.mark.parametrize("case", [case for case in CASES if case != "runs"])
def test_omega_and_everything_else_is_the_same_in_all_processes(case: str, trained_by_three: Path) -> None:
    states = [torch.load(trained_by_three / case / f"state-{rank}.pt", weights_only=True) for rank in range(3)]
    assert len(states[0]) == 6 * CASES[case][1]["seeds"]
    for one in states[1:]:
        for ours, theirs in zip(states[0], one, strict=True):
            assert ours.keys() == theirs.keys()
            assert any("omega" in name for name in ours)
            assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_command_on_two_processes_speaks_once_and_ends_as_on_one(tmp_path: Path) -> None:
    store_tiny(tmp_path)
    job = words(tmp_path, "tiny-node", "--seeds", "3", "--epochs", "15", "--splits", "0,1", settings=SETTINGS)
    assert main(job[1:]) == 0
    alone = latest(tmp_path)
    said = finish(start_ranks(2, [sys.executable, "-m", *job, "--json"]))
    assert_same_bits(alone, latest(tmp_path))
    assert json.loads(said[0][0])["test"] == alone.to_dict()["test"]
    assert said[1][0] == "", "the first process speaks for all"


def test_a_plain_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert not launched()
    assert ALONE.leads
    assert ALONE.told(lambda: 3) == 3
    assert ALONE.any(True)
    assert not ALONE.any(False)


def test_processes_that_cannot_meet_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "MEETING", timedelta(seconds=1))
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(OmegaError, match="did not find each other"), joined_team("cpu"):
        pass


# --------------------------------------------------------------------------------------------------- minutes, not seconds


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("mode", ["runs", "steps"])
def test_pubmed_on_processes_of_torchrun_is_pubmed_on_one(
    size: int, mode: str, shared_data: Path, tmp_path: Path
) -> None:
    settings = [] if mode == "runs" else ["training.shards=4", "training.sampler=neighbor", "training.batch_nodes=1024"]
    arguments = [
        "pubmed",
        "--split",
        "geom",
        "--splits",
        "0",
        "--seeds",
        "4" if mode == "runs" else "1",
        "--epochs",
        "4",
    ]
    job = [*words(tmp_path, *arguments, settings=settings), "--data-root", str(shared_data)]
    run_alone(job)
    alone = latest(tmp_path)
    done = subprocess.run(torchrun(size, job), capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert_same_bits(alone, latest(tmp_path))
    assert len(epochs_of(alone)) == (16 if mode == "runs" else 4)
    assert weights_of(alone)

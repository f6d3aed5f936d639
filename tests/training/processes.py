"""Start a training in several processes, as torchrun does, and compare what two runs left behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from tiny import DATASETS

from omegagnn.data.cache import save_dataset
from omegagnn.training.checkpoint import read_tensors
from omegagnn.training.fit import Result
from omegagnn.training.journal import Journal

SETTINGS = ["model.channels=8", "training.batch_size=8", "training.clip=5", "training.patience=null"]


def store_tiny(folder: Path) -> None:
    for task, make in DATASETS.items():
        save_dataset(make(), folder / "data" / "own" / f"tiny-{task}" / "dataset.npz")


def words(folder: Path, *arguments: str, settings: list[str] | None = None) -> list[str]:
    """Return the arguments of ``python -m``: ``omegagnn train ...`` in a folder."""
    places = ["--runs-dir", str(folder / "runs"), "--data-root", str(folder / "data"), "--device", "cpu"]
    values = [part for value in settings or () for part in ("--set", value)]
    return ["omegagnn", "train", *places, *arguments, *values]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(**extra: str) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("TORCHELASTIC")}
    return {**known, "OMP_NUM_THREADS": "1", **extra}


def start_ranks(size: int, arguments: list[str], **extra: str) -> list[subprocess.Popen[str]]:
    """Start processes of a command with the variables that torchrun gives them, without its agent."""
    common = {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", **extra}
    common["MASTER_PORT"] = str(free_port())
    return [
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(**common, RANK=str(rank), LOCAL_RANK=str(rank)),
        )
        for rank in range(size)
    ]  # fmt: skip


def torchrun(size: int, arguments: list[str], *options: str) -> list[str]:
    """Return the command line of a real torchrun on one machine."""
    start = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size), "--standalone", *options]
    return [*start, "-m", *arguments]


def finish(ranks: list[subprocess.Popen[str]], codes: set[int] | None = None) -> list[tuple[str, str]]:
    said = [rank.communicate(timeout=300) for rank in ranks]
    assert {rank.returncode for rank in ranks} <= (codes or {0}), said
    return said


def run_alone(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr


def latest(folder: Path) -> Result:
    journal = Journal(folder / "runs")
    return Result(journal, journal.run("last")["run"])


def epochs_of(result: Result) -> list[dict[str, object]]:
    return [{key: value for key, value in row.items() if key != "run"} for row in result.journal.epochs(result.run)]


def weights_of(result: Result) -> dict[str, torch.Tensor]:
    return read_tensors(result.folder / "model.safetensors")[0]


def assert_same_bits(one: Result, other: Result) -> None:
    assert one.run != other.run
    assert epochs_of(one) == epochs_of(other)
    left, right = weights_of(one), weights_of(other)
    assert left.keys() == right.keys()
    for name in left:
        assert torch.equal(left[name], right[name]), name

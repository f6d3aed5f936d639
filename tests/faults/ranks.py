"""Kill one process of a job that torchrun started, in mid-run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training"))

from omegagnn.errors import OmegaError
from omegagnn.training.journal import Journal


def process_of_rank(agent: int, rank: int) -> int | None:
    """Return the process of a rank below an agent, by what its environment says."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            wanted = f"RANK={rank}".encode() in (folder / "environ").read_bytes().split(b"\0")
        except (OSError, IndexError):
            continue
        if parent == agent and wanted:
            return int(folder.name)
    return None


def recorded(folder: Path) -> int:
    """Return how many epochs the newest run has in the journal; 0 where there is none yet."""
    try:
        journal = Journal(folder, create=False)
        found = len(journal.epochs(journal.run("last")["run"]))
        journal.close()
    except OmegaError:
        return 0
    return found


def kill_in_mid_run(job: subprocess.Popen[str], rank: int, runs: Path, after: int, seconds: float = 180) -> None:
    """Wait until the newest run has `after` recorded epochs and a checkpoint, then kill the process of a rank."""
    deadline = time.monotonic() + seconds
    while recorded(runs) < after or not list(runs.glob("*/checkpoint-*.safetensors")):
        assert job.poll() is None, f"the job ended before it could be hurt: {job.communicate()}"
        assert time.monotonic() < deadline, "the job did not get going"
        time.sleep(0.02)
    victim = process_of_rank(job.pid, rank)
    assert victim is not None
    os.kill(victim, signal.SIGKILL)

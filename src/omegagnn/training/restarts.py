"""Which run a job has begun, so that the processes torchrun starts in the place of dead ones go on with it.

A job is what ``torchrun --rdzv-id`` names, else the torchrun process itself. ``RUNS/.job-NAME`` holds the run it has begun.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from omegagnn.errors import OmegaError
from omegagnn.training.checkpoint import write_bytes
from omegagnn.training.journal import Journal
from omegagnn.training.plan import Plan


def begun_before(plan: Plan, journal: Journal) -> str | None:
    """Return the unfinished run of the same plan that this job began before its processes were restarted."""
    path = _note(journal.folder)
    if path is None or not path.is_file():
        return None
    try:
        row = journal.run(path.read_text(encoding="utf-8"))
    except OmegaError:
        return None  # it was deleted since
    members = [(m["seed"], m["split_hash"], json.loads(m["settings"])) for m in journal.members(row["run"])]
    wanted = [(seed, plan.splits[k].hash, plan.settings_of(k)) for k, seed in enumerate(plan.seeds)]
    same = row["config_hash"] == plan.config.hash and members == wanted and row["dataset"] == plan.dataset.name
    return row["run"] if same and row["status"] != "done" else None


def remember(runs: Path, run: str) -> None:
    """Write down which run this job has begun."""
    path = _note(runs)
    if path is not None:
        write_bytes(path, run.encode())


def forget(runs: Path) -> None:
    """Forget the run of this job: it is done."""
    path = _note(runs)
    if path is not None:
        path.unlink(missing_ok=True)


def _note(runs: Path) -> Path | None:
    """Return where the run of this job is noted; None where no agent would restart anything."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    if name is None:
        return None
    if name == "none":
        agent = os.getppid()
        name = f"{socket.gethostname()}-{agent}"
        with suppress(OSError, IndexError):  # the time at which it began tells it from a later process of its number
            name += "-" + Path(f"/proc/{agent}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19]
    return runs / (".job-" + "".join(letter if letter.isalnum() else "-" for letter in name))

"""Recorded curves as TensorBoard event files: a folder a run, below it one for each seed and split."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from omegagnn.errors import OmegaError, WrongUse
from omegagnn.training.config import parse_config
from omegagnn.training.journal import Journal

# Curves that belong into one picture share the part before the slash.
TAGS = {
    "train_loss": "loss/train", "val_loss": "loss/validation", "test_loss": "loss/test",
    "train_score": "score/train", "val_score": "score/validation", "test_score": "score/test",
    "omega": "omega/mean",
}  # fmt: skip


def export_tensorboard(journal: Journal, folder: Path, runs: Sequence[str]) -> list[Path]:
    """Write the epochs of runs below `folder` and return the folder of each; one that was there before is replaced."""
    if folder.exists() and not folder.is_dir():
        raise WrongUse(f"{folder} is a file: event files need a folder of their own, name another.")
    make_writer = _writer()
    written = []
    for run in runs:
        with _replaced_folder(folder / run) as part:
            _write_run(journal, run, part, make_writer)
        written.append(folder / run)
    return written


def _write_run(journal: Journal, run: str, folder: Path, make_writer: Any) -> None:
    row = journal.run(run)
    began = datetime.fromisoformat(row["created"]).timestamp()
    config = parse_config(json.loads(row["config"])).to_yaml()
    members = {member["member"]: member for member in journal.members(run)}
    for number, epochs in groupby(journal.epochs(run), key=lambda epoch: epoch["member"]):
        member = members[number]
        name = f"{number:03d}-seed{member['seed']}-{member['split']}".replace("/", "_").replace(":", "_")
        writer = make_writer(str(folder / name))
        try:
            writer.add_text("configuration", f"```\n{config}```", 0, began)
            for epoch in epochs:
                for column, tag in TAGS.items():
                    if epoch[column] is not None and math.isfinite(epoch[column]):
                        # Epochs have no time of their own: counted in seconds they keep their order.
                        writer.add_scalar(tag, epoch[column], epoch["epoch"], walltime=began + epoch["epoch"])
        finally:
            writer.close()


def _writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise OmegaError("Event files need TensorBoard: pip install 'omegagnn[tensorboard]'.") from None
    return SummaryWriter


@contextmanager
def _replaced_folder(path: Path) -> Iterator[Path]:
    """Yield a folder beside `path` that takes its place when all is written, and vanishes when not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield part
        part.chmod(0o777 & ~_umask())
        if path.exists():
            shutil.rmtree(path)
        os.replace(part, path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

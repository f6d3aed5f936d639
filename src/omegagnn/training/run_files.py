"""`RunFiles`: what a run keeps on disk while it trains: a checkpoint and, once finished, the weights of each chunk of members."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from omegagnn.files import MODEL
from omegagnn.training.checkpoint import read_tensors, write_tensors

Finished = dict[str, dict[int, Tensor]]


class RunFiles:
    """The folder of a run. Chunks are independent: any process may train any of them, before or after a restart."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; nothing is written yet."""
        self.folder = folder

    def checkpoint(self, chunk: int) -> Path:
        """Return where the checkpoint of a chunk lies while it trains."""
        return self.folder / f"checkpoint-{chunk}.safetensors"

    def chunk(self, chunk: int) -> Path:
        """Return where the best weights of a finished chunk lie until the whole run is finished."""
        return self.folder / f"chunk-{chunk}.safetensors"

    def unfinished(self, chunks: int) -> list[int]:
        """Return the chunks that are still to be trained."""
        return [chunk for chunk in range(chunks) if not self.chunk(chunk).exists()]

    def saved(self, chunk: int) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the checkpoint of a chunk, or None where there is none."""
        path = self.checkpoint(chunk)
        return read_tensors(path) if path.exists() else None

    def finish_chunk(self, chunk: int, finished: Finished) -> None:
        """Keep the best weights of a chunk's members; its checkpoint has served."""
        tensors = {
            name: torch.stack([by_member[member] for member in sorted(by_member)])
            for name, by_member in finished.items()
        }
        write_tensors(self.chunk(chunk), tensors, {"first": min(min(by_member) for by_member in finished.values())})
        self.checkpoint(chunk).unlink(missing_ok=True)

    def write_model(self, chunks: int, facts: dict[str, Any]) -> None:
        """Put the weights of all chunks into one file."""
        parts = [read_tensors(self.chunk(chunk))[0] for chunk in range(chunks)]
        whole = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        write_tensors(self.folder / MODEL, whole, facts)

    def remove_parts(self) -> None:
        """Remove what only a run under way needs."""
        for part in [*self.folder.glob("checkpoint-*.safetensors"), *self.folder.glob("chunk-*.safetensors")]:
            part.unlink(missing_ok=True)

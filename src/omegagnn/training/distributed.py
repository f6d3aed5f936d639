"""`Team`: the processes that torchrun started, as one trainer sees them; alone there is nothing to agree on.

Two ways to share work, chosen by the configuration:

* ``training.shards = 1``: the run axis is dealt. Each process trains members of its own, nothing is exchanged while they train,
  and all record in one journal. As company changes no bit on a CPU, the results are to the bit those of one process.
* ``training.shards > 1``: the shares of every step are dealt. Every process holds the same network, computes its shares, and
  adds up all gradients in one order (`omegagnn.training.shards`). The first process alone measures, decides and records.

Messages are tensors and JSON; nothing is unpickled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from omegagnn.errors import InterruptedRun, OmegaError
from omegagnn.training.environment import choose_device
from omegagnn.training.journal import Journal

MEETING = timedelta(minutes=5)
PATIENCE = timedelta(days=30)  # a process may wait for another's runs; one that died is noticed by its connection

Value = TypeVar("Value")


class LostProcess(InterruptedRun):
    """Another process of the job ended before its work was done."""

    exit_code = 1


@dataclass(frozen=True)
class Team:
    """One of `size` processes; the one of rank 0 leads: it names the run, prints, and in shared steps measures and records."""

    rank: int = 0
    size: int = 1
    local_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def leads(self) -> bool:
        """Whether this process is the first."""
        return self.rank == 0

    def told(self, find: Callable[[], Value]) -> Value:
        """Return what the leader finds; it must be something that JSON holds."""
        if self.size == 1:
            return find()
        content = json.dumps(find()).encode() if self.leads else b""
        size = torch.tensor([len(content)], device=self.device)
        with _noticing_losses():
            dist.broadcast(size, 0)
            message = torch.zeros(int(size), dtype=torch.uint8, device=self.device)
            message[: len(content)] = torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else 0
            dist.broadcast(message, 0)
        found: Value = json.loads(message.cpu().numpy().tobytes())
        return found

    def measured(self, measure: Callable[[], Tensor], like: Tensor) -> Tensor:
        """Return what the leader measures, a tensor shaped as `like`; the others wait for it."""
        if self.size == 1:
            return measure()
        found = measure().contiguous() if self.leads else torch.empty_like(like)
        with _noticing_losses():
            dist.broadcast(found, 0)
        return found

    def gathered(self, own: Tensor) -> list[Tensor]:
        """Return the tensors of all processes, in their order."""
        if self.size == 1:
            return [own]
        everyone = [torch.empty_like(own) for _ in range(self.size)]
        with _noticing_losses():
            dist.all_gather(everyone, own)
        return everyone

    def any(self, flag: bool) -> bool:
        """Return whether the flag is up in any process."""
        return any(bool(each) for each in self.gathered(torch.tensor([flag], dtype=torch.uint8, device=self.device)))

    def opened(self, folder: Path, create: bool = True) -> Journal:
        """Return the journal of a folder, which the leader opens first; on several machines in the mode for shared disks."""
        if self.leads:
            journal = Journal(folder, create=create, shared=self.size > self.local_size)
        self.wait()
        return journal if self.leads else Journal(folder, create=False, shared=self.size > self.local_size)

    def wait(self) -> None:
        """Wait until all processes are here."""
        self.any(False)


ALONE = Team()


def launched() -> bool:
    """Whether torchrun (or something like it) started this process."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


@contextmanager
def joined_team(device: str | None) -> Iterator[Team]:
    """Yield the team of this process: gloo between CPUs, nccl between GPUs, one each; alone where nothing launched it."""
    if not launched():
        yield Team(device=choose_device(device))
        return
    chosen = choose_device(device)
    if chosen.type == "cuda":
        chosen = choose_device(f"cuda:{int(os.environ.get('LOCAL_RANK', '0'))}")
        torch.cuda.set_device(chosen)
    try:
        store, rank, size = next(dist.rendezvous("env://", timeout=MEETING))
        backend = "nccl" if chosen.type == "cuda" else "gloo"
        # A restarted generation may be handed the store of the one before it, with the addresses of the dead.
        generation = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        prefixed = dist.PrefixStore(f"omegagnn/{generation}", store)
        dist.init_process_group(backend, store=prefixed, rank=rank, world_size=size, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise OmegaError(
            f"The processes of the job did not find each other at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} "
            f"({_first_line(error)}): check the addresses given to torchrun."
        ) from None
    try:
        local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        yield Team(dist.get_rank(), dist.get_world_size(), local, chosen)
    finally:
        with suppress(RuntimeError):
            dist.destroy_process_group()


@contextmanager
def _noticing_losses() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise LostProcess("Another process of the job ended before its work was done.") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

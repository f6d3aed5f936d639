"""Train and measure what an item lacks: nothing twice, nothing lost by a kill, several processes beside each other."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from omegagnn.data import load
from omegagnn.data.dataset import Dataset
from omegagnn.data.loading import whereabouts
from omegagnn.data.registry import find
from omegagnn.errors import InterruptedRun, OmegaError
from omegagnn.paper.keeping import lacks, record_of
from omegagnn.paper.measurements import Measurement, Setting
from omegagnn.paper.results import MEASUREMENTS, MISSING, Results
from omegagnn.paper.trainings import Training
from omegagnn.training.batch import DTYPES, DivergenceError
from omegagnn.training.engine import Plan, Progress
from omegagnn.training.environment import describe
from omegagnn.training.fit import Result
from omegagnn.training.journal import Journal
from omegagnn.training.memory import runs_at_once
from omegagnn.training.once import trained_once
from omegagnn.training.tasks import make_task

CPU_AT_ONCE = 10  # thin runs are quicker a few at a time, in the cache
CLAIMS, NO_DATA = "claims", "not run: data not available"
Work = Training | Measurement


class NoDataError(OmegaError):
    """A data set that is not on this machine."""


@dataclass
class Tally:
    """What became of the work: how much was there already, was done now, could not be done and why, is still to do."""

    there: int = 0
    done: int = 0
    seconds: float = 0.0
    absent: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0


@dataclass
class Runner:
    """Does work and keeps what comes of it.

    Args:
        results: where records are kept.
        runs: the folder of the journal.
        device: where to train.
        data_root: where data sets lie; one that is not there is not fetched, and said to be missing.
        fresh: whether to overlook what is there.
        minutes: after how long nothing new is begun; None goes on to the end.
        tell: is told a line for each piece of work.
        progress: makes the listener of a training.
    """

    results: Results
    runs: Path
    device: torch.device
    data_root: Path | None = None
    fresh: bool = False
    minutes: float | None = None
    tell: Callable[[str], None] = lambda _: None
    progress: Callable[[], Progress] = Progress
    quick: bool = False

    def __post_init__(self) -> None:
        """Begin to count the time."""
        self._began = time.monotonic()
        self._data: tuple[tuple[str, str | None], Dataset] | None = None

    @cached_property
    def journal(self) -> Journal:
        """The journal, made when it is first needed."""
        return Journal(self.runs)

    def do(self, work: Sequence[Work]) -> Tally:
        """Do all work that is missing; what another process is at is left to it, and waited for in the end."""
        tally, waiting = Tally(), []
        for number, each in enumerate(work):
            if self._is_there(each):
                tally.there += 1
            elif self._is_late():
                tally.left += 1
            elif not self._do_claimed(each, f"{number + 1}/{len(work)}", tally, wait=False):
                waiting.append(each)
        for each in waiting:
            self.results.again()
            if self._is_there(each):
                tally.there += 1
            else:
                self._do_claimed(each, "left by another process", tally, wait=True)
        return tally

    def _is_late(self) -> bool:
        return self.minutes is not None and time.monotonic() - self._began > 60 * self.minutes

    def _is_there(self, work: Work) -> bool:
        found = self.results.find(work.tag)
        return found is not None and not self.fresh and not (isinstance(work, Training) and lacks(found, work))

    def _do_claimed(self, work: Work, place: str, tally: Tally, wait: bool) -> bool:
        """Do a piece of work unless another process is at it; return whether it was this one's."""
        self.runs.mkdir(parents=True, exist_ok=True)
        with _claimed(self.runs / CLAIMS / work.tag, wait) as is_ours:
            if not is_ours:
                return False
            self.results.again()
            if self._is_there(work):  # another process has done it meanwhile
                tally.there += 1
                return True
            began = time.monotonic()
            try:
                self._keep(work, self._made(work))
            except NoDataError as reason:
                tally.absent[work.name] = str(reason)
                self._keep(work, {MISSING: NO_DATA})
                self.tell(f"[{place}] {work.name}: {reason}")
                return True
            except InterruptedRun:
                raise
            except OmegaError as error:
                tally.failed[work.name] = str(error)
                self._keep(work, {MISSING: f"failed: {error}"})
                self.tell(f"[{place}] {work.name}: failed: {error}")
                return True
            seconds = time.monotonic() - began
            tally.done, tally.seconds = tally.done + 1, tally.seconds + seconds
            self.tell(f"[{place}] {work.name}: {seconds:.1f} s")
        return True

    def _keep(self, work: Work, record: dict[str, Any]) -> None:
        head = {"tag": work.tag, "name": work.name, "quick": self.quick}
        self.results.keep(work.group if isinstance(work, Training) else MEASUREMENTS, {**head, **record})

    def _made(self, work: Work) -> dict[str, Any]:
        if isinstance(work, Measurement):
            began = time.monotonic()
            values = work.measure(Setting(self.device, self._load, self.quick))
            seconds = round(time.monotonic() - began, 2)
            return {"seconds": seconds, "environment": describe(self.device), "values": values}
        dataset = self._load(work.config.data.name, work.config.data.split)
        return record_of(work, self._trained(work.plan(dataset)), dataset)

    def _load(self, name: str, split: str | None = None) -> Dataset:
        """Return a data set that is on this machine; the last one is remembered."""
        if self._data is None or self._data[0] != (name, split):
            if whereabouts(name, self.data_root) == "upstream":
                raise NoDataError(
                    f"{NO_DATA}: {find(name).title} is not on this machine; `omegagnn data fetch {name}` may get it"
                )
            self._data = ((name, split), load(name, split, self.data_root))
        return self._data[1]

    def _trained(self, plan: Plan) -> Result:
        """Train a plan; where memory runs out half as many members at once, where one diverges the others to their end."""
        at_once, fitting = len(plan.seeds), None  # as many as the engine finds to fit
        if self.device.type == "cpu":
            at_once = fitting = min(CPU_AT_ONCE, self._fitting(plan))
        while True:
            if self.device.type == "cuda":
                torch.cuda.empty_cache()  # that estimate asks how much is free
            try:
                progress = self.progress()
                return trained_once(plan, self.journal, self.device, self.fresh, at_once=fitting, progress=progress)
            except DivergenceError as error:
                return self._explored(plan, str(error), fitting)
            except OmegaError as error:
                if not str(error).startswith("Out of memory") or at_once == 1:
                    raise
                at_once = fitting = at_once // 2
                self.tell(f"out of memory: trying {at_once} members at once")

    def _fitting(self, plan: Plan) -> int:
        """Return how many members fit into memory at once."""
        training = plan.config.training
        dtype = DTYPES[training.precision]
        task = make_task(plan.dataset, plan.config.data, plan.splits[:1], dtype, training.batch_size)
        return runs_at_once(plan.config, task, len(plan.seeds), self.device)

    def _explored(self, plan: Plan, reason: str, at_once: int | None) -> Result:
        """Train the members to their own ends; nothing but their curves is kept."""
        exploring, progress = replace(plan, exploring=True), self.progress()
        result = trained_once(exploring, self.journal, self.device, self.fresh, at_once=at_once, progress=progress)
        self.journal.update(result.run, note=reason)
        return Result(self.journal, result.run)


@contextmanager
def _claimed(path: Path, wait: bool) -> Iterator[bool]:
    """Hold a claim that no other process can hold; the system lets go of it when the process ends, however it does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


__all__ = ["Runner", "Tally", "Work"]

"""Listeners that show a training as it goes: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from omegagnn.cli.console import note
from omegagnn.training.engine import Progress

if TYPE_CHECKING:
    from omegagnn.training.batch import RunBatch

LINE_SECONDS = 10.0


def describe(batch: RunBatch) -> str:
    """Return loss, accuracy and ω of the runs that train now, averaged."""
    means = batch.metrics.nanmean(0)
    text = f"epoch {batch.epoch}  loss {means[0, 0]:.3f}  val {100 * means[1, 1]:.1f} %"
    omega = batch.omega
    return text if omega is None else f"{text}  ω {omega.mean():.3f}"


class LineProgress(Progress):
    """A line each ten seconds, for pipes and logs."""

    def started(self, run: str, members: int, epochs: int) -> None:
        """Tell the name of the run."""
        self._next = time.monotonic() + LINE_SECONDS
        note(f"training {run} ({members} runs, at most {epochs} epochs)")

    def epoch(self, batch: RunBatch, done: int) -> None:
        """Tell how far it is, if it is time."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_SECONDS
            note(describe(batch))


class BarProgress(Progress):
    """A bar over the epochs of all runs; a run that stops early has done its whole share."""

    def started(self, run: str, members: int, epochs: int) -> None:
        """Draw the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=None), TimeRemainingColumn())
        self._bars = Bars(*columns, console=Console(stderr=True), transient=True, expand=True)
        self._task = self._bars.add_task(f"{members} runs", total=members * epochs)
        self._epochs = epochs
        self._shown = -math.inf
        self._bars.start()

    def epoch(self, batch: RunBatch, done: int) -> None:
        """Move the bar, ten times a second at most."""
        now = time.monotonic()
        if now - self._shown > 0.1:
            self._shown = now
            completed = done * self._epochs + int(batch.active.sum()) * batch.epoch
            self._bars.update(self._task, completed=completed, description=describe(batch))

    def finished(self) -> None:
        """Take the bar away."""
        self._bars.stop()

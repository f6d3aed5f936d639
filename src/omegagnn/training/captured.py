"""`CapturedEpochs`: whole epochs as one CUDA graph, replayed without a word from the host.

An epoch of a small graph is some fifty kernels of a few microseconds each: launched one by one, the launches are what takes
time. Captured once, an epoch (training step, evaluation, who is best, who stops) is one launch. What changes from epoch to
epoch is on the device: the number of the epoch, from which the draws follow, and the row of Adam's corrections it selects.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from omegagnn.training.build import mean_omega
from omegagnn.training.optim import correction
from omegagnn.training.records import EpochRecord

if TYPE_CHECKING:
    from omegagnn.training.batch import RunBatch

STRIDE = (
    64  # epochs from one look at who has stopped to the next, whatever the clock says: the company decides last digits
)


class Captured:
    """A function without arguments: called once as it is, then recorded as a CUDA graph, which later calls replay.

    It must do the same work on the same tensors every time and never ask the device for a value. On a CPU, which has no
    such graphs, every call is a plain one.
    """

    def __init__(self, function: Callable[[], object], device: torch.device) -> None:
        """Take the function; nothing runs yet."""
        self.function, self._device = function, device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Run or replay."""
        if self._stream is None:
            self.function()
        elif self._graph is None:
            self._first(self._stream)
        else:
            self._graph.replay()

    def _first(self, stream: torch.cuda.Stream) -> None:
        # Kernels are compiled and libraries take their workspaces in a plain run, on the stream that is recorded later.
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            self.function()
        torch.cuda.current_stream(self._device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self.function()
        self._graph = graph


class CapturedEpochs:
    """The epochs of a batch whose task takes one step an epoch."""

    def __init__(self, batch: RunBatch) -> None:
        """Prepare what changes from epoch to epoch on the device."""
        device, training = batch.device, batch.config.training
        self._batch = batch
        steps = [correction(epoch, training.rate_factor(epoch)) for epoch in range(1, training.epochs + 1)]
        self._corrections = torch.tensor([[0.0, 0.0, 0.0], *steps], dtype=torch.float64, device=device)
        self._epoch = torch.full((), batch.epoch, dtype=torch.int64, device=device)
        self._history: Tensor | None = None
        self._run = Captured(self._compute, device)
        self._seconds_each = float("inf")

    @torch.no_grad()
    def _note(self, trained: Tensor, measured: Tensor) -> None:
        columns = [trained[:, None].to(measured.dtype), measured.flatten(1)]
        omega = mean_omega(self._batch.net)
        row = torch.cat(columns if omega is None else [*columns, omega[:, None].to(measured.dtype)], dim=1)
        if self._history is None:
            self._history = row.new_zeros(STRIDE, *row.shape)
        self._history.index_copy_(0, (self._epoch % STRIDE).view(1), row[None])

    def _compute(self) -> None:
        self._epoch += 1
        factor = self._corrections.index_select(0, self._epoch.view(1)).view(-1)
        trained = self._batch.active.clone()
        self._note(trained, self._batch.compute_epoch(self._epoch, factor))

    def replay(self, seconds: float) -> list[EpochRecord]:
        """Replay as many epochs as fit into `seconds`, one at least, none beyond a multiple of `STRIDE`; return their records."""
        first = self._batch.epoch + 1
        room = min(STRIDE - self._batch.epoch % STRIDE, self._batch.config.training.epochs - self._batch.epoch)
        count = max(1, min(room, int(seconds / self._seconds_each)))
        began = time.monotonic()
        for _ in range(count):
            self._run()
        assert self._history is not None
        history = self._history.cpu()  # waits for all of them
        self._seconds_each = max(1e-9, (time.monotonic() - began) / count)
        self._batch.adam.steps += count
        return [_record(epoch, history[epoch % STRIDE]) for epoch in range(first, first + count)]


def _record(epoch: int, row: Tensor) -> EpochRecord:
    omega = row[:, 7] if row.size(1) > 7 else None
    return EpochRecord(epoch, row[:, 0] > 0, row[:, 1:7].unflatten(1, (3, 2)), omega)

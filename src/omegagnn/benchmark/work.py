"""The least work of a case: bytes that must be moved, operations that must be done, and the time of both at best."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from omegagnn.benchmark.measure import Ceilings
from omegagnn.training.batch import RunBatch

NUMBER, ENTRY = 4, 8  # bytes of a float32; of the index and the weight of an entry


@dataclass(frozen=True)
class Work:
    """Bytes moved and operations done."""

    bytes: float
    flops: float

    def __add__(self, other: Work) -> Work:
        """Return both together."""
        return Work(self.bytes + other.bytes, self.flops + other.flops)

    def floor_ms(self, limits: Ceilings) -> float:
        """Return the time at copy bandwidth plus the time at the rate of matrix products."""
        return 1e3 * (self.bytes / limits.bytes_per_s + self.flops / limits.flops_per_s)


def training_work(batch: RunBatch) -> Work:
    """Return the least work of a training step of R runs.

    Layers: three products of n·c·c and R of them; bytes read and written once by the propagation and by ReLU, forward (4
    times n·c) and backward (5 times: ReLU reads its input too). A propagation meets each entry's index and weight once for
    all runs and finds its neighbour's row in the cache. Opening and closing likewise; attention counts as a propagation.
    """
    n, c, entries, stored, runs, layers, classes = _sizes(batch)
    products = runs * (layers * 3 * 2 * n * c * c + 3 * 2 * n * c * classes + 2 * 2 * stored * c)
    propagated = runs * layers * 2 * 2 * entries * c
    moved = runs * _number(batch) * n * c * (9 * layers + 8) + layers * 2 * ENTRY * entries + 2 * ENTRY * stored
    return Work(moved, products + propagated)


def evaluation_work(batch: RunBatch) -> Work:
    """Return the least work of measuring R runs: the forward half of `training_work`."""
    n, c, entries, stored, runs, layers, classes = _sizes(batch)
    products = runs * (layers * 2 * n * c * c + 2 * n * c * classes + 2 * stored * c)
    propagated = runs * layers * 2 * entries * c
    moved = runs * _number(batch) * n * c * (4 * layers + 4) + layers * ENTRY * entries + ENTRY * stored
    return Work(moved, products + propagated)


def propagation_work(nodes: int, entries: int, channels: int, number: int = NUMBER) -> Work:
    """Return the work of one propagation on a graph that no cache holds: every entry reads a row of `channels` numbers."""
    return Work(number * channels * (entries + 2 * nodes) + ENTRY * entries, 2 * entries * channels)


def _number(batch: RunBatch) -> int:
    """Return the bytes of one feature."""
    return 2 if batch.config.training.precision == "bfloat16" else NUMBER


def _sizes(batch: RunBatch) -> tuple[int, int, int, int, int, int, int]:
    task, model, graph = batch.task, batch.config.model, batch.operator
    stored = task.features.numel() if isinstance(task.features, Tensor) else task.features.value.numel()
    runs = int(batch.seeds.numel())
    return graph.num_nodes, model.channels, graph.num_edges, stored, runs, model.layers, task.dataset.num_classes

"""The memory that training on a whole graph will need at its highest, told before it begins.

For ωGCN on a CPU, of n nodes, E entries, f features, c channels, L layers and R runs at once, in bytes of numbers of size s:

* the program itself, with its libraries and kernels;
* features (as stored, as trained on, and after their dropout), labels, splits;
* the graph and its operator S, with what is kept to turn them round: 49 E + 242 n;
* either, while S is made, 32 E more, or, while training, R times ``1.8 s n (c (2 L + 3) + 4 classes + f)``: a layer keeps its
  input and what goes into K, the backward pass adds three arrays, and what one step frees is kept for the next, in pieces that do
  not always fit (`memory.memory_kept`).

The bytes an entry and a node and the factor were measured (`benchmarks/scaling.py`): they hold what torch needs to sort and to
count as well.
"""

from __future__ import annotations

import torch

from omegagnn.data.dataset import Dataset
from omegagnn.training.config import RunConfig

MIB = 2**20
PROGRAM = 580 * MIB
ENTRY, NODE, MAKING = 49, 242, 32
KEPT_FOR_NEXT = 1.8
# Pieces below this are not given back to the system when they are free, and so much of them was seen to lie about.
SMALL, LEFT_LYING = 32 * MIB, 200 * MIB


def expected_peak(config: RunConfig, dataset: Dataset, runs: int, device: torch.device) -> int | None:
    """Return the bytes that training `runs` members at once is expected to need, or None where that was not measured."""
    model, training = config.model, config.training
    measured = model.name == "omega-gcn" and dataset.task == "node" and training.sampler == "none"
    if not measured or device.type != "cpu" or training.precision not in ("float32", "float64"):
        return None
    n, entries, size = dataset.num_nodes, dataset.graph.num_edges, 8 if training.precision == "float64" else 4
    features = dataset.features
    stored = n * dataset.num_features if features.layout == torch.strided else 3 * features.values().numel()
    data = (4 + size) * stored + 28 * n
    kept = ENTRY * entries + NODE * n
    extra = 2 if model.norm else 0
    widths = model.channels * (model.layers * (2 + extra) + 3) + 4 * dataset.num_classes
    numbers = n * widths + (stored if features.layout == torch.strided else 0)
    working = int(KEPT_FOR_NEXT * runs * size * numbers)
    if runs * size * n * model.channels < SMALL:
        working += min(LEFT_LYING, kept + working)
    return PROGRAM + data + kept + max(MAKING * entries, working)


def describe_expected(config: RunConfig, dataset: Dataset, runs: int, device: torch.device, free: int) -> str | None:
    """Return the sentence about a peak worth speaking of."""
    peak = expected_peak(config, dataset, runs, device)
    if peak is None or peak < 1024 * MIB:
        return None
    line = f"expecting a peak of about {peak // MIB:,} MiB of memory; {free // MIB:,} MiB are free"
    return line if peak < free else f"warning: {line}: fewer model.channels, or a training.sampler, need less"

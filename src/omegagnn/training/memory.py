"""How much memory runs need, how much there is, and so how many can train at once."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from omegagnn.errors import OmegaError
from omegagnn.ops import SparseFeatures
from omegagnn.training.config import RunConfig
from omegagnn.training.tasks import TrainingTask

SHARE = 0.5  # of what is free; the rest is for the allocator, the data and everybody else


def free_bytes(device: torch.device) -> int:
    """Return the memory that is free on a device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def bytes_per_run(config: RunConfig, task: TrainingTask) -> int:
    """Return about how much one run of a full-graph task takes: state, activations kept for the backward pass, logits."""
    model, dataset = config.model, task.dataset
    n, c, classes = dataset.num_nodes, model.channels, dataset.num_classes
    size = 8 if config.training.precision == "float64" else 4
    extra_maps = 1 if dataset.task == "graph" else 0
    attention = c * c + 2 * c if model.name == "omega-gat" else 0
    state = task.in_channels * c + model.layers * (c * c * (1 + extra_maps) + c + attention) + c * classes
    per_layer = 3 + 3 * extra_maps + (2 if model.norm else 0) + (1 if model.layer_dropout else 0)
    activations = n * (c * (per_layer * model.layers + 4) + 4 * classes)
    if model.name == "omega-gat":
        activations += model.layers * (4 * n + 2 * dataset.graph.num_edges) * model.heads
    dense_input = 0 if isinstance(task.features, SparseFeatures) else 2 * n * task.in_channels
    return size * (6 * state + activations + dense_input)


def runs_at_once(config: RunConfig, task: TrainingTask, runs: int, device: torch.device, processes: int = 1) -> int:
    """Return how many runs fit at once in each of the processes of a machine; runs with steps of their own go one by one."""
    if task.own_steps:
        return 1
    free = free_bytes(device) // (processes if device.type == "cpu" else 1)
    return max(1, min(runs, int(SHARE * free) // max(1, bytes_per_run(config, task))))


def explain_out_of_memory(config: RunConfig, task: TrainingTask, at_once: int, device: torch.device) -> OmegaError:
    """Return the sentence for a run that did not fit."""
    need, free = bytes_per_run(config, task), free_bytes(device)
    mib = 2**20
    if at_once > 1:
        fits = max(1, min(at_once - 1, free // max(1, 2 * need)))
        remedy = f"{fits} at once would fit: pass --runs-at-once {fits}"
    else:
        channels = max(1, int(config.model.channels * free / max(1, 2 * need)))
        remedy = f"about {min(channels, max(1, config.model.channels // 2))} channels would fit: set model.channels"
    return OmegaError(
        f"Out of memory on {device}: {at_once} runs of {config.model.layers} layers × {config.model.channels} channels need "
        f"about {at_once * need // mib} MiB and {free // mib} MiB are free; {remedy}."
    )

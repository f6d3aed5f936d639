"""How much memory runs need, how much there is, and so how many can train at once."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from omegagnn.errors import OmegaError
from omegagnn.ops import SparseFeatures
from omegagnn.training.config import RunConfig
from omegagnn.training.tasks import TrainingTask

SHARE = 0.5  # of what is free; the rest is for the allocator, the data and everybody else

# Settings of glibc's allocator (malloc.h): when freed memory goes back to the system, how many arrays are mapped each by itself.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
LARGEST = 2**31 - 1


@contextmanager
def memory_kept(device: torch.device) -> Iterator[None]:
    """Keep what is freed on a CPU for the next step, whose arrays are as large, and give it back at the end.

    Otherwise the C library returns large arrays to the system and asks for them again at every step, and the system
    clears each page: up to a fifth of the time. Where the library is not glibc, nothing changes.
    """
    if device.type != "cpu" or not _set_allocator((MMAP_MAX, 0), (TRIM_THRESHOLD, LARGEST)):
        yield
        return
    try:
        yield
    finally:
        # Where glibc's own adaptation ends up, which by being set once is over.
        _set_allocator((MMAP_MAX, 65536), (MMAP_THRESHOLD, 32 * 2**20), (TRIM_THRESHOLD, 64 * 2**20))
        give_back_free_memory()


def _set_allocator(*settings: tuple[int, int]) -> bool:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(name, value) for name, value in settings)


def give_back_free_memory() -> None:
    """Let the C library hand freed memory back to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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

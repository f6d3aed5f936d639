"""Timing in turns, peak memory, and the two ceilings of the machine: copy bandwidth and matrix products."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from omegagnn.ops.registry import has_fused, kernels
from omegagnn.training.memory import give_back_free_memory

Step = Callable[[], object]
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one step: the median over rounds and the spread (interquartile range)."""

    ms: float
    spread_ms: float


@dataclass(frozen=True)
class Ceilings:
    """What the machine can do at best: bytes a second of a large copy, multiplications and additions a second."""

    bytes_per_s: float
    flops_per_s: float


def time_in_turns(
    steps: Mapping[str, Step], rounds: int, warmups: int = 2, seconds: float = 0.15, device: torch.device = CPU
) -> dict[str, Timing]:
    """Time several steps in turns, so that what disturbs the machine disturbs all of them.

    In each round each step runs as often as fits into `seconds` (once at least); a round's value is its mean. On a GPU the
    clock stops when all its work is done.
    """
    repeats = {}
    for name, step in steps.items():
        for _ in range(warmups):
            step()
        repeats[name] = max(1, int(seconds / max(_seconds(step, 1, device), 1e-6)))
    values: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            values[name].append(1e3 * _seconds(step, repeats[name], device) / repeats[name])
    return {name: Timing(statistics.median(found), _spread(found)) for name, found in values.items()}


def _seconds(step: Step, repeats: int, device: torch.device) -> float:
    wait = torch.cuda.synchronize if device.type == "cuda" else _nothing
    wait()
    started = time.perf_counter()
    for _ in range(repeats):
        step()
    wait()
    return time.perf_counter() - started


def _nothing() -> None:
    """On a CPU there is nothing to wait for."""


def _spread(values: list[float]) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low)


def peak_growth_mib(step: Step, device: torch.device = CPU) -> float | None:
    """Return by how much a step raises the memory in use at its highest: the process's, or on a GPU the allocator's.

    None where neither can be read. A graph that was captured is run once as plain calls, which allocate what it holds.
    """
    if device.type == "cuda":
        step = getattr(step, "function", step)
        step()
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        step()
        return (torch.cuda.max_memory_allocated(device) - before) / 2**20
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    step()
    give_back_free_memory()
    try:
        reset.write_text("5")
    except OSError:
        return None
    before = _field(status, "VmRSS")
    step()
    return max(0.0, (_field(status, "VmHWM") - before) / 1024)


def _field(status: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(name + ":"))


def ceilings(device: torch.device = CPU, precision: str = "float32") -> Ceilings:
    """Measure copy bandwidth (bytes read plus written) and the rate of a product as the layers make it, torch's or ours.

    On a CPU of 32 MiB and 64 columns, on a GPU of 1 GiB and 256 columns, which it takes to be busy.
    """
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    size, rows, columns = (2**30, 2**17, 256) if device.type == "cuda" else (32 * 2**20, 4096, 64)
    source = torch.randn(size // 4, device=device)
    target = torch.empty_like(source)
    x = torch.randn(rows, columns, device=device, dtype=dtype)
    weight = torch.randn(columns, columns, device=device, dtype=dtype)
    out = torch.empty_like(x)
    steps: dict[str, Step] = {"copy": lambda: target.copy_(source), "product": lambda: torch.mm(x, weight, out=out)}
    if has_fused("linear", x):
        steps["our product"] = lambda: kernels.linear(x[None], weight[None])
    timings = time_in_turns(steps, rounds=9, device=device)
    product_ms = min(timing.ms for name, timing in timings.items() if name != "copy")
    return Ceilings(2 * size / (1e-3 * timings["copy"].ms), 2 * rows * columns**2 / (1e-3 * product_ms))


def fitted_exponent(sizes: list[float], values: list[float]) -> float:
    """Return b of the least-squares fit ``value = a · size^b``."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])

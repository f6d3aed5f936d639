"""Timing in turns, peak memory, and the two ceilings of the machine: copy bandwidth and matrix products."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

Step = Callable[[], object]


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


def time_in_turns(steps: Mapping[str, Step], rounds: int, warmups: int = 2, seconds: float = 0.15) -> dict[str, Timing]:
    """Time several steps in turns, so that what disturbs the machine disturbs all of them.

    In each round each step runs as often as fits into `seconds` (once at least); a round's value is its mean.
    """
    repeats = {}
    for name, step in steps.items():
        for _ in range(warmups):
            step()
        repeats[name] = max(1, int(seconds / max(_seconds(step), 1e-6)))
    values: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            started = time.perf_counter()
            for _ in range(repeats[name]):
                step()
            values[name].append(1e3 * (time.perf_counter() - started) / repeats[name])
    return {name: Timing(statistics.median(found), _spread(found)) for name, found in values.items()}


def _seconds(step: Step) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def _spread(values: list[float]) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low)


def peak_growth_mib(step: Step) -> float | None:
    """Return by how much a step raises the process's resident memory at its highest, or None where Linux is not there."""
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    step()
    _give_back_free_memory()
    try:
        reset.write_text("5")
    except OSError:
        return None
    before = _field(status, "VmRSS")
    step()
    return max(0.0, (_field(status, "VmHWM") - before) / 1024)


def _give_back_free_memory() -> None:
    """Let the C library hand freed memory back, or a step would reuse it unseen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _field(status: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(name + ":"))


def ceilings() -> Ceilings:
    """Measure copy bandwidth (bytes read plus written) and the rate of a 64-column product as the layers make it."""
    source = torch.randn(32 * 2**20 // 4)
    target = torch.empty_like(source)
    x, weight = torch.randn(4096, 64), torch.randn(64, 64)
    out = torch.empty(4096, 64)
    timings = time_in_turns(
        {"copy": lambda: target.copy_(source), "product": lambda: torch.mm(x, weight, out=out)}, rounds=9
    )
    return Ceilings(2 * 32 * 2**20 / (1e-3 * timings["copy"].ms), 2 * 4096 * 64 * 64 / (1e-3 * timings["product"].ms))


def fitted_exponent(sizes: list[float], values: list[float]) -> float:
    """Return b of the least-squares fit ``value = a · size^b``."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])

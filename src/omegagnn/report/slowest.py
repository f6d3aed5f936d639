"""Which operations a training epoch spends its time in."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

BETWEEN = "between them (Python)"


@dataclass(frozen=True)
class Part:
    """An operation: how often it was called, how long that took, and its share of the whole."""

    name: str
    calls: int
    milliseconds: float
    share: float


class _Clocked(TorchDispatchMode):
    """Takes the time of every operation that torch carries out, those of the backward pass too; of a fused one as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry out one operation and note its time."""
        started = time.perf_counter()
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.seconds[func.name()] += time.perf_counter() - started
            self.calls[func.name()] += 1


def slowest_parts(work: Callable[[], object], most: int = 8) -> tuple[tuple[Part, ...], float]:
    """Do `work` on the CPU and return its slowest operations, then what lies between all operations, and milliseconds in all."""
    with _Clocked():  # torch imports much when the first mode of a process is entered and first left by a backward pass
        torch.zeros(1, requires_grad=True).sum().backward()
    with _Clocked() as clock:
        started = time.perf_counter()
        work()
        whole = time.perf_counter() - started
    names = sorted(clock.seconds, key=lambda name: -clock.seconds[name])
    parts = [Part(name, clock.calls[name], 1000 * clock.seconds[name], clock.seconds[name] / whole) for name in names]
    rest = whole - sum(clock.seconds.values())
    return (*parts[:most], Part(BETWEEN, 0, 1000 * rest, rest / whole)), 1000 * whole


__all__ = ["BETWEEN", "Part", "slowest_parts"]

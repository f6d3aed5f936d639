"""How time grows with edges, nodes, layers, channels and runs: a fitted exponent for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from omegagnn.benchmark.cases import our_batch, our_step
from omegagnn.benchmark.large import large_dataset, large_graph
from omegagnn.benchmark.measure import CPU, Step, fitted_exponent, time_in_turns
from omegagnn.ops import omega_propagate


@dataclass(frozen=True)
class Sweep:
    """Times of one piece of work over one size, and the exponent b of ``time = a · size^b``."""

    name: str
    sizes: list[int]
    ms: list[float]
    spread_ms: list[float]
    exponent: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


def _propagation(device: torch.device, nodes: int, entries: int, channels: int) -> Step:
    graph = large_graph(nodes, entries, device).gcn_norm()
    x, omega = torch.randn(nodes, channels, device=device), torch.rand(channels, device=device)
    return lambda: omega_propagate(x, graph, omega)


def _training(device: torch.device, nodes: int, layers: int, runs: int = 1, channels: int = 64) -> Step:
    dataset = large_dataset(f"{nodes:,} nodes", device, nodes, entries=11 * nodes, features=64, classes=8)
    return our_step(our_batch(dataset, "omega-gcn", layers, runs, channels=channels, device=device))


def _sweep(name: str, sizes: list[int], make: Callable[[int], Step], rounds: int, device: torch.device) -> Sweep:
    times = time_in_turns({str(size): make(size) for size in sizes}, rounds, device=device)
    values = [times[str(size)].ms for size in sizes]
    spread = [times[str(size)].spread_ms for size in sizes]
    return Sweep(name, sizes, values, spread, fitted_exponent([float(size) for size in sizes], values))


def plans(quick: bool, device: torch.device = CPU) -> dict[str, tuple[list[int], Callable[[int], Step]]]:
    """Return every sweep by its name; sizes are such that the work, not the call, is what is timed."""
    far, times = 2 if quick else 4, 1 if device.type == "cpu" else 10
    propagation, training = partial(_propagation, device), partial(_training, device)
    nodes, deep, small = 50_000 * times, 10_000 * times, 3_000
    return {
        f"propagation against entries ({nodes:,} nodes, 64 channels)": (
            [5 * nodes * 2**k for k in range(far)], lambda entries: propagation(nodes, entries, 64)),
        f"propagation against channels ({nodes:,} nodes, {10 * nodes:,} entries)": (
            [32 * 2**k for k in range(far)], lambda channels: propagation(nodes, 10 * nodes, channels)),
        "training step against nodes (11 entries a node, 4 layers)": (
            [deep * 2**k for k in range(far)], lambda n: training(n, 4)),
        f"training step against layers ({deep:,} nodes)": (
            [4 * 2**k for k in range(far)], lambda layers: training(deep, layers)),
        f"training step against runs ({small:,} nodes, 2 layers)": (
            [2 * times * 2**k for k in range(far)], lambda runs: training(small, 2, runs)),
    }  # fmt: skip


def sweeps(
    quick: bool, told: Callable[[str], None], chosen: Callable[[str], bool], device: torch.device = CPU
) -> list[Sweep]:
    """Run every sweep whose name is chosen."""
    found = []
    for name, (sizes, make) in plans(quick, device).items():
        if chosen(name):
            told(name)
            found.append(_sweep(name, sizes, make, 3 if quick else 7, device))
    return found

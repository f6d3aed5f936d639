"""How time grows with edges, nodes, layers, channels and runs: a fitted exponent for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from omegagnn.benchmark.cases import large_graph, our_batch, our_step
from omegagnn.benchmark.measure import Step, fitted_exponent, time_in_turns
from omegagnn.data.dataset import Split
from omegagnn.data.synthetic import scale_free
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


def _propagation(nodes: int, entries: int, channels: int) -> Step:
    graph = large_graph(nodes, entries).gcn_norm()
    x, omega = torch.randn(nodes, channels), torch.rand(channels)
    return lambda: omega_propagate(x, graph, omega)


def _training(nodes: int, layers: int, runs: int = 1) -> Step:
    thirds = torch.arange(nodes).tensor_split(3)
    dataset = scale_free(nodes, 5, features=64).with_splits((Split("thirds", *thirds),))
    return our_step(our_batch(dataset, "omega-gcn", layers, runs))


def _sweep(name: str, sizes: list[int], make: Callable[[int], Step], rounds: int) -> Sweep:
    times = time_in_turns({str(size): make(size) for size in sizes}, rounds)
    values = [times[str(size)].ms for size in sizes]
    spread = [times[str(size)].spread_ms for size in sizes]
    return Sweep(name, sizes, values, spread, fitted_exponent([float(size) for size in sizes], values))


def plans(quick: bool) -> dict[str, tuple[list[int], Callable[[int], Step]]]:
    """Return every sweep by its name; sizes are such that the work, not the call, is what is timed."""
    far = 2 if quick else 4
    return {
        "propagation against entries (50,000 nodes, 64 channels)": (
            [250_000 * 2**k for k in range(far)], lambda entries: _propagation(50_000, entries, 64)),
        "propagation against channels (50,000 nodes, 500,000 entries)": (
            [32 * 2**k for k in range(far)], lambda channels: _propagation(50_000, 500_000, channels)),
        "training step against nodes (11 entries a node, 4 layers)": (
            [10_000 * 2**k for k in range(far)], lambda nodes: _training(nodes, 4)),
        "training step against layers (10,000 nodes)": (
            [4 * 2**k for k in range(far)], lambda layers: _training(10_000, layers)),
        "training step against runs (3,000 nodes, 2 layers)": (
            [2 * 2**k for k in range(far)], lambda runs: _training(3_000, 2, runs)),
    }  # fmt: skip


def sweeps(quick: bool, told: Callable[[str], None], chosen: Callable[[str], bool]) -> list[Sweep]:
    """Run every sweep whose name is chosen."""
    found = []
    for name, (sizes, make) in plans(quick).items():
        if chosen(name):
            told(name)
            found.append(_sweep(name, sizes, make, 3 if quick else 7))
    return found

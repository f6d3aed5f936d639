"""The cases: what is timed against what, after both were seen to compute the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from omegagnn.benchmark.forms import Peer, forms, peers_that_run, without_compiling
from omegagnn.benchmark.large import LARGE, large_dataset, large_graph
from omegagnn.benchmark.measure import CPU, Ceilings, Step, Timing, ceilings, peak_growth_mib, time_in_turns
from omegagnn.benchmark.peers import evaluation, training_step
from omegagnn.benchmark.work import Work, evaluation_work, propagation_work, training_work
from omegagnn.data import load
from omegagnn.data.dataset import Dataset
from omegagnn.ops import omega_propagate
from omegagnn.training.batch import RunBatch, arithmetic
from omegagnn.training.captured import Captured
from omegagnn.training.config import RunConfig
from omegagnn.training.optim import correction
from omegagnn.training.tasks import make_task

CHANNELS = 64
OURS = "ours"
EPOCHS = 100_000  # more than any benchmark trains


@dataclass(frozen=True)
class Case:
    """One row: our time and a peer's for the same work in the same run, and the least that the work can take."""

    name: str
    device: str
    ours_ms: float
    ours_spread_ms: float
    peer: str
    peer_ms: float
    peer_spread_ms: float
    ratio: float
    ours_mib: float | None = None
    peer_mib: float | None = None
    compile_s: float | None = None
    bytes: float | None = None
    flops: float | None = None
    floor_ms: float | None = None
    fraction_of_floor: float | None = None
    peer_fraction_of_floor: float | None = None

    @property
    def against_ourselves(self) -> bool:
        """Whether ours is compared with ours in another setting."""
        return self.peer.startswith(OURS)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


@dataclass
class Bench:
    """What every case needs: how long, which data, which device; and what was left out, and why."""

    quick: bool
    root: Path | None
    limits: Ceilings
    told: Callable[[str], None]
    device: torch.device = CPU
    left_out: list[dict[str, str]] = field(default_factory=list)
    alone: list[dict[str, Any]] = field(default_factory=list)
    datasets: dict[str, Dataset] = field(default_factory=dict)
    _limits: dict[str, Ceilings] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """Rounds of each timing."""
        return 3 if self.quick else 9

    def dataset(self, name: str) -> Dataset:
        """Return a data set with its default split (of Cora and CiteSeer the public one), loaded or made once."""
        if name not in self.datasets:
            self.datasets[name] = (
                large_dataset(name, self.device, *LARGE[name]) if name in LARGE else load(name, root=self.root)
            )
        return self.datasets[name]

    def limits_of(self, precision: str) -> Ceilings:
        """Return the ceilings of the device in a precision."""
        if precision == "float32" or self.device.type == "cpu":
            return self.limits
        if precision not in self._limits:
            self._limits[precision] = ceilings(self.device, precision)
        return self._limits[precision]

    def leave_out(self, peer: str, reason: str) -> None:
        """Note and tell once that a peer does not run here."""
        entry = {"peer": peer, "reason": reason}
        if entry not in self.left_out:
            self.left_out.append(entry)
            self.told(f"{peer}: {reason}")

    def compare(
        self,
        name: str,
        steps: Mapping[str, Step],
        work: Work,
        compile_s: Mapping[str, float | None] | None = None,
        rounds: int | None = None,
        precision: str = "float32",
    ) -> list[Case]:
        """Time `steps`, of which one is `OURS`, in turns, take their peak memory, and return a row for each peer.

        Where no peer runs, ours is noted in `alone`.
        """
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"  # for the peers too
        times = time_in_turns(steps, rounds or self.rounds, device=self.device)
        memory = {label: peak_growth_mib(step, self.device) for label, step in steps.items()}
        ours, floor = times[OURS], work.floor_ms(self.limits_of(precision))
        if len(times) == 1:
            self.alone.append({"name": name, "ours_ms": ours.ms, "ours_mib": memory[OURS]})

        def row(label: str, theirs: Timing) -> Case:
            return Case(
                name, self.device.type, ours.ms, ours.spread_ms, label, theirs.ms, theirs.spread_ms, theirs.ms / ours.ms,
                memory[OURS], memory[label], (compile_s or {}).get(label), work.bytes, work.flops, floor,
                floor / ours.ms, floor / theirs.ms,
            )  # fmt: skip

        return [row(label, theirs) for label, theirs in times.items() if label != OURS]


def our_batch(
    dataset: Dataset,
    model: str,
    layers: int,
    runs: int = 1,
    omega: Any = "channel",
    channels: int = CHANNELS,
    device: torch.device = CPU,
    precision: str = "float32",
) -> RunBatch:
    """Return R runs of our net on the first split, ready to train for as long as anybody asks."""
    values = {
        "data.name": dataset.name, "model.name": model, "model.layers": layers, "model.channels": channels,
        "model.omega": omega, "model.dropout": 0.5, "training.lr_gnn": 1e-4, "training.precision": precision,
        "training.epochs": EPOCHS, "training.patience": None,
    }  # fmt: skip
    config = RunConfig().with_values(values)
    task = make_task(dataset, config.data, [dataset.splits[0]] * runs, torch.float32, 1).to(device)
    return RunBatch(config, task, list(range(runs)), torch.arange(runs), [{}] * runs, device)


def our_step(batch: RunBatch) -> Step:
    """Return a whole training step of our engine, without measuring; on a GPU captured, as the engine's epochs are."""
    precision = batch.config.training.precision
    if batch.device.type == "cpu":

        def step() -> None:
            batch.epoch += 1
            with arithmetic(precision, batch.device):
                batch.train_steps(batch.epoch)

        return step
    epoch = torch.zeros((), dtype=torch.int64, device=batch.device)
    factor = torch.tensor(correction(EPOCHS, 1.0), dtype=torch.float64, device=batch.device)

    def step_on_device() -> None:
        epoch.add_(1)
        with arithmetic(precision, batch.device):
            batch.train_steps(epoch, factor)

    return Captured(step_on_device, batch.device)


def training_cases(
    bench: Bench,
    name: str,
    data: str,
    model: str,
    layers: int,
    channels: int = CHANNELS,
    precision: str = "float32",
    compiling: bool = True,
) -> list[Case]:
    """Time a whole training step against every peer in every form; of peers in float32 where ours has less."""
    dataset = bench.dataset(data)
    batch = our_batch(dataset, model, layers, channels=channels, device=bench.device, precision=precision)
    found = forms(dataset, batch)
    found = found if compiling else without_compiling(found)
    torch.backends.cuda.matmul.allow_tf32 = False  # outputs are compared in full precision
    peers = {peer.label: peer for peer in peers_that_run(found, batch, bench.leave_out)}
    steps = {label: _step_of(peer, dataset) for label, peer in peers.items()}
    compile_s = {label: peer.compile_s for label, peer in peers.items()}
    return bench.compare(name, {OURS: our_step(batch), **steps}, training_work(batch), compile_s, precision=precision)


def _step_of(peer: Peer, dataset: Dataset) -> Step:
    device = peer.x.device
    return training_step(peer.net, peer.x, peer.edges, dataset.labels.to(device), dataset.splits[0].train.to(device))


def _epoch_of(peer: Peer, dataset: Dataset) -> list[Step]:
    split, device = dataset.splits[0], peer.x.device
    parts = [split.train.to(device), split.val.to(device), split.test.to(device)]
    return [_step_of(peer, dataset), evaluation(peer.net, peer.x, peer.edges, dataset.labels.to(device), parts)]


class OurEpoch:
    """An epoch of our engine, training and evaluation; `function` is the same as plain calls, which show what it allocates."""

    def __init__(self, batch: RunBatch) -> None:
        """Take the batch."""
        self.batch = batch

    def __call__(self) -> None:
        """Train and measure as the engine does."""
        self.batch.advance()

    def function(self) -> None:
        """Train and measure by plain calls."""
        self.batch.compute_epoch(self.batch.epoch + 1, 1.0)


def many_runs_cases(bench: Bench, name: str, data: str, runs: int) -> list[Case]:
    """Time an epoch (training and evaluation) of R runs as one batch against R runs of a peer one after another."""
    dataset = bench.dataset(data)
    batch, single = (our_batch(dataset, "omega-gcn", 2, count, device=bench.device) for count in (runs, 1))
    found = without_compiling(forms(dataset, single))
    steps: dict[str, Step] = {OURS: OurEpoch(batch)}
    for peer in peers_that_run(found, single, bench.leave_out):
        others = [found[peer.label]() for _ in range(runs - 1)]
        calls = [call for one in (peer, *others) for call in _epoch_of(one, dataset)]
        steps[peer.label] = _all_of(calls)
    return bench.compare(name, steps, training_work(batch) + evaluation_work(batch))


def _all_of(calls: list[Step]) -> Step:
    def one_after_another() -> None:
        for call in calls:
            call()

    return one_after_another


def company_case(bench: Bench, name: str, data: str, runs: int) -> list[Case]:
    """Time an epoch of R runs as one batch against one run: `ratio` is one run's time over the batch's."""
    dataset = bench.dataset(data)
    whole, single = (our_batch(dataset, "omega-gcn", 2, count, device=bench.device) for count in (runs, 1))
    steps: dict[str, Step] = {OURS: OurEpoch(whole), "ours, one run": OurEpoch(single)}
    found = bench.compare(name, steps, training_work(whole) + evaluation_work(whole))
    return [replace(case, peer_fraction_of_floor=None) for case in found]  # one run has less to do


def omega_cost_case(bench: Bench, name: str, data: str, layers: int) -> list[Case]:
    """Time a step with learnt ω against the same engine with ω fixed at 1: what ω itself costs."""
    dataset = bench.dataset(data)
    learnt = our_batch(dataset, "omega-gcn", layers, device=bench.device)
    fixed = our_batch(dataset, "omega-gcn", layers, omega=1.0, device=bench.device)
    steps = {OURS: our_step(learnt), "ours, ω fixed at 1": our_step(fixed)}
    return bench.compare(name, steps, training_work(learnt), rounds=2 * bench.rounds)  # the difference is small


def propagation_case(
    bench: Bench, name: str, nodes: int, entries: int, channels: int, dtype: torch.dtype = torch.float32
) -> list[Case]:
    """Time one ω-propagation on a large scale-free graph against torch's CSR product and element-wise operations.

    The peer computes in float32 whatever ours is kept in.
    """
    graph = large_graph(nodes, entries, bench.device).gcn_norm()
    x, omega = torch.randn(nodes, channels, device=bench.device), torch.rand(channels, device=bench.device)
    matrix, kept = graph.to_torch_sparse(), x.to(dtype)

    def ours() -> Tensor:
        return omega_propagate(kept, graph, omega)

    def theirs() -> Tensor:
        return x - omega * (x - matrix @ x)

    near = 1e-4 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(ours().float(), theirs(), atol=near, rtol=near)
    steps = {OURS: ours, "torch CSR and element-wise": theirs}
    return bench.compare(name, steps, propagation_work(nodes, graph.num_edges, channels, dtype.itemsize))


def quickest(cases: list[Case]) -> list[Case]:
    """Return of each comparison with peers the row of the peer that took least time."""
    best: dict[str, Case] = {}
    for case in cases:
        if not case.against_ourselves and case.peer_ms <= best.get(case.name, case).peer_ms:
            best[case.name] = case
    return list(best.values())

"""The cases: what is timed against what, after both were seen to compute the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from omegagnn.benchmark.forms import Peer, forms, peers_that_run, without_compiling
from omegagnn.benchmark.measure import Ceilings, Step, Timing, peak_growth_mib, time_in_turns
from omegagnn.benchmark.peers import evaluation, training_step
from omegagnn.benchmark.work import Work, evaluation_work, propagation_work, training_work
from omegagnn.data import load
from omegagnn.data.dataset import Dataset
from omegagnn.data.synthetic import scale_free
from omegagnn.graph import Graph
from omegagnn.ops import omega_propagate
from omegagnn.training.batch import RunBatch
from omegagnn.training.config import RunConfig
from omegagnn.training.tasks import make_task

CHANNELS = 64
OURS = "ours"
MODELS = ("omega-gcn", "omega-gat")


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
    """What every case needs: how long, which data, the ceilings; and which peers were left out, and why."""

    quick: bool
    root: Path | None
    limits: Ceilings
    told: Callable[[str], None]
    left_out: list[dict[str, str]] = field(default_factory=list)
    datasets: dict[str, Dataset] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """Rounds of each timing."""
        return 3 if self.quick else 9

    def dataset(self, name: str) -> Dataset:
        """Return a data set with its default split (of Cora and CiteSeer the public one), loaded once."""
        if name not in self.datasets:
            self.datasets[name] = load(name, root=self.root)
        return self.datasets[name]

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
    ) -> list[Case]:
        """Time `steps`, of which one is `OURS`, in turns, take their peak memory, and return a row for each peer."""
        times = time_in_turns(steps, rounds or self.rounds)
        memory = {label: peak_growth_mib(step) for label, step in steps.items()}
        ours, floor = times[OURS], work.floor_ms(self.limits)

        def row(label: str, theirs: Timing) -> Case:
            return Case(
                name, "cpu", ours.ms, ours.spread_ms, label, theirs.ms, theirs.spread_ms, theirs.ms / ours.ms,
                memory[OURS], memory[label], (compile_s or {}).get(label), work.bytes, work.flops, floor,
                floor / ours.ms, floor / theirs.ms,
            )  # fmt: skip

        return [row(label, theirs) for label, theirs in times.items() if label != OURS]


def our_batch(
    dataset: Dataset, model: str, layers: int, runs: int = 1, omega: Any = "channel", channels: int = CHANNELS
) -> RunBatch:
    """Return R runs of our net on the first split, ready to train."""
    values = {
        "data.name": dataset.name, "model.name": model, "model.layers": layers, "model.channels": channels,
        "model.omega": omega, "model.dropout": 0.5, "training.lr_gnn": 1e-4,
    }  # fmt: skip
    config = RunConfig().with_values(values)
    task = make_task(dataset, config.data, [dataset.splits[0]] * runs, torch.float32, 1)
    return RunBatch(config, task, list(range(runs)), torch.arange(runs), [{}] * runs, torch.device("cpu"))


def our_step(batch: RunBatch) -> Step:
    """Return a whole training step of our engine, without measuring."""

    def step() -> None:
        batch.epoch += 1
        batch.train_steps(batch.epoch)

    return step


def training_cases(bench: Bench, name: str, data: str, model: str, layers: int) -> list[Case]:
    """Time a whole training step against every peer in every form."""
    dataset = bench.dataset(data)
    batch = our_batch(dataset, model, layers)
    peers = {peer.label: peer for peer in peers_that_run(forms(dataset, batch), batch, bench.leave_out)}
    steps = {label: _step_of(peer, dataset) for label, peer in peers.items()}
    compile_s = {label: peer.compile_s for label, peer in peers.items()}
    return bench.compare(name, {OURS: our_step(batch), **steps}, training_work(batch), compile_s)


def _step_of(peer: Peer, dataset: Dataset) -> Step:
    return training_step(peer.net, peer.x, peer.edges, dataset.labels, dataset.splits[0].train)


def _epoch_of(peer: Peer, dataset: Dataset) -> list[Step]:
    split = dataset.splits[0]
    parts = [split.train, split.val, split.test]
    return [_step_of(peer, dataset), evaluation(peer.net, peer.x, peer.edges, dataset.labels, parts)]


def many_runs_cases(bench: Bench, name: str, data: str, runs: int) -> list[Case]:
    """Time an epoch (training and evaluation) of R runs as one batch against R runs of a peer one after another."""
    dataset = bench.dataset(data)
    batch, single = our_batch(dataset, "omega-gcn", 2, runs), our_batch(dataset, "omega-gcn", 2)
    found = without_compiling(forms(dataset, single))
    steps: dict[str, Step] = {OURS: batch.advance}
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
    whole, single = our_batch(dataset, "omega-gcn", 2, runs), our_batch(dataset, "omega-gcn", 2)
    steps = {OURS: whole.advance, "ours, one run": single.advance}
    found = bench.compare(name, steps, training_work(whole) + evaluation_work(whole))
    return [replace(case, peer_fraction_of_floor=None) for case in found]  # one run has less to do


def omega_cost_case(bench: Bench, name: str, data: str, layers: int) -> list[Case]:
    """Time a step with learnt ω against the same engine with ω fixed at 1: what ω itself costs."""
    dataset = bench.dataset(data)
    learnt, fixed = our_batch(dataset, "omega-gcn", layers), our_batch(dataset, "omega-gcn", layers, omega=1.0)
    steps = {OURS: our_step(learnt), "ours, ω fixed at 1": our_step(fixed)}
    return bench.compare(name, steps, training_work(learnt), rounds=2 * bench.rounds)  # the difference is small


def propagation_case(bench: Bench, name: str, nodes: int, entries: int, channels: int) -> list[Case]:
    """Time one ω-propagation on a large scale-free graph against torch's CSR product and element-wise operations."""
    graph = large_graph(nodes, entries).gcn_norm()
    x, omega = torch.randn(nodes, channels), torch.rand(channels)
    matrix = graph.to_torch_sparse()

    def ours() -> Tensor:
        return omega_propagate(x, graph, omega)

    def theirs() -> Tensor:
        return x - omega * (x - matrix @ x)

    torch.testing.assert_close(ours(), theirs(), atol=1e-4, rtol=1e-4)
    steps = {OURS: ours, "torch CSR and element-wise": theirs}
    return bench.compare(name, steps, propagation_work(nodes, graph.num_edges, channels))


def large_graph(nodes: int, entries: int) -> Graph:
    """Return a scale-free graph of about so many entries, self-loops included."""
    return scale_free(nodes, max(1, round((entries / nodes - 1) / 2)), features=1).graph.to_undirected()


Plan = Callable[[Bench, str], list[Case]]


def plans(quick: bool) -> dict[str, Plan]:
    """Return every comparison by its name; nothing is loaded or timed before it is called."""
    names = ["citeseer"] if quick else ["cora", "citeseer"]
    first, depths, runs = names[0], (2,) if quick else (2, 64), 3 if quick else 10
    nodes, entries, channels = (10_000, 100_000, 64) if quick else (169_343, 2_500_000, 256)
    training: dict[str, Plan] = {
        f"train {model} {data} {layers} layers": partial(training_cases, data=data, model=model, layers=layers)
        for data in names
        for model in MODELS
        for layers in depths
        if model == "omega-gcn" or data == first
    }
    return training | {
        f"epoch of {runs} runs, peers one after another, omega-gcn {first} 2 layers": partial(
            many_runs_cases, data=first, runs=runs
        ),
        f"epoch of {runs} runs against 1, {first} 2 layers": partial(company_case, data=first, runs=runs),
        f"omega learnt against fixed, {first} 16 layers": partial(omega_cost_case, data=first, layers=16),
        f"propagation {nodes} nodes {entries} entries {channels} channels": partial(
            propagation_case, nodes=nodes, entries=entries, channels=channels
        ),
    }


def peer_cases(bench: Bench, chosen: Callable[[str], bool]) -> Iterator[Case]:
    """Run every comparison whose name is chosen."""
    for name, plan in plans(bench.quick).items():
        if chosen(name):
            bench.told(name)
            yield from plan(bench, name)


def quickest(cases: list[Case]) -> list[Case]:
    """Return of each comparison with peers the row of the peer that took least time."""
    best: dict[str, Case] = {}
    for case in cases:
        if not case.against_ourselves and case.peer_ms <= best.get(case.name, case).peer_ms:
            best[case.name] = case
    return list(best.values())

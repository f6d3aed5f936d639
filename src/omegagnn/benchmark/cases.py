"""The cases: what is timed against what, after both were seen to compute the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from omegagnn.benchmark.measure import Ceilings, Step, peak_growth_mib, time_in_turns
from omegagnn.benchmark.peers import PygNet, copy_weights, evaluation, training_step
from omegagnn.data import load
from omegagnn.data.dataset import Dataset
from omegagnn.data.synthetic import scale_free
from omegagnn.errors import OmegaError
from omegagnn.graph import Graph
from omegagnn.ops import omega_propagate
from omegagnn.training.batch import RunBatch
from omegagnn.training.config import RunConfig
from omegagnn.training.tasks import make_task

CHANNELS = 64
TOLERANCE = 2e-3  # of the largest logit, float32 over up to 64 layers


@dataclass(frozen=True)
class Case:
    """One row: our time and a peer's for the same work in the same run."""

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
    fraction_of_floor: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


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
        batch.task.train_epoch(
            batch.net, batch.operator, batch.seeds, batch.epoch, lambda losses: batch._step(losses, 1.0)
        )

    return step


def peer_inputs(dataset: Dataset, batch: RunBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Return features (dense, as PyG's own loaders give them), edge_index and the CSR matrix of PyG's documentation."""
    features = batch.task.features
    x = features if isinstance(features, Tensor) else features.to_dense()
    edge_index, _ = batch.task.graph.to_edge_index()
    return x, edge_index, batch.task.graph.to_torch_sparse()


def assert_same_outputs(batch: RunBatch, peer: PygNet, x: Tensor, edges: Any) -> None:
    """Compare our net at ω = 1 with a peer of the same weights."""
    net: Any = batch.net
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with torch.no_grad():
        copy_weights(peer, net)
        for conv in net.convs:
            conv.omega.fill_(1.0)
        ours, theirs = net.eval()(batch.task.features, batch.operator)[:, 0], peer.eval()(x, edges)
    error = float((ours - theirs).abs().max() / theirs.abs().max())
    if not error < TOLERANCE:
        raise OmegaError(
            f"Ours and {type(peer).__name__} differ by {error:.1e}, so their times say nothing: report this."
        )
    net.load_state_dict(before)


def training_cases(dataset: Dataset, model: str, layers: int, rounds: int, limits: Ceilings) -> Iterator[Case]:
    """Time a whole training step against PyG with `edge_index` and with CSR."""
    kind = model.removeprefix("omega-")
    batch = our_batch(dataset, model, layers)
    x, edge_index, adjacency = peer_inputs(dataset, batch)
    split, labels = dataset.splits[0], dataset.labels
    forms = {"edge_index": edge_index, "CSR": adjacency} if kind == "gcn" else {"edge_index": edge_index}
    steps: dict[str, Step] = {"ours": our_step(batch)}
    for form, edges in forms.items():
        peer = PygNet(dataset.num_features, CHANNELS, layers, dataset.num_classes, kind, 0.5)
        assert_same_outputs(batch, peer, x, edges)
        steps[form] = training_step(peer, x, edges, labels, split.train)
    times = time_in_turns(steps, rounds)
    memory = {name: peak_growth_mib(step) for name, step in steps.items()}
    floor = floor_ms(batch, layers, limits)
    conv = {"gcn": "GCNConv", "gat": "GATConv"}[kind]
    for form in forms:
        yield Case(
            f"train {model} {dataset.name} {layers} layers", "cpu", times["ours"].ms, times["ours"].spread_ms,
            f"PyG {conv}, {form}", times[form].ms, times[form].spread_ms, times[form].ms / times["ours"].ms,
            memory["ours"], memory[form], floor / times["ours"].ms,
        )  # fmt: skip


def floor_ms(batch: RunBatch, layers: int, limits: Ceilings) -> float:
    """Return the least a training step can take: products at the matrix rate, everything else at copy bandwidth.

    Layers: three products of n·c·c; bytes read and written once by the propagation and by ReLU, forward and backward (a
    propagation meets each entry's index and weight and, from cache, its neighbour's row). Opening and closing likewise.
    """
    task, graph = batch.task, batch.operator
    n, c, edges = graph.num_nodes, batch.config.model.channels, graph.num_edges
    stored = task.features.numel() if isinstance(task.features, Tensor) else task.features.value.numel()
    products = layers * 3 * 2 * n * c * c + 3 * 2 * n * c * task.dataset.num_classes + 2 * 2 * stored * c
    moved = layers * (4 * n * c * 9 + 2 * 8 * edges) + 4 * n * c * 8 + 2 * 8 * stored
    propagated = layers * 2 * 2 * edges * c
    return 1e3 * ((products + propagated) / limits.flops_per_s + moved / limits.bytes_per_s)


def many_runs_case(dataset: Dataset, runs: int, rounds: int) -> Case:
    """Time an epoch (training and evaluation) of R runs as one batch against R runs of PyG one after another."""
    batch = our_batch(dataset, "omega-gcn", 2, runs)
    x, edge_index, _ = peer_inputs(dataset, batch)
    split, labels = dataset.splits[0], dataset.labels
    peers = [PygNet(dataset.num_features, CHANNELS, 2, dataset.num_classes, "gcn", 0.5) for _ in range(runs)]
    parts = [split.train, split.val, split.test]
    calls = [training_step(peer, x, edge_index, labels, split.train) for peer in peers]
    calls += [evaluation(peer, x, edge_index, labels, parts) for peer in peers]

    def one_after_another() -> None:
        for call in calls:
            call()

    times = time_in_turns({"ours": batch.train_epoch, "peer": one_after_another}, rounds)
    return Case(
        f"epoch of {runs} runs omega-gcn {dataset.name} 2 layers", "cpu", times["ours"].ms, times["ours"].spread_ms,
        "PyG GCNConv, one run after another", times["peer"].ms, times["peer"].spread_ms, times["peer"].ms / times["ours"].ms,
    )  # fmt: skip


def company_case(dataset: Dataset, runs: int, rounds: int) -> Case:
    """Time an epoch of R runs as one batch against one run: `ratio` is one run's time over the batch's."""
    whole, single = our_batch(dataset, "omega-gcn", 2, runs), our_batch(dataset, "omega-gcn", 2)
    times = time_in_turns({"ours": whole.train_epoch, "one": single.train_epoch}, rounds)
    return Case(
        f"epoch of {runs} runs against 1, {dataset.name} 2 layers", "cpu", times["ours"].ms, times["ours"].spread_ms,
        "ours, one run", times["one"].ms, times["one"].spread_ms, times["one"].ms / times["ours"].ms,
    )  # fmt: skip


def omega_cost_case(dataset: Dataset, rounds: int) -> Case:
    """Time a step with learnt ω against the same engine with ω fixed at 1: what ω itself costs."""
    learnt, fixed = our_batch(dataset, "omega-gcn", 16), our_batch(dataset, "omega-gcn", 16, omega=1.0)
    times = time_in_turns({"ours": our_step(learnt), "fixed": our_step(fixed)}, rounds)
    return Case(
        f"omega learnt against fixed, {dataset.name} 16 layers", "cpu", times["ours"].ms, times["ours"].spread_ms,
        "ours, ω fixed at 1", times["fixed"].ms, times["fixed"].spread_ms, times["fixed"].ms / times["ours"].ms,
    )  # fmt: skip


def propagation_case(nodes: int, entries: int, channels: int, rounds: int, limits: Ceilings) -> Case:
    """Time one ω-propagation on a large scale-free graph against torch's CSR product and element-wise operations."""
    graph = large_graph(nodes, entries).gcn_norm()
    x, omega = torch.randn(nodes, channels), torch.rand(channels)
    matrix = graph.to_torch_sparse()

    def ours() -> Tensor:
        return omega_propagate(x, graph, omega)

    def theirs() -> Tensor:
        return x - omega * (x - matrix @ x)

    torch.testing.assert_close(ours(), theirs(), atol=1e-4, rtol=1e-4)
    times = time_in_turns({"ours": ours, "peer": theirs}, rounds)
    moved = 4 * channels * (graph.num_edges + 2 * nodes) + 8 * graph.num_edges
    return Case(
        f"propagation {nodes} nodes {graph.num_edges} entries {channels} channels", "cpu", times["ours"].ms,
        times["ours"].spread_ms, "torch CSR and element-wise", times["peer"].ms, times["peer"].spread_ms,
        times["peer"].ms / times["ours"].ms, peak_growth_mib(ours), peak_growth_mib(theirs),
        1e3 * moved / limits.bytes_per_s / times["ours"].ms,
    )  # fmt: skip


def large_graph(nodes: int, entries: int) -> Graph:
    """Return a scale-free graph of about so many entries, self-loops included."""
    return scale_free(nodes, max(1, round((entries / nodes - 1) / 2)), features=1).graph.to_undirected()


def peer_cases(quick: bool, root: Path | None, limits: Ceilings, told: Callable[[str], None]) -> Iterator[Case]:
    """Run every comparison with a peer."""
    rounds = 3 if quick else 9
    names = ["citeseer"] if quick else ["cora", "citeseer"]
    datasets = {name: load(name, split="public", root=root) for name in names}
    for name, dataset in datasets.items():
        for model in ("omega-gcn", "omega-gat"):
            for layers in (2,) if quick else (2, 64):
                if model == "omega-gat" and name != names[0]:
                    continue
                told(f"{model} on {name}, {layers} layers")
                yield from training_cases(dataset, model, layers, rounds, limits)
    first = datasets[names[0]]
    told("many runs")
    yield many_runs_case(first, 3 if quick else 10, min(rounds, 5))
    yield company_case(first, 3 if quick else 10, rounds)
    told("the cost of ω")
    yield omega_cost_case(first, 2 * rounds)
    told("a large propagation")
    size = (10_000, 100_000, 64) if quick else (169_343, 2_500_000, 256)
    yield propagation_case(*size, rounds, limits)

"""Each fused CPU kernel against torch's own operators, on one thread.

``OMP_NUM_THREADS=1 python benchmarks/cpu_ops.py`` writes cpu_ops.json. The competitors of a case take turns, so that what
else runs on the machine meets all of them, and their outputs are compared before any is timed. Times are medians, spread
is the distance between the quartiles. `gb_per_s` counts the bytes a kernel must touch once each edge, and `copy_gb_per_s`
is what copying an array of the size of the features reaches: below 1 MB it measures a cache, above 100 MB the memory.
All times include new memory for the results, as in training; in a virtual machine its first touch can cost as much as
the kernel.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from omegagnn import Graph
from omegagnn.ops import SparseFeatures, cpu, reference
from omegagnn.training.flat import BLOCK

RESULT = Path(__file__).with_suffix(".json")
SECONDS = 4.0
# nodes, edges, channels, feature columns, stored feature values
GRAPHS = {
    "cora-sized": (2_708, 10_556, 64, 1_433, 49_216),
    "citeseer-sized": (3_327, 9_104, 64, 3_703, 105_165),
    "arxiv-sized": (169_343, 2_330_657, 256, None, None),
}
ATTENTION_CHANNELS = 64  # the peer keeps several arrays of edges × channels
DROP = 0.5

Timed = dict[str, Callable[[], object]]


def power_law_graph(nodes: int, edges: int) -> Graph:
    """A random graph whose senders follow a power law; with self-loops and normalisation it has edges + nodes entries."""
    generator = torch.Generator().manual_seed(0)
    popularity = (1 - torch.rand(nodes, generator=generator, dtype=torch.float64)).pow(-1 / 1.5).clamp_max(5000)
    place = torch.rand(edges, generator=generator, dtype=torch.float64)
    sender = torch.searchsorted(popularity.cumsum(0) / popularity.sum(), place).clamp_max(nodes - 1)
    receiver = torch.randint(nodes, (edges,), generator=generator)
    return Graph.from_edge_index(torch.stack([sender, receiver]), nodes).gcn_norm()


def csr(graph: Graph) -> Tensor:
    size = (graph.num_nodes, graph.num_nodes)
    return torch.sparse_csr_tensor(graph.rowptr, graph.col, graph.weight, size)


def take_turns(competitors: Timed, seconds: float = SECONDS) -> dict[str, tuple[float, float]]:
    """Return the median and the spread of each in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for run in competitors.values():
        run()
    stop = time.perf_counter() + seconds * len(competitors)
    while time.perf_counter() < stop or len(next(iter(times.values()))) < 5:
        for name, run in competitors.items():
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1e3)
    quartiles = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    spread = {name: torch.tensor(each, dtype=torch.float64).quantile(quartiles) for name, each in times.items()}
    return {name: (float(each[1]), float(each[2] - each[0])) for name, each in spread.items()}


def assert_same(ours: tuple[Tensor, ...], peers: tuple[Tensor, ...]) -> None:
    for one, other in zip(ours, peers, strict=True):
        error = float((one.reshape(-1) - other.reshape(-1)).abs().max() / other.abs().max())
        if error > 1e-4:
            raise SystemExit(f"The competitors disagree by {error:.1e}: no time is worth measuring.")


def copy_speed(numbers: int) -> float:
    """Return the GB/s of copying so many float32, counting both directions."""
    source = torch.rand(numbers)
    target = source.clone()
    median, _ = take_turns({"copy": lambda: target.copy_(source)}, 0.5)["copy"]
    return 8 * numbers / median / 1e6


class Report:
    """The measured cases of one graph."""

    def __init__(self, graph: str, numbers: int) -> None:
        self.graph, self.copy, self.cases = graph, copy_speed(numbers), []

    def add(self, name: str, competitors: Timed, touched: float) -> None:
        times = take_turns(competitors)
        ours, spread = times.pop("ours")
        for peer, (median, peer_spread) in times.items():
            case = {
                "name": name,
                "graph": self.graph,
                "ours_ms": round(ours, 4),
                "ours_spread_ms": round(spread, 4),
                "peer": peer,
                "peer_ms": round(median, 4),
                "peer_spread_ms": round(peer_spread, 4),
                "ratio": round(median / ours, 2),
                "gb_per_s": round(touched / ours / 1e6, 1),
                "copy_gb_per_s": round(self.copy, 1),
            }
            self.cases.append(case)
            print(
                f"{self.graph:15} {name:32} ours {ours:9.3f} ms  {peer:28} {median:9.3f} ms  {median / ours:6.2f}×"
                f"  {case['gb_per_s']:6.1f} of {self.copy:.1f} GB/s",
                flush=True,
            )


def propagation(report: Report, graph: Graph, channels: int) -> None:
    n, entries, transposed = graph.num_nodes, graph.num_edges, graph.transposed
    x, grad, omega = torch.randn(1, n, channels), torch.randn(1, n, channels), torch.rand(1, channels)
    matrix, matrix_t = csr(graph), csr(transposed)
    arrays = (graph.rowptr, graph.col, graph.weight)
    arrays_t = (transposed.rowptr, transposed.col, transposed.weight)

    def peer() -> Tensor:
        return x[0] - omega * (x[0] - matrix @ x[0])

    def peer_backward() -> tuple[Tensor, Tensor]:
        change = matrix_t @ grad[0] - grad[0]
        return grad[0] + omega * change, (x[0] * change).sum(0)

    def ours() -> Tensor:
        return cpu.propagate(*arrays, x, omega, False)

    def ours_backward() -> tuple[Tensor, Tensor]:
        return cpu.propagate_backward(*arrays_t, x, omega, grad, False, True)

    assert_same((ours(),), (peer(),))
    assert_same(ours_backward(), peer_backward())
    edges, rows = entries * (4 * channels + 8), 4 * n * channels
    name = f"ω-propagation, {channels} channels"
    report.add(name, {"ours": ours, "torch CSR + element-wise": peer}, edges + 2 * rows)
    both = {"ours": ours_backward, "torch CSR + element-wise": peer_backward}
    report.add(f"{name}, backward", both, edges + 3 * rows)


def attention(report: Report, graph: Graph, channels: int, heads: int) -> None:
    n, entries, transposed = graph.num_nodes, graph.num_edges, graph.transposed
    x, grad, omega = torch.randn(1, n, channels), torch.randn(1, n, channels), torch.rand(1, channels)
    maps, settings = torch.randn(1, channels, 2 * heads) / channels**0.5, (0.2, DROP, torch.tensor([[1, 2]]), False)
    forward = (graph.rowptr, graph.col, x, maps, omega, *settings)
    y, scores, lse = reference.attention(*forward)
    structure = (graph.rowptr, graph.col, transposed.rowptr, transposed.col, graph.transpose_order)
    backward = (*structure, x, y, maps, scores, lse, omega, grad, *settings)
    assert_same(cpu.attention(*forward), reference.attention(*forward))
    assert_same(cpu.attention_backward(*backward), reference.attention_backward(*backward))
    edges, rows = entries * (4 * channels + 4 + 8 * heads), 4 * n * channels
    name, peer = f"attention, {channels} channels, {heads} heads", "torch gather and scatter"
    both = {"ours": lambda: cpu.attention(*forward), peer: lambda: reference.attention(*forward)}
    report.add(name, both, edges + 2 * rows)
    both = {"ours": lambda: cpu.attention_backward(*backward), peer: lambda: reference.attention_backward(*backward)}
    report.add(f"{name}, backward", both, edges + 28 * entries * heads + 3 * rows)


def dropout(report: Report, nodes: int, channels: int) -> None:
    x, key = torch.randn(1, nodes, channels), torch.tensor([[1, 2]])
    assert_same((cpu.dropout(x, DROP, key),), (reference.dropout(x, DROP, key),))
    competitors: Timed = {
        "ours": lambda: cpu.dropout(x, DROP, key),
        "torch dropout": lambda: functional.dropout(x, DROP),
    }
    report.add(f"dropout, {channels} channels", competitors, 8 * x.numel())


def sparse_features(report: Report, nodes: int, columns: int, values: int, channels: int) -> None:
    generator = torch.Generator().manual_seed(1)
    place = torch.randperm(nodes * columns, generator=generator)[:values]
    dense = torch.zeros(nodes * columns).index_fill(0, place, 1.0).view(nodes, columns)
    matrix, dense_t = dense.to_sparse_csr(), dense.t().contiguous()
    features = SparseFeatures(matrix)
    weight, grad, key = torch.randn(1, columns, channels), torch.randn(1, nodes, channels), torch.tensor([[1, 2]])

    def ours(p: float = DROP) -> Tensor:
        return cpu.sparse_linear(features.rowptr, features.col, features.value, weight, p, key)

    def ours_backward(p: float = DROP) -> Tensor:
        return cpu.sparse_linear_backward(*features.structure, features.value, grad, p, key)

    def sparse() -> Tensor:
        kept = functional.dropout(features.value, DROP)
        return torch.sparse_csr_tensor(features.rowptr, features.col, kept, dense.shape) @ weight[0]

    assert_same((ours(0.0), ours_backward(0.0)), (dense @ weight[0], dense_t @ grad[0]))
    forward: Timed = {
        "ours": ours,
        "torch dropout + dense matmul": lambda: functional.dropout(dense, DROP) @ weight[0],
        "torch dropout + CSR matmul": sparse,
    }
    touched = values * (4 * channels + 8)
    report.add(f"sparse features, {channels} channels", forward, touched + 4 * grad.numel())
    backward: Timed = {"ours": ours_backward, "torch dense matmul": lambda: dense_t @ grad[0]}
    report.add(f"sparse features, {channels} channels, backward", backward, touched + 4 * weight.numel())


def adam(report: Report, rows: int, channels: int) -> None:
    size = rows * channels
    start, grad = torch.randn(size), torch.randn(size)
    rates, decays, active = torch.tensor([[0.01]]), torch.tensor([[5e-4]]), torch.ones(1, dtype=torch.bool)
    correction = torch.tensor([1.0, 0.1, 0.001], dtype=torch.float64)
    blocks = torch.tensor([[k, min(k + BLOCK, size), 0, 0] for k in range(0, size, BLOCK)]).t().contiguous()

    def step(param: Tensor, average: Tensor, square: Tensor) -> Tensor:
        settings = rates, decays, correction, active, blocks, BLOCK
        cpu.adam_(param, grad, average, square, *settings, 0.9, 0.999, 1e-8)
        return param

    def torch_adam(**options: bool) -> Callable[[], Tensor]:
        param = start.clone().requires_grad_()
        param.grad = grad
        optimiser = torch.optim.Adam([param], lr=0.01, weight_decay=5e-4, **options)
        return lambda: optimiser.step() or param.detach()

    state = (start.clone(), torch.zeros_like(start), torch.zeros_like(start))
    competitors: Timed = {
        "ours": lambda: step(*state),
        "torch Adam, foreach": torch_adam(foreach=True),
        "torch Adam, fused": torch_adam(fused=True),
    }
    assert_same(
        (step(start.clone(), start * 0, start * 0),) * 2, (torch_adam(foreach=True)(), torch_adam(fused=True)())
    )
    report.add(f"Adam, {rows} × {channels}", competitors, 28 * start.numel())


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cases = []
    for name, (nodes, edges, channels, columns, values) in GRAPHS.items():
        graph, report = power_law_graph(nodes, edges), Report(name, nodes * channels)
        propagation(report, graph, channels)
        dropout(report, nodes, channels)
        for heads in (1, 8):
            attention(report, graph, ATTENTION_CHANNELS, heads)
        if columns:
            sparse_features(report, nodes, columns, values, channels)
        adam(report, columns or channels, channels)
        cases += report.cases
    result = {
        "cases": cases,
        "threads": 1,
        "load_average": [round(load, 1) for load in os.getloadavg()],  # above 1, others were at work on the machine
        "machine": f"{platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

"""The Triton twin against float64 dense algebra: in Triton's interpreter everywhere, and for real where there is a GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from omegagnn.graph import Graph
from omegagnn.nn.runs import run_matmul
from omegagnn.ops import Draws, omega_propagate
from omegagnn.ops.random import draw_bits, drop_threshold, mix

pytest.importorskip("triton", reason="needs triton, which exists for Linux only")
from omegagnn.ops import gpu
from omegagnn.ops.gpu_plan import make_plan

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 3e-2}
# The interpreter is slow and computes float32 as it does float64: there two types show what there is to show.
DTYPES = list(TOLERANCE) if DEVICE.type == "cuda" else [torch.float64, torch.bfloat16]
SLOPE = 0.2


@pytest.fixture(autouse=True)
def _short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut rows into segments early, so that a small hub is one."""
    monkeypatch.setattr("omegagnn.ops.gpu_plan.LIMIT_OF_FEW", 16)


def random_graph() -> Graph:
    """A directed graph with self-loops, duplicates, weights and isolated nodes."""
    index = torch.randint(0, 36, (2, 150))
    return Graph.from_edge_index(torch.cat([index, index[:, :20]], dim=1), 40, torch.randn(170))


def hub() -> Graph:
    """Node 0 hears 70 others and speaks to them."""
    others = torch.arange(1, 71)
    star = torch.stack([others, torch.zeros_like(others)])
    return Graph.from_edge_index(torch.cat([star, star.flip(0)], 1), 73, torch.rand(140))


def empty(nodes: int) -> Graph:
    return Graph.from_edge_index(torch.zeros(2, 0, dtype=torch.long), nodes)


GRAPHS: dict[str, Callable[[], Graph]] = {
    "directed": random_graph,
    "hub": hub,
    "no edges": lambda: empty(5),
    "no nodes": lambda: empty(0),
}


class Case:
    """One graph with features, and its entries as dense algebra in float64 sees them."""

    def __init__(self, graph: Graph, dtype: torch.dtype, runs: int = 2, width: int = 6, heads: int = 1) -> None:
        graph = graph.to(DEVICE)
        self.n, self.runs, self.width, self.heads = graph.num_nodes, runs, width, heads
        total = torch.float64 if dtype == torch.float64 else torch.float32
        weight = torch.ones(graph.num_edges) if graph.weight is None else graph.weight
        self.order = graph.transpose_order.long()
        self.weight = weight.to(DEVICE, total)
        self.weight_t = self.weight[self.order]
        self.forward = graph.rowptr, graph.col
        self.backward = graph.transposed.rowptr, graph.transposed.col
        self.row = torch.repeat_interleave(torch.arange(self.n, device=DEVICE), graph.rowptr.long().diff())
        self.col = graph.col.long()
        draw = lambda *shape: torch.randn(*shape, dtype=torch.float64).to(DEVICE)  # noqa: E731
        self.x, self.grad = draw(runs, self.n, width).to(dtype), draw(runs, self.n, width).to(dtype)
        self.omega, self.maps = draw(runs, width).to(total), draw(runs, width, 2 * heads).to(total)
        self.key = Draws(torch.randint(0, 2**62, (runs,)).to(DEVICE)).key(3)

    def kept(self, p: float, heads: int) -> Tensor:
        """The factor with which dropout multiplies each entry, ``[R, entries, heads]``."""
        count = self.col.numel() * heads
        bits = draw_bits(self.key, torch.arange(count, device=DEVICE)).view(self.runs, -1, heads)
        return (bits >= drop_threshold(p)).double() / (1 - p)

    def matrix(self, values: Tensor, rows: int, columns: int) -> Tensor:
        """Dense ``[R, rows, columns]`` of values ``[R, entries]`` (duplicates add up)."""
        out = values.new_zeros(values.size(0), rows * columns)
        return out.index_add(1, self.row * columns + self.col, values).view(self.runs, rows, columns)

    def mixed(self, x: Tensor, matrix: Tensor, omega: Tensor) -> Tensor:
        """The formula: (1 − ω) x + ω S x."""
        return (1 - omega)[:, None] * x + omega[:, None] * (matrix @ x)

    def attended(self, x: Tensor, maps: Tensor, omega: Tensor, p: float, relu: bool) -> Tensor:
        """The formula of attention, head by head, by dense matrices."""
        signal = x.relu() if relu else x
        scores, drop = signal @ maps, self.kept(p, self.heads)
        parts = []
        for head, block in enumerate(signal.chunk(self.heads, dim=2)):
            score = scores[:, self.row, head] + scores[:, self.col, self.heads + head]
            weight = torch.where(score > 0, score, SLOPE * score).exp()
            sums = weight.new_zeros(self.runs, self.n).index_add(1, self.row, weight)
            alpha = weight / sums[:, self.row] * drop[:, :, head]
            parts.append(self.matrix(alpha, self.n, self.n) @ block)
        return (1 - omega)[:, None] * signal + omega[:, None] * torch.cat(parts, dim=2)


def check(actual: Tensor, expected: Tensor, dtype: torch.dtype, times: float = 1.0) -> None:
    expected = expected.detach()
    assert actual.shape == expected.shape
    if expected.numel():
        error = (actual.double() - expected).abs().max() / expected.abs().max().clamp_min(1)
        assert error <= times * TOLERANCE[dtype], float(error)


def leaves(*tensors: Tensor) -> list[Tensor]:
    return [tensor.double().requires_grad_() for tensor in tensors]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_propagation_and_its_gradients(name: str, relu: bool, dtype: torch.dtype) -> None:
    case = Case(GRAPHS[name](), dtype)
    x, omega = leaves(case.x, case.omega)
    matrix = case.matrix(case.weight.double().expand(case.runs, -1), case.n, case.n)
    expected = case.mixed(x.relu() if relu else x, matrix, omega)
    y = gpu.propagate(*case.forward, case.weight, case.x, case.omega, relu)
    assert y.dtype == dtype
    check(y, expected, dtype)
    check(
        gpu.propagate(*case.forward, case.weight, case.x, None, relu),
        matrix @ (x.relu() if relu else x).detach(),
        dtype,
    )
    expected.backward(case.grad.double())
    arguments = (*case.backward, case.weight_t, case.x, case.omega, case.grad, relu)
    grad_x, grad_omega = gpu.propagate_backward(*arguments, True)
    check(grad_x, x.grad, dtype)
    check(grad_omega, omega.grad, dtype)
    alone, nothing = gpu.propagate_backward(*arguments, False)
    assert torch.equal(alone, grad_x)
    assert not nothing.any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("p", "relu", "heads"), [(0.0, False, 1), (0.0, True, 2), (0.6, True, 1), (0.6, False, 2)])
@pytest.mark.parametrize("name", GRAPHS)
def test_attention_and_its_gradients(name: str, p: float, relu: bool, heads: int, dtype: torch.dtype) -> None:
    case = Case(GRAPHS[name](), dtype, heads=heads)
    x, maps, omega = leaves(case.x, case.maps, case.omega)
    expected = case.attended(x, maps, omega, p, relu)
    y, scores, lse = gpu.attention(*case.forward, case.x, case.maps, case.omega, SLOPE, p, case.key, relu)
    check(y, expected, dtype)
    expected.backward(case.grad.double())
    grads = gpu.attention_backward(
        *case.forward, *case.backward, case.order.int(), case.x, y, case.maps, scores, lse, case.omega, case.grad,
        SLOPE, p, case.key, relu,
    )  # fmt: skip
    for actual, leaf in zip(grads, (x, maps, omega), strict=True):
        # The softmax's gradient is read from the stored y: in bfloat16 its rounding is most of the error.
        check(actual, torch.zeros_like(leaf) if leaf.grad is None else leaf.grad, dtype, times=4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("p", [0.0, 0.6])
@pytest.mark.parametrize("name", GRAPHS)
def test_sparse_features_and_their_gradient(name: str, p: float, dtype: torch.dtype) -> None:
    case = Case(GRAPHS[name](), dtype)
    values = case.weight.double() * case.kept(p, 1)[:, :, 0]
    matrix = case.matrix(values, case.n, case.n)
    check(gpu.sparse_linear(*case.forward, case.weight, case.x, p, case.key), matrix @ case.x.double(), dtype)
    actual = gpu.sparse_linear_backward(
        *case.forward, *case.backward, case.order.int(), case.weight, case.grad, p, case.key
    )
    check(actual, matrix.transpose(1, 2) @ case.grad.double(), dtype)


@pytest.mark.parametrize(("runs", "width", "heads"), [(1, 1, 1), (3, 7, 1), (1, 64, 8), (2, 100, 2), (1, 600, 1)])
def test_every_shape(runs: int, width: int, heads: int) -> None:
    case = Case(random_graph(), torch.float64, runs, width, heads)
    x, maps, omega = leaves(case.x, case.maps, case.omega)
    matrix = case.matrix(case.weight.expand(runs, -1), case.n, case.n)
    check(
        gpu.propagate(*case.forward, case.weight, case.x, case.omega, True),
        case.mixed(x.relu(), matrix, omega),
        x.dtype,
    )
    y = gpu.attention(*case.forward, case.x, case.maps, case.omega, SLOPE, 0.5, case.key, True)[0]
    check(y, case.attended(x, maps, omega, 0.5, True), x.dtype)


def test_draws_are_the_bits_of_the_random_module() -> None:
    x, seeds = torch.ones(3, 41, 11).to(DEVICE), torch.tensor([0, 12345, 2**62 - 1])
    for step, place in ((0, 0), (7, 3), (1_000_003, 64)):
        key = Draws(seeds, step).key(place)
        on_device = gpu.draw_key(seeds.to(DEVICE), torch.tensor(step, device=DEVICE), place)
        assert torch.equal(on_device.cpu(), key)
        kept = draw_bits(key, torch.arange(41 * 11)) >= drop_threshold(0.3)
        dropped = gpu.dropout(x, 0.3, key.to(DEVICE))
        assert torch.equal((dropped != 0).cpu(), kept.view(3, 41, 11))
    assert mix(torch.tensor([1])).item() != 1


def test_the_same_bits_every_time_and_in_company() -> None:
    case = Case(hub(), torch.float32, runs=3)
    together = gpu.propagate(*case.forward, case.weight, case.x, case.omega, True)
    assert torch.equal(gpu.propagate(*case.forward, case.weight, case.x, case.omega, True), together)
    for run in range(3):
        own = slice(run, run + 1)
        alone = gpu.propagate(*case.forward, case.weight, case.x[own], case.omega[own], True)
        assert torch.equal(alone, together[own])


def test_long_rows_are_cut_into_segments_that_cover_them() -> None:
    graph = hub()
    plan = make_plan(graph.rowptr, 16)
    assert plan.long_row.tolist() == [0]
    assert plan.segment_start.tolist() == [0, 16, 32, 48, 64]
    assert plan.segment_stop.tolist() == [16, 32, 48, 64, 70]


@pytest.mark.parametrize(("runs", "n", "c", "d"), [(1, 5, 3, 7), (2, 70, 16, 20), (1, 33, 64, 64), (1, 10, 80, 4)])
def test_both_gradients_of_a_product(runs: int, n: int, c: int, d: int) -> None:
    x, weight, grad = (torch.randn(runs, *shape).to(DEVICE) for shape in ((n, c), (c, d), (n, d)))
    check(gpu.linear(x, weight), x.double() @ weight.double(), torch.float32)
    grad_x, grad_weight = gpu.linear_backward(x, weight, grad, True)
    check(grad_x, grad.double() @ weight.double().mT, torch.float32)
    check(grad_weight, x.double().mT @ grad.double(), torch.float32)


@pytest.mark.parametrize("shape", [(1, 2, 3), (700, 1, 20), (1500, 3), (5000, 40)])
def test_sums_over_columns(shape: tuple[int, ...]) -> None:
    parts = torch.randn(shape, dtype=torch.float64).to(DEVICE)
    check(gpu._column_sums(parts), parts.sum(0), torch.float64)


def test_mapped_ops_hand_the_kernels_whole_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vmap that leaves ω, a key or the features alone repeats them for the kernels, which know no strides."""
    monkeypatch.setattr("omegagnn.ops.registry.fused_twin", lambda kind: gpu)
    graph = random_graph().to(DEVICE)
    x = torch.randn(3, 40, 6, dtype=torch.float64).to(DEVICE).requires_grad_()
    weight = torch.randn(3, 6, 5, dtype=torch.float64).to(DEVICE).requires_grad_()

    def both(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        return omega_propagate(x, graph, 0.7), run_matmul(x, weight)

    mapped = torch.func.vmap(both)(x, weight)
    alone = [torch.stack(outputs) for outputs in zip(*(both(x[k], weight[k]) for k in range(3)), strict=True)]
    for ours, theirs in zip(mapped, alone, strict=True):
        check(ours, theirs, torch.float64)
    gradients = [torch.autograd.grad(sum(y.sin().sum() for y in ys), [x, weight]) for ys in (mapped, alone)]
    for ours, theirs in zip(*gradients, strict=True):
        check(ours, theirs, torch.float64)


def test_indices_may_be_long() -> None:
    case = Case(random_graph(), torch.float32)
    short = gpu.propagate(*case.forward, case.weight, case.x, case.omega, False)
    long = gpu.propagate(*(part.long() for part in case.forward), case.weight, case.x, case.omega, False)
    assert torch.equal(short, long)

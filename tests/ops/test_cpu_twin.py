"""The fused CPU twin means what the reference means: forward and backward, for every shape, dtype and degenerate graph."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from numba import njit
from torch import Tensor

from omegagnn.graph import Graph
from omegagnn.ops import (
    Draws,
    SparseFeatures,
    attention_propagate,
    cpu,
    cpu_calls,
    cpu_disk,
    cpu_kernels,
    dropout,
    omega_propagate,
    reference,
    sparse_linear,
    use_backend,
)
from omegagnn.ops.random import draw_bits, drop_threshold

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}  # of sums of up to ten thousand numbers
DTYPES = list(TOLERANCE)


class Structure:
    """A graph's arrays and its transpose's, as the kernels take them."""

    def __init__(self, graph: Graph, dtype: torch.dtype = torch.float32, index: torch.dtype | None = None) -> None:
        index = index or graph.col.dtype
        transposed, order = graph.transposed, graph.transpose_order
        weight = torch.ones(graph.num_edges) if graph.weight is None else graph.weight
        self.rowptr, self.col, self.weight = graph.rowptr.to(index), graph.col.to(index), weight.to(dtype)
        self.rowptr_t, self.col_t = transposed.rowptr.to(index), transposed.col.to(index)
        self.order_t, self.weight_t = order.to(index), self.weight[order.long()]
        self.forward = self.rowptr, self.col
        self.both = self.rowptr, self.col, self.rowptr_t, self.col_t, self.order_t


def random_graph(n: int, edges: int, weighted: bool = True) -> Graph:
    """A directed graph with isolated nodes, self-loops and duplicate edges."""
    index = torch.randint(0, max(n - n // 10, 1), (2, edges))
    index = torch.cat([index, index[:, : edges // 8]], dim=1)
    return Graph.from_edge_index(index, n, torch.randn(index.size(1)) if weighted else None)


def hub() -> Graph:
    """Node 0 hears 5,000 others and speaks to them."""
    others = torch.arange(1, 5001)
    star = torch.stack([others, torch.zeros_like(others)])
    return Graph.from_edge_index(torch.cat([star, star.flip(0)], 1), 5003, torch.rand(10_000))


GRAPHS: dict[str, Callable[[], Graph]] = {
    "directed": lambda: random_graph(130, 700),
    "unweighted": lambda: random_graph(70, 300, weighted=False),
    "more rows than a chunk": lambda: random_graph(2 * cpu.CHUNK + 70, 6000),
    "hub": hub,
    "no edges": lambda: Graph.from_edge_index(torch.zeros(2, 0, dtype=torch.long), 9),
    "one node": lambda: Graph.from_edge_index(torch.zeros(2, 1, dtype=torch.long), 1),
    "no nodes": lambda: Graph.from_edge_index(torch.zeros(2, 0, dtype=torch.long), 0),
}


def assert_close(actual: Tensor, expected: Tensor) -> None:
    """Equal within the dtype's tolerance, relative to the largest number or to 1, the size of what is summed."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if expected.numel():
        error = (actual - expected).abs().max() / expected.abs().max().clamp_min(1)
        assert error <= TOLERANCE.get(expected.dtype, 0), float(error)


def assert_all_close(actual: tuple[Tensor, ...] | Tensor, expected: tuple[Tensor, ...] | Tensor) -> None:
    actual, expected = ((pair,) if isinstance(pair, Tensor) else pair for pair in (actual, expected))
    for one, other in zip(actual, expected, strict=True):
        assert_close(one, other)


def every_kernel(
    structure: Structure, runs: int, width: int, heads: int, dtype: torch.dtype, p: float, relu: bool = True
) -> dict[str, Callable[..., tuple[Tensor, ...] | Tensor]]:
    """Each kernel with its arguments; call it with the module to compute in and, for some runs only, their slice."""
    n = structure.rowptr.numel() - 1
    x, grad = (torch.randn(runs, n, width, dtype=dtype) for _ in range(2))
    maps = 3 * torch.randn(runs, width, 2 * heads, dtype=dtype) / max(width, 1) ** 0.5
    omega, seeds = torch.randn(runs, width, dtype=dtype), torch.randint(0, 2**62, (runs,))
    key = Draws(seeds).key(3)
    s, every = structure, slice(None)

    def attention_backward(module, r=every):
        y, scores, lse = module.attention(*s.forward, x[r], maps[r], omega[r], 0.2, p, key[r], relu)
        arrays = (x[r], y, maps[r], scores, lse, omega[r], grad[r])
        return y, scores, lse, *module.attention_backward(*s.both, *arrays, 0.2, p, key[r], relu)

    def propagate_backward(need_omega):
        arrays = (s.rowptr_t, s.col_t, s.weight_t)
        return lambda module, r=every: module.propagate_backward(*arrays, x[r], omega[r], grad[r], relu, need_omega)

    weight = torch.randn(runs, width, 5 * heads, dtype=dtype)
    pulled = torch.randn(runs, n, 5 * heads, dtype=dtype)

    labels, shares = torch.randint(-1, 5 * heads, (n,)), torch.rand(runs, 2, n, dtype=dtype).sub(0.5).relu()

    def linear_backward(need_x):
        return lambda module, r=every: module.linear_backward(x[r], weight[r], pulled[r], need_x)

    def layer(keep):
        arrays = (*s.forward, s.weight)
        return lambda module, r=every: module.layer(*arrays, x[r], omega[r], weight[r], relu, keep)

    def layer_backward(keep):
        def call(module, r=every):
            graph, arrays = (*s.forward, s.weight), (x[r], omega[r], weight[r])
            z = module.layer(*graph, *arrays, relu, keep)[1]
            graph_t = (s.rowptr_t, s.col_t, s.weight_t)
            return module.layer_backward(*graph, *graph_t, *arrays, z, pulled[r], relu, True)

        return call

    def sparse_linear_backward(module, r=every):
        return module.sparse_linear_backward(*s.both, s.weight, grad[r], p, key[r])

    return {
        "propagate": lambda module, r=every: module.propagate(*s.forward, s.weight, x[r], omega[r], relu),
        "plain product": lambda module, r=every: module.propagate(*s.forward, s.weight, x[r], None, relu),
        "propagate backward": propagate_backward(True),
        "propagate backward without ω": propagate_backward(False),
        "edge dot": lambda module, r=every: module.edge_dot(*s.forward, x[r], grad[r]),
        "attention and its backward": attention_backward,
        "sparse linear": lambda module, r=every: module.sparse_linear(*s.forward, s.weight, x[r], p, key[r]),
        "sparse linear backward": sparse_linear_backward,
        "linear": lambda module, r=every: module.linear(x[r], weight[r]),
        "linear of shared features": lambda module, r=every: module.linear(x[:1].expand_as(x)[r], weight[r]),
        "linear backward": linear_backward(True),
        "linear backward without x": linear_backward(False),
        "layer": layer(False),
        "layer that keeps": layer(True),
        "layer backward": layer_backward(False),
        "layer backward of what was kept": layer_backward(True),
        "cross entropy": lambda module, r=every: module.cross_entropy(pulled[r], labels, shares[r]),
        "cross entropy backward": lambda module, r=every: module.cross_entropy_backward(
            pulled[r], labels, shares[r], omega.sum(1, keepdim=True).expand(-1, 2)[r]
        ),
        "dropout": lambda module, r=every: module.dropout(x[r], p, key[r]),
        "keys": lambda module, r=every: module.draw_key(seeds[r], torch.tensor(2**40 + 3), 2**33 + 5),
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("p", "relu"), [(0.0, True), (0.6, False), (0.6, True)])
def test_every_kernel_equals_the_reference_on_every_graph(name: str, dtype: torch.dtype, p: float, relu: bool) -> None:
    for kernel in every_kernel(Structure(GRAPHS[name](), dtype), 2, 16, 2, dtype, p, relu).values():
        assert_all_close(kernel(cpu), kernel(reference))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize(
    ("width", "heads"),
    [(1, 1), (3, 1), (7, 1), (16, 1), (16, 2), (64, 1), (64, 2), (64, 8), (100, 1), (100, 2), (256, 8), (300, 1)],
)
def test_every_kernel_equals_the_reference_for_every_shape(
    width: int, heads: int, runs: int, dtype: torch.dtype
) -> None:
    for kernel in every_kernel(Structure(random_graph(90, 500), dtype), runs, width, heads, dtype, 0.4).values():
        assert_all_close(kernel(cpu), kernel(reference))


def test_no_runs_and_no_channels_are_empty_results() -> None:
    structure = Structure(random_graph(20, 60))
    for runs, width in ((0, 4), (2, 0)):
        for kernel in every_kernel(structure, runs, width, 2, torch.float32, 0.4).values():
            assert_all_close(kernel(cpu), kernel(reference))


def test_long_indices_give_the_same_bits_as_short_ones() -> None:
    graph = random_graph(100, 600)
    torch.manual_seed(1)
    short = every_kernel(Structure(graph, index=torch.int32), 2, 20, 2, torch.float32, 0.5)
    torch.manual_seed(1)
    long = every_kernel(Structure(graph, index=torch.int64), 2, 20, 2, torch.float32, 0.5)
    for name, kernel in short.items():
        assert_same_bits(kernel(cpu), long[name](cpu))


def assert_same_bits(one: tuple[Tensor, ...] | Tensor, other: tuple[Tensor, ...] | Tensor) -> None:
    one, other = ((pair,) if isinstance(pair, Tensor) else pair for pair in (one, other))
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        integer = torch.int32 if a.dtype == torch.float32 else torch.int64
        assert torch.equal(a.contiguous().view(integer), b.contiguous().view(integer))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("width", "heads"), [(7, 1), (64, 1), (100, 2)])
def test_company_changes_no_bit_of_a_run(width: int, heads: int, dtype: torch.dtype) -> None:
    runs = 4
    kernels = every_kernel(Structure(random_graph(2500, 9000), dtype), runs, width, heads, dtype, 0.5)
    for kernel in kernels.values():
        together = kernel(cpu)
        together = (together,) if isinstance(together, Tensor) else together
        for run in range(runs):
            assert_same_bits(kernel(cpu, slice(run, run + 1)), tuple(part[run : run + 1] for part in together))


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_threads_change_no_bit(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = every_kernel(Structure(random_graph(9 * cpu.CHUNK + 5, 40_000), dtype), 2, 24, 2, dtype, 0.5)
    del kernels["keys"]  # two words a run are never worth a second thread
    used = []
    pool = cpu_calls._pool
    monkeypatch.setattr(cpu_calls, "_pool", lambda count: used.append(count) or pool(count))
    for kernel in kernels.values():
        alone = kernel(cpu)
        assert not used
        with threads(3), monkeypatch.context() as patch:
            patch.setattr(cpu_calls, "WORTH_SHARING", 0)
            assert_same_bits(kernel(cpu), alone)
        assert set(used) == {2}  # and the caller
        used.clear()


def test_small_work_stays_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(count: int) -> None:
        raise AssertionError(f"asked for {count} threads")

    monkeypatch.setattr(cpu_calls, "_pool", refuse)
    with threads(4):
        for kernel in every_kernel(Structure(random_graph(5000, 20_000)), 1, 64, 1, torch.float32, 0.5).values():
            kernel(cpu)


FORK = """
import os, torch
from omegagnn.ops import cpu, cpu_calls
cpu_calls.WORTH_SHARING = 0
torch.set_num_threads(2)
rows = 3 * cpu.CHUNK
rowptr, col = torch.arange(rows + 1), torch.arange(rows).flip(0)
def product():
    return cpu.propagate(rowptr, col, torch.ones(rows), torch.arange(2.0 * rows).view(1, rows, 2), None, False)[0, 0].tolist()
expected = product()
child = os.fork()
if child == 0:
    os._exit(0 if product() == expected else 1)
print(expected, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_child_gets_threads_of_its_own() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout == f"[{6.0 * cpu.CHUNK - 2}, {6.0 * cpu.CHUNK - 1}] 0\n"


@pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("p", [0.0, 0.5])
def test_what_is_not_finite_stays_so(poison: float, p: float) -> None:
    structure = Structure(random_graph(60, 300))
    n = structure.rowptr.numel() - 1
    x, omega, key = torch.randn(2, n, 20), torch.rand(2, 20), Draws(torch.tensor([5, 6])).key(0)
    x[1, 7, 3] = x[0, 50, 19] = poison
    maps, arrays_t = torch.zeros(2, 20, 4), (structure.rowptr_t, structure.col_t, structure.weight_t)
    maps[:, :3] = torch.randn(2, 3, 4)  # scores of channels that are finite, with 0 · ∞ of the others
    finite = torch.randn(2, n, 20)
    cases = (
        lambda module: module.propagate(*structure.forward, structure.weight, x, omega, False),
        lambda module: module.propagate_backward(*arrays_t, x, omega, x, False, True),
        lambda module: module.propagate_backward(*arrays_t, finite, omega, x, True, True),
        lambda module: module.attention(*structure.forward, x, maps, omega, 0.2, p, key, False)[0],
        lambda module: module.sparse_linear(*structure.forward, structure.weight, x, p, key),
        lambda module: module.sparse_linear_backward(*structure.both, structure.weight, x, p, key),
        lambda module: module.dropout(x, p, key),
    )
    for case in cases:
        for actual, expected in zip(as_tuple(case(cpu)), as_tuple(case(reference)), strict=True):
            assert not expected.isfinite().all()
            assert torch.allclose(actual, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


def as_tuple(value: tuple[Tensor, ...] | Tensor) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else value


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("slope", [0.2, 0.0, -0.5, 1.5])
def test_attention_with_scores_of_every_size(slope: float, dtype: torch.dtype) -> None:
    structure = Structure(random_graph(80, 500), dtype)
    n = structure.rowptr.numel() - 1
    x, omega, key = torch.randn(1, n, 6, dtype=dtype), torch.rand(1, 6, dtype=dtype), torch.zeros(1, 2).long()
    for size in (0.0, 1e-3, 10.0, 80.0, 500.0):
        maps = size * torch.randn(1, 6, 4, dtype=dtype)
        arguments = (*structure.forward, x, maps, omega, slope, 0.0, key, False)
        exact = reference.attention(*(t.double() if t.dtype == dtype else t for t in arguments[:5]), *arguments[5:])[0]
        error = (cpu.attention(*arguments)[0] - exact).abs().max()
        own = (reference.attention(*arguments)[0] - exact).abs().max()
        assert error <= 2 * own + TOLERANCE[dtype]


def test_attention_where_a_row_has_no_softmax() -> None:
    structure = Structure(Graph.from_edge_index(torch.tensor([[0, 1, 2, 0, 1], [1, 1, 1, 2, 2]]), 4))
    omega, key = torch.rand(1, 1), torch.zeros(1, 2).long()
    maps = torch.tensor([[[0.0, 1.0]]])  # x itself is the score of a sender
    for src in ([-torch.inf] * 4, [torch.inf, 0.0, 0.0, 0.0], [-torch.inf, 1.0, 2.0, 3.0], [torch.nan, 0, 0, 0]):
        arguments = (*structure.forward, torch.tensor(src).view(1, 4, 1), maps, omega, 0.2, 0.0, key, False)
        for actual, expected in zip(cpu.attention(*arguments), reference.attention(*arguments), strict=True):
            assert torch.allclose(actual, expected, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("p", [1e-6, 0.3, 0.5, 0.999])
def test_dropout_draws_the_bits_of_the_random_module(p: float, dtype: torch.dtype) -> None:
    key = Draws(torch.tensor([0, 12345, 2**62 - 1])).key(7)
    ones = torch.ones(3, 411, 101, dtype=dtype)
    kept = draw_bits(key, torch.arange(ones[0].numel())) >= drop_threshold(p)
    assert_same_bits(cpu.dropout(ones, p, key), reference.dropout(ones, p, key))
    assert torch.equal(cpu.dropout(ones, p, key) != 0, kept.view_as(ones))


def test_draws_beyond_the_thirty_second_bit() -> None:
    from omegagnn.ops.cpu_kernels import inlined
    from omegagnn.ops.cpu_lanes import drawn, full_span, pointer, store

    @njit(**{**inlined, "no_cpython_wrapper": False})
    def draw(out: int, key0: int, key1: int, element: int, stride: int) -> None:
        span = full_span(1.0, 128)
        store(pointer(out, 1.0), 0, span, drawn(span, key0, key1, element, stride, 2**23, 1.0))

    key = Draws(torch.tensor([99])).key(1)
    for element, stride in ((2**32 - 5, 1), (2**32 - 9, 8), (7 * 2**32 - 1, 1), (2**40 + 17, 3), (0, 1)):
        out = torch.empty(16, dtype=torch.float64)
        draw(out.data_ptr(), int(key[0, 0]), int(key[0, 1]), element, stride)
        expected = draw_bits(key, element + stride * torch.arange(16)) >= 2**23
        assert torch.equal(out.view(1, -1), expected.double()), element


def test_mixed_dtypes_are_refused_before_memory_is_misread() -> None:
    s = Structure(random_graph(10, 30))
    with pytest.raises(TypeError, match="mixed dtypes"):
        cpu.propagate(*s.forward, s.weight.double(), torch.randn(1, 10, 4), torch.rand(1, 4), False)
    with pytest.raises(TypeError, match="mixed dtypes"):
        cpu.propagate(s.rowptr, s.col.long(), s.weight, torch.randn(1, 10, 4), torch.rand(1, 4), False)


def test_strided_arguments_are_read_as_they_are_meant() -> None:
    s, x = Structure(random_graph(30, 100)), torch.randn(8, 30, 2).permute(2, 1, 0)
    omega = torch.rand(8).expand(2, 8)
    expected = reference.propagate(*s.forward, s.weight, x.contiguous(), omega, False)
    assert_close(cpu.propagate(*s.forward, s.weight, x, omega, False), expected)


def test_large_results_are_whole() -> None:
    x, key = torch.ones(1, 3, cpu_calls.LARGE_PAGES_FROM // 8), torch.zeros(1, 2).long()
    assert_same_bits(cpu.dropout(x, 0.5, key), reference.dropout(x, 0.5, key))


# -------------------------------------------------------------------------------------- through the public functions


def gradients(loss: Callable[..., Tensor], *tensors: Tensor) -> tuple[Tensor, ...]:
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    value = loss(*leaves)
    return value.detach(), *torch.autograd.grad(value, leaves)


def assert_backends_agree(loss: Callable[..., Tensor], *tensors: Tensor) -> None:
    fused = gradients(loss, *tensors)
    with use_backend("reference"):
        expected = gradients(loss, *tensors)
    for actual, other in zip(fused, expected, strict=True):
        assert_close(actual, other)
    assert float(fused[0]) != 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("runs", [None, 3])
def test_end_to_end_with_gradients(runs: int | None, dtype: torch.dtype) -> None:
    graph = random_graph(60, 400, weighted=False).to_undirected().gcn_norm()
    shape = (60, 12) if runs is None else (60, runs, 12)
    key, target = Draws(torch.arange(runs or 1)).key(2), torch.randn(shape, dtype=dtype)
    x, omega = torch.randn(shape, dtype=dtype), torch.rand(shape[1:], dtype=dtype)
    maps = torch.randn(*shape[1:], 4, dtype=dtype)

    def plain(x: Tensor, omega: Tensor) -> Tensor:
        return (omega_propagate(dropout(x, 0.5, key), graph, omega).tanh() * target).sum()

    def attended(x: Tensor, maps: Tensor, omega: Tensor) -> Tensor:
        return (attention_propagate(x, maps, graph, omega, dropout=0.4, key=key, relu=True).tanh() * target).sum()

    assert_backends_agree(plain, x, omega)
    assert_backends_agree(attended, x, maps, omega)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sparse_features_and_edge_weights_end_to_end(dtype: torch.dtype) -> None:
    dense = torch.randn(40, 23, dtype=dtype) * (torch.rand(40, 23) < 0.2)
    features, key = SparseFeatures(dense.to_sparse_csr()), Draws(torch.arange(3)).key(4)
    assert_backends_agree(
        lambda w: sparse_linear(features, w, 0.5, key).tanh().sum(), torch.randn(3, 23, 9, dtype=dtype)
    )
    index, x = torch.randint(0, 40, (2, 160)), torch.randn(40, 11, dtype=dtype)

    def weighted(weight: Tensor) -> Tensor:
        return omega_propagate(x, Graph.from_edge_index(index, 40, weight), 0.7).tanh().sum()

    assert_backends_agree(weighted, torch.rand(160, dtype=dtype))


def test_half_precision_goes_to_the_reference() -> None:
    graph = random_graph(20, 80, weighted=False).gcn_norm()
    x = torch.randn(20, 8).bfloat16()
    with use_backend("reference"):
        expected = omega_propagate(x, graph, 0.5)
    assert torch.equal(omega_propagate(x, graph, 0.5), expected)


# ----------------------------------------------------------------------------------------------------- compilation

COMPILE = """
import torch
from omegagnn.ops import cpu
rowptr, col, order, x = torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.tensor([1, 0]), torch.tensor([[[1.0], [2.0]]])
half, maps, one = torch.full((1, 1), 0.5), torch.zeros(1, 1, 2), torch.ones(1)
print(cpu.propagate(rowptr, col, torch.ones(2), x, half, True).tolist())
print(cpu.edge_dot(rowptr, col, x, x).tolist())
settings = 0.2, 0.0, torch.zeros(1, 2).long(), True
y, scores, lse = cpu.attention(rowptr, col, x, maps, half, *settings)
print(y.tolist())
arrays = rowptr, col, rowptr, col, order, x, y, maps, scores, lse, half, x
print(cpu.attention_backward(*arrays, *settings)[0].tolist())
flat, table, block = half.view(1), one.view(1, 1), torch.tensor([[0], [1], [0], [0]])
cpu.adam_(flat, flat * 2, flat * 0, flat * 0, table, table * 0, one.repeat(3), one > 0, block, 1, 0.0, 0.0, 0.0)
print(half.tolist())
"""
COMPILED = "[[[1.5], [1.5]]]\n[[2.0, 2.0]]\n[[[1.5], [1.5]]]\n[[[1.5], [1.5]]]\n[[-0.5]]\n"


def test_compilation_is_announced_once_and_kept_on_disk(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    runs = [
        subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [run.stdout for run in runs] == [COMPILED] * 2
    assert runs[0].stderr == f"compiling CPU kernels (once, about {cpu.COMPILE_SECONDS} s)\n"
    assert runs[1].stderr == ""


def test_compiled_code_is_valid_for_its_sources_only(monkeypatch: pytest.MonkeyPatch) -> None:
    codegen = cpu_kernels.propagate.targetctx.codegen()
    before = cpu_kernels.propagate._cache._index_key((), codegen)
    assert cpu_kernels.propagate._cache._index_key((), codegen) == before
    monkeypatch.setattr(cpu_disk, "_sources", lambda: "other sources")
    assert cpu_kernels.propagate._cache._index_key((), codegen) != before


def test_without_a_folder_to_write_to_kernels_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locator(function: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(cpu_disk, "_SourcesCache", no_locator)
    kernel = njit(lambda x: x + 1)
    assert cpu_disk.kept_on_disk(kernel)(2) == 3

"""torch sees through: torch.func, vmap, fake tensors, opcheck, compile and export, for ops and whole nets."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest
import torch
from assertions import BACKENDS, assert_close, assert_same_bits, perturb
from graphs import random_graph
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, jacrev, vmap

from omegagnn import Graph, OmegaGATConv, OmegaGCNConv, OmegaNet
from omegagnn.ops import (
    Draws,
    SparseFeatures,
    attention_propagate,
    dropout,
    omega_propagate,
    sparse_linear,
    use_backend,
)

# Compiling and exporting touch deprecated corners of torch itself; only what this package warns about counts here.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

GRAPH = random_graph(7, 20)
KEY = Draws(torch.tensor([3])).key(0)
MATRIX = torch.randn(7, 5, generator=torch.Generator().manual_seed(1)).relu()
FEATURES = SparseFeatures(MATRIX.to_sparse_csr())
ON_BACKENDS = pytest.mark.parametrize("backend", BACKENDS)


def propagate(x: Tensor) -> Tensor:
    return omega_propagate(x, GRAPH.gcn_norm(dtype=torch.float64), x[0])


def attend(x: Tensor) -> Tensor:
    return attention_propagate(x, x[:4], GRAPH, x[0], dropout=0.3, key=KEY, relu=True)


def propagate_activated(x: Tensor) -> Tensor:
    return omega_propagate(x, GRAPH.gcn_norm(dtype=torch.float64), x[0], relu=True)


def drop(x: Tensor) -> Tensor:
    return dropout(x, 0.4, KEY)


def multiply(x: Tensor) -> Tensor:
    return sparse_linear(FEATURES, x[:5], 0.3, KEY)


OPS = pytest.mark.parametrize("op", [propagate, propagate_activated, attend, drop, multiply])


# ------------------------------------------------------------------------------------------------------------ the ops


@ON_BACKENDS
@OPS
def test_torch_func_agrees_with_autograd(backend: str, op: Any) -> None:
    batch = torch.randn(3, 7, 4, dtype=torch.float64)
    with use_backend(backend):
        singles = torch.stack([op(x) for x in batch])
        assert_same_bits(vmap(op)(batch), singles)
        assert_same_bits(vmap(op, in_dims=1, out_dims=1)(batch.movedim(0, 1)), singles.movedim(0, 1))

        def energy(x: Tensor) -> Tensor:
            return op(x).square().sum()

        leaves = [x.clone().requires_grad_() for x in batch]
        by_autograd = torch.stack([torch.autograd.grad(energy(leaf), leaf)[0] for leaf in leaves])
        assert_close(torch.stack([grad(energy)(x) for x in batch]), by_autograd)
        assert_close(vmap(grad(energy))(batch), by_autograd)
        assert_close(grad(lambda batch: vmap(energy)(batch).sum())(batch), by_autograd)
        jacobian = torch.autograd.functional.jacobian(op, batch[0])
        assert_close(jacrev(op)(batch[0]), jacobian)
        by_batches = torch.autograd.functional.jacobian(op, batch[0], vectorize=True)
        assert_close(by_batches, jacobian)


@ON_BACKENDS
@OPS
def test_batches_of_gradients_go_through_in_one(backend: str, op: Any) -> None:
    x = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    with use_backend(backend), warnings.catch_warnings():
        warnings.simplefilter("error")  # torch would warn where it has to go through a batch one by one
        y = op(x)
        pulls = torch.randn(3, *y.shape, dtype=torch.float64)
        expected = torch.stack([torch.autograd.grad(y, x, pull, retain_graph=True)[0] for pull in pulls])
        actual = vmap(lambda pull: torch.autograd.grad(y, x, pull, retain_graph=True)[0])(pulls)
    assert_close(actual, expected)


@ON_BACKENDS
def test_batches_of_gradients_reach_edge_weights(backend: str) -> None:
    index, weight = GRAPH.to_edge_index()[0], torch.rand(20, dtype=torch.float64, requires_grad=True)
    x = torch.randn(7, 2, dtype=torch.float64)
    with use_backend(backend):
        y = omega_propagate(x, Graph.from_edge_index(index, 7, weight).gcn_norm(), 0.5)
        pulls = torch.randn(3, 7, 2, dtype=torch.float64)
        expected = torch.stack([torch.autograd.grad(y, weight, pull, retain_graph=True)[0] for pull in pulls])
        actual = vmap(lambda pull: torch.autograd.grad(y, weight, pull, retain_graph=True)[0])(pulls)
    assert_close(actual, expected)


@ON_BACKENDS
def test_vmap_over_run_axes_omegas_and_nothing(backend: str) -> None:
    operator = GRAPH.gcn_norm()
    x, omega = torch.randn(7, 2, 4), torch.randn(5, 2, 4)
    with use_backend(backend):
        mapped = vmap(lambda omega: omega_propagate(x, operator, omega))(omega)
        assert_same_bits(mapped, torch.stack([omega_propagate(x, operator, o) for o in omega]))
        nested = vmap(vmap(lambda x, o: omega_propagate(x, operator, o), (1, 0), 1), (None, 0))(x, omega)
        assert_same_bits(nested, mapped)
        none = Graph.from_edge_index(torch.empty(2, 0), 0)
        assert vmap(lambda x: omega_propagate(x, none, 0.5))(torch.randn(3, 0, 4)).shape == (3, 0, 4)


def test_vmap_over_the_graph_is_refused() -> None:
    weights = torch.rand(3, 20)
    index = GRAPH.to_edge_index()[0]
    with pytest.raises(NotImplementedError, match="vmap over the graph is not supported"):
        vmap(lambda w: omega_propagate(torch.ones(7, 2), Graph(GRAPH.rowptr, GRAPH.col, w), 1.0))(weights)
    assert index.size(1) == 20


def test_hessians_of_propagation() -> None:
    x = torch.randn(7, 4, dtype=torch.float64)
    operator = GRAPH.gcn_norm(dtype=torch.float64)

    def energy(omega: Tensor) -> Tensor:
        return omega_propagate(omega_propagate(x, operator, omega), operator, omega).square().sum()

    omega = torch.randn(4, dtype=torch.float64)
    assert_close(jacrev(jacrev(energy))(omega), torch.autograd.functional.hessian(energy, omega))


def test_what_a_graph_keeps_inside_a_transform_is_good_outside() -> None:
    graph = random_graph(7, 20, seed=9)
    x = torch.randn(7, 4)

    def energy(x: Tensor) -> Tensor:
        looped = graph.with_self_loops()
        attended = attention_propagate(x, x[:4, :2], looped, 0.5)
        return omega_propagate(attended, graph.gcn_norm(), 0.5).sum()

    first = grad(energy)(x)
    leaf = x.clone().requires_grad_()
    energy(leaf).backward()
    assert_close(leaf.grad, first.double())  # type: ignore[arg-type]
    assert_close(vmap(grad(energy))(x[None])[0], first.double())


def kernel_calls() -> list[tuple[str, tuple[Any, ...]]]:
    """Return a call of every registered op with arguments as the package passes them."""
    kernels: Any = torch.ops.omegagnn
    graph = GRAPH.with_self_loops()
    operator = graph.gcn_norm()
    other = operator.transposed
    runs, heads = 2, 2
    x, omega, grad = torch.randn(runs, 7, 4), torch.randn(runs, 4), torch.randn(runs, 7, 4)
    maps, seeds = torch.randn(runs, 4, 2 * heads), torch.tensor([1, 2])
    key = Draws(seeds).key(0)
    features = FEATURES
    weight = torch.randn(runs, 5, 3)
    rowptr, col = operator.rowptr, operator.col
    settings = (0.2, 0.3, key, True)
    y, scores, lse = kernels.attention(rowptr, col, x, maps, omega, *settings)
    backward = (rowptr, col, graph.transposed.rowptr, graph.transposed.col, graph.transpose_order)
    return [
        ("propagate", (rowptr, col, operator.weight, x, omega, True)),
        ("propagate", (rowptr, col, operator.weight, x, None, False)),
        ("propagate_backward", (other.rowptr, other.col, other.weight, x, omega, grad, True, True)),
        ("propagate_backward", (other.rowptr, other.col, other.weight, x, omega, grad, False, False)),
        ("edge_dot", (rowptr, col, x, grad)),
        ("attention", (rowptr, col, x, maps, omega, *settings)),
        ("attention_backward", (*backward, x, y, maps, scores, lse, omega, grad, *settings)),
        ("draw_key", (seeds, torch.tensor(3), 5)),
        ("sparse_linear", (features.rowptr, features.col, features.value, weight, 0.3, key)),
        ("sparse_linear_backward", (*features.structure, features.value, torch.randn(runs, 7, 3), 0.3, key)),
        ("dropout", (x, 0.3, key)),
    ]


@ON_BACKENDS
@pytest.mark.parametrize("place", range(11))
def test_kernels_keep_torchs_rules(backend: str, place: int) -> None:
    name, args = kernel_calls()[place]
    with use_backend(backend):
        torch.library.opcheck(
            getattr(torch.ops.omegagnn, name).default, args, test_utils=("test_schema", "test_faketensor")
        )


def test_fake_tensors_take_the_shapes_of_real_ones() -> None:
    for name, args in kernel_calls():
        kernel = getattr(torch.ops.omegagnn, name)
        real = kernel(*args)
        with FakeTensorMode() as mode:
            fake = kernel(*(mode.from_tensor(arg) if isinstance(arg, Tensor) else arg for arg in args))
        for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (real, fake)), strict=True):
            assert (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride()), name


# ----------------------------------------------------------------------------------------------------------- compile


NETS: dict[str, dict[str, Any]] = {
    "gcn": {},
    "gat": {"conv": "gat", "heads": 2, "attention_dropout": 0.2},
    "runs": {"runs": 2, "norm": "batch", "omega": "global"},
    "graph": {"task": "graph"},
}


@pytest.mark.parametrize("name", NETS)
def test_a_whole_net_compiles_without_a_break(name: str) -> None:
    torch._dynamo.reset()
    net = OmegaNet(5, 4, 1, 3, dropout=0.5, layer_dropout=0.1, **NETS[name])
    perturb(net)
    graph = net.operator(GRAPH, 7)
    draws = Draws(torch.tensor([5, 6][: net.runs or 1]))
    x = torch.randn(7, 5)
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    expected, actual = net(x, graph, draws=draws), compiled(x, graph, draws=draws)
    assert_close(actual, expected.double())
    pull = torch.randn_like(expected)
    expected_grads = torch.autograd.grad(expected, list(net.parameters()), pull)
    grads = torch.autograd.grad(actual, list(net.parameters()), pull)
    for one, other in zip(grads, expected_grads, strict=True):
        assert_close(one, other.double())
    net.eval()
    assert_close(compiled(x, graph), net(x, graph).double())


def test_a_net_compiles_with_sparse_features_and_without_gradients() -> None:
    torch._dynamo.reset()
    net = OmegaNet(5, 4, 1, 3, dropout=0.5, **NETS["gat"])
    graph, draws = net.operator(GRAPH, 7), Draws(torch.tensor([5, 6][: net.runs or 1]))
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    expected, actual = net(FEATURES, graph, draws=draws), compiled(FEATURES, graph, draws=draws)
    assert_close(actual, expected.double())
    grads = [torch.autograd.grad(y.square().sum(), list(net.parameters())) for y in (actual, expected)]
    for one, other in zip(*grads, strict=True):
        assert_close(one, other.double())
    with torch.no_grad():
        assert_close(compiled(FEATURES, graph, draws=draws), expected.double())


def test_a_compiled_net_takes_edges_too() -> None:
    torch._dynamo.reset()
    net = OmegaNet(5, 4, 1, 3)
    index, x = GRAPH.to_edge_index()[0], torch.randn(7, 5)
    assert_close(torch.compile(net, backend="aot_eager")(x, index), net(x, index).double())


# ------------------------------------------------------------------------------------------------------------ export


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("name", NETS)
def test_a_net_is_exported_with_its_graph_and_comes_back_from_a_file(name: str, undirected: bool) -> None:
    net = OmegaNet(5, 4, 2, 3, **NETS[name]).eval()
    perturb(net)
    graph = net.operator(GRAPH.to_undirected() if undirected else GRAPH, 7)
    assert (graph.transposed is graph) == undirected
    program = torch.export.export(net, (torch.randn(7, 5), graph))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    for again in (program, loaded):
        x = torch.randn(7, 5)
        assert_same_bits(again.module()(x, graph), net(x, graph))


@pytest.mark.parametrize("layer", [OmegaGCNConv, OmegaGATConv])
def test_a_layer_is_exported_around_its_graph(layer: Any) -> None:
    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.graph = layer(4, 3), GRAPH.with_self_loops()

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x, self.graph)

    model, x = Fixed(), torch.randn(7, 4)
    assert_same_bits(torch.export.export(model, (x,)).module()(x), model(x))


def test_stacked_nets_train_under_vmap() -> None:
    nets = [OmegaNet(5, 4, 2, 3) for _ in range(3)]
    stacked, _ = torch.func.stack_module_state(nets)  # type: ignore[arg-type]
    x, operator = torch.randn(7, 5), GRAPH.gcn_norm()
    skeleton = OmegaNet(5, 4, 2, 3)

    def energy(state: dict[str, Tensor]) -> Tensor:
        return functional_call(skeleton, state, (x, operator)).square().sum()

    grads = vmap(grad(energy))(stacked)
    for place, net in enumerate(nets):
        net(x, operator).square().sum().backward()
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None
            assert_close(grads[name][place], parameter.grad.double())

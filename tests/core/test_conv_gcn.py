"""`OmegaGCNConv` is the paper's formula, PyG's `GCNConv` at ω = 1 and a 1×1 convolution at ω = 0."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from assertions import (
    BACKENDS,
    assert_close,
    assert_matches_dense,
    assert_permutation_equivariant,
    assert_same_bits,
    perturb,
)
from dense import adjacency, gcn_operator, omega_step
from graphs import KINDS, Example, fixed_graphs, graphs, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call
from torch_geometric.nn import GCNConv

from omegagnn import Graph, OmegaGCNConv, OmegaWeight
from omegagnn.nn.runs import run_matmul

FEW = settings(max_examples=25, deadline=None)
EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(
    example=graphs(),
    omega=st.sampled_from(["channel", "layer", 0.4]),
    bias=st.booleans(),
    loops=st.booleans(),
    normalize=st.booleans(),
)
def test_the_layer_is_the_papers_formula(
    backend: str, example: Example, omega: Any, bias: bool, loops: bool, normalize: bool
) -> None:
    n, index = example.num_nodes, example.edge_index
    conv = OmegaGCNConv(3, 2, omega=omega, bias=bias, add_self_loops=loops, normalize=normalize).double()
    perturb(conv)
    names = [name for name, _ in conv.named_parameters()]
    weight = example.edge_weight
    operator = gcn_operator(index, n, weight, loops) if normalize else adjacency(index, n, weight)

    def layer(x: Tensor, *values: Tensor) -> Tensor:
        same = None if weight is None else weight.to(x.dtype)
        return functional_call(conv, dict(zip(names, values, strict=True)), (x, index, same))

    def dense(x: Tensor, *values: Tensor) -> Tensor:
        named = dict(zip(names, values, strict=True))
        z = omega_step(x, operator, named.get("omega_weight.value", 0.4)) @ named["weight"]
        return z + named["bias"] if bias else z

    inputs = [example.randn(n, 3), *(parameter.detach() for parameter in conv.parameters())]
    conv.omega.data = conv.omega.data if omega != 0.4 else torch.tensor(0.4, dtype=torch.float64)
    assert_matches_dense(layer, dense, inputs, backend)


@FEW
@given(example=graphs(), normalize=st.booleans(), loops=st.booleans())
def test_at_omega_one_it_is_pygs_gcnconv(example: Example, normalize: bool, loops: bool) -> None:
    theirs = GCNConv(4, 3, bias=False, normalize=normalize, add_self_loops=loops and normalize).double()
    ours = OmegaGCNConv(4, 3, omega=1.0, normalize=normalize, add_self_loops=loops).double()
    ours.load_state_dict({**ours.state_dict(), "weight": theirs.lin.weight.detach().t()})
    x = example.randn(example.num_nodes, 4)
    assert_close(ours(x, example.edge_index, example.edge_weight), theirs(x, example.edge_index, example.edge_weight))
    learnt = OmegaGCNConv(4, 3, normalize=normalize, add_self_loops=loops).double()
    learnt.load_state_dict({**learnt.state_dict(), "weight": theirs.lin.weight.detach().t()})
    assert_close(learnt(x, example.graph), theirs(x, example.edge_index, example.edge_weight))


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("place", range(len(KINDS)), ids=KINDS)
def test_sparse_matrices_mean_what_they_mean_in_pyg(layout: str, weighted: bool, place: int) -> None:
    example = fixed_graphs(weighted)[place]
    matrix = adjacency(example.edge_index, example.num_nodes, example.edge_weight)
    sparse = matrix.to_sparse_coo() if layout == "coo" else matrix.to_sparse_csr()
    theirs = GCNConv(4, 3, bias=False).double()
    ours = OmegaGCNConv(4, 3, omega=1.0).double()
    ours.load_state_dict({**ours.state_dict(), "weight": theirs.lin.weight.detach().t()})
    x = example.randn(example.num_nodes, 4)
    # PyG adds a second loop to a sparse matrix that has one, but keeps the one of an edge_index: ours always keeps.
    index, weight = Graph.from_torch_sparse(sparse).to_edge_index()
    assert_close(ours(x, sparse), theirs(x, index, weight))
    if not example.graph.has_self_loops and example.num_nodes:
        assert_close(ours(x, sparse), theirs(x, sparse.to_sparse_csr()))


@FEW
@given(example=graphs())
def test_at_omega_zero_it_is_a_1x1_convolution_exactly(example: Example) -> None:
    conv = OmegaGCNConv(5, 3, omega=0.0)
    x = example.randn(example.num_nodes, 5).float()
    product = run_matmul(x, conv.weight)  # `mm` rounds otherwise on some processors
    assert_same_bits(conv(x, example.edge_index, example.edge_weight), product)


@FEW
@given(example=graphs())
def test_it_is_equivariant(example: Example) -> None:
    conv = OmegaGCNConv(3, 4, bias=True).double()
    perturb(conv)
    # Of several loops at a node the last one counts, so their order matters: leave them out.
    keep = example.edge_index[0] != example.edge_index[1]
    weight = None if example.edge_weight is None else example.edge_weight[keep]
    assert_permutation_equivariant(conv, example.randn(example.num_nodes, 3), example.edge_index[:, keep], weight)


def test_every_input_kind_gives_the_same_bits() -> None:
    conv, x = OmegaGCNConv(3, 2), torch.randn(3, 3)
    matrix = adjacency(EDGES, 3, None).float()
    graph = Graph.from_edge_index(EDGES, 3)
    expected = conv(x, EDGES)
    for form in (graph, graph.gcn_norm(), matrix.to_sparse_coo(), matrix.to_sparse_csr(), EDGES.int()):
        assert_same_bits(conv(x, form), expected)
    assert_same_bits(conv(x=x, edge_index=EDGES, edge_weight=torch.ones(4)), expected)
    assert_same_bits(OmegaGCNConv(-1, 3, init="identity")(x=x, edge_index=EDGES), OmegaGCNConv(3, 3)(x, EDGES))


def test_a_ready_operator_is_used_as_it_is() -> None:
    example = fixed_graphs(weighted=True)[0]
    conv, x = OmegaGCNConv(3, 3).double(), example.randn(6, 3)
    operator = example.graph.row_norm()
    assert_close(conv(x, operator), operator.to_dense() @ x)
    raw = OmegaGCNConv(3, 3, normalize=False).double()
    assert_close(raw(x, example.graph), example.graph.to_dense() @ x)


def test_the_start_is_the_paper_s() -> None:
    assert_same_bits(OmegaGCNConv(4, 4).weight.detach(), torch.eye(4))
    noisy = OmegaGCNConv(4, 4, init_noise=1e-4).weight.detach() - torch.eye(4)
    assert 0 <= float(noisy.min()) < float(noisy.max()) < 1.001e-4
    many = OmegaGCNConv(60, 40, init="glorot").weight.detach()
    bound = (6 / 100) ** 0.5
    assert float(many.abs().max()) <= bound
    assert abs(float(many.std()) - bound / 3**0.5) < 0.01
    assert abs(float(many.mean())) < 0.01
    assert not torch.equal(OmegaGCNConv(4, 4, init="glorot").weight, OmegaGCNConv(4, 4, init="glorot").weight)
    torch.manual_seed(3)
    first = OmegaGCNConv(4, 5).weight
    torch.manual_seed(3)
    assert_same_bits(OmegaGCNConv(4, 5).weight, first)
    assert OmegaGCNConv(4, 5, bias=True).bias.tolist() == [0] * 5


def test_runs_stand_for_themselves() -> None:
    conv = OmegaGCNConv(3, 2, runs=4, bias=True, init="glorot")
    perturb(conv)
    graph, x = random_graph(9, 30), torch.randn(9, 4, 3)
    together = conv(x, graph)
    for run in range(4):
        one = OmegaGCNConv(3, 2, bias=True)
        one.load_state_dict({name: value[run] for name, value in conv.state_dict().items()})
        assert_same_bits(one(x[:, run], graph), together[:, run])
    assert_same_bits(conv(x[:, 0], graph)[:, 0], together[:, 0], "features that all runs share")
    assert conv(x[:, 0], graph).shape == (9, 4, 2)


def test_one_layer_serves_a_run_axis_without_having_one() -> None:
    conv, graph, x = OmegaGCNConv(3, 2), random_graph(9, 30), torch.randn(9, 4, 3)
    for run in range(4):
        assert_same_bits(conv(x, graph)[:, run], conv(x[:, run], graph))


def test_gradients_of_edge_weights_through_the_layer() -> None:
    conv, x = OmegaGCNConv(3, 2).double(), torch.randn(3, 3, dtype=torch.float64)
    perturb(conv)
    weight = torch.rand(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda weight: conv(x, EDGES, weight), weight)


def test_autocast_multiplies_in_half_precision() -> None:
    conv, x = OmegaGCNConv(3, 3), torch.randn(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        y = conv(x, EDGES)
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert conv.weight.grad is not None
    assert conv.weight.grad.dtype == torch.float32
    assert float((y.float() - conv(x, EDGES)).detach().abs().max()) < 0.05


@pytest.mark.parametrize(
    ("conv", "text"),
    [
        (
            OmegaGCNConv(3, 2),
            "OmegaGCNConv(\n  3, 2\n  (omega_weight): OmegaWeight(3 channels, init=1)\n)",
        ),
        (
            OmegaGCNConv(3, 2, omega=0.5, runs=4),
            "OmegaGCNConv(\n  3, 2, runs=4\n  (omega_weight): OmegaWeight(scalar, init=0.5, runs=4, fixed)\n)",
        ),
    ],
)
def test_it_says_what_it_is(conv: OmegaGCNConv, text: str) -> None:
    assert repr(conv) == text


MISTAKES: list[tuple[str, Any, str]] = [
    ("init", lambda: OmegaGCNConv(3, 3, init="zero"), "init must be 'identity' or 'glorot', not 'zero'."),  # type: ignore[arg-type]
    (
        "rows",
        lambda: OmegaGCNConv(3, 3)(torch.ones(2, 3), Graph.from_edge_index(EDGES, 3)),
        "The graph has 3 nodes but x has 2 rows: they must agree.",
    ),
    (
        "channels",
        lambda: OmegaGCNConv(3, 3, omega="layer")(torch.ones(3, 4), EDGES),
        "x has 4 channels but the layer takes 3: they must agree.",
    ),
    (
        "channels against ω",
        lambda: OmegaGCNConv(3, 3)(torch.ones(3, 4), EDGES),
        "omega of shape (3,) does not fit features of shape (3, 4): it must broadcast to [4].",
    ),
    (
        "runs",
        lambda: OmegaGCNConv(3, 3, omega=OmegaWeight(), runs=2)(torch.ones(3, 5, 3), EDGES),
        "x has 5 runs but the layer has 2: they must agree.",
    ),
    (
        "negative weights",
        lambda: OmegaGCNConv(3, 3)(torch.ones(3, 3), EDGES, torch.tensor([1.0, -1.0, 1.0, 1.0])),
        "gcn_norm needs weights of at least 0, but the smallest is -1: take their absolute value, shift them, or "
        "declare the matrix finished with Graph.as_operator() (normalize=False in a layer).",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the sentence is compared below
        call()
    assert str(caught.value) == sentence

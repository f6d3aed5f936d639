"""Every op equals its dense formula, forward and backward, on every kind of graph, on every backend."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from assertions import BACKENDS, assert_close, assert_matches_dense, assert_same_bits
from dense import adjacency, attention_step, gcn_operator, omega_step
from graphs import KINDS, Example, fixed_graphs, graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from omegagnn import ops
from omegagnn.graph import Graph
from omegagnn.ops import (
    Draws,
    SparseFeatures,
    attention_propagate,
    dropout,
    fused_twin,
    omega_layer,
    omega_propagate,
    sparse_linear,
    spmm,
    use_backend,
)
from omegagnn.ops.random import drop_threshold, uniform

FEW = settings(max_examples=25, deadline=None)
BY_KIND = pytest.mark.parametrize("example", fixed_graphs(), ids=KINDS)
BY_KIND_WEIGHTED = pytest.mark.parametrize("example", fixed_graphs(weighted=True), ids=KINDS)
ON_BACKENDS = pytest.mark.parametrize("backend", BACKENDS)


def mask_of(key: Tensor, count: int, p: float) -> Tensor:
    """Return 0 or 1/(1 − p) for each run and element, from the uniform numbers of the key."""
    kept = uniform(key, count, torch.float64) >= drop_threshold(p) / 2**24
    return kept.double() / (1 - p)


def sigma(x: Tensor, relu: bool) -> Tensor:
    return x.relu() if relu else x


# ------------------------------------------------------------------------------------------------------- propagation


@ON_BACKENDS
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("runs", [None, 2])
def test_a_whole_layer_is_its_two_parts_with_all_derivatives(
    backend: str, runs: int | None, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kept:
        monkeypatch.setattr(ops, "KEPT_FROM", 0)
    lead = () if runs is None else (runs,)
    pairs = torch.tensor([[0, 1, 2, 2, 4], [1, 2, 0, 3, 4]])
    x = torch.randn(6, *lead, 3, dtype=torch.float64, requires_grad=True)
    omega = torch.randn(*lead, 3, dtype=torch.float64, requires_grad=True)
    map_ = torch.randn(*lead, 3, 2, dtype=torch.float64, requires_grad=True)
    entries = torch.rand(5, dtype=torch.float64, requires_grad=True)

    def layer(x: Tensor, omega: Tensor, map_: Tensor, entries: Tensor) -> Tensor:
        return omega_layer(x, Graph.from_edge_index(pairs, 6, entries), omega, map_, relu=True)

    with use_backend(backend):
        mixed = omega_propagate(x, Graph.from_edge_index(pairs, 6, entries), omega, relu=True)
        expected = torch.einsum("nrc,rcd->nrd", mixed, map_) if runs else mixed @ map_
        assert_close(layer(x, omega, map_, entries), expected)
        assert gradcheck(layer, (x, omega, map_, entries), check_batched_grad=True)
        assert gradgradcheck(layer, (x, omega, map_, entries))
        fixed = entries.detach()
        assert gradcheck(lambda *leaves: layer(*leaves, fixed), (x, omega, map_), check_batched_grad=True)
        mapped = torch.vmap(lambda x: layer(x, omega, map_, fixed))(torch.stack([x, 2 * x]))
        assert_close(mapped[1], layer(2 * x, omega, map_, fixed))


@ON_BACKENDS
@FEW
@given(
    example=graphs(),
    channels=st.integers(1, 9),
    scope=st.sampled_from(["channel", "scalar", "number"]),
    relu=st.booleans(),
)
def test_propagation_is_its_dense_formula(
    backend: str, example: Example, channels: int, scope: str, relu: bool
) -> None:
    x = example.randn(example.num_nodes, channels)
    dense = gcn_operator(example.edge_index, example.num_nodes, example.edge_weight)
    operator = example.graph.gcn_norm(dtype=torch.float64)
    if scope == "number":
        assert_matches_dense(
            lambda x: omega_propagate(x, operator, -0.7, relu=relu),
            lambda x: omega_step(sigma(x, relu), dense, -0.7),
            [x],
            backend,
        )
    else:
        omega = example.randn(*([channels] if scope == "channel" else []), offset=1)
        assert_matches_dense(
            lambda x, omega: omega_propagate(x, operator, omega, relu=relu),
            lambda x, omega: omega_step(sigma(x, relu), dense, omega),
            [x, omega],
            backend,
        )


@ON_BACKENDS
@FEW
@given(example=graphs(weighted=True), runs=st.integers(1, 4), shared=st.booleans())
def test_propagation_with_runs_and_edge_weights(backend: str, example: Example, runs: int, shared: bool) -> None:
    n, index = example.num_nodes, example.edge_index
    x, omega = example.randn(n, runs, 3), example.randn(*([3] if shared else [runs, 3]), offset=1)
    assert example.edge_weight is not None
    assert_matches_dense(
        lambda x, omega, weight: omega_propagate(x, Graph.from_edge_index(index, n, weight).gcn_norm(), omega),
        lambda x, omega, weight: omega_step(x, gcn_operator(index, n, weight), omega),
        [x, omega, example.edge_weight],
        backend,
    )


@ON_BACKENDS
@FEW
@given(example=graphs())
def test_a_raw_graph_propagates_its_weights_and_sums_duplicates(backend: str, example: Example) -> None:
    x = example.randn(example.num_nodes, 2)
    dense = adjacency(example.edge_index, example.num_nodes, example.edge_weight)
    assert_matches_dense(lambda x: spmm(example.graph, x), lambda x: dense @ x, [x], backend)


@ON_BACKENDS
@BY_KIND_WEIGHTED
@pytest.mark.parametrize("relu", [False, True])
def test_propagation_has_first_and_second_derivatives(backend: str, example: Example, relu: bool) -> None:
    n, index = example.num_nodes, example.edge_index
    weight = example.edge_weight

    def propagate(x: Tensor, omega: Tensor, weight: Tensor) -> Tensor:
        return omega_propagate(x, Graph.from_edge_index(index, n, weight).gcn_norm(), omega, relu=relu)

    assert weight is not None
    inputs = [example.randn(n, 2, 2), example.randn(2, 2, offset=1), weight.clone()]
    leaves = [tensor.requires_grad_() for tensor in inputs]
    with use_backend(backend):
        assert gradcheck(propagate, leaves, check_batched_grad=backend == "reference")
        assert gradgradcheck(propagate, leaves)


@ON_BACKENDS
def test_propagation_passes_its_input_through_at_omega_zero_and_is_exact_at_one(backend: str) -> None:
    example = fixed_graphs()[0]
    operator, x = example.graph.gcn_norm(), example.randn(6, 5).float()
    with use_backend(backend):
        assert_same_bits(omega_propagate(x, operator, 0.0), x)
        assert_same_bits(omega_propagate(x, operator, torch.ones(5)), spmm(operator, x))


@ON_BACKENDS
@pytest.mark.parametrize("shape", [(6, 3), (6, 2, 3)])
def test_features_may_lie_in_memory_as_they_like(backend: str, shape: tuple[int, ...]) -> None:
    example = fixed_graphs()[0]
    x = example.randn(*shape)
    scattered = torch.stack([x, x], dim=-1).transpose(0, 1).contiguous().transpose(0, 1)[..., 0]
    assert not scattered.is_contiguous()
    with use_backend(backend):
        assert_same_bits(omega_propagate(scattered, example.graph, 0.3), omega_propagate(x, example.graph, 0.3))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_follows_to_its_own_accuracy(dtype: torch.dtype) -> None:
    example = fixed_graphs()[7]
    x = example.randn(6, 4)
    exact = omega_propagate(x, example.graph.gcn_norm(dtype=torch.float64), 0.5)
    half = omega_propagate(x.to(dtype), example.graph.gcn_norm(), 0.5)
    assert half.dtype == dtype
    assert float((half.double() - exact).abs().max()) < 8 * torch.finfo(dtype).eps * float(x.abs().max())


# --------------------------------------------------------------------------------------------------------- attention


def attention_inputs(example: Example, runs: int | None, heads: int, size: int) -> list[Tensor]:
    """Return features, maps and ω."""
    n, c, lead = example.num_nodes, heads * size, [] if runs is None else [runs]
    shapes: list[list[int]] = [[n, *lead, c], [*lead, c, 2 * heads], [*lead, c]]
    return [example.randn(*shape, offset=i) for i, shape in enumerate(shapes)]


@ON_BACKENDS
@FEW
@given(
    example=graphs(weighted=False),
    heads=st.sampled_from([1, 2, 3, 8]),
    size=st.integers(1, 5),
    loops=st.booleans(),
    p=st.sampled_from([0.0, 0.4]),
    slope=st.sampled_from([0.2, 0.0, 1.3]),
    relu=st.booleans(),
)
def test_attention_is_its_dense_formula(
    backend: str, example: Example, heads: int, size: int, loops: bool, p: float, slope: float, relu: bool
) -> None:
    graph = example.graph.with_self_loops() if loops else example.graph
    key = Draws(torch.tensor([example.seed])).key(4)
    mask = mask_of(key, graph.num_edges * heads, p)[0].view(-1, heads) if p else None

    def dense(x: Tensor, maps: Tensor, omega: Tensor) -> Tensor:
        f = sigma(x, relu)
        return attention_step(f, *(f @ maps).chunk(2, dim=1), graph.row, graph.col, omega, slope, mask)

    assert_matches_dense(
        lambda x, maps, omega: attention_propagate(x, maps, graph, omega, slope, p, key, relu=relu),
        dense,
        attention_inputs(example, None, heads, size),
        backend,
    )


@ON_BACKENDS
@BY_KIND
def test_attention_with_runs_is_each_run_by_its_own_key(backend: str, example: Example) -> None:
    graph, runs, heads, p = example.graph.with_self_loops(), 3, 2, 0.3
    keys = Draws(torch.tensor([4, 5, 6]), step=2).key(1)
    masks = mask_of(keys, graph.num_edges * heads, p).view(runs, -1, heads)

    def dense(x: Tensor, maps: Tensor, omega: Tensor) -> Tensor:
        steps = []
        for r in range(runs):
            scores = (x[:, r] @ maps[r]).chunk(2, dim=1)
            steps.append(attention_step(x[:, r], *scores, graph.row, graph.col, omega[r], mask=masks[r]))
        return torch.stack(steps, dim=1)

    assert_matches_dense(
        lambda x, maps, omega: attention_propagate(x, maps, graph, omega, dropout=p, key=keys),
        dense,
        attention_inputs(example, runs, heads, 2),
        backend,
    )


@ON_BACKENDS
@BY_KIND
@pytest.mark.parametrize(("heads", "p", "relu"), [(1, 0.0, False), (2, 0.4, False), (2, 0.4, True)])
def test_attention_has_a_first_derivative(backend: str, example: Example, heads: int, p: float, relu: bool) -> None:
    graph, key = example.graph.with_self_loops(), Draws(torch.tensor([9, 10])).key(0)
    leaves = [tensor.requires_grad_() for tensor in attention_inputs(example, 2, heads, 2)]
    with use_backend(backend):
        assert gradcheck(
            lambda x, maps, omega: attention_propagate(x, maps, graph, omega, 0.2, p, key, relu=relu), leaves
        )


def test_a_second_derivative_of_attention_is_refused_rather_than_wrong() -> None:
    example = fixed_graphs()[0]
    x, maps, omega = (tensor.requires_grad_() for tensor in attention_inputs(example, None, 1, 2))
    (grad,) = torch.autograd.grad(
        attention_propagate(x, maps, example.graph, omega).square().sum(), maps, create_graph=True
    )
    with pytest.raises(NotImplementedError, match="differentiable once"):
        grad.sum().backward()

    def energy(omega: Tensor) -> Tensor:
        return attention_propagate(x, maps, example.graph, omega).square().sum()

    with pytest.raises(NotImplementedError, match="differentiable once"):
        torch.func.jacrev(torch.func.jacrev(energy))(omega)


@ON_BACKENDS
def test_attention_survives_scores_far_apart(backend: str) -> None:
    graph = Graph.from_edge_index(torch.tensor([[1, 2, 0], [0, 0, 1]]), 3).with_self_loops()
    x = torch.tensor([[0.0, 1.0], [500.0, 2.0], [-500.0, 3.0]], requires_grad=True)
    maps = torch.tensor([[0.0, 1.0], [0.0, 0.0]], requires_grad=True)
    with use_backend(backend):
        y = attention_propagate(x, maps, graph, 1.0)
        y.sum().backward()
    assert_close(y[0], x[1])
    for leaf in (x, maps):
        assert leaf.grad is not None
        assert bool(torch.isfinite(leaf.grad).all())


# ---------------------------------------------------------------------------------------- dropout and sparse features


@ON_BACKENDS
@FEW
@given(n=st.integers(0, 6), runs=st.sampled_from([None, 1, 3]), c=st.integers(1, 5), p=st.sampled_from([0.1, 0.5, 0.9]))
def test_dropout_is_its_mask(backend: str, n: int, runs: int | None, c: int, p: float) -> None:
    key = Draws(torch.arange(runs or 1)).key(7)
    mask = mask_of(key, n * c, p).view(runs or 1, n, c).transpose(0, 1)
    mask = mask.squeeze(1) if runs is None else mask
    x = torch.randn(*([n, c] if runs is None else [n, runs, c]), dtype=torch.float64)
    assert_matches_dense(lambda x: dropout(x, p, key), lambda x: x * mask, [x], backend)
    if n:
        with use_backend(backend):
            assert gradcheck(lambda x: dropout(x, p, key), x.requires_grad_())
            assert gradgradcheck(lambda x: dropout(x, p, key), x)


def sparse_matrix(n: int, f: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(n, f, generator=generator, dtype=torch.float64)
    return torch.where(torch.rand(n, f, generator=generator) < 0.4, dense, 0)


@ON_BACKENDS
@FEW
@given(
    n=st.integers(0, 6),
    f=st.integers(1, 7),
    c=st.integers(1, 5),
    runs=st.sampled_from([None, 1, 3]),
    p=st.sampled_from([0.0, 0.5]),
    coo=st.booleans(),
)
def test_a_sparse_product_is_dropout_then_product(
    backend: str, n: int, f: int, c: int, runs: int | None, p: float, coo: bool
) -> None:
    matrix = sparse_matrix(n, f, seed=n + f)
    features = SparseFeatures(matrix.to_sparse_coo() if coo else matrix.to_sparse_csr())
    key = Draws(torch.arange(runs or 1) + 3).key(0)
    mask = torch.ones(runs or 1, n, f, dtype=torch.float64)
    if p:
        stored = matrix.nonzero(as_tuple=True)
        mask[:, stored[0], stored[1]] = mask_of(key, stored[0].numel(), p)

    def dense(weight: Tensor) -> Tensor:
        products = (mask * matrix) @ (weight if runs else weight[None])
        return products.transpose(0, 1) if runs else products[0]

    weight = torch.randn(*([f, c] if runs is None else [runs, f, c]), dtype=torch.float64)
    assert_matches_dense(lambda weight: sparse_linear(features, weight, p, key), dense, [weight], backend)
    if n:
        with use_backend(backend):
            assert gradcheck(lambda weight: sparse_linear(features, weight, p, key), weight.requires_grad_())
            assert gradgradcheck(lambda weight: sparse_linear(features, weight, p, key), weight)


@ON_BACKENDS
@pytest.mark.parametrize("p", [0.0, 0.5])
def test_stored_values_have_a_gradient_too(backend: str, p: float) -> None:
    features = SparseFeatures(sparse_matrix(5, 4).to_sparse_csr())
    key = Draws(torch.tensor([1, 2])).key(0)
    weight = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    value = features.value.clone().requires_grad_()

    def product(value: Tensor, weight: Tensor) -> Tensor:
        features.value = value
        return sparse_linear(features, weight, p, key)

    with use_backend(backend):
        assert gradcheck(product, [value, weight])


@ON_BACKENDS
def test_features_with_duplicates_empty_rows_and_columns(backend: str) -> None:
    matrix = torch.sparse_csr_tensor([0, 0, 3, 3], [2, 2, 0], torch.tensor([1.0, 2.0, 5.0]), (3, 4))
    features, weight = SparseFeatures(matrix), torch.randn(4, 2)
    with use_backend(backend):
        product = sparse_linear(features, weight)
    assert_close(product, torch.stack([torch.zeros(2), 3 * weight[2] + 5 * weight[0], torch.zeros(2)]))
    assert_same_bits(features.to_dense(), torch.tensor([[0.0, 0, 0, 0], [5, 0, 3, 0], [0, 0, 0, 0]]))


def test_integer_features_take_the_dtype_of_the_weights() -> None:
    matrix = torch.tensor([[0, 2], [1, 0]]).to_sparse_csr()
    weight = torch.randn(2, 3, dtype=torch.float64)
    assert_same_bits(sparse_linear(SparseFeatures(matrix), weight), matrix.to_dense().double() @ weight)


def test_features_move_and_dropout_of_nothing_is_nothing() -> None:
    features = SparseFeatures(sparse_matrix(5, 4).to_sparse_csr())
    moved = features.to("meta")
    assert moved.shape == features.shape
    assert all(array.device.type == "meta" for array in (*moved.structure, moved.value))
    back = features.to("cpu")
    assert_same_bits(back.to_dense(), features.to_dense())
    x = torch.randn(3, 2)
    assert dropout(x, 0.0, Draws(torch.tensor([1])).key(0)) is x


def test_without_numba_everything_runs_in_plain_torch_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "numba" else find(name))
    fused_twin.cache_clear()
    try:
        x = torch.randn(6, 3)
        graph = fixed_graphs()[0].graph
        with pytest.warns(UserWarning, match=r"^numba is not installed: ops on cpu run in plain torch, slower\.$"):
            first = spmm(graph, x)
        with use_backend("reference"):
            assert_same_bits(spmm(graph, x), first)
        assert fused_twin("cpu") is None
        assert fused_twin("mps") is None
    finally:
        fused_twin.cache_clear()

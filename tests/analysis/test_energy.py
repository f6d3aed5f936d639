"""Energies, distances, ranks: against dense formulas in float64, over any graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from analysis_graphs import F64, dense_operator, features, graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from omegagnn import Graph
from omegagnn.analysis import (
    dirichlet_energy,
    effective_rank,
    energy,
    gat_energy,
    gradient_norms,
    mean_average_distance,
    relative_energy,
)

ENERGIES = {"dirichlet": dirichlet_energy, "gat": gat_energy}


def pairs_energy(x: Tensor, graph: Graph, add_self_loops: bool = True) -> float:
    """The paper's double sum, written as loops."""
    adjacency = graph.to_dense().double()
    degree = (graph.with_self_loops() if add_self_loops else graph).to_dense().double().sum(1)
    total = 0.0
    for i in range(graph.num_nodes):
        for j in range(graph.num_nodes):
            if i != j and adjacency[i, j]:
                ends = [x[k] / degree[k].sqrt() if degree[k] > 0 else torch.zeros_like(x[k]) for k in (i, j)]
                total += 0.5 * float(adjacency[i, j]) * float((ends[0] - ends[1]).square().sum())
    return total


def cosine_distance(u: Tensor, v: Tensor) -> float:
    if not u.any() or not v.any():
        return float(bool(u.any()) != bool(v.any()))
    return 1 - float(torch.cosine_similarity(u, v, dim=0, eps=0))


@given(graphs(), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_dirichlet_energy_is_the_trace_of_the_laplacian(graph: Graph, seed: int) -> None:
    x = features(graph, seed=seed)
    laplacian = torch.eye(graph.num_nodes, dtype=F64) - torch.from_numpy(dense_operator(graph))
    assert float(dirichlet_energy(x, graph)) == pytest.approx(
        float(torch.trace(x.T @ laplacian @ x)), rel=1e-11, abs=1e-11
    )


@given(graphs(undirected=False), st.booleans())
@settings(max_examples=60, deadline=None)
def test_dirichlet_energy_is_the_sum_over_pairs_on_directed_graphs_too(graph: Graph, add_self_loops: bool) -> None:
    x = features(graph)
    value = dirichlet_energy(x, graph, add_self_loops=add_self_loops)
    assert float(value) == pytest.approx(pairs_energy(x, graph, add_self_loops), rel=1e-11, abs=1e-12)


def test_energies_agree_with_the_laplacians_of_networkx() -> None:
    drawn = nx.gnp_random_graph(30, 0.2, seed=3)
    graph = Graph.from_networkx(drawn, weight=None)
    x = features(graph)
    plain = torch.from_numpy(nx.laplacian_matrix(drawn).toarray()).to(F64)
    torch.testing.assert_close(gat_energy(x, graph), torch.trace(x.T @ plain @ x), rtol=1e-12, atol=0)
    drawn.add_edges_from((i, i) for i in drawn)
    # NetworkX counts a loop once in the degree here, as D̃ does.
    adjacency = torch.from_numpy(nx.to_numpy_array(drawn))
    scale = adjacency.sum(1).rsqrt()
    normalised = torch.eye(30, dtype=F64) - scale[:, None] * adjacency * scale
    torch.testing.assert_close(dirichlet_energy(x, graph), torch.trace(x.T @ normalised @ x), rtol=1e-12, atol=0)
    # Without loops it is the normalised Laplacian itself.
    drawn.remove_edges_from([(i, i) for i in drawn])
    bare = torch.from_numpy(nx.normalized_laplacian_matrix(drawn).toarray())
    value = dirichlet_energy(x, graph, add_self_loops=False)
    torch.testing.assert_close(value, torch.trace(x.T @ bare @ x), rtol=1e-12, atol=0)


@given(graphs())
@settings(max_examples=40, deadline=None)
def test_energy_vanishes_exactly_where_features_are_smooth_on_components(graph: Graph) -> None:
    root = graph.with_self_loops().degree().to(F64).sqrt()
    labels = nx.Graph(list(zip(graph.row.tolist(), graph.col.tolist(), strict=True)))
    labels.add_nodes_from(range(graph.num_nodes))
    constant = torch.empty(graph.num_nodes, dtype=F64)
    for value, nodes in enumerate(nx.connected_components(labels), start=1):
        constant[list(nodes)] = value
    assert float(dirichlet_energy((constant * root)[:, None], graph)) < 1e-25
    assert float(gat_energy(constant[:, None], graph)) == 0


def test_nearly_collapsed_features_keep_their_digits() -> None:
    graph = Graph.from_networkx(nx.cycle_graph(50), weight=None)
    bump = 1e-9 * features(graph, 1)
    # The trace of the Laplacian is off by ε‖f‖² ≈ 1e-14 here, ten thousand times the energy itself.
    assert float(dirichlet_energy(1 + bump, graph)) == pytest.approx(float(dirichlet_energy(bump, graph)), rel=1e-6)


def test_energy_of_an_operator_is_that_of_its_graph(club: Graph) -> None:
    x = features(club)
    weighted = Graph.from_csr(club.rowptr, club.col, torch.ones(club.num_edges, dtype=F64))
    torch.testing.assert_close(dirichlet_energy(x, weighted.gcn_norm()), dirichlet_energy(x, club))


def test_energy_has_the_dtype_of_the_features(club: Graph) -> None:
    x = features(club)
    for dtype, expected in ((torch.float32, torch.float32), (torch.bfloat16, torch.float32), (F64, F64)):
        for each in (
            dirichlet_energy(x.to(dtype), club),
            mean_average_distance(x.to(dtype)),
            effective_rank(x.to(dtype)),
        ):
            assert each.dtype == expected


@pytest.mark.parametrize("name", [*ENERGIES, "relative", "distance", "distance_graph", "rank"])
def test_run_axis_equals_single_runs(name: str, club: Graph) -> None:
    functions = {
        "relative": relative_energy,
        "distance": lambda x, _: mean_average_distance(x),
        "distance_graph": mean_average_distance,
        "rank": lambda x, _: effective_rank(x),
        **ENERGIES,
    }
    x = features(club, 12).reshape(club.num_nodes, 3, 4)
    x[:, 1] = 0
    together = functions[name](x, club)
    assert together.shape == (3,)
    torch.testing.assert_close(
        together, torch.stack([functions[name](x[:, r], club) for r in range(3)]), equal_nan=True
    )


@pytest.mark.parametrize("name", [*ENERGIES, "relative", "distance", "distance_graph", "rank"])
def test_gradients(name: str) -> None:
    graph = Graph.from_networkx(nx.gnp_random_graph(7, 0.4, seed=1), weight=None)
    functions = {
        "relative": relative_energy,
        "distance": lambda x, _: mean_average_distance(x),
        "distance_graph": mean_average_distance,
        "rank": lambda x, _: effective_rank(x),
        **ENERGIES,
    }
    x = features(graph, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda value: functions[name](value, graph), x)


def test_gradient_of_the_weights() -> None:
    drawn = nx.gnp_random_graph(6, 0.5, seed=2)
    index, _ = Graph.from_networkx(drawn, weight=None).to_edge_index()
    weight = torch.rand(index.size(1), dtype=F64).add(0.5).requires_grad_()
    x = torch.randn(6, 2, dtype=F64)

    def value(w: Tensor) -> Tensor:
        return dirichlet_energy(x, Graph.from_edge_index(index, 6, w))

    assert torch.autograd.gradcheck(value, weight)


@pytest.mark.parametrize("name", ENERGIES)
def test_chunks_change_neither_value_nor_gradient(name: str, club: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    x = features(club, 5).requires_grad_()
    whole = ENERGIES[name](x, club)
    (gradient,) = torch.autograd.grad(whole, x)
    monkeypatch.setattr(energy, "CHUNK_ELEMENTS", 35)
    chunked = ENERGIES[name](x, club)
    torch.testing.assert_close(chunked, whole, rtol=1e-13, atol=0)
    torch.testing.assert_close(torch.autograd.grad(chunked, x)[0], gradient, rtol=1e-12, atol=1e-13)
    with torch.no_grad():
        torch.testing.assert_close(ENERGIES[name](x, club), whole, rtol=1e-13, atol=0)


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_memory_does_not_hold_edges_times_channels(needs_gradient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "CHUNK_ELEMENTS", 2**12)
    n, channels = 300, 16
    graph = Graph.from_edge_index(torch.randint(n, (2, 20_000)), n)
    x = torch.randn(n, channels, requires_grad=needs_gradient)
    largest = 0

    def note(tensor: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        dirichlet_energy(x, graph)
    # Of the 320,000 differences nothing is kept for the backward pass.
    assert largest <= n * channels


@given(graphs(), st.integers(0, 9))
@settings(max_examples=50, deadline=None)
def test_distance_is_the_mean_cosine_distance(graph: Graph, seed: int) -> None:
    x = features(graph, seed=seed)
    x[:: 2 + seed] = 0
    n = graph.num_nodes
    everyone = [cosine_distance(x[i], x[j]) for i in range(n) for j in range(n) if i != j]
    expected = np.mean(everyone) if everyone else float("nan")
    assert float(mean_average_distance(x)) == pytest.approx(expected, nan_ok=True, abs=1e-12)
    bare = graph.without_self_loops()
    means = []
    for i in range(n):
        others = bare.col[bare.row == i].tolist()
        if others:
            means.append(np.mean([cosine_distance(x[i], x[j]) for j in others]))
    expected = np.mean(means) if means else float("nan")
    assert float(mean_average_distance(x, graph)) == pytest.approx(expected, nan_ok=True, abs=1e-12)


@given(st.integers(1, 8), st.integers(1, 6), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_effective_rank_is_the_exponential_of_the_entropy(n: int, c: int, seed: int) -> None:
    x = torch.randn(n, c, dtype=F64, generator=torch.Generator().manual_seed(seed))
    sigma = np.linalg.svd(x.numpy(), compute_uv=False)
    share = sigma / sigma.sum()
    assert float(effective_rank(x)) == pytest.approx(np.exp(-(share * np.log(share)).sum()), rel=1e-10)


def test_effective_rank_of_known_matrices() -> None:
    assert float(effective_rank(torch.eye(5))) == pytest.approx(5)
    assert float(effective_rank(torch.ones(4, 3, dtype=F64))) == pytest.approx(1)
    assert float(effective_rank(torch.zeros(4, 3))) == 0
    x = torch.zeros(4, 3, dtype=F64)
    x[0, 0] = 2.0
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(effective_rank(x), x)
    assert gradient.isfinite().all()


def test_relative_energy_lies_between_zero_and_two(club: Graph) -> None:
    x = features(club)
    assert 0 < float(relative_energy(x, club)) < 2
    torch.testing.assert_close(relative_energy(1e-6 * x, club), relative_energy(x, club))
    assert torch.isnan(relative_energy(torch.zeros(club.num_nodes, 2), club))


def test_gradient_norms_name_the_parameters() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    model[0](torch.randn(4, 2)).sum().backward()
    norms = gradient_norms(model)
    assert set(norms) == {"0.weight", "0.bias"}
    assert norms["0.bias"] == pytest.approx(float(torch.tensor([4.0, 4.0, 4.0]).norm()))


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (torch.ones(33, 2), ValueError, "34 nodes but x has 33 rows"),
        (torch.ones(34), ValueError, r"\[n, c\] or \[n, R, c\]"),
        (torch.ones(34, 2, dtype=torch.long), TypeError, "floating point"),
        (torch.eye(34).to_sparse_csr(), TypeError, "to_dense"),
    ],
)
def test_features_that_do_not_fit(x: Tensor, error: type[Exception], words: str, club: Graph) -> None:
    with pytest.raises(error, match=words):
        dirichlet_energy(x, club)


def test_negative_weights_are_refused() -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2, torch.tensor([-1.0, -1.0]))
    with pytest.raises(ValueError, match="smallest is -1"):
        dirichlet_energy(torch.ones(2, 1), graph)

"""Spectra, thresholds and signs: against dense algebra, NetworkX and known graphs; Lanczos against dense."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
import torch
from analysis_graphs import F64, dense_operator, features, graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from omegagnn import Graph
from omegagnn.analysis import (
    critical_omega,
    filter_response,
    impulse_response,
    laplacian_spectrum,
    leading_eigenvector,
    learnt_omegas,
    operator_kind,
    propagation_spectrum,
    sign_pattern,
    sign_threshold,
    spectrum,
    thresholds,
)
from omegagnn.nn import OmegaGCNConv, OmegaNet
from omegagnn.ops import omega_propagate

omegas = st.floats(-3, 3).filter(lambda value: abs(value) > 1e-3)


def dense_laplacian(graph: Graph, add_self_loops: bool = True) -> np.ndarray:
    return np.eye(graph.num_nodes) - dense_operator(graph, add_self_loops)


@given(graphs(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_spectrum_and_critical_omega_equal_dense_algebra(graph: Graph, add_self_loops: bool) -> None:
    eigenvalues = np.linalg.eigvalsh(dense_laplacian(graph, add_self_loops))
    np.testing.assert_allclose(laplacian_spectrum(graph, add_self_loops).numpy(), eigenvalues, atol=1e-12)
    expected = 2 / eigenvalues[-1] if eigenvalues[-1] > 1e-9 else math.inf
    assert critical_omega(graph, add_self_loops) == pytest.approx(expected, rel=1e-12)


@given(graphs(), omegas)
@settings(max_examples=60, deadline=None)
def test_propagation_spectrum(graph: Graph, omega: float) -> None:
    matrix = np.eye(graph.num_nodes) - omega * dense_laplacian(graph)
    np.testing.assert_allclose(propagation_spectrum(graph, omega).numpy(), np.linalg.eigvalsh(matrix), atol=1e-11)


def test_spectrum_without_loops_is_that_of_networkx() -> None:
    drawn = nx.gnp_random_graph(25, 0.2, seed=5)
    expected = np.sort(nx.normalized_laplacian_spectrum(drawn).real)
    isolated = len(list(nx.isolates(drawn)))
    graph = Graph.from_networkx(drawn, weight=None)
    assert isolated == 0
    np.testing.assert_allclose(laplacian_spectrum(graph, add_self_loops=False).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("drawn", "add_self_loops", "expected"),
    [
        (nx.path_graph(2), True, 2.0),
        (nx.complete_graph(7), True, 2.0),  # L̃ = I − 1/n has one positive eigenvalue, 1
        (nx.cycle_graph(8), True, 1.5),  # ρ = 1 + 1/3
        (nx.cycle_graph(8), False, 1.0),
        (nx.complete_bipartite_graph(3, 5), False, 1.0),
        (nx.cycle_graph(5), False, 2 / (1 + math.cos(math.pi / 5))),
        (nx.empty_graph(4), True, math.inf),
        (nx.empty_graph(0), True, math.inf),
    ],
)
def test_critical_omega_of_known_graphs(drawn: nx.Graph, add_self_loops: bool, expected: float) -> None:
    graph = Graph.from_networkx(drawn, weight=None)
    assert critical_omega(graph, add_self_loops) == pytest.approx(expected, rel=1e-12)


@given(graphs(weighted=False))
@settings(max_examples=50, deadline=None)
def test_order_of_the_three_thresholds(graph: Graph) -> None:
    one, signs, critical = thresholds(graph)
    assert one < signs <= critical * (1 + 1e-12)
    assert thresholds(graph, add_self_loops=False).critical >= 1 - 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_lanczos_equals_dense(seed: int) -> None:
    graph = Graph.from_networkx(nx.gnp_random_graph(300, 0.01, seed=seed), weight=None)
    exact = critical_omega(graph, method="dense")
    assert critical_omega(graph, method="lanczos") == pytest.approx(exact, rel=1e-11)
    for omega in (1.1 * exact, -0.7):
        one, other = (leading_eigenvector(graph, omega, method=method) for method in ("dense", "lanczos"))
        assert abs(float(one @ other)) == pytest.approx(1, abs=1e-9)


def test_lanczos_equals_dense_on_citeseer(citeseer_core: Graph) -> None:
    assert critical_omega(citeseer_core) == pytest.approx(critical_omega(citeseer_core, method="dense"), rel=1e-11)


@pytest.mark.parametrize("drawn", [nx.karate_club_graph(), nx.star_graph(6), nx.gnp_random_graph(40, 0.1, seed=1)])
def test_sign_threshold_is_one_plus_one_over_the_largest_degree(drawn: nx.Graph) -> None:
    largest = max(degree for _, degree in drawn.degree())
    graph = Graph.from_networkx(drawn, weight=None)
    assert sign_threshold(graph) == pytest.approx(1 + 1 / largest, rel=1e-12)
    assert sign_threshold(graph, add_self_loops=False) == 1


@given(graphs(), st.floats(-2, 4))
@settings(max_examples=80, deadline=None)
def test_sign_pattern_is_read_off_the_entries(graph: Graph, omega: float) -> None:
    matrix = np.eye(graph.num_nodes) - omega * dense_laplacian(graph)
    if (np.abs(matrix[np.abs(matrix) > 0]) < 1e-9).any():
        return  # too near to a threshold for the dense formula to tell
    negative, positive = (matrix < 0).any(), (matrix > 0).any()
    expected = "non-negative" if not negative else "mixed" if positive else "non-positive"
    assert sign_pattern(graph, omega) == expected


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_sign_pattern_turns_at_the_threshold(graph: Graph) -> None:
    limit = sign_threshold(graph)
    if math.isinf(limit):
        assert sign_pattern(graph, 50.0) == sign_pattern(graph, -50.0) == "non-negative"
        return
    assert sign_pattern(graph, limit) == "non-negative"
    assert sign_pattern(graph, limit * (1 + 1e-6)) != "non-negative"
    assert sign_pattern(graph, 0.0) == "non-negative"
    assert sign_pattern(graph, -1e-3) != "non-negative"


def test_operator_with_negative_entries_only() -> None:
    lonely = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 3)
    assert sign_pattern(lonely, 2.0, add_self_loops=False) == "non-positive"


def test_operator_kinds(club: Graph) -> None:
    _, signs, critical = thresholds(club)
    assert signs == pytest.approx(1 + 1 / 17)
    kinds = {-0.1: "sharpening", 0.0: "identity", 0.5: "smoothing", 1.0: "smoothing", 1.05: "smoothing"}
    kinds |= {signs: "smoothing", 1.06: "mixed-sign", critical: "mixed-sign", critical + 1e-6: "sharpening"}
    for omega, expected in kinds.items():
        assert operator_kind(club, omega) == expected, omega
    assert operator_kind(Graph.from_networkx(nx.empty_graph(3)), 5.0) == "identity"


@given(graphs(), omegas)
@settings(max_examples=60, deadline=None)
def test_leading_eigenvector_leads(graph: Graph, omega: float) -> None:
    matrix = np.eye(graph.num_nodes) - omega * dense_laplacian(graph)
    vector = leading_eigenvector(graph, omega).numpy()
    assert np.linalg.norm(vector) == pytest.approx(1)
    assert vector.sum() >= 0
    value = vector @ matrix @ vector
    np.testing.assert_allclose(matrix @ vector, value * vector, atol=1e-10)
    assert abs(value) == pytest.approx(np.abs(np.linalg.eigvalsh(matrix)).max(), abs=1e-10)


def test_an_operator_is_taken_as_it_is(club: Graph) -> None:
    assert critical_omega(club.gcn_norm()) == pytest.approx(critical_omega(club), rel=1e-6)  # float32 weights


def test_what_has_no_answer() -> None:
    one_way = Graph.from_edge_index(torch.tensor([[0], [1]]), 2)
    with pytest.raises(ValueError, match="to_undirected"):
        critical_omega(one_way)
    with pytest.raises(ValueError, match="identity"):
        leading_eigenvector(one_way, 0.0)
    with pytest.raises(ValueError, match="without nodes"):
        leading_eigenvector(Graph.from_networkx(nx.empty_graph(0)), 1.0)


def test_whole_spectra_of_large_graphs_are_refused(monkeypatch: pytest.MonkeyPatch, club: Graph) -> None:
    monkeypatch.setattr(spectrum, "MATRIX_LIMIT", 30)
    with pytest.raises(ValueError, match="34 nodes need a dense matrix"):
        laplacian_spectrum(club)
    assert critical_omega(club, method="lanczos") > 1


def test_filter_response_is_what_linear_layers_do(club: Graph) -> None:
    net = OmegaNet(3, 4, 5, 2, omega="channel").double()
    for parameter in net.grouped_parameters()["omega"]:
        nn.init.uniform_(parameter, -0.5, 1.5)
    frequencies, vectors = torch.linalg.eigh(torch.from_numpy(dense_laplacian(club)))
    response = filter_response(net, frequencies)
    assert response.shape == (34, 4)
    x = features(club, 4)
    filtered = vectors @ (response * (vectors.T @ x))
    operator = Graph.from_csr(club.rowptr, club.col, torch.ones(club.num_edges, dtype=F64)).gcn_norm()
    for omega in learnt_omegas(net):
        x = omega_propagate(x, operator, omega)
    torch.testing.assert_close(filtered, x, rtol=1e-11, atol=1e-12)


def test_filter_response_shapes() -> None:
    grid = torch.linspace(0, 2, 7, dtype=F64)
    torch.testing.assert_close(filter_response([0.5, 0.25], grid), (1 - 0.5 * grid) * (1 - 0.25 * grid))
    torch.testing.assert_close(filter_response([2.001] * 31, grid), (1 - 2.001 * grid) ** 31, rtol=1e-12, atol=0)
    by_channel = torch.tensor([0.1, 0.2, 0.3], dtype=F64)
    mixed = filter_response([by_channel, 0.5], grid)
    torch.testing.assert_close(mixed, (1 - by_channel * grid[:, None]) * (1 - 0.5 * grid[:, None]))
    runs = torch.rand(2, 3, dtype=F64)
    expected = (1 - runs * grid[:, None, None]) * (1 - by_channel * grid[:, None, None])
    torch.testing.assert_close(filter_response([runs, by_channel], grid), expected)
    torch.testing.assert_close(filter_response([by_channel, runs], grid), expected)
    assert filter_response(OmegaNet(2, 4, 3, 2, omega="global", runs=5), grid).shape == (7, 5, 1)
    assert len(learnt_omegas(OmegaGCNConv(2, 2))) == 1
    with pytest.raises(ValueError, match="no layer with an omega"):
        filter_response(nn.Linear(2, 2), grid)


@given(graphs(undirected=False), st.floats(-2, 2), st.integers(0, 3), st.data())
@settings(max_examples=50, deadline=None)
def test_impulse_response_is_a_column_of_the_power(graph: Graph, omega: float, steps: int, data: st.DataObject) -> None:
    node = data.draw(st.integers(0, graph.num_nodes - 1))
    matrix = np.linalg.matrix_power(np.eye(graph.num_nodes) - omega * dense_laplacian(graph), steps)
    response = impulse_response(graph, node, omega, steps)
    np.testing.assert_allclose(response.numpy(), matrix[:, node], atol=1e-11)


def test_impulse_response_for_each_channel(club: Graph) -> None:
    several = impulse_response(club, 3, torch.tensor([0.0, 0.5, 2.0]), steps=2)
    assert several.shape == (34, 3)
    for channel, omega in enumerate((0.0, 0.5, 2.0)):
        torch.testing.assert_close(several[:, channel], impulse_response(club, 3, omega, steps=2))


def test_impulse_response_refuses_what_it_cannot_do(club: Graph) -> None:
    with pytest.raises(ValueError, match="numbered 0 to 33"):
        impulse_response(club, 34, 1.0)
    with pytest.raises(ValueError, match="at least 0"):
        impulse_response(club, 0, 1.0, steps=-1)
    with pytest.raises(ValueError, match="shape"):
        impulse_response(club, 0, torch.ones(2, 2))

"""The paper's theorems on the karate club, CiteSeer's largest component and random graphs."""

from __future__ import annotations

import math
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import torch
from analysis_graphs import F64, dense_operator, features, graphs, karate
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from omegagnn import Graph
from omegagnn.analysis import critical_omega, dirichlet_energy, leading_eigenvector, sign_threshold
from omegagnn.analysis.measure import spectral_measure
from omegagnn.analysis.theory import (
    Comparison,
    corollary_2_2,
    distance_from_smooth,
    energy_decay,
    euler_errors,
    euler_slope,
    gradient_descent_identity,
    laplacian_identity,
    limit_time,
    nonnegativity_remark,
    omega_for_energy,
    propagated,
    theorem_2_1,
    theorem_2_3,
)
from omegagnn.data import load

REAL = ("club", "citeseer_core")
DEPTHS = (4, 16, 64, 256, 1024)


def energy_of(x: Tensor, graph: Graph) -> float:
    return float(dirichlet_energy(x.double(), graph))


def random_graph(seed: int, n: int = 20, p: float = 0.2) -> Graph:
    return Graph.from_networkx(nx.gnp_random_graph(n, p, seed=seed), weight=None)


# ------------------------------------------------------------------------------------------------ the spectral measure


@given(graphs(), st.floats(-1, 2), st.integers(0, 4))
@settings(max_examples=50, deadline=None)
def test_measure_gives_the_energy_after_propagation(graph: Graph, omega: float, depth: int) -> None:
    x = features(graph)
    expected = energy_of(propagated(x, graph, omega, depth), graph)
    for method in ("dense", "lanczos"):
        measure = spectral_measure(x, graph, method=method)
        assert measure.energy((1 - omega * measure.frequencies) ** depth) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_lanczos_measure_equals_dense_on_citeseer(citeseer_core: Graph) -> None:
    x = features(citeseer_core, 4)
    exact, quadrature = (spectral_measure(x, citeseer_core, method=method) for method in ("dense", "lanczos"))
    for response in (lambda f: np.exp(-3 * f), lambda f: (1 - 0.7 * f) ** 64, lambda f: (1 - 0.01 * f) ** 1024):
        one, other = (each.energy(response(each.frequencies)) for each in (exact, quadrature))
        assert one == pytest.approx(other, rel=1e-9)


def test_measure_refuses_other_shapes(club: Graph) -> None:
    with pytest.raises(ValueError, match=r"\[34, c\]"):
        spectral_measure(torch.randn(34, 2, 2), club)


# ----------------------------------------------------------------------------------------- theorem 2.1, corollary 2.2


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_theorem_2_1_depth_times_omega_goes_to_the_limit(
    name: str, share: float, request: pytest.FixtureRequest
) -> None:
    graph = request.getfixturevalue(name)
    x = features(graph)
    energy = share * energy_of(x, graph)
    results = [theorem_2_1(x, graph, depth, energy) for depth in DEPTHS]
    assert all(result.holds for result in results), results
    limit = limit_time(x, graph, energy)
    gaps = [limit - result.value for result in results]
    # First order: four times as many layers leave a quarter of the gap.
    assert gaps[-1] < 2e-3 * limit
    assert [gaps[i] / gaps[i + 1] for i in (2, 3)] == pytest.approx([4, 4], rel=0.05)


@given(graphs(), st.floats(0.05, 0.9), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_theorem_2_1_bounds_hold_on_any_graph(graph: Graph, share: float, depth: int) -> None:
    x = features(graph)
    start = energy_of(x, graph)
    assume(start > 1e-6)
    try:
        result = theorem_2_1(x, graph, depth, share * start)
    except ValueError as error:
        assert "No omega" in str(error)  # noqa: PT017
        assert depth < 10
        return
    assert result.holds, result
    assert result.value <= limit_time(x, graph, share * start) + 1e-9 or result.upper == math.inf
    reached = energy_of(propagated(x, graph, result.value / depth, depth), graph)
    assert reached == pytest.approx(share * start, rel=1e-8)


def test_theorem_2_1_lower_bound_is_met_on_complete_graphs() -> None:
    # One positive frequency, so that the comparison of -log(1 - ωλ) with ωλ is an equality.
    graph = Graph.from_networkx(nx.complete_graph(6), weight=None)
    x = features(graph)
    result = theorem_2_1(x, graph, 8, 0.1 * energy_of(x, graph))
    assert result.value == pytest.approx(result.lower, rel=1e-9)
    assert result.value < 0.95 * result.upper


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_omega_for_energy_is_the_smallest_root(seed: int, depth: int) -> None:
    graph = random_graph(seed)
    x = features(graph, seed=seed)
    measure = spectral_measure(x, graph)
    grid = np.linspace(0, 4, 40_001)
    curve = np.array([measure.energy((1 - omega * measure.frequencies) ** depth) for omega in grid])
    least = curve.min()
    for energy in (least * 1.0001, (least + curve[0]) / 2):
        first = grid[(curve <= energy).argmax()]
        assert omega_for_energy(x, graph, depth, energy) == pytest.approx(first, abs=2e-4)
    with pytest.raises(ValueError, match="No omega brings"):
        omega_for_energy(x, graph, depth, 0.999 * least)


def test_with_few_layers_omega_passes_the_radius_and_nothing_is_claimed(club: Graph) -> None:
    # Nearly all weight is at the slowest frequency, so that one layer needs a step far beyond 2/ρ.
    frequencies, vectors = torch.linalg.eigh(torch.eye(34, dtype=F64) - torch.from_numpy(dense_operator(club)))
    x = vectors[:, 1:2] + 1e-4 * vectors[:, -1:]
    energy = 0.01 * energy_of(x, club)
    omega = omega_for_energy(x, club, 1, energy)
    assert omega > 4 / float(frequencies[-1])
    assert energy_of(propagated(x, club, omega, 1), club) == pytest.approx(energy, rel=1e-9)
    result = theorem_2_1(x, club, 1, energy)
    assert (result.lower, result.upper) == (0, math.inf)


def test_limit_time_is_the_time_of_the_heat_flow(club: Graph) -> None:
    x = features(club)
    energy = 0.2 * energy_of(x, club)
    laplacian = torch.eye(34, dtype=F64) - torch.from_numpy(dense_operator(club))
    flowed = torch.linalg.matrix_exp(-limit_time(x, club, energy) * laplacian) @ x
    assert energy_of(flowed, club) == pytest.approx(energy, rel=1e-10)


@pytest.mark.parametrize("energy", [0.0, -1.0, 1e9])
def test_energies_out_of_reach_are_refused(energy: float, club: Graph) -> None:
    with pytest.raises(ValueError, match="between 0 and"):
        omega_for_energy(features(club), club, 4, energy)
    with pytest.raises(ValueError, match="between 0 and"):
        limit_time(features(club), club, energy)


def test_depth_must_be_positive(club: Graph) -> None:
    with pytest.raises(ValueError, match="at least one layer"):
        omega_for_energy(features(club), club, 0, 1.0)


SHAPES: dict[str, Callable[[int], np.ndarray]] = {
    "equal": np.ones,
    "rising": lambda depth: np.arange(1.0, depth + 1),
    "random": lambda depth: np.random.default_rng(0).uniform(0.1, 1, depth),
}


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("shape", SHAPES)
def test_corollary_2_2_the_sum_goes_to_the_limit(name: str, shape: str, request: pytest.FixtureRequest) -> None:
    graph = request.getfixturevalue(name)
    x = features(graph)
    energy = 0.2 * energy_of(x, graph)
    results = [corollary_2_2(x, graph, SHAPES[shape](depth), energy) for depth in (16, 64, 256)]
    assert all(result.holds for result in results), results
    limit = limit_time(x, graph, energy)
    assert abs(results[-1].value - limit) < 0.01 * limit
    if shape == "equal":
        assert results[1].value == pytest.approx(theorem_2_1(x, graph, 64, energy).value, rel=1e-9)


def test_corollary_2_2_energy_is_reached_by_the_layers(club: Graph) -> None:
    x = features(club)
    energy = 0.3 * energy_of(x, club)
    shape = SHAPES["random"](12)
    omegas = corollary_2_2(x, club, shape, energy).value * shape / shape.sum()
    for omega in omegas:
        x = propagated(x, club, float(omega), 1)
    assert energy_of(x, club) == pytest.approx(energy, rel=1e-9)


def test_corollary_2_2_needs_every_omega_to_vanish() -> None:
    # One frequency λ = 1 (complete graph): a first layer with half of the sum keeps Σω away from T at any depth.
    graph = Graph.from_networkx(nx.complete_graph(6), weight=None)
    x = features(graph)
    energy = 0.2 * energy_of(x, graph)
    limit = limit_time(x, graph, energy)
    sums = []
    for depth in (64, 1024, 16_384):
        shape = np.ones(depth)
        shape[0] = depth - 1
        result = corollary_2_2(x, graph, shape, energy)
        assert result.holds
        sums.append(result.value)
    assert abs(sums[2] - sums[1]) < 1e-3
    assert limit - sums[2] > 0.05 * limit
    half = sums[2] / 2
    assert half - math.log(1 - half) == pytest.approx(limit, rel=1e-3)


def test_corollary_2_2_refuses_too_few_layers_and_wrong_shapes(club: Graph) -> None:
    x = features(club)
    with pytest.raises(ValueError, match="more layers"):
        corollary_2_2(x, club, [1.0], 0.01 * energy_of(x, club))
    for shape in ([], [1.0, -1.0], [[1.0]]):
        with pytest.raises(ValueError, match="positive numbers"):
            corollary_2_2(x, club, shape, 1.0)


# -------------------------------------------------------------------------------------------------------- theorem 2.3


@pytest.mark.parametrize("name", [*REAL, "citeseer"])
def test_theorem_2_3_on_real_graphs(name: str, request: pytest.FixtureRequest) -> None:
    graph = request.getfixturevalue(name)
    critical = critical_omega(graph)
    assert critical > 1
    values = {omega: theorem_2_3(graph, omega) for omega in (0.6, 1.0, critical - 0.02, critical + 0.02, 2.5, -0.5)}
    assert all(result.holds for result in values.values()), values
    assert [result.lower for result in values.values()] == [0, 0, 0, 1, 1, 1]


def test_theorem_2_3_names_the_vector_on_a_connected_graph(club: Graph) -> None:
    root = club.with_self_loops().degree().double().sqrt()
    for omega in (0.1, 1.0, 1.4):
        torch.testing.assert_close(leading_eigenvector(club, omega), root / root.norm())


@given(graphs(), st.floats(-2, 3))
@settings(max_examples=80, deadline=None)
def test_theorem_2_3_on_any_graph(graph: Graph, omega: float) -> None:
    critical = critical_omega(graph)
    assume(abs(omega) > 1e-2 and abs(omega - critical) > 1e-2)
    assert theorem_2_3(graph, omega).holds


def test_theorem_2_3_without_loops_turns_at_one_on_bipartite_graphs() -> None:
    graph = Graph.from_networkx(nx.complete_bipartite_graph(3, 4), weight=None)
    below, above = (theorem_2_3(graph, omega, add_self_loops=False) for omega in (0.95, 1.05))
    assert below.holds
    assert above.holds
    assert (below.lower, above.lower) == (0, 1)


def test_theorem_2_3_has_no_answer_on_the_threshold(club: Graph) -> None:
    with pytest.raises(ValueError, match="two eigenvectors lead"):
        theorem_2_3(club, critical_omega(club))
    with pytest.raises(ValueError, match="before normalisation"):
        distance_from_smooth(torch.ones(34, dtype=F64), club.gcn_norm())


# --------------------------------------------------------------------------------------- remarks, identities, figures


def test_euler_figure_has_slope_minus_one() -> None:
    results = [euler_slope(seed=seed) for seed in range(10)]
    assert all(result.holds for result in results), results
    errors = euler_errors()
    assert len(errors) == 7
    assert errors == sorted(errors, reverse=True)


def test_euler_errors_are_those_of_the_steps() -> None:
    generator = torch.Generator().manual_seed(0)
    factor, start = torch.randn(12, 12, dtype=F64, generator=generator), torch.randn(12, dtype=F64, generator=generator)
    product = factor @ factor.T
    matrix = product / torch.outer(product.diagonal(), product.diagonal()).sqrt()
    exact, stepped = torch.linalg.matrix_exp(-0.5 * matrix) @ start, start
    for _ in range(8):
        stepped = stepped - 0.5 / 8 * matrix @ stepped
    (error,) = euler_errors([8], size=12, time=0.5)
    assert error == pytest.approx(float((exact - stepped).norm()), rel=1e-10)


@given(graphs(), st.floats(-2, 4))
@settings(max_examples=60, deadline=None)
def test_corrected_nonnegativity_remark(graph: Graph, omega: float) -> None:
    result = nonnegativity_remark(graph, omega)
    matrix = np.eye(graph.num_nodes) * (1 - omega) + omega * dense_operator(graph)
    assert result.value == pytest.approx(matrix.min(), abs=1e-12)
    assert result.holds, result


def test_the_remark_of_the_paper_is_not_true_as_printed(club: Graph) -> None:
    # Mixed signs are claimed for every ω > 1; up to 1 + 1/17 there are none.
    assert sign_threshold(club) > 1.05
    assert nonnegativity_remark(club, 1.05).value == 0
    assert nonnegativity_remark(club, 1.06).value < 0
    assert nonnegativity_remark(Graph.from_networkx(nx.empty_graph(0)), 2.0).holds


@given(graphs())
@settings(max_examples=40, deadline=None)
def test_laplacian_with_loops_is_the_laplacian(graph: Graph) -> None:
    assert laplacian_identity(graph).holds


def test_laplacian_identity_has_no_slack(club: Graph) -> None:
    assert laplacian_identity(club) == Comparison("The Laplacian with self-loops is the Laplacian", 0, 0, 0, 1e-12)
    drawn = nx.karate_club_graph()
    difference = np.diag(karate().with_self_loops().degree().numpy()) - (
        nx.to_numpy_array(drawn, weight=None) + np.eye(34)
    )
    np.testing.assert_array_equal(difference, nx.laplacian_matrix(drawn, weight=None).toarray())


@given(graphs(), st.floats(-3, 3))
@settings(max_examples=40, deadline=None)
def test_a_propagation_is_a_gradient_step(graph: Graph, omega: float) -> None:
    assert gradient_descent_identity(features(graph), graph, omega).holds


@pytest.mark.parametrize("name", REAL)
def test_64_linear_steps_at_one_leave_a_thousandth(name: str, request: pytest.FixtureRequest) -> None:
    graph = request.getfixturevalue(name)
    result = energy_decay(features(graph), graph, 1.0, 64)
    assert result.holds
    assert result.value < 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_64_linear_steps_on_connected_random_graphs(seed: int) -> None:
    drawn = nx.gnp_random_graph(40, 0.12, seed=seed)
    graph = Graph.from_networkx(drawn.subgraph(max(nx.connected_components(drawn), key=len)), weight=None)
    result = energy_decay(features(graph), graph, 1.0, 64)
    assert result.holds
    assert result.value < 1e-3


def test_64_linear_steps_on_every_component_of_citeseer(citeseer: Graph) -> None:
    words = load("citeseer").features.to_dense().double()
    x = torch.cat([words[:, :40], features(citeseer, 4)], dim=1)
    after = propagated(x, citeseer, 1.0, 64)
    assert energy_of(after, citeseer) < 1e-3 * energy_of(x, citeseer)
    drawn = nx.Graph(list(zip(citeseer.row.tolist(), citeseer.col.tolist(), strict=True)))
    components = list(nx.connected_components(drawn))
    assert len(components) == 390  # the other 48 of the 438 are single nodes, which have no energy
    for nodes in components:
        inside = torch.zeros(citeseer.num_nodes, 1, dtype=F64)
        inside[list(nodes)] = 1
        assert energy_of(after * inside, citeseer) < 1e-3 * energy_of(x * inside, citeseer)


def test_a_slow_frequency_can_keep_more_than_a_thousandth() -> None:
    # "Below 1e-3" is about generic features: the bound is (1 − λ₂)^128, met by the slowest eigenvector of a long path.
    graph = Graph.from_networkx(nx.path_graph(60), weight=None)
    _, vectors = np.linalg.eigh(np.eye(60) - dense_operator(graph))
    slow = energy_decay(torch.from_numpy(vectors[:, 1:2].copy()), graph, 1.0, 64)
    assert slow.value == pytest.approx(slow.upper, rel=1e-6)
    assert slow.value > 0.8
    assert energy_decay(features(graph), graph, 1.0, 64).value < 1e-2


def test_energy_decay_needs_energy(club: Graph) -> None:
    with pytest.raises(ValueError, match="no energy to lose"):
        energy_decay(torch.zeros(34, 2), club, 1.0, 2)

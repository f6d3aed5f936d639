"""Made data sets are what they say: homophily as asked, gradients by hand, degrees with a heavy tail."""

from __future__ import annotations

import time

import networkx as nx
import pytest
import torch
from torch_geometric.datasets import KarateClub

from omegagnn.data import Dataset, available, find, load
from omegagnn.data.synthetic import csbm, gradient_task, grid, karate, ring, scale_free
from omegagnn.errors import WrongUse

MADE = [entry.name for entry in available() if entry.make is not None]


def homophily(dataset: Dataset) -> float:
    return float((dataset.labels[dataset.graph.row] == dataset.labels[dataset.graph.col]).double().mean())


@pytest.mark.parametrize("name", MADE)
def test_made_data_sets_are_what_the_registry_says(name: str) -> None:
    entry, dataset = find(name), load(name)
    assert entry.differences(dataset) == ()
    assert dataset.graph.is_undirected
    assert not dataset.graph.has_self_loops
    assert not dataset.graph.has_duplicates
    assert dataset.splits
    assert not dataset.warnings
    again = load(name)
    assert torch.equal(again.features, dataset.features)
    assert torch.equal(again.graph.col, dataset.graph.col)
    if entry.homophily is not None:
        assert round(homophily(dataset), 3) == entry.homophily


def test_karate_has_the_club_of_pyg_and_the_factions_of_the_club() -> None:
    ours, theirs = karate(), KarateClub()[0]
    order = torch.sort(theirs.edge_index[1] * 34 + theirs.edge_index[0]).values
    index = ours.graph.to_edge_index()[0]
    assert torch.equal(index[1] * 34 + index[0], order)
    assert torch.equal(ours.features, theirs.x)
    assert torch.bincount(ours.labels).tolist() == [17, 17]
    assert ours.class_names == ("Mr. Hi", "Officer")
    (split,) = ours.splits
    assert ours.labels[split.train].tolist() == [0, 1]
    assert torch.cat([split.train, split.val, split.test]).sort().values.tolist() == list(range(34))
    # Each of the four communities of PyTorch Geometric lies in one faction but for a member or two.
    for community in range(4):
        inside = ours.labels[theirs.y == community].double().mean()
        assert min(float(inside), 1 - float(inside)) < 0.3


@pytest.mark.parametrize("nodes", [1200, 6000])
@pytest.mark.parametrize("wanted", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_csbm_has_the_homophily_and_degree_asked_for(nodes: int, wanted: float) -> None:
    dataset = csbm(homophily=wanted, nodes=nodes, degree=12, classes=3, seed=1)
    edges = dataset.graph.num_edges / 2
    assert abs(homophily(dataset) - wanted) <= 4 * (wanted * (1 - wanted) / edges) ** 0.5
    assert abs(dataset.graph.num_edges / nodes - 12) < 0.5
    assert torch.bincount(dataset.labels).tolist() == [nodes // 3] * 3


def test_csbm_features_tell_the_classes_by_the_signal() -> None:
    def distance(signal: float) -> float:
        dataset = csbm(nodes=2000, signal=signal)
        means = [dataset.features[dataset.labels == number].mean(dim=0) for number in (0, 1)]
        return float((means[0] - means[1]).norm())

    assert distance(0.0) < 0.3
    assert distance(5.0) > 3.0


def test_csbm_with_unequal_classes_stays_in_range() -> None:
    dataset = csbm(nodes=4999, classes=7)
    assert dataset.num_nodes == 4999
    assert int(dataset.labels.bincount().max() - dataset.labels.bincount().min()) == 1


def test_the_gradient_task_by_hand() -> None:
    dataset = gradient_task()
    assert dataset.num_nodes == 8
    assert dataset.is_regression
    assert dataset.num_classes == 1
    f = dataset.features[:, 0].tolist()
    assert all(0 <= value <= 1 for value in f)
    net = nx.Graph(dataset.graph.to_edge_index()[0].t().tolist())
    assert nx.is_connected(net)
    assert net.number_of_nodes() == 8
    for node in range(8):
        assert float(dataset.labels[node]) == max(
            torch.tensor(f[node]).sub(torch.tensor(f[j])).item() for j in net.neighbors(node)
        )
    (split,) = dataset.splits
    assert split.train.tolist() == split.test.tolist() == list(range(8))
    assert not torch.equal(gradient_task(seed=1).features, dataset.features)


def test_edge_rate_of_the_gradient_task() -> None:
    rates = [gradient_task(nodes=30, seed=seed).graph.num_edges / (30 * 29) for seed in range(30)]
    assert abs(sum(rates) / 30 - 0.3) < 0.02


def test_grid_and_ring_are_what_networkx_makes() -> None:
    dataset = grid(3, 5)
    expected = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 5), ordering="sorted")
    ours = nx.Graph(dataset.graph.to_edge_index()[0].t().tolist())
    assert {frozenset(edge) for edge in ours.edges} == {frozenset(edge) for edge in expected.edges}
    assert dataset.features[7].tolist() == [0.5, 0.5]
    assert grid(1, 1).graph.num_edges == 0
    circle = ring(5)
    assert {frozenset(edge) for edge in circle.graph.to_edge_index()[0].t().tolist()} == {
        frozenset((k, (k + 1) % 5)) for k in range(5)
    }
    torch.testing.assert_close(circle.features.norm(dim=1), torch.ones(5))


def test_scale_free_degrees_have_the_tail_of_preferential_attachment() -> None:
    """The share of nodes of degree k or more falls like k**-2, as networkx's slow maker has it."""
    ours = scale_free(20_000, 4).graph.degree()
    theirs = torch.tensor([degree for _, degree in nx.barabasi_albert_graph(20_000, 4, seed=0).degree()])
    assert abs(float(ours.mean()) - float(theirs.double().mean())) < 0.3
    for k in (16, 32, 64):
        ratio = float((ours >= k).double().mean()) / float((theirs >= k).double().mean())
        assert 0.6 < ratio < 1.6
    assert float(ours.max()) > 150


def test_scale_free_is_fast() -> None:
    """A twentieth of the ten million edges that should take seconds; a loop over edges would take far longer."""
    started = time.perf_counter()
    dataset = scale_free(100_000, 5, features=8)
    assert time.perf_counter() - started < 5
    assert dataset.graph.num_edges > 990_000


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (csbm, {"homophily": 1.5}),
        (csbm, {"classes": 1}),
        (csbm, {"nodes": 3}),
        (csbm, {"degree": 600}),
        (csbm, {"features": 0}),
        (gradient_task, {"nodes": 1}),
        (gradient_task, {"edge_rate": 0.0}),
        (gradient_task, {"nodes": 200, "edge_rate": 0.0001}),
        (grid, {"height": 0}),
        (ring, {"nodes": 2}),
        (scale_free, {"nodes": 1}),
        (scale_free, {"edges_per_node": 0}),
    ],
)
def test_impossible_arguments_are_refused(
    make: object, arguments: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegagnn.data.synthetic.MOST_TRIES", 20)
    assert callable(make)
    with pytest.raises(WrongUse):
        make(**arguments)


def test_arguments_in_the_name() -> None:
    dataset = load("csbm:homophily=0.1,nodes=500")
    assert dataset.name == "csbm:homophily=0.1,nodes=500"
    assert dataset.num_nodes == 500
    assert not dataset.warnings
    with pytest.raises(WrongUse, match="csbm has no argument 'nods': it takes homophily, nodes"):
        load("csbm:nods=3")
    with pytest.raises(WrongUse, match="nodes of csbm must be an integer, not 'many'"):
        load("csbm:nodes=many")
    with pytest.raises(WrongUse, match="degree of csbm must be a number, not ''"):
        load("csbm:degree")
    with pytest.raises(WrongUse, match="karate has no argument 'x': it takes none"):
        load("karate:x=1")
    with pytest.raises(WrongUse, match="citeseer takes no arguments"):
        load("citeseer:geom")

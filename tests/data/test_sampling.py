"""Parts of a graph: the expected S of every sampler is the full S, and whole neighbourhoods change nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader

from omegagnn import Graph, OmegaGCNConv, OmegaNet
from omegagnn.data.sampling import ClusterSampler, NeighbourSampler, NodeSampler, Subgraph
from omegagnn.data.sampling.loader import PygNeighbourSampler, with_operator
from omegagnn.data.sampling.parts import metis_parts
from omegagnn.errors import WrongUse
from omegagnn.ops import Draws


def key(step: int = 0) -> Tensor:
    return Draws(torch.tensor([5]), step).key(0)[0]


def a_graph(n: int = 80, edges: int = 500) -> Graph:
    """Random edges, a hub, an isolated node at the end."""
    index = torch.randint(n - 1, (2, edges))
    hub = torch.stack([torch.zeros(n - 2, dtype=torch.long), torch.arange(1, n - 1)])
    return Graph.from_edge_index(torch.cat([index, hub], dim=1), n).to_undirected()


def mean_operator(n: int, draws: int, parts: Callable[[int], list[Subgraph]]) -> Tensor:
    """Return the mean of Ŝ over many draws, each row over the draws that had it among their targets."""
    total, seen = torch.zeros(n, n, dtype=torch.double), torch.zeros(n, dtype=torch.double)
    for step in range(draws):
        for part in parts(step):
            rows = part.nodes[part.targets]
            total[rows[:, None], part.nodes] += part.graph.to_dense()[part.targets].double()
            seen[rows] += 1
    return total / seen[:, None]


def check_mean(found: Tensor, operator: Graph, tolerance: float) -> None:
    exact = operator.to_dense().double()
    assert torch.allclose(found.diagonal(), exact.diagonal(), atol=1e-6), "self-loops are kept as they are"
    # Errors of the mean in units of each row's largest entry, so that hubs count like everybody.
    assert float(((found - exact).abs() / exact.amax(1, keepdim=True)).max()) < tolerance
    assert bool(((found == 0) | (exact > 0)).all()), "nothing that is no edge"


@pytest.mark.parametrize("fan_out", [1, 3, 10])
def test_the_expected_operator_of_sampled_neighbours_is_the_full_one(fan_out: int) -> None:
    operator = a_graph().gcn_norm()
    sampler = NeighbourSampler(operator, [fan_out])
    found = mean_operator(80, 600, lambda step: [sampler.sample(torch.arange(80), key(step))])
    check_mean(found, operator, tolerance=1.0 / fan_out**0.5)


@pytest.mark.parametrize("kind", [NodeSampler, ClusterSampler])
def test_the_expected_operator_of_random_nodes_and_of_clusters_is_the_full_one(kind: type) -> None:
    operator = a_graph().gcn_norm()
    sampler = kind(operator, 40)
    found = mean_operator(80, 1500, lambda step: [sampler.sample(items) for items in sampler.batches(key(step))])
    check_mean(found, operator, tolerance=0.16)


def test_a_wrong_scale_would_be_seen() -> None:
    operator = a_graph().gcn_norm()
    sampler = NeighbourSampler(operator.unweighted(), [3])  # without weights nothing is scaled

    def unscaled(step: int) -> list[Subgraph]:
        part = sampler.sample(torch.arange(80), key(step))
        rows, columns = part.graph.row.long(), part.graph.col.long()
        weight = operator.to_dense()[part.nodes[rows], part.nodes[columns]]
        return [Subgraph(Graph(part.graph.rowptr, part.graph.col, weight), part.nodes, part.targets)]

    with pytest.raises(AssertionError):
        check_mean(mean_operator(80, 600, unscaled), operator, tolerance=1.0 / 3**0.5)


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_whole_neighbourhoods_give_the_outputs_of_the_full_graph(conv: str) -> None:
    graph, x = a_graph(), torch.randn(80, 6)
    net = OmegaNet(6, 8, 2, 3, conv=conv).eval()
    operator = net.operator(graph, 80)
    part = NeighbourSampler(operator, [-1, -1]).sample(torch.tensor([7, 0, 79]), key())
    found = net(x[part.nodes], part.graph)[part.targets]
    assert torch.allclose(found, net(x, operator)[[7, 0, 79]], atol=1e-6)


def test_a_node_keeps_as_many_neighbours_as_were_asked_for_and_itself() -> None:
    operator = a_graph().gcn_norm()
    part = NeighbourSampler(operator, [4]).sample(torch.arange(80), key())
    sizes = operator.rowptr.diff().clamp(max=5)
    assert torch.equal(part.graph.rowptr.diff(), sizes)
    assert part.graph.has_self_loops
    assert not part.graph.has_duplicates


def test_what_a_node_keeps_does_not_depend_on_its_company() -> None:
    operator = a_graph().gcn_norm()
    sampler = NeighbourSampler(operator, [3, 2])
    together = sampler.sample(torch.arange(20), key())
    for node in (0, 7, 19):
        alone = sampler.sample(torch.tensor([node]), key())
        rows = [part.graph.to_dense()[part.targets[-1 if part is alone else node]] for part in (alone, together)]
        kept = [part.nodes[row > 0].tolist() for part, row in zip((alone, together), rows, strict=True)]
        assert kept[0] == kept[1]
    assert not torch.equal(sampler.sample(torch.arange(20), key(1)).nodes, together.nodes), "another step, other draws"


def test_columns_rise_and_nothing_is_kept_twice_on_directed_graphs_with_odd_loops() -> None:
    index = torch.cat([torch.randint(50, (2, 400)), torch.tensor([[3, 3, 9], [3, 3, 9]])], dim=1)
    for graph in (Graph.from_edge_index(index, 50), Graph.from_edge_index(index, 50, torch.rand(403))):
        part = NeighbourSampler(graph, [3, 3]).sample(torch.tensor([3, 9, 20]), key())
        same = part.graph.row[1:] == part.graph.row[:-1]
        assert bool((part.graph.col[1:] >= part.graph.col[:-1])[same].all())
        dense, whole = part.graph.to_dense(), graph.to_dense()[part.nodes[:, None], part.nodes]
        assert bool((dense <= whole + 1e-6).all())


def test_empty_graphs_and_bad_fan_outs() -> None:
    empty = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 4)
    part = NeighbourSampler(empty, [3]).sample(torch.tensor([2]), key())
    assert part.nodes.tolist() == [2]
    assert part.graph.num_edges == 0
    assert ClusterSampler(empty, 2).num_parts == 1
    with pytest.raises(ValueError, match="A fan-out is at least 1"):
        NeighbourSampler(empty, [0])


@pytest.mark.parametrize("kind", [NodeSampler, ClusterSampler])
def test_an_epoch_has_every_node_once(kind: type) -> None:
    sampler = kind(a_graph(200, 900), 60)
    batches = sampler.batches(key())
    nodes = torch.cat([sampler.sample(items).nodes for items in batches])
    assert len(batches) == 3
    assert torch.equal(nodes.sort().values, torch.arange(200))
    assert [b.tolist() for b in sampler.batches(key())] == [b.tolist() for b in batches]
    assert [b.tolist() for b in sampler.batches(key(1))] != [b.tolist() for b in batches]


def test_metis_cuts_few_edges_of_a_ring_and_always_the_same() -> None:
    ring = torch.arange(100)
    graph = Graph.from_edge_index(torch.stack([ring, (ring + 1) % 100]), 100)  # directed, which METIS does not know
    parts = metis_parts(graph, 4)
    assert torch.bincount(parts).tolist() == [25] * 4
    assert int((parts[graph.row.long()] != parts[graph.col.long()]).sum()) == 4
    assert torch.equal(metis_parts(graph, 4), parts)


def test_one_cluster_alone_is_refused() -> None:
    with pytest.raises(WrongUse, match="never sees the edges to others"):
        ClusterSampler(a_graph(), 20).sample(torch.tensor([0]))


# ------------------------------------------------------------------------------------------- PyTorch Geometric's loader


def test_the_sampler_works_in_the_node_loader_of_pyg() -> None:
    index, weight = a_graph().to_edge_index()
    data = Data(x=torch.randn(80, 6), edge_index=index.flip(1), y=torch.arange(80))  # edges in an order of their own
    data.mark = torch.arange(index.size(1)) * 10
    loader = NodeLoader(
        data, PygNeighbourSampler(data, [4, 2]), input_nodes=torch.arange(30), batch_size=8, shuffle=True
    )
    seen = []
    for batch in loader:
        assert torch.equal(batch.x, data.x[batch.n_id])
        assert torch.equal(batch.y[: batch.batch_size], batch.n_id[: batch.batch_size])
        assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
        assert torch.equal(batch.mark, data.mark[batch.e_id])
        seen += batch.n_id[: batch.batch_size].tolist()
    assert sorted(seen) == list(range(30))
    assert weight is None


def test_weights_of_the_loader_are_those_of_the_full_operator_on_average() -> None:
    data = Data(x=torch.eye(30), edge_index=a_graph(30, 150).to_edge_index()[0])
    whole = with_operator(data)
    sampler = PygNeighbourSampler(whole, [3])
    conv = OmegaGCNConv(30, 30, omega=1.0, normalize=False)
    loader = NodeLoader(whole, sampler, input_nodes=None, batch_size=30, transform=sampler.rescale)
    with torch.no_grad():
        batches = [batch for _ in range(600) for batch in loader]
        found = torch.stack([conv(b.x, b.edge_index, b.edge_weight)[: b.batch_size] for b in batches]).mean(0)
        exact = OmegaGCNConv(30, 30, omega=1.0)(data.x, data.edge_index)
    assert float((found - exact).abs().max()) < 0.25 * float(exact.max())
    full = PygNeighbourSampler(whole, [-1])
    (batch,) = NodeLoader(whole, full, input_nodes=None, batch_size=30, transform=full.rescale)
    assert torch.allclose(conv(batch.x, batch.edge_index, batch.edge_weight), exact, atol=1e-6)

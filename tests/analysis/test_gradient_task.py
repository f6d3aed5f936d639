"""The synthetic gradient task: its definition, the parallel training, and the comparison of the paper."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from analysis_graphs import F64, features, graphs
from hypothesis import given, settings
from torch import Tensor

from omegagnn import Graph
from omegagnn.analysis.gradient_task import (
    BIASED_GCN,
    GCN,
    NETWORKS,
    OMEGA_GCN,
    GradientTask,
    Network,
    ParallelNets,
    gradient_task,
    train_model,
    train_pairs,
    upwind_gradient,
)
from omegagnn.nn import OmegaNet

SEEDS = range(20)


def as_omega_net(nets: ParallelNets, run: int) -> OmegaNet:
    """One of the parallel networks as the network of the package."""
    net = OmegaNet(1, nets.maps[0].size(2), len(nets.maps) - 2, 1, bias=True).to(F64)
    with torch.no_grad():
        places = [net.opening, *net.convs, net.closing]
        for place, weight, bias in zip(places, nets.maps, nets.biases, strict=True):
            place.weight.copy_(weight[run])
            place.bias.copy_(nets.biased[run, 0] * bias[run, 0])
        for layer, conv in enumerate(net.convs):
            conv.omega.copy_(nets.omega(layer)[run, 0])
    return net


def best_multiple(task: GradientTask) -> float:
    """The least loss of a·S²f over the number a."""
    operator = Graph.from_csr(task.graph.rowptr, task.graph.col, torch.ones(task.graph.num_edges, dtype=F64)).gcn_norm()
    smooth = operator.to_dense() @ operator.to_dense() @ task.features
    residual = task.target - smooth * (smooth * task.target).sum() / smooth.square().sum()
    return float(residual.square().sum())


@given(graphs(undirected=False))
@settings(max_examples=40, deadline=None)
def test_upwind_gradient(graph: Graph) -> None:
    x = features(graph, 2)
    expected = torch.zeros_like(x)
    for i in range(graph.num_nodes):
        senders = graph.col[graph.row == i].long()
        if senders.numel():
            expected[i] = (x[i] - x[senders]).amax(0)
    torch.testing.assert_close(upwind_gradient(x, graph), expected)


def test_tasks_are_connected_and_fixed() -> None:
    tasks = [gradient_task(seed) for seed in SEEDS]
    for seed, task in zip(SEEDS, tasks, strict=True):
        assert nx.is_connected(nx.Graph(list(zip(task.graph.row.tolist(), task.graph.col.tolist(), strict=True))))
        assert task.graph.num_nodes == 8
        assert 0 <= float(task.features.min()) <= float(task.features.max()) <= 1
        assert torch.equal(task.features, gradient_task(seed).features)
    # Connectedness drops sparse graphs, so the rate of the kept ones is above the 30 % that were asked for.
    assert 0.3 <= sum(task.graph.num_edges for task in tasks) / (20 * 56) < 0.45


def test_parallel_networks_are_the_networks_of_the_package() -> None:
    tasks = [gradient_task(seed) for seed in (0, 1)]
    nets = ParallelNets([(network, task) for network in NETWORKS for task in tasks], channels=6)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in [*nets.omega_change, *nets.biases]:
            parameter.add_(torch.randn(parameter.shape, dtype=F64, generator=generator))
    outputs = nets()
    for run in range(len(outputs)):
        task = tasks[run % 2]
        torch.testing.assert_close(outputs[run], as_omega_net(nets, run)(task.features, task.graph.to(dtype=F64)))
    for run, (network, _) in enumerate([(network, task) for network in NETWORKS for task in tasks]):
        assert torch.equal(nets.omega(0)[run], torch.ones(1, 6, dtype=F64)) is not network.learn_omega


def test_company_does_not_change_a_result_and_a_model_alone_gets_it_too() -> None:
    tasks = [gradient_task(seed) for seed in (3, 4)]
    pairs = [(network, task) for network in (OMEGA_GCN, GCN, BIASED_GCN) for task in tasks]
    together = train_pairs(pairs, steps=30, channels=8)
    alone = torch.cat([train_pairs([pair], steps=30, channels=8) for pair in pairs])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=0)
    nets = ParallelNets(pairs[:1], channels=8)
    net = as_omega_net(nets, 0)
    for module in net.modules():
        if isinstance(getattr(module, "bias", None), Tensor):
            module.bias.requires_grad_(False)
    assert train_model(net, tasks[0], steps=30) == pytest.approx(float(alone[0]), rel=1e-6)
    other = train_pairs(pairs[:1], steps=30, channels=8, start=1)
    assert float(other) != pytest.approx(float(alone[0]), rel=1e-3)


def trained(network: Network, steps: int) -> Tensor:
    """The losses on 20 connected graphs: 2 layers, 64 channels, Adam at 1e-3 without decay, float64."""
    return train_pairs([(network, gradient_task(seed)) for seed in SEEDS], steps)


def test_omega_gcn_expresses_the_gradient_and_gcn_does_not() -> None:
    # A GCN without biases fits one number, whatever its width and however long it is trained: it is there soon.
    least = torch.tensor([best_multiple(gradient_task(seed)) for seed in SEEDS], dtype=F64)
    torch.testing.assert_close(trained(GCN, 500), least, rtol=1e-4, atol=0)
    assert float(trained(OMEGA_GCN, 5000).median()) < 1e-3 * float(least.median())


@pytest.mark.slow
def test_biases_let_a_gcn_express_the_gradient_too() -> None:
    ours, plain, biased = (float(trained(network, 5000).median()) for network in (OMEGA_GCN, GCN, BIASED_GCN))
    assert ours < 1e-3 * plain
    # A biased GCN is another function of S f and does well, which the paper does not show.
    assert biased < 1e-2 * plain

"""The baselines behind one interface: inputs, groups, starts, randomness by counter, misuse."""

from __future__ import annotations

import copy
import doctest
from typing import Any

import pytest
import torch
from baseline_cases import CASES, OUT, UNWEIGHTED, C, F, N, draws, graph_for, make
from torch import Tensor, nn

from omegagnn.errors import WrongUse
from omegagnn.graph import Graph
from omegagnn.nn import baselines, stacked
from omegagnn.nn.baselines import BASELINES, baseline
from omegagnn.ops import Draws, SparseFeatures


@pytest.mark.parametrize(("name", "task"), CASES)
def test_shapes_gradients_and_groups(name: str, task: str) -> None:
    net = make(name, task=task, dropout=0.3)
    batch = torch.arange(N) // 8 if task == "graph" else None
    out = net(torch.randn(N, F), graph_for(name), batch=batch, num_graphs=3, draws=draws())
    assert out.shape == (3 if task == "graph" else N, OUT)
    (out * torch.randn_like(out)).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
    groups = net.grouped_parameters()
    assert list(groups) == ["gnn", "oc", "omega"]
    assert groups["omega"] == []
    assert {id(p) for group in groups.values() for p in group} == {id(p) for p in net.parameters()}
    assert sum(map(len, groups.values())) == len(list(net.parameters()))
    assert bool(groups["gnn"]) == (name not in ("appnp", "sgc"))
    before = [parameter.detach().clone() for parameter in net.parameters()]
    torch.optim.Adam(net.param_groups(lr_gnn=0.02, wd_oc=0.1)).step()
    assert any(not torch.equal(old, new) for old, new in zip(before, net.parameters(), strict=True))
    assert net.omega.shape == (0, 1)
    assert net.runs is None


@pytest.mark.parametrize("name", BASELINES)
def test_every_form_of_graph_and_features(name: str) -> None:
    net = make(name, dropout=0.4, norm=None)
    graph, x = graph_for(name, directed=True), torch.randn(N, F) * (torch.rand(N, F) < 0.3)
    edge_index, weight = graph.to_edge_index()
    expected = net.eval()(x, graph)
    close = torch.testing.assert_close
    close(copy.deepcopy(net).double()(x.double(), graph), expected.double(), atol=1e-5, rtol=1e-4)
    close(net(x, edge_index, weight), expected)
    if weight is not None:
        close(net(x, graph.to_torch_sparse()), expected)
    for form in (x.to_sparse_csr(), x.to_sparse_coo(), SparseFeatures(x.to_sparse_csr())):
        close(net(form, graph), expected, atol=1e-5, rtol=1e-5)
    net.train()
    one = net(x.to_sparse_csr(), graph, draws=draws())
    assert torch.equal(net(SparseFeatures(x.to_sparse_csr()), graph, draws=draws()), one)


@pytest.mark.parametrize(("name", "task"), CASES)
def test_sparse_features_are_never_dense(name: str, task: str) -> None:
    net, seen = make(name, task=task, dropout=0.5), []
    net.opening.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    dense, x = [], SparseFeatures((torch.rand(N, F) < 0.2).float().to_sparse_csr())
    x.to_dense = lambda: dense.append(True)  # type: ignore[method-assign]
    net(x, graph_for(name), draws=draws())
    assert len(seen) == 1  # the features are used once, as they are
    assert seen[0] is x
    assert not dense


@pytest.mark.parametrize(("name", "task"), CASES)
def test_draws_alone_decide_what_is_dropped(name: str, task: str) -> None:
    options: dict[str, Any] = {} if name == "mlp" else {"drop_edge": 0.3}
    options |= {"attention_dropout": 0.5} if name in ("gat", "gatv2") else {}
    net = make(name, task=task, dropout=0.5, **options)
    x, graph, batch = torch.randn(N, F), graph_for(name).unweighted(), torch.arange(N) // 8 if task == "graph" else None

    def run(given: Draws | None) -> Tensor:
        return net(x, graph, batch=batch, draws=given).detach()

    state = torch.get_rng_state()
    one = run(draws())
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(run(draws()), one)
    assert not torch.equal(run(draws(step=4)), one)
    assert not torch.equal(run(draws(seed=6)), one)
    torch.manual_seed(1)
    free = run(None)
    torch.manual_seed(1)
    assert torch.equal(run(None), free)
    assert not torch.equal(run(None), free)
    net.eval()
    assert torch.equal(run(draws()), run(draws(step=4)))


@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_seed_fixes_the_start(name: str, task: str) -> None:
    net, other = make(name, task=task), make(name, task=task)
    state = torch.get_rng_state()
    net.reset_parameters(torch.tensor([9]))
    other.reset_parameters(torch.tensor([9]))
    assert torch.equal(torch.get_rng_state(), state)
    weights = [parameter for parameter in other.parameters() if parameter.dim() > 1]
    for one, two in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
    flat = torch.cat([weight.detach().flatten() for weight in weights])
    assert flat.unique().numel() > 0.99 * flat.numel()  # no two places share their draws
    other.reset_parameters(torch.tensor([10]))
    assert all(not torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True) if a.dim() > 1)
    for parameter in net.parameters():
        nn.init.constant_(parameter, 0.3)
    net.reset_parameters(torch.tensor([10]))
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True))
    torch.manual_seed(3)
    net.reset_parameters()
    torch.manual_seed(3)
    other.reset_parameters()
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(("name", "task"), CASES)
def test_state_copy_and_lazy_size(name: str, task: str) -> None:
    net = make(name, task=task)
    x, graph = torch.randn(N, F), graph_for(name)
    expected = net.eval()(x, graph)
    options = {"num_nodes": N} if name == "linkx" else {}
    other = baseline(name, -1, C, 2, OUT, task=task, **options).eval()
    assert other(x, graph).shape == expected.shape
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(x, graph), expected)
    assert torch.equal(copy.deepcopy(net)(x, graph), expected)
    assert repr(net).startswith(f"{type(net).__name__}(\n  (opening)") or name in ("linkx", "gprgnn", "jknet")


@pytest.mark.parametrize("name", sorted(set(BASELINES) - {"linkx"}))
def test_numbering_the_nodes_otherwise_changes_nothing_else(name: str) -> None:
    net = make(name).double().eval()
    x, graph, order = torch.randn(N, F, dtype=torch.float64), graph_for(name, directed=True), torch.randperm(N)
    edge_index, weight = graph.to_edge_index()
    renumbered = Graph.from_edge_index(order.argsort()[edge_index], N, weight)
    torch.testing.assert_close(net(x[order], renumbered), net(x, graph)[order], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_it_learns(name: str) -> None:
    labels = torch.arange(N) % OUT
    same = labels[:, None] == labels[None, :]
    adjacency = torch.rand(N, N) < torch.where(same, 0.6, 0.05)
    graph = Graph.from_edge_index((adjacency | adjacency.t()).fill_diagonal_(False).nonzero().t(), N)
    x = nn.functional.one_hot(labels, F).float() + 0.7 * torch.randn(N, F)
    net = baseline(name, F, 16, 2, OUT, dropout=0.2, **({"num_nodes": N} if name == "linkx" else {}))
    net.reset_parameters(torch.tensor([2]))
    optimiser = torch.optim.Adam(net.param_groups(lr_gnn=0.02, lr_oc=0.02))
    for step in range(60):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(net(x, graph, draws=draws(1, step)), labels)
        extra = net.auxiliary_loss()
        (loss if extra is None else loss + extra).backward()
        optimiser.step()
    assert (net.eval()(x, graph).argmax(1) == labels).float().mean() > 0.9


def test_names() -> None:
    with pytest.raises(WrongUse, match="There is no baseline 'gnc': choose one of appnp, fagcn, gat, gatv2, gcn"):
        baseline("gnc", F, C, 2)
    assert set(baselines.__all__) - {"BASELINES", "Baseline", "baseline"} == {c.__name__ for c in BASELINES.values()}


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("gcn", {"task": "edge"}, "task must be 'node' or 'graph', not 'edge'"),
        ("gcn", {"activation": "tanh"}, "activation must be 'relu', 'elu' or None, not 'tanh'"),
        ("gcn", {"dropout": 1.0}, "dropout must be at least 0 and below 1, not 1.0"),
        ("gcn", {"drop_edge": -0.1}, "drop_edge must be at least 0"),
        ("gcn", {"num_layers": -1}, "num_layers must be at least 0, not -1"),
        ("gcn", {"task": "graph", "norm": "pair"}, "leave norm at None"),
        ("gcn", {"norm": "group"}, "norm must be 'batch', 'layer' or 'pair', not 'group'"),
        ("gcn", {"init": "zero"}, "init must be 'identity' or 'glorot', not 'zero'"),
        ("sgc", {"norm": "pair"}, "SGC has no layers to normalise"),
        ("gat", {"heads": 4}, "6 channels cannot be split evenly over 4 heads"),
        ("jknet", {"mode": "lstm"}, "mode must be 'cat' or 'max', not 'lstm'"),
        ("jknet", {"num_layers": 0}, "num_layers must be at least 1"),
        ("linkx", {"num_layers": 0}, "num_layers of at least 1"),
        ("linkx", {"task": "graph"}, "cannot see other graphs"),
        ("supergat", {"task": "graph"}, "use it for task='node'"),
    ],
)
def test_wrong_options(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make(name, **options)


def test_wrong_graphs() -> None:
    x = torch.randn(N, F)
    for name in sorted(UNWEIGHTED):
        with pytest.raises(ValueError, match=r"has no place for edge weights: pass graph.unweighted\(\)"):
            make(name)(x, graph_for("gcn"))
    with pytest.raises(ValueError, match="before gcn_norm"):
        make("mixhop")(x, graph_for("mixhop").gcn_norm())
    with pytest.raises(ValueError, match="made for 5 nodes but the graph has 24"):
        make("linkx", num_nodes=5)(x, graph_for("linkx"))


@pytest.mark.parametrize("name", sorted(set(BASELINES) - {"jknet", "linkx"}))
def test_no_layers_at_all(name: str) -> None:
    assert make(name, 0)(torch.randn(N, F), graph_for(name)).shape == (N, OUT)


@pytest.mark.parametrize("module", [baselines, stacked])
def test_the_examples_in_the_documentation(module: Any) -> None:
    assert doctest.testmod(module).attempted > 0
    assert doctest.testmod(module).failed == 0

"""The baselines' formulas against dense algebra and PyG's own models; DropEdge, attention dropout and non-edges."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from baseline_cases import OUT, UNWEIGHTED, C, F, N, draws, graph_for, make, pairs
from torch import nn

from omegagnn.graph import Graph
from omegagnn.nn.attention_baselines import DrawnGATConv, draw_non_edges
from omegagnn.nn.baselines import BASELINES, Baseline
from omegagnn.nn.model import OmegaNet
from omegagnn.nn.skeleton import Edges, drop_edges


def copied_from_omega_net(net: OmegaNet, task: str, init: str) -> Baseline:
    gcn = make("gcn", 3, task=task, init=init, bias=False)
    with torch.no_grad():
        state = dict(net.state_dict())
        for layer, conv in enumerate(gcn.convs):
            conv.lin.weight.copy_(state.pop(f"convs.{layer}.weight").t())
            state.pop(f"convs.{layer}.omega_weight.value", None)
    missing, unexpected = gcn.load_state_dict(state, strict=False)
    assert missing == [f"convs.{layer}.lin.weight" for layer in range(3)]
    assert unexpected == []
    return gcn


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("init", ["identity", "glorot"])
def test_gcn_is_omega_net_with_omega_one(task: str, init: str) -> None:
    net = OmegaNet(F, C, 3, OUT, 0.5, omega=1.0, task=task, init=init)
    gcn = copied_from_omega_net(net, task, init)
    gcn.dropout = 0.5
    x, graph, batch = (
        torch.randn(N, F),
        graph_for("gcn", directed=True),
        torch.arange(N) // 8 if task == "graph" else None,
    )
    for mode in (True, False):  # in training too: the same elements are dropped
        out, expected = (model.train(mode)(x, graph, batch=batch, draws=draws()) for model in (gcn, net))
        torch.testing.assert_close(out, expected, atol=1e-6, rtol=1e-5)
    assert (gcn.grouped_parameters()["gnn"][0].detach() == torch.eye(C)).all() == (init == "identity")


def test_the_identity_start_is_made_by_a_reset_too() -> None:
    for name, options in (("gcn", {}), ("gat", {"heads": 2})):
        net = make(name, init="identity", **options)
        for conv in net.convs:
            nn.init.zeros_(conv.lin.weight)
        net.reset_parameters(torch.tensor([4]))
        assert all(torch.equal(conv.lin.weight, torch.eye(C)) for conv in net.convs)


PYG_CONVS = {
    "gcn": (lambda: pyg.GCNConv(C, C), {}),
    "jknet": (lambda: pyg.GCNConv(C, C), {}),
    "gcnii": (lambda: pyg.GCN2Conv(C, 0.1, 0.5, 1), {}),
    "gat": (lambda: pyg.GATConv(C, C // 2, 2), {"heads": 2}),
    "gatv2": (lambda: pyg.GATv2Conv(C, C // 2, 2), {"heads": 2}),
    "supergat": (lambda: pyg.SuperGATConv(C, C // 3, 3), {"heads": 3}),
    "mixhop": (lambda: pyg.MixHopConv(C, C), {}),
}


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", PYG_CONVS)
def test_prepared_edges_are_what_pyg_prepares_itself(name: str, directed: bool) -> None:
    make_conv, options = PYG_CONVS[name]
    net, graph, f = make(name, **options).eval(), graph_for(name, directed), torch.randn(N, C)
    conv = make_conv().eval()
    conv.load_state_dict(net.convs[0].state_dict())
    edge_index, weight = graph.to_edge_index()
    rest = (edge_index,) if name in UNWEIGHTED else (edge_index, weight)
    expected = conv(f, f.flip(0), *rest) if name == "gcnii" else conv(f, *rest)
    out = net.convolve(0, net.convs[0], f, f.flip(0), net.edges(graph, f.dtype), None)
    torch.testing.assert_close(out, expected, atol=1e-6, rtol=1e-5)


def test_fagcn_layer_is_its_formula() -> None:
    net, graph = make("fagcn", eps=0.3).double(), graph_for("gin")
    f, first = torch.randn(2, N, C, dtype=torch.float64)
    conv, dense = net.convs[0], graph.to_dense().double()
    scale = dense.sum(1).clamp(min=1).rsqrt()
    score = torch.tanh(f @ conv.att_r.weight.t() + (f @ conv.att_l.weight.t()).t())
    expected = 0.3 * first + (score * scale[:, None] * dense * scale[None, :]) @ f
    out = net.convolve(0, conv, f, first, net.edges(graph, f.dtype), None)
    torch.testing.assert_close(out, expected, atol=1e-6, rtol=1e-6)
    operator = graph.gcn_norm()
    assert net.structure(operator) is operator


def test_gin_layer_is_its_formula() -> None:
    net, graph, f = make("gin", train_eps=True).eval(), graph_for("gin", directed=True), torch.randn(N, C)
    conv = net.convs[0]
    nn.init.constant_(conv.eps, 0.4)
    first, norm, _, second = conv.nn
    nn.init.normal_(norm.running_mean)
    mixed = 1.4 * f + graph.to_dense() @ f
    hidden = torch.relu((mixed @ first.weight + first.bias - norm.running_mean) / (1 + 1e-5) ** 0.5)
    expected = torch.relu((hidden @ second.weight + second.bias) / (1 + 1e-5) ** 0.5)
    out = net.finish(0, net.convolve(0, conv, f, f, net.edges(graph, f.dtype), None))
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layers", [0, 1, 4])
def test_sgc_is_pygs(layers: int) -> None:
    net, graph, x = make("sgc", layers), graph_for("sgc", directed=True), torch.randn(N, F)
    nn.init.normal_(net.shift)
    edge_index, weight = graph.to_edge_index()
    conv = pyg.SGConv(F, OUT, layers)
    conv.lin.weight, conv.lin.bias = nn.Parameter(net.opening.weight.t()), net.shift
    torch.testing.assert_close(net(x, graph), conv(x, edge_index, weight), atol=1e-5, rtol=1e-5)


def test_appnp_is_pygs_and_gprgnn_starts_as_appnp() -> None:
    net, graph, x = make("appnp", 10), graph_for("appnp", directed=True), torch.randn(N, F)
    edge_index, weight = graph.to_edge_index()
    h = net.closing(torch.relu(net.opening(x)))
    out = net(x, graph)
    torch.testing.assert_close(out, pyg.APPNP(10, 0.1)(h, edge_index, weight), atol=1e-6, rtol=1e-5)
    gpr = make("gprgnn", 10)
    gpr.load_state_dict({**net.state_dict(), "gamma": gpr.gamma.detach()})
    torch.testing.assert_close(gpr(x, graph), out, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(gpr.gamma.sum().item(), 1.0)
    nn.init.normal_(gpr.gamma)
    dense, expected = graph.gcn_norm().to_dense(), torch.zeros_like(h)
    for gamma in gpr.gamma:
        expected, h = expected + gamma * h, dense @ h
    torch.testing.assert_close(gpr(x, graph), expected, atol=1e-5, rtol=1e-4)
    assert BASELINES["appnp"](F, C).num_layers == BASELINES["gprgnn"](F, C).num_layers == 10


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_linkx_is_pygs(layers: int) -> None:
    net, graph, x = make("linkx", layers), graph_for("linkx", directed=True), torch.randn(N, F)
    theirs = pyg.LINKX(N, F, C, OUT, layers)
    with torch.no_grad():
        theirs.edge_lin.weight.copy_(net.adjacency.weight)
        theirs.edge_lin.bias.zero_()
        final = [*net.convs, net.closing]
        mine = [net.opening, net.mix_adjacency, net.mix_features, *final]
        linears = [theirs.node_mlp.lins[0], theirs.cat_lin1, theirs.cat_lin2, *theirs.final_mlp.lins]
        for linear, own in zip(linears, mine, strict=True):
            linear.weight.copy_(own.weight.t())
            linear.bias.copy_(nn.init.normal_(own.bias))
    edge_index, weight = graph.to_edge_index()
    for mode in (True, False):
        out, expected = net.train(mode)(x, graph), theirs.train(mode)(x, edge_index, weight)
        torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-4)


def test_mlp_does_not_see_edges() -> None:
    net, x = make("mlp", 3), torch.randn(N, F)
    f = torch.relu(x @ net.opening.weight)
    for layer in net.convs:
        f = torch.relu(f @ layer.weight)
    torch.testing.assert_close(net(x, graph_for("mlp")), f @ net.closing.weight)
    assert torch.equal(net(x, graph_for("mlp")), net(x, graph_for("mlp", directed=True)))


@pytest.mark.parametrize("mode", ["cat", "max"])
def test_jknet_joins_all_layers(mode: str) -> None:
    net, graph, x = make("jknet", 3, mode=mode), graph_for("jknet"), torch.randn(N, F)
    f, outputs, dense = torch.relu(net.opening(x)), [], graph.gcn_norm().to_dense()
    for conv in net.convs:
        f = torch.relu(dense @ conv.lin(f) + conv.bias)
        outputs.append(f)
    joined = torch.cat(outputs, 1) if mode == "cat" else torch.stack(outputs).amax(0)
    torch.testing.assert_close(net(x, graph), net.closing(joined), atol=1e-6, rtol=1e-5)


def test_gcnii_is_its_formula() -> None:
    net, graph, x = make("gcnii", 3, alpha=0.2, theta=0.7).double(), graph_for("gcnii"), torch.randn(N, F).double()
    dense = graph.gcn_norm().to_dense().double()
    first = f = torch.relu(net.opening(x))
    for number, conv in enumerate(net.convs, start=1):
        beta = torch.log(torch.tensor(0.7 / number + 1, dtype=torch.float64))
        mixed = 0.8 * dense @ f + 0.2 * first
        f = torch.relu((1 - beta) * mixed + beta * mixed @ conv.weight1)
    torch.testing.assert_close(net(x, graph), net.closing(f), atol=1e-6, rtol=1e-6)


def test_published_dropouts_and_activations() -> None:
    assert make("gcnii", dropout=0.6).layer_dropout == 0.6
    assert make("gcnii", dropout=0.6, layer_dropout=0.1).layer_dropout == 0.1
    assert (make("gat", dropout=0.6).layer_dropout, make("gat").activation) == (0.6, "elu")
    assert make("gat", activation="relu").activation == "relu"
    assert (make("gcn", dropout=0.6).layer_dropout, make("gcn").activation) == (0.0, "relu")
    assert make("fagcn").activation is None


@pytest.mark.parametrize("norm", ["pair", "batch", "layer"])
def test_norms_stand_behind_the_layers(norm: str) -> None:
    net, graph, x = make("gcn", 1, norm=norm), graph_for("gcn"), torch.randn(N, F)
    theirs = {"pair": pyg.PairNorm(), "batch": nn.BatchNorm1d(C), "layer": nn.LayerNorm(C)}[norm]
    behind_conv = graph.gcn_norm().to_dense() @ net.convs[0].lin(torch.relu(net.opening(x)))
    torch.testing.assert_close(net(x, graph), net.closing(torch.relu(theirs(behind_conv))), atol=1e-5, rtol=1e-5)


def test_drop_edge_takes_both_directions_and_all_copies() -> None:
    n = 400
    edge_index = pairs(n, 3000)
    doubled = torch.cat([edge_index, edge_index], dim=1)
    for edges in (edge_index, doubled):
        graph = Graph.from_edge_index(edges, n)
        left = drop_edges(graph, 0.3, draws().key(0))
        assert left.is_undirected
        assert left.num_edges / graph.num_edges == pytest.approx(0.7, abs=0.03)
        assert torch.equal(
            left.coalesce().col, drop_edges(Graph.from_edge_index(edge_index, n), 0.3, draws().key(0)).col
        )
    assert not torch.equal(left.col, drop_edges(graph, 0.3, draws(step=4).key(0)).col)
    one_way = Graph.from_edge_index(torch.cat([edge_index, torch.tensor([[0], [0]])], 1)[:, 1:], n)
    assert not one_way.is_undirected
    assert not drop_edges(one_way, 0.3, draws().key(0)).is_undirected


def test_drop_edge_in_a_network() -> None:
    net, graph, x = make("gcn", 3, drop_edge=0.5), graph_for("gcn"), torch.randn(N, F)
    seen: list[Edges] = []
    original = net.edges

    def remember(*arguments: Any) -> Edges:
        seen.append(original(*arguments))
        return seen[-1]

    net.edges = remember  # type: ignore[method-assign]
    out = net(x, graph, draws=draws())
    dropped = seen[0].graph
    assert len(seen) == 1  # the same edges for all layers
    assert dropped.num_edges < graph.gcn_norm().num_edges
    ones = Graph.from_csr(dropped.rowptr, dropped.col).without_self_loops()
    kept = torch.isin(graph.row * N + graph.col, ones.row * N + ones.col)
    anew = Graph.from_edge_index(graph.to_edge_index()[0][:, kept], N, graph.weight[kept])  # S of what is left
    torch.testing.assert_close(dropped.to_dense(), anew.gcn_norm().to_dense())
    net.drop_edge = 0.0
    torch.testing.assert_close(out, net(x, anew, draws=draws()))
    net.drop_edge = 0.5
    assert torch.equal(net.eval()(x, graph, draws=draws()), net(x, graph))
    with pytest.raises(ValueError, match="needs the graph itself"):
        net.train()(x, graph.gcn_norm(), draws=draws())
    with pytest.raises(ValueError, match="no edges to drop"):
        make("mlp", drop_edge=0.1)


@pytest.mark.parametrize("name", ["gat", "gatv2"])
def test_attention_dropout_has_its_rate_and_its_mean(name: str) -> None:
    net, graph = make(name, 1, heads=3, attention_dropout=0.4), graph_for(name)
    f = torch.randn(N, C)
    edges = net.edges(graph, f.dtype)
    net.eval()
    whole = net.convolve(0, net.convs[0], f, f, edges, draws())
    net.train()
    passes = torch.stack([net.convolve(0, net.convs[0], f, f, edges, draws(step=step)).detach() for step in range(400)])
    assert bool(((passes.mean(0) - whole).abs() < 5 * passes.std(0) / 400**0.5 + 1e-6).all())
    seen = []
    handle = net.convs[0].register_message_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]["alpha"]))
    net.convolve(0, net.convs[0], f, f, edges, draws())
    handle.remove()
    assert (seen[0] == 0).float().mean().item() == pytest.approx(0.4, abs=0.08)
    assert net.convs[0].drawn is None


def test_attention_dropout_survives_a_failing_pass() -> None:
    net = make("gat", 1, attention_dropout=0.4)
    with pytest.raises((RuntimeError, IndexError)):
        net.convolve(
            0, net.convs[0], torch.randn(N, C + 1), torch.randn(1), net.edges(graph_for("gat"), torch.float32), draws()
        )
    assert isinstance(net.convs[0], DrawnGATConv)
    assert net.convs[0].drawn is None


def test_non_edges_are_none_of_the_edges() -> None:
    graph = graph_for("supergat").with_self_loops()
    drawn = draw_non_edges(graph, 40.0, draws().key(0))
    assert drawn.size(1) > 20 * graph.num_edges
    assert bool((graph.to_dense()[drawn[1], drawn[0]] == 0).all())
    free = int((graph.to_dense() == 0).sum())
    assert (drawn[1] * N + drawn[0]).unique().numel() > 0.95 * free  # everywhere among the non-edges


def test_supergat_hands_out_its_loss() -> None:
    net, graph, x = make("supergat", heads=2, attention_loss=3.0), graph_for("supergat"), torch.randn(N, F)
    net(x, graph, draws=draws())
    loss = net.auxiliary_loss()
    f, expected = torch.relu(net.opening(x)), 0.0
    edges = net.edges(graph, f.dtype)
    for layer, conv in enumerate(net.convs):
        non_edges = draw_non_edges(edges.graph, 0.5, draws().key(6 + 8 * layer))
        h = conv.lin(f).view(N, 2, C // 2)
        logits = [(h[s] * h[r]).sum(-1).mean(-1) for s, r in (edges.pairs, non_edges)]
        target = torch.cat([torch.ones_like(logits[0]), torch.zeros_like(logits[1])])
        expected += 3.0 * nn.functional.binary_cross_entropy_with_logits(torch.cat(logits), target)
        f = nn.functional.elu(conv.eval()(f, edges.pairs))
    torch.testing.assert_close(loss, expected)
    assert net.auxiliary_loss() is None
    net.eval()(x, graph)
    assert net.auxiliary_loss() is None
    assert make("gcn").auxiliary_loss() is None

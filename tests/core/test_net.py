"""`OmegaNet` is the two architectures of the paper, with its options, its parameters and its groups."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from assertions import BACKENDS, assert_close, assert_permutation_equivariant, assert_same_bits, perturb
from dense import adjacency, attention_step, gcn_operator, omega_step
from graphs import Example, fixed_graphs, graphs, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.nn.models import GCN

from omegagnn import Graph, OmegaNet, OmegaWeight
from omegagnn.nn.model import add_pool
from omegagnn.ops import Draws, SparseFeatures, dropout, use_backend

FEW = settings(max_examples=15, deadline=None)
EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def count(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


# ---------------------------------------------------------------------------------------------- the two architectures


def dense_layer(net: OmegaNet, layer: int, f: Tensor, example: Example) -> Tensor:
    """Return one ωGNN layer in dense algebra, before σ."""
    conv: Any = net.convs[layer]
    index, n = example.edge_index, example.num_nodes
    if type(conv).__name__ == "OmegaGCNConv":
        operator = gcn_operator(index, n, example.edge_weight) if conv.normalize else adjacency(index, n, None)
        return omega_step(f, operator, conv.omega) @ conv.weight
    seen = (f @ conv.att_weight if conv.transform else f).unflatten(1, (conv.heads, -1))
    scores = [(seen * a).sum(2) for a in (conv.att_dst, conv.att_src)]
    looped = example.graph.with_self_loops()
    return attention_step(f, *scores, looped.row, looped.col, conv.omega) @ conv.weight


def batch_norm(norm: Any, x: Tensor) -> Tensor:
    return (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt() * norm.weight + norm.bias


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(
    example=graphs(weighted=False),
    conv=st.sampled_from(["gcn", "gat"]),
    omega=st.sampled_from(["channel", "layer", "global", 0.25]),
    variant=st.sampled_from(["paper", "authors"]),
    residual=st.sampled_from([None, "previous", "initial"]),
    activation=st.sampled_from(["relu", None]),
)
def test_the_node_architecture(
    backend: str, example: Example, conv: Any, omega: Any, variant: Any, residual: Any, activation: Any
) -> None:
    net = OmegaNet(
        5, 4, 3, 2, conv=conv, omega=omega, heads=2, variant=variant, residual=residual, activation=activation
    ).double()
    perturb(net)
    x = example.randn(example.num_nodes, 5)
    f = first = torch.relu(x @ net.opening.weight)
    for layer in range(3):
        out = dense_layer(net, layer, f, example)
        out = out + {None: 0, "previous": f, "initial": 0.1 * first}[residual]
        f = torch.relu(out) if activation else out
    with use_backend(backend):
        assert_close(net(x, example.edge_index), f @ net.closing.weight)


@pytest.mark.parametrize("conv", ["gcn", "gat"])
@pytest.mark.parametrize("variant", ["paper", "authors"])
def test_the_graph_architecture(conv: Any, variant: Any) -> None:
    for example in fixed_graphs():
        n = example.num_nodes
        if n < 2:
            continue
        net = OmegaNet(5, 4, 2, 3, conv=conv, task="graph", variant=variant).double()
        perturb(net)
        x = example.randn(n, 5)
        f = torch.relu(x @ net.opening.weight)
        for layer in range(2):
            out = dense_layer(net, layer, f, example)
            out = batch_norm(net.norms[layer], out if variant == "authors" else torch.relu(out))
            out = torch.relu(out) if variant == "authors" else out
            f = torch.relu(out @ net.maps[layer].weight)
        batch = torch.arange(n) // 4
        pooled = torch.stack([f[batch == g].sum(0) for g in range(int(batch.max()) + 1)])
        assert net.head is not None
        expected = pooled @ net.head.weight @ net.closing.weight
        assert_close(net(x, example.edge_index, batch=batch), expected)


def test_the_authors_variant_sums_neighbours_without_loops() -> None:
    net = OmegaNet(3, 4, 2, 2, task="graph", variant="authors")
    graph = Graph.from_edge_index(EDGES, 3)
    assert_same_bits(net.operator(graph, 3).to_dense(), graph.to_dense())
    noisy = OmegaNet(3, 4, 2, 2, variant="authors").convs[0].weight.detach() - torch.eye(4)
    assert 0 < float(noisy.max()) < 1.001e-4


@pytest.mark.parametrize("kind", ["batch", "layer"])
def test_a_norm_stands_behind_each_layer(kind: Any) -> None:
    example = fixed_graphs()[0]
    net = OmegaNet(5, 4, 2, 3, norm=kind).double()
    perturb(net)
    x = example.randn(6, 5)
    f = torch.relu(x @ net.opening.weight)
    for layer in range(2):
        out = dense_layer(net, layer, f, example)
        known = nn.functional.layer_norm
        norm: Any = net.norms[layer]
        f = torch.relu(batch_norm(norm, out) if kind == "batch" else known(out, (4,), norm.weight, norm.bias))
    assert_close(net(x, example.edge_index), f @ net.closing.weight)


@FEW
@given(example=graphs(weighted=False), conv=st.sampled_from(["gcn", "gat"]), norm=st.sampled_from([None, "layer"]))
def test_nets_for_nodes_are_equivariant_and_for_graphs_invariant(example: Example, conv: Any, norm: Any) -> None:
    net = OmegaNet(3, 4, 2, 2, conv=conv, norm=norm).double()
    perturb(net)
    x = example.randn(example.num_nodes, 3)
    assert_permutation_equivariant(lambda x, index, _: net(x, index), x, example.edge_index)
    pooled = OmegaNet(3, 4, 2, 2, conv=conv, task="graph").double().eval()
    perturb(pooled)
    nodes = torch.randperm(example.num_nodes)
    renamed = torch.empty_like(x)
    renamed[nodes] = x
    assert_close(pooled(renamed, nodes[example.edge_index]), pooled(x, example.edge_index))


def test_graphs_in_a_batch_do_not_see_each_other() -> None:
    net = OmegaNet(3, 4, 2, 2, task="graph").eval()
    perturb(net)
    parts = [random_graph(n, 4 * n, seed=n) for n in (5, 1, 8)]
    xs = [torch.randn(part.num_nodes, 3) for part in parts]
    shifts = [0, 5, 6]
    index = torch.cat([part.to_edge_index()[0] + shift for part, shift in zip(parts, shifts, strict=True)], dim=1)
    batch = torch.repeat_interleave(torch.arange(3), torch.tensor([5, 1, 8]))
    together = net(torch.cat(xs), index, batch=batch, num_graphs=4)
    assert together.shape == (4, 2)
    for place, (x, part) in enumerate(zip(xs, parts, strict=True)):
        assert_close(net(x, part), together[place : place + 1].double())
    assert_same_bits(together[3], torch.zeros(2), "a graph without nodes")


# -------------------------------------------------------------------------------------------------- dropout and draws


def test_dropout_sits_where_the_paper_puts_it() -> None:
    """Two dropouts: on the input and before the closing map; between layers only where asked for."""
    net = OmegaNet(6, 8, 2, 3, dropout=0.5)
    perturb(net)
    graph, draws = random_graph(20, 60), Draws(torch.tensor([5]))
    x = torch.randn(20, 6)
    f = torch.relu(net.opening(dropout(x, 0.5, draws.key(0))))
    for conv in net.convs:
        f = torch.relu(conv(f, graph))
    assert_same_bits(net(x, graph, draws=draws), net.closing(dropout(f, 0.5, draws.key(3))))
    assert not torch.equal(net(x, graph, draws=draws), net(x, graph, draws=draws.at(1)))
    torch.manual_seed(1)
    first = net(x, graph)
    torch.manual_seed(1)
    assert_same_bits(net(x, graph), first)
    net.eval()
    assert_same_bits(net(x, graph, draws=draws), net(x, graph))


class NotedDraws(Draws):
    """Draws that remember which places asked for a key."""

    def key(self, place: int) -> Tensor:
        PLACES_ASKED.append(place)
        return super().key(place)


PLACES_ASKED: list[int] = []


def test_no_two_dropouts_share_their_key() -> None:
    PLACES_ASKED.clear()
    net = OmegaNet(6, 8, 4, 3, 0.5, conv="gat", layer_dropout=0.5, attention_dropout=0.5)
    net(torch.randn(20, 6), random_graph(20, 60), draws=NotedDraws(torch.tensor([5])))
    assert len(PLACES_ASKED) == 1 + 4 + 4 + 1
    assert len(set(PLACES_ASKED)) == len(PLACES_ASKED)
    PLACES_ASKED.clear()
    net.eval()(torch.randn(20, 6), random_graph(20, 60), draws=NotedDraws(torch.tensor([5])))
    assert not PLACES_ASKED


def test_dense_and_sparse_features_agree() -> None:
    net, graph = OmegaNet(9, 4, 2, 3), random_graph(12, 40)
    x = torch.where(torch.rand(12, 9) < 0.3, torch.randn(12, 9), 0)
    expected = net(x, graph).double()
    for form in (x.to_sparse_csr(), x.to_sparse_coo(), SparseFeatures(x.to_sparse_csr())):
        assert_close(net(form, graph), expected)


def test_runs_start_from_their_own_seeds() -> None:
    seeds = torch.tensor([3, 14, 15])
    for extra in ({}, {"conv": "gat", "heads": 2}, {"task": "graph"}, {"init": "glorot"}, {"variant": "authors"}):
        net = OmegaNet(5, 4, 2, 3, runs=3, **extra)  # type: ignore[arg-type]
        net.reset_parameters(seeds)
        for run in range(3):
            one = OmegaNet(5, 4, 2, 3, **extra)  # type: ignore[arg-type]
            one.reset_parameters(seeds[run : run + 1])
            for name, value in one.state_dict().items():
                assert_same_bits(value, net.state_dict()[name][run], name)
        assert not torch.equal(net.opening.weight[0], net.opening.weight[1])


def test_no_two_maps_share_their_start() -> None:
    net = OmegaNet(8, 8, 3, 8, conv="gat", heads=1, init="glorot", task="graph")
    maps = [p.detach().flatten() for name, p in net.named_parameters() if p.dim() == 2 and p.numel() == 64]
    assert len(maps) == 2 * 3 + 3 + 3
    correlation = torch.corrcoef(torch.stack(maps)).fill_diagonal_(0)
    assert float(correlation.abs().max()) < 0.6  # 64 numbers each, 66 pairs: independent ones reach 0.45


# ------------------------------------------------------------------------------------------------ size, groups, names


@pytest.mark.parametrize("layers", [1, 2, 16])
def test_parameters_are_gcns_and_c_a_layer(layers: int) -> None:
    c = 8
    gcn = 5 * c + layers * c * c + c * 3
    sizes = {"channel": gcn + layers * c, "layer": gcn + layers, "global": gcn + 1, 0.5: gcn}
    assert {omega: count(OmegaNet(5, c, layers, 3, omega=omega)) for omega in sizes} == sizes
    assert count(OmegaNet(5, c, layers, 3, runs=4)) == 4 * (gcn + layers * c)
    square = OmegaNet(c, c, layers, c)
    known = GCN(c, c, layers, bias=False)
    assert count(square) - 2 * c * c == count(known) + layers * c
    attention = layers * (c * c + 2 * c)
    assert count(OmegaNet(5, c, layers, 3, conv="gat", heads=2)) == gcn + layers * c + attention


def test_groups_hold_every_parameter_once() -> None:
    for omega in ("channel", "layer", "global", 0.5):
        for extra in ({"conv": "gat", "norm": "batch"}, {"task": "graph", "bias": True}, {}):
            net = OmegaNet(5, 4, 3, 2, omega=omega, **extra)  # type: ignore[arg-type]
            groups = net.param_groups(0.1, 0.2, 0.3, 1e-1, 1e-2, 1e-3)
            listed = [p for group in groups for p in group["params"]]
            assert len(listed) == len({id(p) for p in listed}) == len(list(net.parameters()))
            rates = {group["name"]: (group["lr"], group["weight_decay"]) for group in groups}
            expected = {"gnn": (0.1, 1e-1), "oc": (0.2, 1e-2), "omega": (0.3, 1e-3)}
            assert rates == {name: expected[name] for name in rates}
            assert set(rates) == {"gnn", "oc", "omega"} - ({"omega"} if omega == 0.5 else set())
            named = net.grouped_parameters()
            omegas = {id(p) for module in net.modules() if isinstance(module, OmegaWeight) for p in module.parameters()}
            assert {id(p) for p in named["omega"]} == omegas
            assert {id(p) for p in named["gnn"]} == {id(p) for p in net.convs.parameters()} - omegas


def test_adam_moves_each_group_at_its_own_rate() -> None:
    net, x = OmegaNet(5, 4, 2, 2), torch.randn(3, 5)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    optimiser = torch.optim.Adam(net.param_groups(lr_gnn=0.0, lr_oc=0.1, lr_omega=0.01))
    net(x, EDGES).square().sum().backward()
    optimiser.step()
    moved = {name: float((value - before[name]).abs().max()) for name, value in net.state_dict().items()}
    for name, distance in moved.items():
        limit = 0.01 if "omega" in name else 0.0 if name.startswith("convs") else 0.1
        assert distance == pytest.approx(limit, rel=1e-3, abs=1e-7), name


def test_a_net_learns() -> None:
    torch.manual_seed(0)
    graph = random_graph(30, 90)
    x, y = torch.randn(30, 8), torch.arange(30) % 3
    for conv in ("gcn", "gat"):
        net = OmegaNet(8, 16, 4, 3, conv=conv)  # type: ignore[arg-type]
        optimiser = torch.optim.Adam(net.param_groups(lr_gnn=0.003))
        for _ in range(150):
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(net(x, graph), y)
            loss.backward()
            optimiser.step()
        assert float(loss.detach()) < 0.1, conv
        assert float((net.omega.detach() - 1).abs().max()) > 0.01


def test_sizes_that_are_edges() -> None:
    empty = torch.empty(2, 0, dtype=torch.long)
    for conv in ("gcn", "gat"):
        assert OmegaNet(3, 4, 0, 2, conv=conv)(torch.randn(3, 3), EDGES).shape == (3, 2)  # type: ignore[arg-type]
        assert OmegaNet(3, 4, 2, conv=conv)(torch.randn(3, 3), EDGES).shape == (3, 4)  # type: ignore[arg-type]
        for n in (0, 1):
            assert OmegaNet(3, 4, 2, 2, conv=conv)(torch.randn(n, 3), empty).shape == (n, 2)  # type: ignore[arg-type]
            net = OmegaNet(3, 4, 2, 2, conv=conv, task="graph").eval()  # type: ignore[arg-type]
            assert net(torch.randn(n, 3), empty).shape == (1, 2)
    assert OmegaNet(3, 4, 2, 2, runs=3)(torch.randn(3, 3), EDGES).shape == (3, 3, 2)
    assert OmegaNet(3, 4, 2, 2, runs=1)(torch.randn(3, 1, 3), EDGES).shape == (3, 1, 2)
    assert OmegaNet(3, 4, 2, 2, dropout=0.5)(torch.randn(3, 6, 3), EDGES).shape == (3, 6, 2)


def test_double_nets_are_exact_whatever_the_input_kind() -> None:
    net, x = OmegaNet(3, 4, 2, 2).double(), torch.randn(3, 3, dtype=torch.float64)
    graph = Graph.from_edge_index(EDGES, 3)
    expected = net(x, gcn := graph.gcn_norm(dtype=torch.float64))
    assert_close(gcn.to_dense(), gcn_operator(EDGES, 3, None))
    for form in (EDGES, graph, graph.to_torch_sparse()):
        assert_same_bits(net(x, form), expected)


def test_pooling_sums_the_nodes_of_each_graph() -> None:
    f = torch.randn(5, 2)
    batch = torch.tensor([0, 2, 0, 2, 2])
    pooled = add_pool(f, batch)
    assert_close(pooled, torch.stack([f[[0, 2]].sum(0), torch.zeros(2), f[[1, 3, 4]].sum(0)]).double())
    assert_close(add_pool(f, None), f.sum(0, keepdim=True).double())
    assert add_pool(f[:0], batch[:0]).shape == (0, 2)


MISTAKES: list[tuple[str, Any, str]] = [
    ("conv", {"conv": "sage"}, "conv must be one of 'gcn', 'gat', not 'sage'."),
    ("task", {"task": "edge"}, "task must be one of 'node', 'graph', not 'edge'."),
    ("variant", {"variant": "ours"}, "variant must be one of 'paper', 'authors', not 'ours'."),
    ("activation", {"activation": "elu"}, "activation must be one of 'relu', None, not 'elu'."),
    ("residual", {"residual": "dense"}, "residual must be one of 'previous', 'initial', None, not 'dense'."),
    ("norm", {"norm": "group"}, "norm must be 'batch', 'layer' or 'pair', not 'group'."),
    ("init", {"init": "zero"}, "init must be 'identity' or 'glorot', not 'zero'."),
    ("dropout", {"dropout": 1.0}, "dropout must be at least 0 and below 1, not 1.0."),
    ("layer dropout", {"layer_dropout": -0.5}, "layer_dropout must be at least 0 and below 1, not -0.5."),
    (
        "attention dropout",
        {"conv": "gat", "attention_dropout": float("nan")},
        "dropout must be at least 0 and below 1, not nan.",
    ),
    ("layers", {"num_layers": -1}, "num_layers must be at least 0, not -1."),
    (
        "heads",
        {"conv": "gat", "heads": 3},
        "4 input channels cannot be split evenly over 3 heads: change one of them.",
    ),
    ("omega", {"omega": "edge"}, "omega must be 'channel', 'layer', a number or an OmegaWeight, not 'edge'."),
    (
        "norm of graphs",
        {"task": "graph", "norm": "batch"},
        "A graph task has batch normalisation in every layer already: leave norm at None.",
    ),
]


@pytest.mark.parametrize(("wrong", "sentence"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_wrong_option_is_one_sentence(wrong: dict[str, Any], sentence: str) -> None:
    options: dict[str, Any] = {"in_channels": 3, "hidden_channels": 4, "num_layers": 2, "out_channels": 2, **wrong}
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the sentence is compared below
        OmegaNet(**options)
    assert str(caught.value) == sentence


CALLS: list[tuple[str, Any, str]] = [
    (
        "features",
        lambda: OmegaNet(3, 4, 1, 2)(torch.ones(3, 5), EDGES),
        "x has 5 channels but the layer takes 3: they must agree.",
    ),
    (
        "sparse features",
        lambda: OmegaNet(3, 4, 1, 2)(torch.ones(3, 5).to_sparse_csr(), EDGES),
        "The features have 5 columns but the weight has 3 rows.",
    ),
    (
        "rows",
        lambda: OmegaNet(3, 4, 1, 2)(torch.ones(4, 3), Graph.from_edge_index(EDGES, 3)),
        "The graph has 3 nodes but x has 4 rows: they must agree.",
    ),
    (
        "weights for attention",
        lambda: OmegaNet(3, 4, 1, 2, conv="gat")(torch.ones(3, 3), EDGES, torch.rand(4)),
        "Attention has no place for edge weights: pass graph.unweighted(), or use OmegaGCNConv to use the weights.",
    ),
    (
        "batch",
        lambda: OmegaNet(3, 4, 1, 2, task="graph")(torch.ones(3, 3), EDGES, batch=torch.tensor([0, 0])),
        "batch must hold the graph of each of 3 nodes, but its shape is (2,).",
    ),
    (
        "runs",
        lambda: OmegaNet(3, 4, 1, 2, runs=2)(torch.ones(3, 5, 3), EDGES),
        "x has 5 runs but the layer has 2: they must agree.",
    ),
    (
        "draws",
        lambda: OmegaNet(3, 4, 1, 2, runs=2, dropout=0.5)(torch.ones(3, 3), EDGES, draws=Draws(torch.tensor([1]))),
        "The key has shape (1, 2), but 2 runs need [2, 2].",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), [m[1:] for m in CALLS], ids=[m[0] for m in CALLS])
def test_a_wrong_call_is_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the sentence is compared below
        call()
    assert str(caught.value) == sentence


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_who_looks_at_what_enters_a_layer_sees_it_behind_its_activation(conv: Any) -> None:
    """σ is left to the layer that comes next, which has it for nothing; a hook sees f⁰ … f^L as if it were not."""
    torch.manual_seed(0)
    net = OmegaNet(5, 6, 3, 2, conv=conv)
    x, graph = torch.randn(9, 5), Graph.from_edge_index(torch.randint(9, (2, 30)), 9)
    alone, seen = net(x, graph), []
    for layer in (*net.convs, net.closing):
        layer.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    assert_same_bits(net(x, graph), alone)
    assert len(seen) == 4
    for f in seen:
        assert f.min().item() == 0 < f.max().item()
    assert_same_bits(seen[0], net.opening(x).relu())
    assert_same_bits(seen[1], net.convs[0](seen[0], graph).relu())

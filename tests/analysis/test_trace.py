"""`trace`: what it measures, that it finds layers and graphs by itself, and that it leaves no trace of its own."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
import torch
from analysis_graphs import F64, features
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GCNConv
from torch_geometric.nn import Sequential as PygSequential

from omegagnn import Graph
from omegagnn.analysis import dirichlet_energy, effective_rank, gat_energy, mean_average_distance, trace
from omegagnn.nn import OmegaNet
from omegagnn.nn.wrap import Omega

DEPTH = 64


class Stack(nn.Module):
    """A GCN as usually built: Glorot K, ReLU between the layers."""

    def __init__(self, depth: int, channels: int = 8, classes: int = 3) -> None:
        super().__init__()
        sizes = [channels] * depth + [classes]
        self.convs = nn.ModuleList(GCNConv(i, o) for i, o in pairwise(sizes))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs[:-1]:
            x = conv(x, edge_index).relu()
        return self.convs[-1](x, edge_index)


class Fails(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.dropout = nn.BatchNorm1d(8), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        self.dropout(self.norm(x))
        raise RuntimeError("broken on purpose")


@pytest.fixture
def edge_index(club: Graph) -> Tensor:
    return club.to_edge_index()[0]


@pytest.fixture
def labels(club: Graph) -> Tensor:
    return torch.randint(3, (club.num_nodes,), generator=torch.Generator().manual_seed(1))


def number_of_hooks(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.modules())


# ------------------------------------------------------------------------------------------------ what it measures


def test_deep_gcn_and_omega_gcn(club: Graph, edge_index: Tensor, labels: Tensor) -> None:
    x = features(club, 32)
    deep = trace(Stack(DEPTH, 32).to(F64).eval(), x, edge_index, target=labels)
    ours = trace(OmegaNet(32, 32, DEPTH, 3).to(F64).eval(), x, edge_index, target=labels)
    for result in (deep, ours):
        assert len(result) == DEPTH
        last = result.layers[-2]
        # Both start as smoothing operators: one direction is left, D̃^½1 in the nodes.
        assert float(last.relative_energy) < 1e-3
        assert float(last.rank) < 1.1
        assert all(layer.gradient is not None and math.isfinite(float(layer.gradient)) for layer in result.layers)
    # Glorot K shrinks features and gradients by many orders; the identity start of ωGCN keeps the gradient alive.
    shrink = [float(result.layers[0].gradient / result.layers[-1].gradient) for result in (deep, ours)]
    assert shrink[0] < 1e-9
    assert shrink[1] > 1e-2
    small = OmegaNet(32, 32, DEPTH, 3, omega=0.01).to(F64).eval()
    kept = trace(small, x, edge_index)
    assert float(kept.layers[-1].relative_energy) > 10 * float(ours.layers[-1].relative_energy)


def test_values_are_those_of_the_functions(club: Graph, edge_index: Tensor, labels: Tensor) -> None:
    model, x = Stack(4).to(F64), features(club, 8)
    result = trace(model, x, edge_index, target=labels)
    outputs = []
    for position, conv in enumerate(model.convs):
        x = conv(x, edge_index)
        x.retain_grad()
        outputs.append(x)
        x = x.relu() if position < 3 else x
    functional.cross_entropy(x, labels).backward()
    assert [layer.name for layer in result.layers] == [f"convs.{position}" for position in range(4)]
    for layer, output in zip(result.layers, outputs, strict=True):
        assert layer.channels == output.size(1)
        torch.testing.assert_close(layer.energy, dirichlet_energy(output, club).detach())
        torch.testing.assert_close(layer.relative_energy, layer.energy / output.detach().square().sum())
        torch.testing.assert_close(layer.distance, mean_average_distance(output).detach())
        torch.testing.assert_close(layer.rank, effective_rank(output).detach())
        torch.testing.assert_close(layer.gradient, output.grad.norm())


def test_inputs_of_layers_are_the_features_of_the_paper(club: Graph) -> None:
    net, x = OmegaNet(5, 8, 3, 2).to(F64), features(club, 5)
    result = trace(net, x, club, layers=["convs.*", "closing"], side="input")
    f = torch.relu(net.opening(x))
    for layer, conv in zip(result.layers, [*net.convs, None], strict=True):
        torch.testing.assert_close(layer.energy, dirichlet_energy(f, club).detach())
        f = f if conv is None else torch.relu(conv(f, club))
    assert [layer.name for layer in result.layers] == ["convs.0", "convs.1", "convs.2", "closing"]
    assert [layer.channels for layer in result.layers] == [8, 8, 8, 8]


def test_runs_are_measured_one_by_one(club: Graph, labels: Tensor) -> None:
    net, x = OmegaNet(5, 4, 3, 3, runs=3).to(F64).eval(), features(club, 5)
    together = trace(net, x, club, target=labels)
    assert together.layers[0].energy.shape == (3,)
    assert len(together.to_dict()["layers"][0]["gradient"]) == 3
    for run in range(3):
        alone = OmegaNet(5, 4, 3, 3).to(F64).eval()
        alone.load_state_dict({name: value[run] for name, value in net.state_dict().items()})
        for one, several in zip(trace(alone, x, club, target=labels).layers, together.layers, strict=True):
            for key in ("energy", "relative_energy", "distance", "rank", "gradient"):
                torch.testing.assert_close(getattr(several, key)[run], getattr(one, key))
    assert "convs.2" in together.table()


def test_another_energy_may_be_shown(club: Graph, edge_index: Tensor) -> None:
    x = features(club, 8)
    result = trace(GAT(8, 8, 2).to(F64), x, edge_index, energy=gat_energy, side="input")
    torch.testing.assert_close(result.layers[0].energy, gat_energy(x, club))


def test_changes_in_place_come_after_the_measurement(club: Graph) -> None:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 1)).to(F64), features(club, 4)
    target = torch.randn(club.num_nodes, 1, dtype=F64)
    result = trace(model, x, graph=club, target=target)
    hidden = model[0](x).detach().requires_grad_()
    functional.mse_loss(model[2](hidden.relu()), target).backward()
    torch.testing.assert_close(result.layers[0].energy, dirichlet_energy(hidden, club).detach())
    torch.testing.assert_close(result.layers[0].gradient, hidden.grad.norm())


def test_frozen_models_have_gradients_too(club: Graph, labels: Tensor) -> None:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 3)).to(F64), features(club, 4)
    expected = trace(model, x, graph=club, target=labels)
    result = trace(model.requires_grad_(False), x, graph=club, target=labels)
    for one, other in zip(result.layers, expected.layers, strict=True):
        torch.testing.assert_close(one.gradient, other.gradient)


@pytest.mark.parametrize("side", ["output", "input"])
def test_a_layer_without_influence_has_gradient_zero(side: Any, club: Graph) -> None:
    class Ignores(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            self.unused(x.clone())
            return self.used(x)

    result = trace(Ignores(), torch.randn(34, 2), graph=club, side=side, loss=lambda output: output.sum())
    assert [float(layer.gradient) > 0 for layer in result.layers] == [False, True]
    nothing = trace(nn.Linear(2, 2), torch.randn(34, 2), graph=club, loss=lambda output: torch.ones(()))
    assert float(nothing.layers[0].gradient) == 0


def test_losses(club: Graph, labels: Tensor) -> None:
    model, x = nn.Linear(4, 3).to(F64), features(club, 4)
    masked = labels.clone()
    masked[5:] = -1
    one = trace(model, x, graph=club, target=masked)
    other = trace(model, x, graph=club, loss=lambda scores: functional.cross_entropy(scores[:5], labels[:5]))
    torch.testing.assert_close(one.layers[0].gradient, other.layers[0].gradient)
    third = trace(model, x, graph=club, target=labels, loss=functional.cross_entropy)
    torch.testing.assert_close(third.layers[0].gradient, trace(model, x, graph=club, target=labels).layers[0].gradient)
    with torch.no_grad():
        assert float(trace(model, x, graph=club, target=labels).layers[0].gradient) > 0
    with pytest.raises(ValueError, match="one number"):
        trace(model, x, graph=club, loss=lambda scores: scores)
    assert trace(model, x, graph=club).layers[0].gradient is None


# ---------------------------------------------------------------------------------------- which layers, which graph


def test_calls_of_one_module_are_counted(club: Graph) -> None:
    layer = nn.Linear(4, 4)
    result = trace(nn.Sequential(layer, nn.Tanh(), layer), torch.randn(34, 4), graph=club)
    assert [(each.name, each.call) for each in result.layers] == [("0", 1), ("1", 1), ("0", 2)]
    assert "0 (call 2)" in result.table()


def test_the_outermost_convolution_counts(club: Graph, edge_index: Tensor) -> None:
    model = PygSequential("x, i", [(Omega(GCNConv(4, 4), 4), "x, i -> x"), nn.ReLU(), (GCNConv(4, 2), "x, i -> x")])
    names = [layer.name for layer in trace(model, torch.randn(34, 4), edge_index).layers]
    assert len(names) == 2
    assert not any("conv" in name for name in names)
    assert [layer.name for layer in trace(GCNConv(4, 4), torch.randn(34, 4), edge_index).layers] == ["GCNConv"]


def test_layers_by_name_pattern_and_module(club: Graph, edge_index: Tensor) -> None:
    model, x = GCN(8, 8, 3), torch.randn(34, 8)
    named = trace(model, x, edge_index, layers=["act", "convs.1"])
    assert [(layer.name, layer.call) for layer in named.layers] == [("act", 1), ("convs.1", 1), ("act", 2)]
    assert len(trace(model, x, edge_index, layers=["convs.*.lin"])) == 3
    assert [layer.name for layer in trace(model, x, edge_index, layers=[model.convs[2]]).layers] == ["convs.2"]
    with pytest.raises(ValueError, match=r"no layer 'convs.7': its layers are named 'dropout'"):
        trace(model, x, edge_index, layers=["convs.7"])
    with pytest.raises(TypeError, match="into a list"):
        trace(model, x, edge_index, layers="convs.*")
    with pytest.raises(ValueError, match="no side 'middle'"):
        trace(model, x, edge_index, side="middle")


def test_what_is_not_features_of_nodes_is_passed_over(club: Graph, edge_index: Tensor) -> None:
    net = OmegaNet(4, 8, 2, 2, task="graph")
    assert len(trace(net, torch.randn(34, 4), edge_index)) == 2
    with pytest.raises(ValueError, match="None of the 1 chosen layers passed on features of 34 nodes"):
        trace(net, torch.randn(34, 4), edge_index, layers=["closing"])


def test_the_first_of_several_outputs_counts(club: Graph) -> None:
    class Pair(nn.Module):
        def forward(self, x: Tensor, kind: str) -> tuple[Tensor, str] | list[str]:
            return (x, kind) if kind == "tuple" else [kind]

    x = features(club, 2)
    result = trace(Pair(), x, "tuple", graph=club, loss=lambda output: output[0].square().sum())
    torch.testing.assert_close(result.layers[0].gradient, 2 * x.norm())
    with pytest.raises(ValueError, match="None of the 1"):
        trace(Pair(), x, "list", graph=club)


def test_the_graph_is_found_among_the_arguments(club: Graph, edge_index: Tensor) -> None:
    x = features(club, 8)
    net, gcn = OmegaNet(8, 4, 2, 2).to(F64), GCN(8, 4, 2).to(F64)
    expected = trace(net, x, club).to_dict()
    assert trace(net, x, edge_index).to_dict() == expected
    assert trace(net, x, edge_index=edge_index).to_dict() == expected
    assert trace(net, x=x, edge_index=edge_index).to_dict() == expected
    assert trace(net, x, edge_index, graph=edge_index).to_dict() == expected
    assert trace(net, x, club.to_torch_sparse().to(F64)).layers[0].energy == pytest.approx(
        expected["layers"][0]["energy"]
    )
    data = Data(x=x, edge_index=edge_index)
    assert trace(net, data).to_dict() == expected
    assert trace(gcn, data).to_dict() == trace(gcn, x, edge_index).to_dict()
    by_keyword = trace(gcn, x=x, edge_index=edge_index, side="input")
    assert by_keyword.to_dict() == trace(gcn, x, edge_index, side="input").to_dict()
    sparse = trace(net, x.to_sparse_csr(), edge_index)
    assert sparse.layers[1].energy == pytest.approx(expected["layers"][1]["energy"])


def test_inputs_given_by_name_are_seen(club: Graph, edge_index: Tensor) -> None:
    x, conv = features(club, 4), GCNConv(4, 4).to(F64)
    result = trace(conv, edge_index=edge_index, x=x, side="input", loss=lambda output: output.sum())
    torch.testing.assert_close(result.layers[0].energy, dirichlet_energy(x, club))
    variable = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(conv(variable, edge_index).sum(), variable)
    torch.testing.assert_close(result.layers[0].gradient, expected.norm())


def test_weights_of_data_are_used(club: Graph, edge_index: Tensor) -> None:
    weight = torch.rand(edge_index.size(1), dtype=F64)
    x, model = features(club, 8), GCN(8, 4, 1).to(F64)
    result = trace(model, Data(x=x, edge_index=edge_index, edge_weight=weight))
    output = model(x, edge_index, edge_weight=weight).detach()
    graph = Graph.from_edge_index(edge_index, 34, weight)
    torch.testing.assert_close(result.layers[0].energy, dirichlet_energy(output, graph))


def test_a_model_that_takes_the_data_object_gets_it(edge_index: Tensor) -> None:
    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(4, 2)

        def forward(self, data: Data) -> Tensor:
            return self.conv(data.x, data.edge_index)

    result = trace(Whole(), Data(x=torch.randn(34, 4), edge_index=edge_index))
    assert [layer.name for layer in result.layers] == ["conv"]


def test_without_a_graph_there_is_a_sentence(edge_index: Tensor) -> None:
    with pytest.raises(ValueError, match=r"pass graph="):
        trace(nn.Linear(2, 2), torch.randn(34, 2))
    with pytest.raises(ValueError, match="number of nodes cannot be told"):
        trace(nn.Identity(), graph=edge_index)


# --------------------------------------------------------------------------------------------- nothing is left behind


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(training: bool, club: Graph) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3)).train(training)
    model[1].eval()
    model[1].train(training)
    model[0].weight.grad = torch.full_like(model[0].weight, 7.0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    result = trace(
        model, torch.randn(34, 4, generator=torch.Generator()), graph=club, target=torch.zeros(34, dtype=torch.long)
    )
    assert len(result) == 4
    assert torch.equal(torch.get_rng_state(), random)
    assert number_of_hooks(model) == 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(model[0].weight.grad, torch.full_like(model[0].weight, 7.0))
    assert all(parameter.grad is None for parameter in model[3].parameters())
    assert all(module.training is training for module in model.modules())


def test_an_error_leaves_nothing_behind(club: Graph) -> None:
    model = Fails().train()
    before, random = model.norm.running_mean.clone(), torch.get_rng_state()
    with pytest.raises(RuntimeError, match="broken on purpose"):
        trace(model, torch.randn(34, 8, generator=torch.Generator()), graph=club)
    assert number_of_hooks(model) == 0
    assert torch.equal(model.norm.running_mean, before)
    assert torch.equal(torch.get_rng_state(), random)


def test_modes_changed_by_the_model_are_put_back(club: Graph) -> None:
    class Switches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            self.eval()
            return self.inner(x)

    model = Switches().train()
    trace(model, torch.randn(34, 2), graph=club)
    assert model.training
    assert model.inner.training


def test_lazy_models_are_initialised_by_the_call(club: Graph) -> None:
    net = OmegaNet(-1, 8, 2, 3)
    assert len(trace(net, torch.randn(34, 5), club)) == 2
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d())
    assert len(trace(model, torch.randn(34, 5), graph=club)) == 2


# ------------------------------------------------------------------------------------------------------------ results


def test_table_and_dictionary(club: Graph) -> None:
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), features(club, 4).float()
    nn.init.zeros_(model[1].weight)
    nn.init.zeros_(model[1].bias)
    result = trace(model, x, graph=club, loss=lambda output: output.sum())
    lines = result.table().splitlines()
    assert lines[0].split() == ["layer", "channels", "energy", "E/E", "first", "E/|f|^2", "MAD", "rank", "gradient"]
    assert len(lines) == 3
    assert lines[2].split()[:4] == ["1", "4", "0", "0"]
    assert str(result) == result.table()
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["layers"][0]["energy"] == float(result.layers[0].energy)
    assert plain["layers"][1]["relative_energy"] is None  # 0 / 0 of features that are all zero
    assert plain["layers"][1]["rank"] == 0
    assert "gradient" in plain["layers"][1]
    assert trace(model, x, graph=club).to_dict()["layers"][0]["gradient"] is None


def test_graphs_of_other_sizes_are_refused(club: Graph) -> None:
    small = Graph.from_networkx(nx.path_graph(3))
    with pytest.raises(ValueError, match="None of the 1 chosen layers passed on features of 3 nodes"):
        trace(nn.Linear(2, 2), torch.randn(34, 2), graph=small)

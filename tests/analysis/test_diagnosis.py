"""`diagnose`: its reading of networks that really over-smooth, explode, are dead, poor or healthy, and its forms."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest
import torch
from analysis_graphs import F64, features
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GCNConv

from omegagnn import Graph, Omega
from omegagnn.analysis import Facts, diagnose, distance_within, mean_average_distance, thresholds, trace
from omegagnn.analysis.diagnosis import merged
from omegagnn.analysis.diagnosis_plot import to_png
from omegagnn.analysis.layer_measures import OmegaMeasures, omega_measures
from omegagnn.analysis.reading import ALIKE, FAR_NEGATIVE, read
from omegagnn.data import Dataset, load
from omegagnn.data.synthetic import csbm
from omegagnn.errors import WrongUse
from omegagnn.nn import OmegaNet
from omegagnn.nn.baselines import baseline


@pytest.fixture(scope="module")
def blocks() -> Dataset:
    """A homophilous graph of two classes that every sound network learns in seconds."""
    return csbm(homophily=0.9, nodes=200)


@pytest.fixture(scope="module")
def shown(blocks: Dataset) -> Tensor:
    """The labels of half of the nodes, as many of either class; -1 elsewhere."""
    return torch.where(torch.arange(blocks.num_nodes) % 4 < 2, blocks.labels, -1)


def trained(model: nn.Module, data: Dataset, y: Tensor, epochs: int = 60, **rates: float) -> nn.Module:
    groups = model.param_groups(**rates) if hasattr(model, "param_groups") else model.parameters()
    optimizer = torch.optim.Adam(groups, lr=0.01)
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.features, data.graph), y, ignore_index=-1).backward()
        optimizer.step()
    return model


def status(found: Any, topic: str) -> str | None:
    return next((each.status for each in found.findings if each.topic == topic), None)


# ---------------------------------------------------------------------------------------- networks that really do it


def test_a_deep_gcn_over_smooths_and_is_told_where(blocks: Dataset, shown: Tensor) -> None:
    model = trained(baseline("gcn", blocks.num_features, 32, 64, 2), blocks, shown, epochs=20)
    found = diagnose(model, blocks.features, blocks.graph, y=shown)
    assert not found.is_healthy
    assert {"smoothing", "vanish", "fit"} <= set(found.problems)
    first = found.findings[0]
    assert first.sentence.startswith("It over-smooths: from layer ")
    since = int(first.sentence.split("from layer ")[1].split()[0])
    assert all(row.within < ALIKE for row in found.rows[since:])
    assert not found.rows[since - 1].within < ALIKE
    assert "OmegaGCNConv" in str(first)
    assert len(found.rows) == 65


@pytest.mark.parametrize(("layers", "epochs"), [(16, 30), pytest.param(64, 60, marks=pytest.mark.slow)])
def test_a_deep_omega_gcn_does_not_and_is_healthy(layers: int, epochs: int) -> None:
    data = load("citeseer")
    y = torch.full_like(data.labels, -1)
    y[data.splits[0].train] = data.labels[data.splits[0].train]
    rates = {"lr_gnn": 1e-4, "lr_oc": 0.02, "lr_omega": 0.005}
    net = trained(OmegaNet(data.num_features, 16, layers, 6), data, y, epochs=epochs, **rates)
    found = diagnose(net, data.features, data.graph, y=y)
    assert found.is_healthy, found.reading
    assert status(found, "smoothing") == status(found, "gradient") == status(found, "rank") == "well"


@pytest.mark.parametrize("name", ["gcn", "gat", "gcnii", "mlp", "appnp", "sgc", "jknet", "gin"])
def test_shallow_baselines_are_not_slandered(name: str, blocks: Dataset, shown: Tensor) -> None:
    model = trained(baseline(name, blocks.num_features, 16, 2, 2), blocks, shown)
    found = diagnose(model, blocks.features, blocks.graph, y=shown)
    assert found.is_healthy, found.reading


def test_an_untrained_shallow_net_is_only_untrained(blocks: Dataset) -> None:
    torch.manual_seed(3)
    # As many labels of each class, and a network that cannot know them.
    found = diagnose(
        GCN(blocks.num_features, 16, 2, 2), blocks.features, blocks.graph.to_edge_index()[0], y=blocks.labels
    )
    assert set(found.problems) <= {"fit"}
    assert status(found, "smoothing") == "well"


def test_omega_one_and_identity_maps_smooth_at_the_start(blocks: Dataset, shown: Tensor) -> None:
    found = diagnose(OmegaNet(blocks.num_features, 16, 64, 2), blocks.features, blocks.graph, y=shown)
    assert "smoothing" in found.problems
    assert "vanish" not in found.problems
    assert diagnose(OmegaNet(blocks.num_features, 16, 64, 2, omega=0.001), blocks.features, blocks.graph).is_healthy


def test_smoothing_within_components_is_seen_although_components_differ() -> None:
    graph = Graph.from_networkx(nx.disjoint_union_all([nx.complete_graph(5) for _ in range(8)]), weight=None)
    x = features(graph, 8).float()
    found = diagnose(OmegaNet(8, 8, 16, 3), x, graph)
    assert "smoothing" in found.problems
    assert found.rows[-1].distance > 0.01 > found.rows[-1].within


def test_exploding_features_and_gradients(blocks: Dataset, shown: Tensor) -> None:
    net = OmegaNet(blocks.num_features, 16, 24, 2)
    with torch.no_grad():
        for conv in net.convs:
            conv.weight.mul_(1.6)
    found = diagnose(net, blocks.features, blocks.graph, y=shown)
    assert "explode" in found.problems
    assert any(sentence.startswith(("The features explode", "The gradients explode")) for sentence in found.reading)
    with torch.no_grad():
        for conv in net.convs:
            conv.weight.mul_(1e6)
    found = diagnose(net, blocks.features, blocks.graph, y=shown)
    assert found.problems[0] == "broken"
    assert "not finite from layer" in found.reading[0]


def test_a_net_killed_by_its_learning_rate_is_dead(blocks: Dataset, shown: Tensor) -> None:
    net = baseline("gcn", blocks.num_features, 16, 3, 2)
    with torch.no_grad():
        net.opening.bias.fill_(-1e3)
    found = diagnose(net, blocks.features, blocks.graph, y=shown)
    assert found.reading[0].startswith("The network is dead: all features are zero from the input of the first layer")


def test_features_alike_before_the_first_layer_are_not_blamed_on_depth(blocks: Dataset) -> None:
    x = torch.ones_like(blocks.features)
    found = diagnose(GCN(blocks.num_features, 16, 2, 2), x, blocks.graph.to_edge_index()[0])
    assert found.problems == ["input"]
    assert "it is not the depth" in found.reading[0]


def test_a_rank_poor_net(blocks: Dataset) -> None:
    net = OmegaNet(blocks.num_features, 64, 2, 7)
    with torch.no_grad():
        net.opening.weight[:, 2:] = 0  # two channels are left for seven classes
    labels = torch.arange(blocks.num_nodes) % 7
    found = diagnose(net, blocks.features, blocks.graph, y=labels)
    assert "rank" in found.problems
    assert "7 classes want about 6" in " ".join(found.reading)


def test_omega_far_below_zero(blocks: Dataset, shown: Tensor) -> None:
    net = OmegaNet(blocks.num_features, 16, 2, 2)
    with torch.no_grad():
        net.convs[1].omega_weight.value.fill_(-2.0)
    found = diagnose(net, blocks.features, blocks.graph, y=shown)
    assert "omega" in found.problems
    assert "-2.00 on average at layer 2 (convs.1)" in " ".join(found.reading)
    assert found.rows[2].omega == OmegaMeasures(-2.0, -2.0, -2.0, 0.0, 0.0, 1.0)
    assert FAR_NEGATIVE > -2
    assert status(diagnose(net, blocks.features, blocks.graph), "omega") == "note"  # no labels: nobody knows
    mixed = csbm(homophily=0.1, nodes=200)
    found = diagnose(net, mixed.features, mixed.graph, y=mixed.labels)
    assert status(found, "omega") == "well"
    assert "what this graph asks for" in " ".join(found.reading)
    for conv in net.convs:
        nn.init.constant_(conv.omega_weight.value, -0.1)
    found = diagnose(net, blocks.features, blocks.graph, y=shown)
    assert "It anti-smooths: 100 % of the channels sharpen" in " ".join(found.reading)


def test_a_smoothed_net_that_tells_its_nodes_apart_is_a_note(blocks: Dataset, shown: Tensor) -> None:
    found = diagnose(OmegaNet(blocks.num_features, 16, 64, 2), blocks.features, blocks.graph, y=shown)
    findings = read(found.rows, Facts(classes=2, score=0.95, chance=0.5))
    assert next(each for each in findings if each.topic == "smoothing").status == "note"


def test_drift_needs_a_falling_omega_and_a_rising_loss(blocks: Dataset) -> None:
    rows = diagnose(OmegaNet(blocks.num_features, 16, 2, 2), blocks.features, blocks.graph).rows
    drifts = Facts(omega_kept=0.5, omega_last=-0.4, loss_rise=2.0)
    assert "drift" in [each.topic for each in read(rows, drifts)]
    for calm in (
        Facts(omega_kept=0.5, omega_last=0.4, loss_rise=2.0),
        Facts(omega_kept=0.5, omega_last=-0.4, loss_rise=1.1),
    ):
        assert "drift" not in [each.topic for each in read(rows, calm)]


# -------------------------------------------------------------------------------------------------- what is measured


def test_distance_within_against_its_definition(club: Graph) -> None:
    x = features(club, 5)
    whole = torch.zeros(club.num_nodes, dtype=torch.long)
    torch.testing.assert_close(distance_within(x, whole), mean_average_distance(x))
    component = torch.tensor([0, 1, 1, 2, 2, 2])
    x = torch.randn(6, 2, 4, dtype=F64)
    x[3] = 0
    for run in range(2):
        means = []
        for i in range(1, 6):
            others = [j for j in range(6) if j != i and component[j] == component[i]]
            means.append(sum(_cosine_distance(x[i, run], x[j, run]) for j in others) / len(others))
        torch.testing.assert_close(distance_within(x, component)[run], torch.stack(means).mean())
    assert distance_within(x[:1], component[:1]).isnan().all()
    # Nearly parallel rows keep their digits: 1 − cos would be 0 in float32.
    close = torch.tensor([[1.0, 0.0], [1.0, 1e-5]])
    torch.testing.assert_close(
        distance_within(close, torch.zeros(2, dtype=torch.long)), torch.tensor(5e-11), rtol=1e-2, atol=0
    )


def _cosine_distance(a: Tensor, b: Tensor) -> Tensor:
    if not (a.any() and b.any()):
        return a.new_tensor(0.0 if not (a.any() or b.any()) else 1.0)
    return 1 - torch.dot(a, b) / (a.norm() * b.norm())


def test_rows_are_what_enters_the_layers(blocks: Dataset, shown: Tensor) -> None:
    net = OmegaNet(blocks.num_features, 8, 3, 2, dropout=0.5)
    found = diagnose(net, blocks.features, blocks.graph, y=shown)
    seen = trace(net.eval(), blocks.features, blocks.graph, target=shown, layers=["convs.*", "closing"], side="input")
    assert [row.layer for row in found.rows] == ["input", "convs.0", "convs.1", "convs.2"]
    for row, layer in zip(found.rows, seen.layers, strict=True):
        for name in ("energy", "relative_energy", "distance", "within", "rank", "norm", "gradient"):
            assert getattr(row, name) == pytest.approx(float(getattr(layer, name)), rel=1e-6)
    assert found.rows[2].energy_ratio == pytest.approx(found.rows[2].energy / found.rows[0].energy)


def test_residual_networks_are_judged_by_what_flows_on(blocks: Dataset) -> None:
    found = diagnose(OmegaNet(blocks.num_features, 8, 3, 2, residual="previous"), blocks.features, blocks.graph)
    assert found.rows[-1].norm > found.rows[0].norm  # the sum, not the branch


def test_shares_of_channels_by_the_thresholds_of_the_graph(club: Graph) -> None:
    limits = thresholds(club)
    assert 1 < limits.signs < limits.critical
    between = (limits.signs + limits.critical) / 2
    omega = torch.tensor([-0.1, 0.0, 1.0, limits.signs, between, limits.critical, limits.critical + 0.1, 0.5])
    found = omega_measures(omega, limits)
    assert (found.smooths, found.mixes, found.sharpens) == (4 / 8, 2 / 8, 2 / 8)
    assert math.isnan(omega_measures(omega, None).smooths)


# ---------------------------------------------------------------------------------------------------------- its forms


class Own(nn.Module):
    """A model as users write them: PyG convolutions, then a linear map."""

    def __init__(self, sizes: list[int], classes: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(GCNConv(i, o) for i, o in pairwise(sizes))
        self.out = nn.Linear(sizes[-1], classes)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index, edge_weight).relu()
        return self.out(x)


def test_a_plain_pyg_model(blocks: Dataset, shown: Tensor) -> None:
    edge_index = blocks.graph.to_edge_index()[0]
    model = Own([blocks.num_features, 16, 16], 2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = diagnose(model, blocks.features, edge_index, y=shown)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [row.layer for row in found.rows] == ["input", "convs.0", "convs.1"]
    assert found.thresholds is None
    data = Data(x=blocks.features, edge_index=edge_index, y=blocks.labels, train_mask=shown >= 0)
    assert diagnose(model, data).to_dict() == found.to_dict()
    weighted = diagnose(model, blocks.features, edge_index, torch.ones(edge_index.size(1)), y=shown)
    assert weighted.rows[-1].rank == pytest.approx(found.rows[-1].rank, rel=1e-4)
    assert [row.layer for row in diagnose(GCN(blocks.num_features, 8, 3, 2), data).rows][-1] == "convs.2"


def test_gradients_of_a_model_that_narrows_to_its_classes(blocks: Dataset) -> None:
    edge_index = blocks.graph.to_edge_index()[0]
    torch.manual_seed(0)
    shallow = diagnose(GCN(blocks.num_features, 32, 3, 2), blocks.features, edge_index, y=blocks.labels)
    assert status(shallow, "gradient") == "well"
    deep = diagnose(GCN(blocks.num_features, 32, 48, 2), blocks.features, edge_index, y=blocks.labels)
    assert "vanish" in deep.problems
    assert "at layer 1 (convs.0)" in " ".join(deep.reading)


def test_attention_wrappers_and_plain_maps(blocks: Dataset, shown: Tensor) -> None:
    edge_index = blocks.graph.to_edge_index()[0]
    assert len(diagnose(GAT(blocks.num_features, 8, 2, 2), blocks.features, edge_index).rows) == 3

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = Omega(GCNConv(blocks.num_features, blocks.num_features), blocks.num_features)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(self.conv(x, edge_index).relu(), edge_index)

    found = diagnose(Wrapped(), blocks.features, edge_index, y=shown)
    assert [row.layer for row in found.rows] == ["input", "conv", "conv, call 2"]
    assert found.rows[1].omega is not None
    mlp = nn.Sequential(nn.Linear(blocks.num_features, 8), nn.ReLU(), nn.Linear(8, 2))
    assert [row.layer for row in diagnose(mlp, blocks.features, graph=blocks.graph).rows] == ["input", "0", "2"]


def test_table_dictionary_picture_and_notebook(blocks: Dataset, shown: Tensor) -> None:
    found = diagnose(OmegaNet(blocks.num_features, 8, 3, 2), blocks.features, blocks.graph, y=shown, subject="a < b")
    frame = found.table
    assert list(frame.index) == [0, 1, 2, 3]
    assert frame.loc[1, "omega_mean"] == 1.0
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["healthy"] == found.is_healthy
    assert set(plain["layers"][1]) >= {"energy_ratio", "within", "rank", "gradient", "omega_sharpens", "spread"}
    svg = ElementTree.fromstring(found.to_svg())
    texts = [each.text or "" for each in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b" in texts
    for title in ("energy E / E⁰", "effective rank", "gradient ‖∂loss/∂f‖", "ω: mean and range of the channels", "ω₀"):
        assert title in texts
    html = found._repr_html_()
    assert "<svg" in html
    assert "does not over-smooth" in html
    assert "a &lt; b" in html
    assert to_png(found).startswith(b"\x89PNG")
    assert str(found).startswith("a < b\n")


def test_members_are_averaged_and_counted(blocks: Dataset, shown: Tensor) -> None:
    healthy = OmegaNet(blocks.num_features, 16, 64, 2, omega=0.01)
    smooth = OmegaNet(blocks.num_features, 16, 64, 2, omega=1.0)
    members = [diagnose(net, blocks.features, blocks.graph, y=shown) for net in (healthy, smooth, healthy)]
    found = merged(members, "three")
    assert found.members == 3
    row = found.rows[-1]
    assert row.within == pytest.approx(sum(each.rows[-1].within for each in members) / 3)
    assert row.spread["within"] == (members[1].rows[-1].within, members[0].rows[-1].within)
    assert row.omega is not None
    assert (row.omega.min, row.omega.max) == pytest.approx((0.01, 1.0))
    whose = {each.topic + each.status: each.whose for each in found.findings}
    assert whose["smoothingproblem"] == "In 1 of 3 members: "
    assert whose["smoothingwell"] == "In 2 of 3 members: "
    assert "In 1 of 3 members: It over-smooths" in found.to_svg()
    assert merged(members[:1], "one").members == 1


def test_wrong_use(blocks: Dataset, shown: Tensor) -> None:
    net = OmegaNet(blocks.num_features, 8, 1, 2)
    with pytest.raises(WrongUse, match="y has 3 labels but the model puts out 200 rows"):
        diagnose(net, blocks.features, blocks.graph, y=shown[:3])
    with pytest.raises(ValueError, match=r"pass graph=\.\.\."):
        diagnose(nn.Linear(blocks.num_features, 2), blocks.features)


def test_without_edges_nothing_can_smooth() -> None:
    alone = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), num_nodes=5)
    found = diagnose(OmegaNet(3, 4, 2, 2), torch.rand(5, 3), alone)
    assert "cannot over-smooth" in found.reading[0]
    json.dumps(found.to_dict(), allow_nan=False)


def test_sparse_features_of_the_embedded_data() -> None:
    data = load("citeseer")
    found = diagnose(OmegaNet(data.num_features, 16, 2, 6), data.features, data.graph, y=data.labels)
    assert len(found.rows) == 3
    dense = diagnose(Own([data.num_features, 16], 6), data.features.to_dense(), data.graph.to_edge_index()[0])
    assert math.isnan(dense.rows[0].rank)  # 3,703 channels: no decomposition
    assert not math.isnan(dense.rows[1].rank)

"""`Omega` around PyG's convolutions: its meaning, its life as a module, and PyG's explainer through it."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer
from torch_geometric.nn import ChebConv, GATConv, GATv2Conv, GCNConv, GINConv, SAGEConv, TransformerConv
from torch_geometric.utils import from_networkx, get_num_hops

from omegagnn.graph import Graph
from omegagnn.nn.omega import OmegaWeight
from omegagnn.nn.wrap import Omega

C = 6
CONVS = {
    "gcn": lambda: GCNConv(C, C),
    "gat": lambda: GATConv(C, C // 2, heads=2),
    "gatv2": lambda: GATv2Conv(C, C // 3, heads=3),
    "sage": lambda: SAGEConv(C, C),
    "gin": lambda: GINConv(nn.Sequential(nn.Linear(C, C), nn.ReLU(), nn.Linear(C, C))),
    "transformer": lambda: TransformerConv(C, C),
    "cheb": lambda: ChebConv(C, C, K=3),
}


def graph_and_features(n: int = 9) -> tuple[Tensor, Tensor]:
    pairs = torch.combinations(torch.arange(n))
    pairs = pairs[torch.rand(pairs.size(0)) < 0.4].t()
    return torch.randn(n, C), torch.cat([pairs, pairs.flip(0)], dim=1)


@pytest.mark.parametrize("name", CONVS)
@pytest.mark.parametrize("omega", ["channel", "layer", 0.3])
def test_meaning_and_gradients(name: str, omega: str | float) -> None:
    x, edge_index = graph_and_features()
    layer = Omega(CONVS[name](), C, omega)
    with torch.no_grad():
        layer.omega.copy_(torch.rand_like(layer.omega) * 2 - 0.5)
    w = layer.omega.detach()
    x.requires_grad_()
    out = layer(x, edge_index)
    torch.testing.assert_close(out, (1 - w) * x + w * layer.conv(x, edge_index))
    seed = torch.randn_like(out)
    out.backward(seed)
    assert x.grad is not None
    assert all(parameter.grad is not None for parameter in layer.parameters())
    if omega != 0.3:
        slope = (seed * (layer.conv(x, edge_index) - x)).sum(0 if omega == "channel" else (0, 1))
        torch.testing.assert_close(layer.omega.grad, slope, atol=1e-5, rtol=1e-5)
    else:
        assert len(list(layer.parameters())) == len(list(layer.conv.parameters()))


@pytest.mark.parametrize("name", CONVS)
def test_limits(name: str) -> None:
    x, edge_index = graph_and_features()
    conv = CONVS[name]()
    torch.testing.assert_close(Omega(conv, C)(x, edge_index), conv(x, edge_index))  # ω starts at 1
    assert torch.equal(Omega(conv, C, 0.0)(x, edge_index), x)


@pytest.mark.parametrize("name", CONVS)
def test_state_copy_and_repr(name: str) -> None:
    x, edge_index = graph_and_features()
    layer = Omega(CONVS[name](), C)
    nn.init.uniform_(layer.omega)
    twin = copy.deepcopy(layer)
    assert torch.equal(twin(x, edge_index), layer(x, edge_index))
    other = Omega(CONVS[name](), C)
    assert not torch.equal(other(x, edge_index), layer(x, edge_index))
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x, edge_index), layer(x, edge_index))
    assert repr(layer).startswith("Omega(\n  (conv): ")
    assert "(omega_weight): OmegaWeight(6 channels, init=1)" in repr(layer)


def test_reset_starts_anew() -> None:
    layer = Omega(GCNConv(C, C), C)
    nn.init.zeros_(layer.omega)
    old = layer.conv.lin.weight.detach().clone()
    layer.reset_parameters()
    assert torch.equal(layer.omega, torch.ones(C))
    assert not torch.equal(layer.conv.lin.weight, old)


def test_shared_omega_is_one_parameter() -> None:
    shared = OmegaWeight()
    net = nn.ModuleList(Omega(GCNConv(C, C, bias=False), C, shared) for _ in range(3))
    assert sum(parameter.numel() for parameter in net.parameters()) == 3 * C * C + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(backend: str) -> None:
    x, edge_index = graph_and_features()
    layer = Omega(GCNConv(C, C), C)
    nn.init.uniform_(layer.omega)
    layer(x, edge_index).sum().backward()
    expected = layer.omega.grad.clone()
    layer.zero_grad()
    out = torch.compile(layer, backend=backend, fullgraph=True)(x, edge_index)
    torch.testing.assert_close(out, layer(x, edge_index))
    out.sum().backward()
    torch.testing.assert_close(layer.omega.grad, expected)


def test_graph_and_weights_are_handed_on() -> None:
    x, edge_index = graph_and_features()
    weight = torch.rand(edge_index.size(1))
    layer = Omega(GCNConv(C, C), C, 0.7)
    expected = layer(x, edge_index, weight)
    torch.testing.assert_close(layer(x, edge_index, edge_weight=weight), expected)
    torch.testing.assert_close(layer(x, Graph.from_edge_index(edge_index, 9, weight)), expected)
    torch.testing.assert_close(layer(x, Graph.from_edge_index(edge_index, 9)), layer(x, edge_index))


def test_misuse_is_said_in_one_sentence() -> None:
    x, edge_index = graph_and_features()
    with pytest.raises(
        ValueError, match=r"made for 6 channels, but x has 6 and the conv returns 5: all three must agree"
    ):
        Omega(GCNConv(C, C - 1), C)(x, edge_index)
    with pytest.raises(ValueError, match="x has 6 and the conv returns 4"):
        Omega(GCNConv(C, 4), 4)(x, edge_index)
    with pytest.raises(ValueError, match="at least 1, not -1"):
        Omega(GCNConv(-1, C), -1)
    with pytest.raises(ValueError, match="no global ω"):
        Omega(GCNConv(C, C), C, "global")
    with pytest.raises(TypeError, match="one tensor, not tuple"):
        Omega(SAGEConv(C, C), C)((x, x), edge_index)
    with pytest.raises(TypeError, match="returned tuple"):
        Omega(GATConv(C, C), C)(x, edge_index, return_attention_weights=True)


class ClubNet(nn.Module):
    def __init__(self, conv: type[nn.Module]) -> None:
        super().__init__()
        self.opening = nn.Linear(34, 16)
        self.first, self.second = Omega(conv(16, 16), 16), Omega(conv(16, 16), 16)
        self.closing = nn.Linear(16, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        f = self.first(self.opening(x), edge_index).relu()
        return self.closing(self.second(f, edge_index).relu())


def trained_on_the_karate_club(conv: type[nn.Module]) -> tuple[ClubNet, Tensor, Tensor]:
    import networkx as nx

    club = nx.karate_club_graph()
    labels = torch.tensor([data["club"] == "Officer" for _, data in club.nodes(data=True)]).long()
    edge_index, x = from_networkx(club).edge_index, torch.eye(34)
    net = ClubNet(conv)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x, edge_index), labels).backward()
        optimiser.step()
    assert (net(x, edge_index).argmax(1) == labels).float().mean() > 0.95
    return net.eval(), x, edge_index


MODEL_CONFIG = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}


def test_edge_masks_of_the_explainer_reach_the_wrapped_conv() -> None:
    net, x, edge_index = trained_on_the_karate_club(GCNConv)
    assert get_num_hops(net) == 2  # the wrapper is not counted a second time
    before = net(x, edge_index)
    explainer = Explainer(
        net,
        algorithm=GNNExplainer(epochs=60, lr=0.05),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config=MODEL_CONFIG,
    )
    node = 9
    mask = explainer(x, edge_index, index=node).edge_mask
    assert mask.shape == (edge_index.size(1),)
    near = torch.tensor([node])
    for _ in range(
        1
    ):  # an edge matters when its receiver is within one hop: the second conv takes it the rest of the way
        near = torch.cat([near, edge_index[0][torch.isin(edge_index[1], near)]]).unique()
    within = torch.isin(edge_index[1], near)
    assert bool((mask[~within] == 0).all())
    assert bool((mask[within] > 0).all())
    assert mask[within].std() > 0.01  # learnt, not constant
    assert torch.equal(net(x, edge_index), before)  # the masks are gone afterwards


def test_masked_messages_change_the_output_as_dropped_edges_do() -> None:
    from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

    x, edge_index = graph_and_features()
    layer = Omega(SAGEConv(C, C, aggr="sum"), C, 0.6)
    keep = torch.rand(edge_index.size(1)) < 0.5
    set_masks(layer, keep.float(), edge_index, apply_sigmoid=False)
    masked = layer(x, edge_index)
    clear_masks(layer)
    torch.testing.assert_close(masked, layer(x, edge_index[:, keep]))
    assert not torch.allclose(masked, layer(x, edge_index))


def test_attention_explainer_sees_each_layer_once() -> None:
    net, x, edge_index = trained_on_the_karate_club(GATConv)
    explainer = Explainer(
        net, AttentionExplainer(), explanation_type="model", edge_mask_type="object", model_config=MODEL_CONFIG
    )
    mask = explainer(x, edge_index, index=3).edge_mask
    assert mask.shape == (edge_index.size(1),)
    assert mask.max() > 0

"""What is saved is what was there: deepcopy, state_dict, pickle-free files, and nets that wait for their input size."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from assertions import assert_same_bits, perturb
from torch.nn.parameter import UninitializedParameter

from omegagnn import OmegaGATConv, OmegaGCNConv, OmegaNet
from omegagnn.ops import SparseFeatures

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
X = torch.arange(15.0).reshape(3, 5).sin()
NETS: dict[str, dict[str, Any]] = {
    "plain": {},
    "global": {"omega": "global"},
    "layer": {"omega": "layer", "bias": True},
    "fixed": {"omega": 0.5},
    "gat": {"conv": "gat", "heads": 2, "norm": "batch"},
    "graph": {"task": "graph", "omega": "global"},
    "runs": {"runs": 3, "omega": "global", "norm": "batch"},
    "authors": {"variant": "authors", "conv": "gat"},
}


def net_of(name: str, in_channels: int = 5) -> OmegaNet:
    net = OmegaNet(in_channels, 4, 2, 3, **NETS[name])
    if in_channels != -1:
        perturb(net)
        net(X, EDGES)  # so that running moments are not at their start
    return net


@pytest.mark.parametrize("name", NETS)
def test_a_net_comes_back_with_the_same_bits(name: str, tmp_path: Path) -> None:
    net = net_of(name).eval()
    expected = net(X, EDGES)
    loaded = OmegaNet(5, 4, 2, 3, **NETS[name]).eval()
    loaded.load_state_dict(net.state_dict())
    assert_same_bits(loaded(X, EDGES), expected)
    assert_same_bits(copy.deepcopy(net)(X, EDGES), expected)

    path = str(tmp_path / "model.safetensors")
    safetensors.torch.save_model(net, path)
    from_file = OmegaNet(5, 4, 2, 3, **NETS[name]).eval()
    safetensors.torch.load_model(from_file, path)
    assert_same_bits(from_file(X, EDGES), expected)

    torch.save(net.state_dict(), tmp_path / "weights.pt")
    from_torch = OmegaNet(5, 4, 2, 3, **NETS[name]).eval()
    from_torch.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    assert_same_bits(from_torch(X, EDGES), expected)


def test_a_global_weight_stays_shared_through_copies_and_files(tmp_path: Path) -> None:
    net = net_of("global")
    path = str(tmp_path / "model.safetensors")
    safetensors.torch.save_model(net, path)
    assert sum("omega" in name for name in safetensors.torch.load_file(path)) == 1, "stored once"
    loaded = OmegaNet(5, 4, 2, 3, omega="global")
    safetensors.torch.load_model(loaded, path)
    for twin in (loaded, copy.deepcopy(net)):
        first, second = (conv.omega for conv in twin.convs)
        assert first is second
        assert first is not net.convs[0].omega
        twin(X, EDGES).sum().backward()
        assert len(twin.grouped_parameters()["omega"]) == 1


def test_a_copy_is_independent() -> None:
    net = net_of("plain")
    twin = copy.deepcopy(net)
    expected = net(X, EDGES)
    perturb(twin)
    assert_same_bits(net(X, EDGES), expected)


@pytest.mark.parametrize("name", NETS)
def test_a_lazy_net_finds_its_size_and_starts_like_a_sized_one(name: str) -> None:
    lazy, sized = net_of(name, -1), OmegaNet(5, 4, 2, 3, **NETS[name])
    for net in (lazy, sized):
        torch.manual_seed(5)
        net.reset_parameters()
    assert isinstance(lazy.opening.weight, UninitializedParameter)
    assert_same_bits(lazy(X, EDGES), sized(X, EDGES))
    assert repr(lazy.opening) == repr(sized.opening)
    for (one, value), (other, known) in zip(lazy.named_parameters(), sized.named_parameters(), strict=True):
        assert one == other
        assert_same_bits(value, known)


@pytest.mark.parametrize("name", ["plain", "runs"])
def test_a_lazy_net_starts_from_its_seeds(name: str) -> None:
    seeds = torch.tensor([7, 8, 9][: NETS[name].get("runs", 1)])
    lazy, sized = net_of(name, -1), net_of(name)
    lazy.reset_parameters(seeds)
    sized.reset_parameters(seeds)
    lazy(X, EDGES)
    assert_same_bits(lazy.opening.weight, sized.opening.weight)


@pytest.mark.parametrize("name", NETS)
def test_weights_load_into_a_lazy_net(name: str, tmp_path: Path) -> None:
    net = net_of(name).eval()
    lazy = net_of(name, -1).eval()
    lazy.load_state_dict(net.state_dict())
    assert_same_bits(lazy(X, EDGES), net(X, EDGES))
    path = str(tmp_path / "model.safetensors")
    safetensors.torch.save_model(net, path)
    other = net_of(name, -1).eval()
    other.load_state_dict(safetensors.torch.load_file(path), strict=False)
    assert_same_bits(other(X, EDGES), net(X, EDGES))


def test_lazy_nets_take_sparse_features_and_can_be_copied() -> None:
    sparse = SparseFeatures(X.to_sparse_csr())
    lazy = OmegaNet(-1, 4, 2, 3)
    twin = copy.deepcopy(lazy)
    assert lazy(sparse, EDGES).shape == (3, 3)
    assert twin(X, EDGES).shape == (3, 3)
    assert lazy.opening.weight is not twin.opening.weight
    assert copy.deepcopy(lazy)(X, EDGES).shape == (3, 3)


@pytest.mark.parametrize("layer", [OmegaGCNConv, OmegaGATConv])
@pytest.mark.parametrize("omega", ["channel", "layer"])
@pytest.mark.parametrize("runs", [None, 2])
def test_lazy_layers(layer: Any, omega: Any, runs: int | None) -> None:
    sized, lazy = layer(5, 4, omega=omega, bias=True, runs=runs), layer(-1, 4, omega=omega, bias=True, runs=runs)
    perturb(sized)
    with pytest.raises(RuntimeError, match="does not know its input size yet: run one batch through it, then save it"):
        lazy.state_dict()
    twin = copy.deepcopy(lazy)
    lazy.load_state_dict(sized.state_dict())
    assert_same_bits(lazy(X, EDGES), sized(X, EDGES))
    assert repr(lazy) == repr(sized)
    assert twin(x=X, edge_index=EDGES).shape == sized(X, EDGES).shape
    assert twin.in_channels == 5
    assert {name: value.shape for name, value in twin.state_dict().items()} == {
        name: value.shape for name, value in sized.state_dict().items()
    }


def test_saving_a_net_that_waits_says_what_to_do(tmp_path: Path) -> None:
    sentence = "Map does not know its input size yet: run one batch through it, then save it."
    net = OmegaNet(-1, 4, 2, 3)
    for save in (net.state_dict, lambda: safetensors.torch.save_model(net, str(tmp_path / "m.safetensors"))):
        with pytest.raises(RuntimeError) as caught:
            save()
        assert str(caught.value) == sentence


def test_resetting_draws_anew() -> None:
    net = net_of("gat")
    first = {name: value.clone() for name, value in net.state_dict().items()}
    torch.manual_seed(8)
    net.reset_parameters()
    start = {name: value.clone() for name, value in net.state_dict().items()}
    assert all(not torch.equal(first[name], start[name]) for name in start if "running" not in name)
    torch.manual_seed(8)
    net.reset_parameters()
    for name, value in net.state_dict().items():
        assert_same_bits(value, start[name], name)


def test_a_net_says_what_it_is() -> None:
    assert repr(OmegaNet(5, 4, 1, 3, runs=2)) == (
        "OmegaNet(\n"
        "  (opening): Map(5, 4, bias=False, runs=2)\n"
        "  (convs): ModuleList(\n"
        "    (0): OmegaGCNConv(\n"
        "      4, 4, runs=2\n"
        "      (omega_weight): OmegaWeight(4 channels, init=1, runs=2)\n"
        "    )\n"
        "  )\n"
        "  (norms): ModuleList()\n"
        "  (maps): ModuleList()\n"
        "  (closing): Map(4, 3, bias=False, runs=2)\n"
        ")"
    )

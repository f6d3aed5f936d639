"""ω: its scopes, its start, sharing, fixing and waiting for a size."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from assertions import assert_same_bits
from torch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

from omegagnn import OmegaGATConv, OmegaGCNConv, OmegaNet, OmegaWeight

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize(
    ("channels", "runs", "shape"), [(None, None, ()), (None, 3, (3, 1)), (4, None, (4,)), (4, 3, (3, 4))]
)
@pytest.mark.parametrize("learn", [True, False])
def test_shape_start_and_kind(channels: int | None, runs: int | None, shape: tuple[int, ...], learn: bool) -> None:
    omega = OmegaWeight(channels, init=0.25, learn=learn, runs=runs)
    assert_same_bits(omega.value.detach(), torch.full(shape, 0.25))
    assert isinstance(omega.value, Parameter) == learn
    with torch.no_grad():
        omega.value.fill_(9.0)
    omega.reset_parameters()
    assert_same_bits(omega.value.detach(), torch.full(shape, 0.25))
    assert set(omega.state_dict()) == {"value"}


@pytest.mark.parametrize(
    ("omega", "text"),
    [
        (OmegaWeight(), "OmegaWeight(scalar, init=1)"),
        (OmegaWeight(8), "OmegaWeight(8 channels, init=1)"),
        (OmegaWeight(init=0.5, learn=False), "OmegaWeight(scalar, init=0.5, fixed)"),
        (OmegaWeight(8, runs=2), "OmegaWeight(8 channels, init=1, runs=2)"),
        (OmegaWeight(-1), "OmegaWeight(-1 channels, init=1)"),
        (OmegaWeight(-1, learn=False), "OmegaWeight(-1 channels, init=1, fixed)"),
    ],
)
def test_it_says_what_it_is(omega: OmegaWeight, text: str) -> None:
    assert repr(omega) == text


@pytest.mark.parametrize(("learn", "kind"), [(True, UninitializedParameter), (False, UninitializedBuffer)])
def test_a_weight_may_wait_for_its_layer(learn: bool, kind: type) -> None:
    omega = OmegaWeight(-1, init=0.5, learn=learn)
    assert isinstance(omega.value, kind)
    conv = OmegaGCNConv(-1, 2, omega=omega)
    conv(torch.randn(3, 5), EDGES)
    assert_same_bits(omega.value.detach(), torch.full((5,), 0.5))
    assert isinstance(omega.value, Parameter) == learn
    OmegaGCNConv(5, 5, omega=omega)(torch.randn(3, 5), EDGES)
    sized = OmegaWeight(-1)
    OmegaGCNConv(4, 4, omega=sized)
    assert sized.value.shape == (4,)


def test_scopes_in_a_layer() -> None:
    assert OmegaGCNConv(4, 2, omega="channel").omega.shape == (4,)
    assert OmegaGCNConv(4, 2, omega="layer").omega.shape == ()
    fixed = OmegaGCNConv(4, 2, omega=1)
    assert not isinstance(fixed.omega, Parameter)
    assert float(fixed.omega) == 1.0
    shared = OmegaWeight()
    one, two = OmegaGCNConv(4, 2, omega=shared), OmegaGATConv(6, 2, omega=shared)
    assert one.omega is two.omega


@pytest.mark.parametrize(
    ("omega", "sentence"),
    [
        ("global", "One layer has no global ω: make one OmegaWeight() and pass it to every layer (OmegaNet does)."),
        ("node", "omega must be 'channel', 'layer', a number or an OmegaWeight, not 'node'."),
        (True, "omega must be 'channel', 'layer', a number or an OmegaWeight, not True."),
        (None, "omega must be 'channel', 'layer', a number or an OmegaWeight, not None."),
        (OmegaWeight(3), "The shared ω has 3 channels but the layer has 4: they must agree."),
    ],
)
@pytest.mark.parametrize("layer", [OmegaGCNConv, OmegaGATConv])
def test_a_wrong_omega_is_refused(layer: Any, omega: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the sentence is compared below
        layer(4, 4, omega=omega)
    assert str(caught.value) == sentence


def test_the_net_shares_one_global_weight_and_shows_all() -> None:
    net = OmegaNet(3, 4, 5, 2, omega="global")
    assert sum("omega" in name for name, _ in net.named_parameters()) == 1
    assert net.omega.shape == (5, 1)
    net.omega.sum().backward()
    (shared,) = net.grouped_parameters()["omega"]
    assert float(shared.grad) == 5
    shapes = {"channel": (5, 4), "layer": (5, 1), 0.5: (5, 1)}
    assert {omega: tuple(OmegaNet(3, 4, 5, 2, omega=omega).omega.shape) for omega in shapes} == shapes
    assert OmegaNet(3, 4, 5, 2, runs=2).omega.shape == (5, 2, 4)
    assert OmegaNet(3, 4, 5, 2, runs=2, omega="global").omega.shape == (5, 2, 1)
    assert OmegaNet(3, 4, 0, 2).omega.shape == (0, 1)
    assert OmegaNet(3, 4, 0, 2, runs=2).omega.shape == (0, 2, 1)

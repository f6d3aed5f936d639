"""Normalisations equal torch's and PyG's, run by run, with their gradients and running moments."""

from __future__ import annotations

import pytest
import torch
from assertions import assert_close, assert_same_bits, perturb
from torch import Tensor, nn
from torch_geometric.nn import PairNorm

from omegagnn.nn.norm import Norm


def theirs(kind: str, channels: int) -> nn.Module:
    if kind == "pair":
        return PairNorm(scale=1.0)
    module = nn.BatchNorm1d(channels) if kind == "batch" else nn.LayerNorm(channels)
    return module


@pytest.mark.parametrize("kind", ["batch", "layer", "pair"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("n", "channels"), [(2, 1), (7, 3), (50, 17)])
def test_it_equals_the_known_one(kind: str, training: bool, n: int, channels: int) -> None:
    ours, other = Norm(kind, channels).double(), theirs(kind, channels).double()  # type: ignore[arg-type]
    perturb(ours)
    perturb(other)
    x = torch.randn(n, channels, dtype=torch.float64, requires_grad=True)
    pull = torch.randn(n, channels, dtype=torch.float64)
    for _ in range(3):  # so that running moments are more than one step old
        expected, actual = other(x), ours(x)
    ours.train(training)
    other.train(training)
    expected, actual = other(x), ours(x)
    assert_close(actual, expected)
    expected_grads = torch.autograd.grad(expected, [x, *other.parameters()], pull)
    for mine, known in zip(torch.autograd.grad(actual, [x, *ours.parameters()], pull), expected_grads, strict=True):
        assert_close(mine, known)
    if kind == "batch":
        assert_close(ours.running_mean, other.running_mean)
        assert_close(ours.running_var, other.running_var)


@pytest.mark.parametrize("kind", ["batch", "layer", "pair"])
@pytest.mark.parametrize(("n", "channels", "runs"), [(2, 1, 2), (7, 3, 5), (501, 7, 3)])
def test_runs_are_normalised_by_themselves(kind: str, n: int, channels: int, runs: int) -> None:
    norm = Norm(kind, channels, runs=runs)  # type: ignore[arg-type]
    perturb(norm)
    x = torch.randn(n, runs, channels, requires_grad=True)
    start = {name: value.clone() for name, value in norm.state_dict().items()}
    y = norm(x)
    pull = torch.randn_like(y)
    grads = torch.autograd.grad(y, [x, *norm.parameters()], pull)
    for run in range(runs):
        one = Norm(kind, channels)  # type: ignore[arg-type]
        one.load_state_dict({name: value[run] for name, value in start.items()})
        mine = x[:, run].detach().requires_grad_()
        alone = one(mine)
        assert_same_bits(alone, y[:, run])
        own = torch.autograd.grad(alone, [mine, *one.parameters()], pull[:, run])
        assert_same_bits(own[0], grads[0][:, run])
        for single, together in zip(own[1:], grads[1:], strict=True):
            assert_same_bits(single, together[run])
        for name, value in one.named_buffers():
            assert_same_bits(value, norm.state_dict()[name][run])


@pytest.mark.parametrize("kind", ["batch", "layer", "pair"])
def test_derivatives(kind: str) -> None:
    norm = Norm(kind, 3, runs=2).double()  # type: ignore[arg-type]
    perturb(norm)
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm, x)
    assert torch.autograd.gradgradcheck(norm, x)


def test_pair_norm_has_a_scale_and_no_parameters() -> None:
    norm = Norm("pair", 4, scale=3.0)
    assert not list(norm.parameters())
    y: Tensor = norm(torch.randn(6, 4))
    assert float(y.square().sum(1).mean()) == pytest.approx(9, rel=1e-3)


def test_reset_forgets() -> None:
    norm = Norm("batch", 3)
    fresh = {name: value.clone() for name, value in norm.state_dict().items()}
    norm(torch.randn(5, 3))
    perturb(norm)
    norm.reset_parameters()
    for name, value in norm.state_dict().items():
        assert_same_bits(value, fresh[name])


def test_it_says_what_it_is_and_what_is_wrong() -> None:
    assert repr(Norm("layer", 4)) == "Norm(layer, 4)"
    with pytest.raises(ValueError, match=r"^norm must be 'batch', 'layer' or 'pair', not 'group'\.$"):
        Norm("group", 4)  # type: ignore[arg-type]
    sentence = r"^Batch normalisation needs at least two nodes in training: use a larger batch or another norm\.$"
    with pytest.raises(ValueError, match=sentence):
        Norm("batch", 4)(torch.ones(1, 4))
    assert Norm("batch", 4).eval()(torch.ones(1, 4)).shape == (1, 4)

"""From a configuration to a network with a run axis."""

from __future__ import annotations

import inspect
from functools import partial

import torch
from torch import Tensor

from omegagnn.errors import WrongUse
from omegagnn.nn.groups import Grouped
from omegagnn.nn.model import OmegaNet
from omegagnn.training.config import ModelConfig, RunConfig

OMEGA_MODELS = {"omega-gcn": "gcn", "omega-gat": "gat"}


def check_model(model: ModelConfig) -> None:
    """Refuse a network that does not exist, before anything is recorded or built."""
    if model.name in OMEGA_MODELS:
        if model.options:
            raise WrongUse(
                f"model.options belongs to baselines: {model.name} has no option {next(iter(model.options))!r}."
            )
        return
    from omegagnn.nn.baselines import BASELINES

    if model.name not in BASELINES:
        raise WrongUse(f"There is no model {model.name!r}: choose one of {', '.join([*OMEGA_MODELS, *BASELINES])}.")


def sized_for(config: RunConfig, num_nodes: int) -> RunConfig:
    """Return the configuration with the number of nodes for a network that knows nodes by their number (LINKX)."""
    if config.model.name in OMEGA_MODELS:
        return config  # no need to import the baselines, which bring PyTorch Geometric
    from omegagnn.nn.baselines import BASELINES

    kind = BASELINES.get(config.model.name)
    if kind is None or "num_nodes" not in inspect.signature(kind).parameters:
        return config
    return config.with_values({"model.options": {"num_nodes": num_nodes, **config.model.options}})


def build_net(model: ModelConfig, in_channels: int, out_channels: int, task: str, seeds: Tensor) -> Grouped:
    """Make the network of a configuration with one run a seed, each started from its seed alone."""
    level = "graph" if task == "graph" else "node"
    check_model(model)
    if model.name in OMEGA_MODELS:
        net = omega_net(model, in_channels, out_channels, level, runs=seeds.numel())
        net.reset_parameters(seeds)
        return net
    from omegagnn.nn.baselines import baseline
    from omegagnn.nn.stacked import StackedRuns

    sizes = (in_channels, model.channels, model.layers, out_channels)
    try:
        make = partial(baseline, model.name, *sizes, dropout=model.dropout, task=level, **model.options)
        return StackedRuns(make, seeds)
    except TypeError as error:
        raise WrongUse(f"Model {model.name!r} does not take these options: {error}.") from None


def omega_net(model: ModelConfig, in_channels: int, out_channels: int, level: str, runs: int | None) -> OmegaNet:
    """Make an ωGNN network, with a run axis or without."""
    return OmegaNet(
        in_channels,
        model.channels,
        model.layers,
        out_channels,
        model.dropout,
        conv="gcn" if model.name == "omega-gcn" else "gat",
        omega=model.omega,
        task="graph" if level == "graph" else "node",
        heads=model.heads,
        attention_dropout=model.attention_dropout,
        runs=runs,
        variant=model.variant,
        init=model.init,
        norm=model.norm,
        activation=model.activation,
        residual=model.residual,
        layer_dropout=model.layer_dropout,
        bias=model.bias,
    )


def mean_omega(net: Grouped) -> Tensor | None:
    """Return the mean learnt ω of each run, ``[R]``, or None for a network without ω."""
    if not isinstance(net, OmegaNet) or not len(net.convs):
        return None
    omega = net.omega.detach()
    if omega.device.type != "cpu":
        return omega.mean((0, 2))
    # Run by run, as the order of a sum over all of them would depend on the company.
    return torch.stack([omega[:, run].contiguous().mean() for run in range(omega.size(1))])

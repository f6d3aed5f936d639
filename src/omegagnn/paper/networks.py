"""The networks that are compared under one budget: each is given four settings of its rates, and validation chooses.

What the published settings of ωGNN give is one thing; whether ω itself helps is another, and needs networks that differ in one
ingredient and were given the same chances. So every network here has 64 channels, dropout 0.5, the same epochs and patience,
seeds and splits, and four choices of rates: two for its layers, and two of what else matters to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from omegagnn.data.registry import find
from omegagnn.paper.trainings import Rates, Training
from omegagnn.training.config import RunConfig

CHOICES = 4
DEPTHS = (2, 4, 8, 16, 32, 64)
# A usual network: K from Glorot, a usual rate, weight decay as it is usually chosen from.
USUAL = tuple({"lr_gnn": rate, "wd_gnn": decay, "wd_oc": decay} for rate, decay in product((1e-2, 1e-3), (5e-4, 5e-3)))
# K from the identity needs a small rate; the rate of the outer maps is what else to choose.
CAREFUL = tuple({"lr_gnn": rate, "lr_oc": outer} for rate, outer in product((1e-4, 1e-5), (3e-2, 1e-2)))
# The same with ω, whose rate is what else to choose.
LEARNT = tuple({"lr_gnn": rate, "lr_omega": omega} for rate, omega in product((1e-4, 1e-5), (3e-3, 3e-2)))


@dataclass(frozen=True)
class Network:
    """A row of a comparison: its title, what it is made of, its choices, and its depth where depth is not compared."""

    title: str
    values: dict[str, Any]
    choices: tuple[Rates, ...] = USUAL
    depth: int = 2
    tasks: tuple[str, ...] = ("semi", "full")
    options: dict[str, Any] = field(default_factory=dict)


def _usual(title: str, name: str, depth: int = 2, tasks: tuple[str, ...] = ("semi", "full"), **options: Any) -> Network:
    return Network(title, {"model.name": name, "training.lr_oc": 0.01}, USUAL, depth, tasks, options)


def _identity(title: str, name: str, omega: str | float) -> Network:
    choices = CAREFUL if isinstance(omega, float) else LEARNT
    return Network(title, {"model.name": name, "model.omega": omega, "training.lr_oc": 0.03}, choices)


GCN_ROWS = ("GCN", "GCN, K from I", "ωGCN")
NETWORKS: dict[str, Network] = {
    network.title: network
    for network in (
        _usual("MLP", "mlp"),
        _usual("GCN", "gcn"),
        _identity("GCN, K from I", "omega-gcn", 1.0),
        _identity("ωGCN", "omega-gcn", "channel"),
        _usual("GAT", "gat", heads=8),
        _identity("GAT, K from I", "omega-gat", 1.0),
        _identity("ωGAT", "omega-gat", "channel"),
        _usual("GCNII", "gcnii", 8),
        _usual("JKNet", "jknet"),
        _usual("APPNP", "appnp", 10),
        _usual("GPRGNN", "gprgnn", 10),
        _usual("SGC", "sgc"),
        _usual("GATv2", "gatv2", heads=8),
        _usual("superGAT", "supergat", heads=8),
        _usual("FAGCN", "fagcn"),
        _usual("MixHop", "mixhop"),
        _usual("GIN", "gin", tasks=("semi",)),
        _usual("LINKX", "linkx", tasks=("full",)),
        _identity("ωGCN_G", "omega-gcn", "global"),
        _identity("ωGCN_PL", "omega-gcn", "layer"),
        _identity("ωGAT_G", "omega-gat", "global"),
        _identity("ωGAT_PL", "omega-gat", "layer"),
    )
}
SCOPED = ("ωGCN_G", "ωGCN_PL", "ωGAT_G", "ωGAT_PL")


def compared(task: str) -> Iterator[Network]:
    """Yield the networks of a comparison; the scopes of ω have one of their own."""
    yield from (network for network in NETWORKS.values() if task in network.tasks and network.title not in SCOPED)


def at_equal_budget(network: Network, data: str, task: str, depth: int, **values: Any) -> Training:
    """Return the training of a network under the common budget; `values` may replace settings, with ``__`` for the dot."""
    options = dict(network.options)
    if network.values["model.name"] == "linkx":
        options["num_nodes"] = find(data).statistics.nodes
    settings = {
        "data.name": data,
        "data.split": _split(data, task),
        "model.layers": depth,
        "model.channels": 64,
        "model.dropout": 0.5,
        "training.wd_gnn": 5e-4,
        "training.wd_oc": 5e-4,
        "training.epochs": 500,
        "training.patience": 100,
        **network.values,
        **({"model.options": options} if options else {}),
        **{key.replace("__", "."): value for key, value in values.items()},
    }
    name = f"{task} {data}, {network.title}, {depth} layers, chosen"
    return Training(
        name,
        f"{task}-{data}",
        RunConfig().with_values(settings),
        seeds=10 if task == "semi" else 1,
        choices=network.choices,
    )


def _split(data: str, task: str) -> str:
    if task == "semi":
        return "public"
    return "heterophilous" if data.endswith("-filtered") else "geom"


__all__ = ["CHOICES", "DEPTHS", "GCN_ROWS", "NETWORKS", "Network", "at_equal_budget", "compared"]

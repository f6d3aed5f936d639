"""Small graphs and baselines that the tests of the baselines share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from omegagnn.graph import Graph
from omegagnn.nn.baselines import BASELINES, Baseline, baseline
from omegagnn.ops import Draws

N, F, C, OUT = 24, 11, 6, 4
UNWEIGHTED = {"gat", "gatv2", "gin", "supergat"}
NODE_ONLY = {"linkx", "supergat"}
CASES = [(name, task) for name in BASELINES for task in ("node", "graph") if task == "node" or name not in NODE_ONLY]


def make(name: str, num_layers: int = 2, **options: Any) -> Baseline:
    if name == "linkx":
        options.setdefault("num_nodes", N)
    return baseline(name, F, C, num_layers, OUT, **options)


def pairs(n: int = N, count: int = 50) -> Tensor:
    one = torch.randint(0, n, (2, count))
    one = one[:, one[0] != one[1]].unique(dim=1)
    return torch.cat([one, one.flip(0)], dim=1).unique(dim=1)


def graph_for(name: str, directed: bool = False) -> Graph:
    edge_index = pairs()
    if directed:
        edge_index = edge_index[:, torch.rand(edge_index.size(1)) < 0.6]
    return Graph.from_edge_index(edge_index, N, None if name in UNWEIGHTED else torch.rand(edge_index.size(1)) + 0.1)


def draws(seed: int = 5, step: int = 3) -> Draws:
    return Draws(torch.tensor([seed]), step)

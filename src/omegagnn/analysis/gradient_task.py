r"""The paper's synthetic task: regress the upwind gradient :math:`(\nabla f)_i = \max_{j \in N_i} (f_i - f_j)` of node features.

A difference of neighbours needs weights of both signs. Without biases a GCN cannot give them: its features are
non-negative multiples of one column at each layer, so that two layers fit :math:`a S^2 f` with a single number a,
whatever the width, whereas ωGCN sees :math:`f - ω (f - S f)` with an ω for each channel. With biases a GCN is a piecewise
linear function of :math:`S f` and fits better, which the paper does not show; it has a row of its own here.

Many (network, graph) pairs are trained side by side: dense operators ``[R, n, n]`` and batched products, which for
graphs of 8 nodes is a hundred times faster than one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from omegagnn.analysis.spectrum import float64_graph
from omegagnn.graph import Graph

START_STRIDE = 1000  # between the seeds of two starts of the same task


@dataclass(frozen=True, eq=False)
class GradientTask:
    """A connected random graph, features ``[n, 1]`` uniform in [0, 1] and their upwind gradient ``[n, 1]``, in float64."""

    seed: int
    graph: Graph
    features: Tensor
    target: Tensor


@dataclass(frozen=True)
class Network:
    """A row of the comparison: the paper's node architecture without dropout; ω stays at 1 where it is not learnt."""

    name: str
    learn_omega: bool
    init: Literal["identity", "glorot"]
    bias: bool


OMEGA_GCN = Network("ωGCN", learn_omega=True, init="identity", bias=False)
GCN = Network("GCN", learn_omega=False, init="glorot", bias=False)
BIASED_GCN = Network("GCN with biases", learn_omega=False, init="glorot", bias=True)
NETWORKS = (
    OMEGA_GCN,
    Network("ωGCN, Glorot K", learn_omega=True, init="glorot", bias=False),
    Network("ωGCN with biases", learn_omega=True, init="identity", bias=True),
    GCN,
    Network("GCN, identity K", learn_omega=False, init="identity", bias=False),
    BIASED_GCN,
    Network("GCN with biases, identity K", learn_omega=False, init="identity", bias=True),
)


def gradient_task(seed: int, num_nodes: int = 8, edge_rate: float = 0.3) -> GradientTask:
    """Return the task of a seed: Erdős–Rényi graphs are drawn until one is connected."""
    import networkx as nx

    random = np.random.default_rng(seed)
    while True:
        upper = np.triu(random.random((num_nodes, num_nodes)) < edge_rate, 1)
        drawn = nx.from_numpy_array(upper | upper.T)
        if nx.is_connected(drawn):
            break
    graph = Graph.from_networkx(drawn, weight=None)
    features = torch.from_numpy(random.random((num_nodes, 1)))
    return GradientTask(seed, graph, features, upwind_gradient(features, graph))


def upwind_gradient(x: Tensor, graph: Graph) -> Tensor:
    r"""Return :math:`\max_{j \in N_i} (f_i - f_j)` for each node and channel, ``[n, c]``; 0 for nodes without neighbours."""
    differences = x[graph.row] - x[graph.col]
    index = graph.row.long().unsqueeze(-1).expand_as(differences)
    return torch.zeros_like(x).scatter_reduce(0, index, differences, "amax", include_self=False)


def train_model(
    model: Callable[[Tensor, Graph], Tensor], task: GradientTask, steps: int = 5000, learning_rate: float = 1e-3
) -> float:
    r"""Train any module ``model(x, graph)`` of float64 parameters on one task; return :math:`\|model(f) - \nabla f\|^2`."""
    assert isinstance(model, nn.Module)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(task.features, task.graph) - task.target).square().sum().backward()
        optimizer.step()
    with torch.no_grad():
        return float((model(task.features, task.graph) - task.target).square().sum())


class ParallelNets(nn.Module):
    r"""Independent networks, one for each (network, task) pair: 1×1 → ReLU → L × {(I − Ω(I − S)) f K → ReLU} → 1×1.

    A pair draws its parameters from `start` and the seed of its task alone: its start does not depend on its company.
    """

    operator: Tensor
    features: Tensor
    target: Tensor
    learns: Tensor
    biased: Tensor

    def __init__(
        self, pairs: Sequence[tuple[Network, GradientTask]], channels: int = 64, num_layers: int = 2, start: int = 0
    ) -> None:
        """Make the parameters ``[R, in, out]`` and the dense operators ``[R, n, n]`` of R pairs."""
        super().__init__()
        operators = [float64_graph(task.graph).gcn_norm().to_dense() for _, task in pairs]
        self.register_buffer("operator", torch.stack(operators))
        self.register_buffer("features", torch.stack([task.features for _, task in pairs]))
        self.register_buffer("target", torch.stack([task.target for _, task in pairs]))
        networks = [network for network, _ in pairs]
        self.register_buffer("learns", _flags([network.learn_omega for network in networks]))
        self.register_buffer("biased", _flags([network.bias for network in networks]))
        starts = [_start(network, task.seed + START_STRIDE * start, channels, num_layers) for network, task in pairs]
        self.maps = nn.ParameterList(nn.Parameter(torch.stack(each)) for each in zip(*starts, strict=True))
        runs = len(pairs)
        self.omega_change = nn.ParameterList(_zeros(runs, 1, channels) for _ in range(num_layers))
        self.biases = nn.ParameterList(_zeros(runs, 1, weight.size(2)) for weight in self.maps)

    def omega(self, layer: int) -> Tensor:
        """Return ω of a layer, ``[R, 1, c]``: 1 plus what was learnt, where it is learnt."""
        return 1 + self.learns * self.omega_change[layer]

    def forward(self) -> Tensor:
        """Return the predictions, ``[R, n, 1]``."""
        last = len(self.maps) - 1
        f = self._mapped(0, self.features).relu()
        for layer in range(1, last):
            f = f - self.omega(layer - 1) * (f - self.operator @ f)
            f = self._mapped(layer, f).relu()
        return self._mapped(last, f)

    def losses(self) -> Tensor:
        """Return the squared error of each pair, ``[R]``."""
        return (self() - self.target).square().sum(dim=(1, 2))

    def _mapped(self, place: int, f: Tensor) -> Tensor:
        return f @ self.maps[place] + self.biased * self.biases[place]


def train_pairs(
    pairs: Sequence[tuple[Network, GradientTask]],
    steps: int = 5000,
    learning_rate: float = 1e-3,
    channels: int = 64,
    num_layers: int = 2,
    start: int = 0,
) -> Tensor:
    """Train every pair with Adam (no weight decay) in float64; return the loss of each after the last step, ``[R]``.

    `start` chooses other initial parameters for the same tasks.
    """
    nets = train_nets(ParallelNets(pairs, channels, num_layers, start), steps, learning_rate)
    with torch.no_grad():
        return nets.losses()


def train_nets(nets: ParallelNets, steps: int = 5000, learning_rate: float = 1e-3) -> ParallelNets:
    """Train networks with Adam (no weight decay) and return them."""
    optimizer = torch.optim.Adam(nets.parameters(), lr=learning_rate, foreach=True)
    for _ in range(steps):
        optimizer.zero_grad()
        nets.losses().sum().backward()
        optimizer.step()
    return nets


def _start(network: Network, seed: int, channels: int, num_layers: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    opening, closing = _glorot(1, channels, generator), _glorot(channels, 1, generator)
    if network.init == "identity":
        inner = [torch.eye(channels, dtype=torch.float64) for _ in range(num_layers)]
    else:
        inner = [_glorot(channels, channels, generator) for _ in range(num_layers)]
    return [opening, *inner, closing]


def _glorot(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    bound = (6 / (rows + columns)) ** 0.5
    return (2 * torch.rand(rows, columns, dtype=torch.float64, generator=generator) - 1) * bound


def _zeros(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape, dtype=torch.float64))


def _flags(values: list[bool]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).reshape(-1, 1, 1)


__all__ = [
    "BIASED_GCN",
    "GCN",
    "NETWORKS",
    "OMEGA_GCN",
    "GradientTask",
    "Network",
    "ParallelNets",
    "gradient_task",
    "train_model",
    "train_nets",
    "train_pairs",
    "upwind_gradient",
]

"""Baselines that keep maps and propagation apart, in the interface of `OmegaNet`: MLP, SGC, APPNP, GPRGNN and LINKX."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Unpack

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from omegagnn.graph import Graph
from omegagnn.nn.linear import Map
from omegagnn.nn.model import INPUT, LAYER, PLACES
from omegagnn.nn.runs import add_bias
from omegagnn.nn.skeleton import Baseline, Edges, Options
from omegagnn.ops import Draws, SparseFeatures, spmm


class MLP(Baseline):
    r"""A network that does not see the graph: :math:`f_{l+1} = σ(f_l K_l)`; what is left of every model without edges."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see `Baseline`."""
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        if self.drop_edge:
            raise ValueError("MLP has no edges to drop: leave drop_edge at 0.")
        self.build(lambda _: Map(hidden_channels, hidden_channels, bias=self.bias))

    def edges(self, graph: Graph, dtype: torch.dtype) -> Edges:
        """Return nothing of use: there are no convs."""
        return Edges(torch.empty(2, 0, dtype=torch.long), None, graph)

    def convolve(
        self, layer: int, conv: nn.Module, f: Tensor, first: Tensor, edges: Edges, draws: Draws | None
    ) -> Tensor:
        """Multiply with K."""
        return conv(f)


class SGC(Baseline):
    r"""Simple graph convolution, `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_.

    .. math::
        Z = S^L X Θ + b

    with L = `num_layers`. It is computed as :math:`S^L (X Θ)`, the same number, so that sparse features stay sparse; a node
    task therefore has one map only, and `hidden_channels` matters for graph tasks alone (Z, add-pool, head).
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int = 2,
        out_channels: int | None = None,
        dropout: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see `Baseline`."""
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        self.refuse_norm()
        width = hidden_channels if self.task == "graph" else self.out_channels
        self.shift = Parameter(torch.empty(width)) if self.bias else None
        self.build()
        self.opening = Map(in_channels, width)
        if self.task == "node":
            self.closing = None
        self.reset_parameters()

    def reset_parameters(self, seeds: Tensor | None = None) -> None:
        """Draw the maps anew and set b to 0."""
        super().reset_parameters(seeds)
        if self.shift is not None:
            nn.init.zeros_(self.shift)

    def embed(self, x: Tensor | SparseFeatures, graph: Graph, draws: Draws | None = None) -> Tensor:
        """Return Z."""
        p = self.dropout if self.task == "node" else 0.0
        f, operator = self.opening(x, *self.random(p, INPUT, draws)), self.structure(graph)
        for _ in range(self.num_layers):
            f = spmm(operator, f)
        return add_bias(f, self.shift)

    def classify(self, f: Tensor, graph: Graph, draws: Draws | None) -> Tensor:
        """Return the logits, which a node task has already."""
        return f if self.task == "node" else super().classify(f, graph, draws)


class PredictThenPropagate(Baseline):
    """An MLP of two maps whose predictions (hidden features for a graph task) are then propagated."""

    def propagate(self, z: Tensor, graph: Graph) -> Tensor:
        """Spread predictions over the graph."""
        raise NotImplementedError

    def embed(self, x: Tensor | SparseFeatures, graph: Graph, draws: Draws | None = None) -> Tensor:
        """Return hidden features, propagated where they are pooled next."""
        f = self.open(x, draws)
        return self.propagate(f, graph) if self.task == "graph" else f

    def classify(self, f: Tensor, graph: Graph, draws: Draws | None) -> Tensor:
        """Return the logits, propagated for nodes."""
        z = super().classify(f, graph, draws)
        return self.propagate(z, graph) if self.task == "node" else z


class APPNP(PredictThenPropagate):
    r"""Personalised PageRank of predictions, `"Predict then Propagate" <https://arxiv.org/abs/1810.05997>`_.

    .. math::
        H = \mathrm{MLP}(X), \quad Z_0 = H, \quad Z_{k+1} = (1 - α) S Z_k + α H

    `num_layers` is the number of steps K; the paper has K = 10, α = 0.1 and a hidden layer of 64.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int = 10,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        alpha: float = 0.1,
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see `Baseline`."""
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        self.refuse_norm()
        self.alpha = alpha
        self.build()

    def propagate(self, z: Tensor, graph: Graph) -> Tensor:
        """Take K steps of personalised PageRank."""
        operator, h = self.structure(graph), z
        for _ in range(self.num_layers):
            z = (1 - self.alpha) * spmm(operator, z) + self.alpha * h
        return z


class GPRGNN(PredictThenPropagate):
    r"""Generalised PageRank, `"Adaptive Universal Generalized PageRank GNN" <https://arxiv.org/abs/2006.07988>`_.

    .. math::
        Z = \sum_{k=0}^{K} γ_k S^k \mathrm{MLP}(X), \qquad γ_k = α (1 - α)^k,\ γ_K = (1 - α)^K \text{ at the start}

    `num_layers` is the number of steps K (10 in the paper); the γ are learnt, and belong to the layers' group.
    """

    gnn_parts: ClassVar[tuple[str, ...]] = ("convs", "gamma")

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int = 10,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        alpha: float = 0.1,
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see `Baseline`."""
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        self.refuse_norm()
        self.alpha = alpha
        self.gamma = Parameter(torch.empty(num_layers + 1))
        self.build()

    def reset_parameters(self, seeds: Tensor | None = None) -> None:
        """Draw the maps anew and set γ to personalised PageRank."""
        super().reset_parameters(seeds)
        with torch.no_grad():
            self.gamma.copy_((1 - self.alpha) ** torch.arange(self.num_layers + 1))
            self.gamma[:-1] *= self.alpha

    def propagate(self, z: Tensor, graph: Graph) -> Tensor:
        """Sum the steps, each with its γ."""
        operator, total = self.structure(graph), self.gamma[0] * z
        for k in range(1, self.num_layers + 1):
            z = spmm(operator, z)
            total = total + self.gamma[k] * z
        return total


class LINKX(Baseline):
    r"""LINKX, `"Large Scale Learning on Non-Homophilous Graphs" <https://arxiv.org/abs/2110.14446>`_.

    .. math::
        H_A = A W_A, \quad H_X = X W_X, \quad
        Y = \mathrm{MLP}_f\left(σ\left(W [H_A, H_X] + H_A + H_X\right)\right)

    with A the adjacency as it is given. It knows nodes by their number: the graph it predicts for is the one it was trained
    on, of `num_nodes` nodes. The final MLP has `num_layers` maps (at least one, the closing map) with ReLU, batch norm and
    dropout between them, as in PyTorch Geometric.
    """

    gnn_parts: ClassVar[tuple[str, ...]] = ("adjacency",)

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        num_nodes: int,
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see `Baseline`."""
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        self.refuse_norm()
        if self.task == "graph":
            raise ValueError("LINKX knows nodes by their number and cannot see other graphs: use it for task='node'.")
        if num_layers < 1:
            raise ValueError("LINKX needs num_layers of at least 1, the closing map.")
        self.num_nodes = num_nodes
        self.adjacency = Map(num_nodes, hidden_channels, bias=self.bias)
        make = partial(Map, hidden_channels, hidden_channels, bias=self.bias)
        self.mix_adjacency, self.mix_features = make(), make()
        self.build(lambda _: make(), layers=num_layers - 1, norm="batch")

    def embed(self, x: Tensor | SparseFeatures, graph: Graph, draws: Draws | None = None) -> Tensor:
        """Return the features before the closing map."""
        if graph.num_nodes != self.num_nodes:
            raise ValueError(
                f"LINKX was made for {self.num_nodes} nodes but the graph has {graph.num_nodes}: make it anew."
            )
        edges = add_bias(spmm(graph, self.adjacency.weight), self.adjacency.bias)
        features = self.opening(x)
        f = torch.relu(edges + self.mix_adjacency(edges) + features + self.mix_features(features))
        for layer, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            f = norm(torch.relu(conv(self.drop(f, self.dropout if layer else 0.0, LAYER + PLACES * layer, draws))))
        return f

"""Baselines that weigh edges by attention, from PyTorch Geometric's convs: GAT, GATv2, SuperGAT and FAGCN."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import FAConv, GATConv, GATv2Conv, SuperGATConv

from omegagnn.graph import Graph
from omegagnn.nn.conv import Init
from omegagnn.nn.model import PLACES
from omegagnn.nn.skeleton import NEGATIVES, Baseline, Edges, Options, attention_place, start_at_identity, unweighted
from omegagnn.ops import Draws, dropout
from omegagnn.ops.random import UNIFORM_BITS, draw_bits


class DrawnGATConv(GATConv):
    """A `GATConv` whose attention dropout is drawn by counter: `drawn` is (p, key) for the pass under way, or None."""

    drawn: tuple[float, Tensor] | None = None

    def edge_update(self, alpha_j, alpha_i, edge_attr, index, ptr, dim_size):  # type: ignore[no-untyped-def]
        """Return the attention coefficients of all edges, some of them dropped."""
        alpha = super().edge_update(alpha_j, alpha_i, edge_attr, index, ptr, dim_size)
        return alpha if self.drawn is None else dropout(alpha, *self.drawn)


class DrawnGATv2Conv(GATv2Conv):
    """A `GATv2Conv` whose attention dropout is drawn by counter; see `DrawnGATConv`."""

    drawn: tuple[float, Tensor] | None = None

    def edge_update(self, x_j, x_i, edge_attr, index, ptr, dim_size):  # type: ignore[no-untyped-def]
        """Return the attention coefficients of all edges, some of them dropped."""
        alpha = super().edge_update(x_j, x_i, edge_attr, index, ptr, dim_size)
        return alpha if self.drawn is None else dropout(alpha, *self.drawn)


class GAT(Baseline):
    r"""Graph attention, `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_.

    .. math::
        f_{l+1, i} = σ\left(\sum_{j ∈ N(i) ∪ \{i\}} α_{ij} W_l^\top f_{l, j}\right), \qquad
        α_{ij} = \operatorname{softmax}_j \operatorname{LeakyReLU}
                 \left(a_\mathrm{dst}^\top W_l^\top f_{l, i} + a_\mathrm{src}^\top W_l^\top f_{l, j}\right)

    As published, σ is ELU and dropout acts before each layer too (`layer_dropout` takes `dropout`); the paper also drops
    attention coefficients (``attention_dropout=0.6`` on citation graphs). Edges are unweighted.

    Args:
        heads: number of attention heads, which share `hidden_channels` evenly.
        attention_dropout: p of dropout on attention coefficients, drawn by counter.
        init: start of W, ``"glorot"`` as usually built, or ``"identity"``.
    """

    conv: ClassVar[Any] = DrawnGATConv

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        heads: int = 1,
        attention_dropout: float = 0.0,
        init: Init = "glorot",
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see the class and `Baseline`."""
        options.setdefault("layer_dropout", dropout)
        options.setdefault("activation", "elu")
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        self.heads, self.attention_dropout, self.init = heads, attention_dropout, init
        each = share_evenly(hidden_channels, heads)
        self.build(lambda _: self.conv(hidden_channels, each, heads, add_self_loops=False, bias=self.bias))

    def reset_parameters(self, seeds: Tensor | None = None) -> None:
        """Draw all parameters anew; W is then set to the identity where that is asked for."""
        super().reset_parameters(seeds)
        start_at_identity(self.init, self.convs)

    def structure(self, graph: Graph) -> Graph:
        """Return the graph with a self-loop at each node."""
        return unweighted(graph, self).with_self_loops()

    def convolve(
        self, layer: int, conv: nn.Module, f: Tensor, first: Tensor, edges: Edges, draws: Draws | None
    ) -> Tensor:
        """Call the conv with its attention dropout."""
        p, key = self.random(self.attention_dropout, attention_place(layer), draws)
        attention: Any = conv
        attention.drawn = None if key is None else (p, key)
        try:
            return attention(f, edges.pairs)
        finally:
            attention.drawn = None


class GATv2(GAT):
    r"""Graph attention whose ranking depends on the receiver, `"How Attentive are GATs?" <https://arxiv.org/abs/2105.14491>`_.

    .. math::
        α_{ij} = \operatorname{softmax}_j a^\top \operatorname{LeakyReLU}
                 \left(W_\mathrm{dst}^\top f_i + W_\mathrm{src}^\top f_j\right)

    Arguments and everything else as in `GAT`; its two maps start at Glorot uniform.
    """

    conv: ClassVar[Any] = DrawnGATv2Conv


class SuperGAT(Baseline):
    r"""Attention that also learns to tell edges from non-edges, `"SuperGAT" <https://openreview.net/forum?id=Wi5KUNlqWty>`_.

    .. math::
        α_{ij} = \operatorname{softmax}_j \operatorname{LeakyReLU}\left(
            \left(a_l^\top W^\top f_j + a_r^\top W^\top f_i\right) · \mathrm{sigmoid}\big((W^\top f_i)^\top W^\top f_j\big)\right)

    (attention ``MX``). In training, pairs of nodes drawn by counter, half as many as edges, serve as non-edges; the
    cross-entropy of telling them apart is handed out, once, by `auxiliary_loss` and belongs into the training loss.
    σ and dropout are `GAT`'s; attention itself is not dropped.

    Args:
        heads: number of attention heads, which share `hidden_channels` evenly.
        attention_loss: weight of the auxiliary loss.
        negative_ratio: number of non-edges over number of edges.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        heads: int = 1,
        attention_loss: float = 4.0,
        negative_ratio: float = 0.5,
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see the class and `Baseline`."""
        options.setdefault("layer_dropout", dropout)
        options.setdefault("activation", "elu")
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        if self.task == "graph":
            raise ValueError("SuperGAT draws non-edges within one graph: use it for task='node'.")
        self.heads, self.attention_loss, self.negative_ratio = heads, attention_loss, negative_ratio
        self._auxiliary: Tensor | None = None
        each = share_evenly(hidden_channels, heads)
        self.build(lambda _: SuperGATConv(hidden_channels, each, heads, add_self_loops=False, bias=self.bias))

    @property
    def vectorisable(self) -> bool:
        """The number of non-edges differs from run to run."""
        return False

    def structure(self, graph: Graph) -> Graph:
        """Return the graph with a self-loop at each node."""
        return unweighted(graph, self).with_self_loops()

    def convolve(
        self, layer: int, conv: nn.Module, f: Tensor, first: Tensor, edges: Edges, draws: Draws | None
    ) -> Tensor:
        """Call the conv; in training with non-edges, whose loss is added up over the layers."""
        if not self.training or draws is None:
            return conv(f, edges.pairs)
        key = draws.key(NEGATIVES + PLACES * layer)
        supervised: Any = conv
        out = supervised(f, edges.pairs, draw_non_edges(edges.graph, self.negative_ratio, key))
        loss = self.attention_loss * supervised.get_attention_loss()
        self._auxiliary = loss if layer == 0 or self._auxiliary is None else self._auxiliary + loss
        supervised.att_x = supervised.att_y = None  # they would keep this pass alive
        return out

    def auxiliary_loss(self) -> Tensor | None:
        """Return the weighted loss of the last training pass and forget it."""
        loss, self._auxiliary = self._auxiliary, None
        return loss

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_auxiliary": None}  # a loss belongs to one pass: copies start without


class FAGCN(Baseline):
    r"""Frequency-adaptive convolutions, `"Beyond Low-frequency Information in GCNs" <https://arxiv.org/abs/2101.00797>`_.

    .. math::
        f_{l+1, i} = ε f_{0, i} + \sum_{j ∈ N(i)} \frac{\tanh\left(g^\top [f_{l, i} \Vert f_{l, j}]\right)}{\sqrt{d_i d_j}}
                     f_{l, j}

    As published, without self-loops and without σ between layers.

    Args:
        eps: ε, the share of the first features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        eps: float = 0.1,
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see the class and `Baseline`."""
        options.setdefault("activation", None)
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        self.build(lambda _: FAConv(hidden_channels, eps, normalize=False))

    def structure(self, graph: Graph) -> Graph:
        """Return the normalised graph without self-loops (a finished operator as it is)."""
        if graph.is_operator:
            return graph
        return graph._once("no loops", graph.without_self_loops).gcn_norm(add_self_loops=False)

    def convolve(
        self, layer: int, conv: nn.Module, f: Tensor, first: Tensor, edges: Edges, draws: Draws | None
    ) -> Tensor:
        """Call the conv with the first features."""
        return conv(f, first, edges.pairs, edges.weight)


def share_evenly(channels: int, heads: int) -> int:
    """Return the number of channels of each head."""
    if heads < 1 or channels % heads:
        raise ValueError(f"{channels} channels cannot be split evenly over {heads} heads: change one of them.")
    return channels // heads


def draw_non_edges(graph: Graph, ratio: float, key: Tensor) -> Tensor:
    """Draw about ``ratio · E`` pairs of nodes and return those that are no edges, ``[2, ·]``; `key` is ``[1, 2]``."""
    n = graph.num_nodes
    bits = draw_bits(key[0], torch.arange(2 * int(ratio * graph.num_edges), device=graph.device)).view(2, -1)
    sender, receiver = (bits * n) >> UNIFORM_BITS
    edges = graph.row.long() * n + graph.col.long()
    free = ~torch.isin(receiver * n + sender, edges)
    return torch.stack([sender[free], receiver[free]])

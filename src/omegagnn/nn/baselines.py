"""The networks ωGNN is compared with, from PyTorch Geometric's convs, in the interface of `OmegaNet`.

Every model takes the arguments of `Baseline` and, like PyG at its best setting, a graph whose self-loops and normalisation
were computed once. `baseline` makes one by name.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack

from torch import Tensor, nn
from torch_geometric.nn import GCN2Conv, GCNConv, GINConv, JumpingKnowledge, MixHopConv

from omegagnn.errors import WrongUse
from omegagnn.graph import Graph
from omegagnn.nn.attention_baselines import FAGCN, GAT, GATv2, SuperGAT
from omegagnn.nn.conv import Init
from omegagnn.nn.decoupled import APPNP, GPRGNN, LINKX, MLP, SGC
from omegagnn.nn.linear import Map
from omegagnn.nn.norm import Norm
from omegagnn.nn.skeleton import Baseline, Edges, Options, start_at_identity, unweighted
from omegagnn.ops import Draws, SparseFeatures


class GCN(Baseline):
    r"""Graph convolutions, `"Semi-Supervised Classification with GCNs" <https://arxiv.org/abs/1609.02907>`_.

    .. math::
        f_{l+1} = σ(S f_l K_l)

    Args:
        init: ``"glorot"``, as usually built, or ``"identity"``: with ``bias=False`` that is `OmegaNet` with ω fixed at 1.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        init: Init = "glorot",
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see the class and `Baseline`."""
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        self.init = init
        self.build(lambda _: GCNConv(hidden_channels, hidden_channels, normalize=False, bias=self.bias))

    def reset_parameters(self, seeds: Tensor | None = None) -> None:
        """Draw all parameters anew; K is then set to the identity where that is asked for."""
        super().reset_parameters(seeds)
        start_at_identity(self.init, self.convs)


class GCNII(Baseline):
    r"""GCN with initial residual and identity mapping, `"Simple and Deep GCNs" <https://arxiv.org/abs/2007.02133>`_.

    .. math::
        f_{l+1} = σ\left(\left((1 - α) S f_l + α f_0\right) \left((1 - β_l) I + β_l K_l\right)\right),
        \qquad β_l = \log(θ / l + 1)

    As published, dropout acts before each layer too (`layer_dropout` takes `dropout`) and the layers have no bias.

    Args:
        alpha: share of the first features.
        theta: governs how fast the maps approach the identity.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        alpha: float = 0.1,
        theta: float = 0.5,
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see the class and `Baseline`."""
        options.setdefault("layer_dropout", dropout)
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        self.build(lambda layer: GCN2Conv(hidden_channels, alpha, theta, layer + 1, normalize=False))

    def convolve(
        self, layer: int, conv: nn.Module, f: Tensor, first: Tensor, edges: Edges, draws: Draws | None
    ) -> Tensor:
        """Call the conv with the first features."""
        return conv(f, first, edges.pairs, edges.weight)


class JKNet(Baseline):
    r"""Jumping knowledge, `"Representation Learning on Graphs with Jumping Knowledge" <https://arxiv.org/abs/1806.03536>`_.

    .. math::
        f_{l+1} = σ(S f_l K_l), \qquad Z = \mathrm{join}(f_1, …, f_L)\, W

    Args:
        mode: how the layers are joined: ``"cat"`` or ``"max"``.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        mode: Literal["cat", "max"] = "cat",
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see the class and `Baseline`."""
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        if mode not in ("cat", "max"):
            raise ValueError(f"mode must be 'cat' or 'max', not {mode!r}.")
        if num_layers < 1:
            raise ValueError("JKNet joins its layers: num_layers must be at least 1.")
        self.join = JumpingKnowledge(mode)
        self.build(
            lambda _: GCNConv(hidden_channels, hidden_channels, normalize=False, bias=self.bias),
            joined=hidden_channels * (num_layers if mode == "cat" else 1),
        )

    def embed(self, x: Tensor | SparseFeatures, graph: Graph, draws: Draws | None = None) -> Tensor:
        """Return the features of all layers, joined."""
        return self.join(list(self.outputs(x, graph, draws))[1:])


class GIN(Baseline):
    r"""Graph isomorphism network, `"How Powerful are Graph Neural Networks?" <https://arxiv.org/abs/1810.00826>`_.

    .. math::
        f_{l+1} = σ\left(\mathrm{BN}\left(\mathrm{MLP}_l\left((1 + ε_l) f_l + \sum_{j → i} f_{l, j}\right)\right)\right)

    The MLP is map, batch norm, ReLU, map. Edges are unweighted, and nothing is normalised.

    Args:
        train_eps: whether ε is learnt; else it stays 0.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        train_eps: bool = False,
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see the class and `Baseline`."""
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        self.train_eps = train_eps
        self.build(self._make_conv, norm=self.norm or "batch", maps=False)

    def _make_conv(self, _: int) -> GINConv:
        c = self.hidden_channels
        mlp = nn.Sequential(Map(c, c, bias=self.bias), Norm("batch", c), nn.ReLU(), Map(c, c, bias=self.bias))
        return GINConv(mlp, train_eps=self.train_eps)

    def structure(self, graph: Graph) -> Graph:
        """Return the graph as it is."""
        return unweighted(graph, self)

    def convolve(
        self, layer: int, conv: nn.Module, f: Tensor, first: Tensor, edges: Edges, draws: Draws | None
    ) -> Tensor:
        """Call the conv, which knows no weights."""
        return conv(f, edges.pairs)


class MixHop(Baseline):
    r"""Powers of S side by side, `"MixHop" <https://arxiv.org/abs/1905.00067>`_.

    .. math::
        f_{l+1} = σ\left(\big\Vert_{p ∈ P} S^p f_l K_{l, p}\right)

    Each layer has ``len(powers) * hidden_channels`` channels. PyG's conv normalises the graph at every pass.

    Args:
        powers: P, the powers of S.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        powers: tuple[int, ...] = (0, 1, 2),
        **options: Unpack[Options],
    ) -> None:
        """Make the network; see the class and `Baseline`."""
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, dropout, **options)
        c, wide = hidden_channels, len(powers) * hidden_channels
        self.build(
            lambda layer: MixHopConv(wide if layer else c, c, list(powers), bias=self.bias),
            width=wide,
            joined=wide if num_layers else c,
        )

    def structure(self, graph: Graph) -> Graph:
        """Return the graph as it is, for PyG's conv to normalise."""
        if graph.is_operator:
            raise ValueError("MixHop normalises the graph itself: pass the graph before gcn_norm().")
        return graph


BASELINES: dict[str, type[Baseline]] = {
    "appnp": APPNP,
    "fagcn": FAGCN,
    "gat": GAT,
    "gatv2": GATv2,
    "gcn": GCN,
    "gcnii": GCNII,
    "gin": GIN,
    "gprgnn": GPRGNN,
    "jknet": JKNet,
    "linkx": LINKX,
    "mixhop": MixHop,
    "mlp": MLP,
    "sgc": SGC,
    "supergat": SuperGAT,
}


def baseline(name: str, /, *args: Any, **arguments: Any) -> Baseline:
    """Make a baseline by name.

    >>> import torch
    >>> baseline("gcn", in_channels=5, hidden_channels=8, num_layers=2, out_channels=3)(
    ...     torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])
    ... ).shape
    torch.Size([4, 3])
    """
    if name not in BASELINES:
        raise WrongUse(f"There is no baseline {name!r}: choose one of {', '.join(BASELINES)}.")
    return BASELINES[name](*args, **arguments)


__all__ = [
    "APPNP",
    "BASELINES",
    "FAGCN",
    "GAT",
    "GCN",
    "GCNII",
    "GIN",
    "GPRGNN",
    "LINKX",
    "MLP",
    "SGC",
    "Baseline",
    "GATv2",
    "JKNet",
    "MixHop",
    "SuperGAT",
    "baseline",
]

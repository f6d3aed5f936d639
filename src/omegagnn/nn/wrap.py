"""`Omega`: the weight ω around any PyTorch Geometric convolution."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from omegagnn.graph import Graph
from omegagnn.nn.omega import OmegaScope, OmegaWeight, make_omega


class Omega(nn.Module):
    r"""The weight ω of `"Improving Graph Neural Networks with Learnable Propagation Operators" (ICML 2023)` around a conv.

    .. math::
        Z = X - Ω_{ω} \left(X - \mathrm{conv}(X)\right), \qquad
        z_i = (1 - ω) ⊙ x_i + ω ⊙ \mathrm{conv}(X)_i

    This departs from the paper's order where the conv has weights of its own: here ω mixes the input with the conv's
    *output*, behind those weights, while the paper mixes first and multiplies with K afterwards. For the paper's order use
    `OmegaGCNConv` or `OmegaGATConv`. ω = 1 is the conv itself, ω = 0 the identity.

    The conv stays an ordinary submodule, so whatever walks over ``model.modules()`` looking for message passing finds it,
    once: edge masks of `torch_geometric.explain` act on its messages, and PyG counts one hop for it.

    Args:
        conv: any module called as ``conv(x, edge_index, ...)`` that keeps the number of channels.
        channels: number of channels, of the input and of the conv's output.
        omega: ``"channel"`` (one ω a channel), ``"layer"`` (one ω), a number (fixed), or an `OmegaWeight` to share.

    Shapes: x ``[n, channels]`` → ``[n, channels]``. A `Graph` is handed on as ``edge_index`` (and ``edge_weight`` where it
    has weights); everything else goes to the conv as it comes.

    >>> from torch_geometric.nn import GCNConv
    >>> Omega(GCNConv(16, 16), 16)
    Omega(
      (conv): GCNConv(16, 16)
      (omega_weight): OmegaWeight(16 channels, init=1)
    )
    """

    def __init__(self, conv: nn.Module, channels: int, omega: OmegaScope | float | OmegaWeight = "channel") -> None:
        """Wrap the conv; see the class."""
        super().__init__()
        if channels < 1:
            raise ValueError(f"channels must be at least 1, not {channels}: give the channels of the conv's output.")
        self.conv, self.channels = conv, channels
        self.omega_weight = make_omega(omega, channels)

    @property
    def omega(self) -> Tensor:
        """ω as used: a parameter, the shared one, or a fixed value."""
        return self.omega_weight.value

    def reset_parameters(self) -> None:
        """Set ω to its start and let the conv draw its weights anew."""
        self.omega_weight.reset_parameters()
        reset: Any = self.conv.reset_parameters
        reset()

    def forward(self, x: Tensor, edge_index: Graph | Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Return ``x − ω ⊙ (x − conv(x, edge_index, ...))``."""
        if not isinstance(x, Tensor):
            raise TypeError(f"Omega mixes a node with itself, so x must be one tensor, not {type(x).__name__}.")
        if isinstance(edge_index, Graph):
            edge_index, weight = edge_index.to_edge_index()
            args = args if weight is None else (weight, *args)
        out = self.conv(x, edge_index, *args, **kwargs)
        if not isinstance(out, Tensor):
            raise TypeError(
                f"The conv returned {type(out).__name__} instead of one tensor: ask it for features alone "
                "(no return_attention_weights)."
            )
        if not x.size(-1) == out.size(-1) == self.channels:
            raise ValueError(
                f"Omega was made for {self.channels} channels, but x has {x.size(-1)} and the conv returns {out.size(-1)}: "
                "all three must agree."
            )
        return x - self.omega * (x - out)

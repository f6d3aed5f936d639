"""Normalisations over nodes or channels that know the run axis."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from omegagnn.nn.runs import add_bias, node_mean, spread

NormName = Literal["batch", "layer", "pair"]


class Norm(nn.Module):
    r"""Batch, layer or pair normalisation of ``[n, c]`` or ``[n, R, c]``; each run is normalised by itself.

    * ``batch``: :math:`(x - μ_c) / \sqrt{σ_c^2 + ε} · γ_c + β_c` over the nodes, with running moments for evaluation
      (momentum 0.1, unbiased running variance: `torch.nn.BatchNorm1d`).
    * ``layer``: the same over the channels of each node (`torch.nn.LayerNorm`).
    * ``pair``: :math:`s · (x - \bar x) / \sqrt{\tfrac1n \sum_i \|x_i - \bar x\|^2 + ε}`, :math:`\bar x` the mean node (PairNorm).
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self, kind: NormName, channels: int, *, runs: int | None = None, eps: float = 1e-5, scale: float = 1.0
    ):
        """Make the normalisation; `scale` is PairNorm's s."""
        super().__init__()
        if kind not in ("batch", "layer", "pair"):
            raise ValueError(f"norm must be 'batch', 'layer' or 'pair', not {kind!r}.")
        self.kind, self.channels, self.eps, self.scale, self.momentum = kind, channels, eps, scale, 0.1
        shape = (channels,) if runs is None else (runs, channels)
        self.weight = Parameter(torch.empty(shape)) if kind != "pair" else None
        self.bias = Parameter(torch.empty(shape)) if kind != "pair" else None
        if kind == "batch":
            self.register_buffer("running_mean", torch.empty(shape))
            self.register_buffer("running_var", torch.empty(shape))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set scale to 1, shift to 0, and forget the running moments."""
        if self.weight is not None and self.bias is not None:
            nn.init.ones_(self.weight)
            nn.init.zeros_(self.bias)
        if self.kind == "batch":
            self.running_mean.zero_()
            self.running_var.fill_(1.0)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise."""
        n = x.size(0)
        if self.kind == "batch":
            mean, var = self._moments(x) if self.training else (self.running_mean, self.running_var)
            return self._affine((x - spread(mean, n)) * spread((var + self.eps).rsqrt(), n))
        if self.kind == "layer":
            centred = x - x.mean(-1, keepdim=True)
            return self._affine(centred * (centred.square().mean(-1, keepdim=True) + self.eps).rsqrt())
        centred = x - spread(node_mean(x), n)
        mean_square = node_mean(centred.square().sum(-1, keepdim=True))
        return self.scale * centred * spread((mean_square + self.eps).rsqrt(), n)

    def _affine(self, x: Tensor) -> Tensor:
        assert self.weight is not None
        return add_bias(x * spread(self.weight, x.size(0)), self.bias)

    def _moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        n = x.size(0)
        if n < 2:
            raise ValueError(
                "Batch normalisation needs at least two nodes in training: use a larger batch or another norm."
            )
        mean = node_mean(x)
        var = node_mean((x - spread(mean, n)).square())
        with torch.no_grad():
            self.running_mean.mul_(1 - self.momentum).add_(self.momentum * mean)
            self.running_var.mul_(1 - self.momentum).add_(self.momentum * (n / (n - 1)) * var)
        return mean, var

    def extra_repr(self) -> str:
        """Describe the kind."""
        return f"{self.kind}, {self.channels}"

"""`OmegaWeight`: the learnable ω and its scope."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

OmegaScope = Literal["global", "layer", "channel"]
LAZY = (UninitializedParameter, UninitializedBuffer)


class OmegaWeight(nn.Module):
    r"""The weight :math:`ω` of a propagation, a scalar or a vector with one entry a channel; it starts at `init`.

    One module in one layer is the paper's scope *per layer* (scalar) or *per channel* (vector); the same module handed to
    several layers is the *global* scope.

    Args:
        channels: None for one scalar, else the number of channels (-1: found at the first forward pass of the layer).
        init: the starting value; 1 is the plain propagation operator.
        learn: whether it is trained. A fixed ω is a buffer.
        runs: the number of independent runs, or None.

    >>> OmegaWeight(channels=3).value
    Parameter containing:
    tensor([1., 1., 1.], requires_grad=True)
    """

    value: Tensor

    def __init__(
        self, channels: int | None = None, *, init: float = 1.0, learn: bool = True, runs: int | None = None
    ) -> None:
        """Make the weight; see the class."""
        super().__init__()
        self.channels, self.init, self.runs = channels, float(init), runs
        lazy = channels == -1
        if learn:
            self.value = UninitializedParameter() if lazy else Parameter(torch.empty(self._shape()))
        else:
            self.register_buffer("value", UninitializedBuffer() if lazy else torch.empty(self._shape()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every entry to the starting value."""
        if not isinstance(self.value, LAZY):
            nn.init.constant_(self.value, self.init)

    def materialise(self, channels: int) -> None:
        """Give a weight made with ``channels=-1`` its size."""
        if isinstance(self.value, LAZY):
            self.channels = channels
            self.value.materialize(self._shape())
            self.reset_parameters()

    def _shape(self) -> tuple[int, ...]:
        runs = () if self.runs is None else (self.runs,)
        if self.channels is None:
            # With runs the scalar is kept as [R, 1], which broadcasts over channels.
            return (*runs, 1) if runs else ()
        return (*runs, self.channels)

    def extra_repr(self) -> str:
        """Describe scope and kind."""
        kind = "scalar" if self.channels is None else f"{self.channels} channels"
        runs = "" if self.runs is None else f", runs={self.runs}"
        return f"{kind}, init={self.init:g}{runs}" + ("" if isinstance(self.value, Parameter) else ", fixed")


def make_omega(omega: OmegaScope | float | OmegaWeight, channels: int, runs: int | None = None) -> OmegaWeight:
    """Turn a layer's argument into its `OmegaWeight`: a scope by name, a fixed number, or a weight to share."""
    if isinstance(omega, OmegaWeight):
        if channels != -1:
            omega.materialise(channels)
        if omega.channels not in (None, channels) and channels != -1:
            raise ValueError(
                f"The shared ω has {omega.channels} channels but the layer has {channels}: they must agree."
            )
        return omega
    if omega == "channel":
        return OmegaWeight(channels, runs=runs)
    if omega == "layer":
        return OmegaWeight(runs=runs)
    if isinstance(omega, (int, float)) and not isinstance(omega, bool):
        return OmegaWeight(init=omega, learn=False, runs=runs)
    if omega == "global":
        raise ValueError(
            "One layer has no global ω: make one OmegaWeight() and pass it to every layer (OmegaNet does)."
        )
    raise ValueError(f"omega must be 'channel', 'layer', a number or an OmegaWeight, not {omega!r}.")

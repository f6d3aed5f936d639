"""`Map`: the 1×1 convolution ``x W``, with a run axis, sparse features and a size found at the first forward pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter, UninitializedParameter

from omegagnn.nn.init import fresh_key, glorot_
from omegagnn.nn.runs import add_bias, num_runs, run_matmul, with_runs
from omegagnn.ops import Draws, SparseFeatures, dropout, sparse_linear


class LazyChannels(nn.Module):
    """A module whose number of input channels may be -1: it is then found at the first forward pass.

    Subclasses hold their maps as parameters named in `_input_sized` and build them in `_materialise`.
    """

    in_channels: int
    _start_key: Tensor | None = None  # what `reset_parameters` was given before the size was known

    def _await_input(self) -> None:
        if self.in_channels == -1:
            self._hook = self.register_forward_pre_hook(self._infer, with_kwargs=True)

    def _infer(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.in_channels == -1:
            self._materialise((args[0] if args else kwargs["x"]).shape[-1])
        self._hook.remove()

    def _materialise(self, in_channels: int) -> None:
        raise NotImplementedError

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        if self.in_channels == -1:
            raise RuntimeError(
                f"{type(self).__name__} does not know its input size yet: run one batch through it, then save it."
            )
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        if self.in_channels == -1 and prefix + "weight" in state_dict:
            self._materialise(state_dict[prefix + "weight"].size(-2))
        super()._load_from_state_dict(state_dict, prefix, *args)


class Map(LazyChannels):
    """The 1×1 convolution :math:`x W` with W ``[in, out]`` (``[R, in, out]``), Glorot uniform, usually without bias.

    Dropout on its input is part of it, because for sparse features it acts on the stored values only.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = False, runs: int | None = None) -> None:
        """Make the map; ``in_channels=-1`` waits for the first input."""
        super().__init__()
        self.in_channels, self.out_channels, self.runs = in_channels, out_channels, runs
        lead = () if runs is None else (runs,)
        lazy = in_channels == -1
        self.weight = UninitializedParameter() if lazy else Parameter(torch.empty(*lead, in_channels, out_channels))  # type: ignore[assignment]
        self.bias = Parameter(torch.empty(*lead, out_channels)) if bias else None
        self.reset_parameters()
        self._await_input()

    def _materialise(self, in_channels: int) -> None:
        self.in_channels = in_channels
        lead = () if self.runs is None else (self.runs,)
        assert isinstance(self.weight, UninitializedParameter)
        self.weight.materialize((*lead, in_channels, self.out_channels))
        self.reset_parameters(self._start_key)

    def reset_parameters(self, key: Tensor | None = None) -> None:
        """Draw the map anew, from `key` ``[R, 2]`` or from torch's generator."""
        if self.in_channels == -1:
            self._start_key = key
        else:
            glorot_(self.weight, fresh_key(self.runs) if key is None else key)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor | SparseFeatures, p: float = 0.0, key: Tensor | None = None) -> Tensor:
        """Return ``dropout(x) W``; `key` is needed with ``p > 0``."""
        if isinstance(x, SparseFeatures):
            return add_bias(sparse_linear(x, self.weight, p, key), self.bias)
        if p > 0:
            x = with_runs(x, self.runs)
            x = dropout(x, p, Draws.from_torch(num_runs(x), x.device).key(0) if key is None else key)
        return add_bias(run_matmul(x, self.weight), self.bias)

    def extra_repr(self) -> str:
        """Describe the sizes."""
        runs = "" if self.runs is None else f", runs={self.runs}"
        return f"{self.in_channels}, {self.out_channels}, bias={self.bias is not None}{runs}"

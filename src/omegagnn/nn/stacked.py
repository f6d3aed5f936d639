"""`StackedRuns`: a run axis for any model, by stacking the state of R of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter, UninitializedParameter

from omegagnn.graph import Graph, as_graph
from omegagnn.nn.groups import Grouped, GroupName
from omegagnn.ops import Draws, SparseFeatures

State = dict[str, Tensor]


class StackedRuns(Grouped):
    """R independent runs of one model as one network: what `OmegaNet` is with ``runs=R``.

    Parameters and buffers of R models are stacked to ``[R, ...]``, outputs are ``[n, R, out]``, and run r starts from
    ``seeds[r]`` alone. The model is one of the baselines, or any module with the forward arguments of `OmegaNet`, a
    ``reset_parameters(seeds)`` and ``grouped_parameters()``.

    On a CPU the runs are computed one after the other, each on its own copy of its parameters: a run's bits are then those
    of a single model, whatever the company. Under `torch.func.vmap` products and sums change in the last digits with R, and
    it is slower there. Elsewhere all runs are one vmap, wherever the model allows it (its attribute ``vectorisable``), and
    agree within rounding.

    Args:
        make: makes one model.
        seeds: the seed of each run, ``[R]``.
        vectorise: whether to use vmap; None decides as said.

    >>> from functools import partial
    >>> from omegagnn.nn.baselines import baseline
    >>> net = StackedRuns(partial(baseline, "gcn", 5, 8, 2, 3), torch.tensor([1, 2]))
    >>> net(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 2, 3])
    """

    def __init__(self, make: Callable[[], nn.Module], seeds: Tensor, *, vectorise: bool | None = None) -> None:
        """Make the model and stack R states of it; see the class."""
        super().__init__()
        if seeds.dim() != 1 or not seeds.numel():
            raise ValueError(f"seeds must be [R] with R of at least 1, but their shape is {tuple(seeds.shape)}.")
        self.model, self.runs, self.vectorise = make(), seeds.numel(), vectorise
        if any(isinstance(tensor, UninitializedParameter) for tensor in self.model.parameters()):
            raise ValueError("StackedRuns needs a model that knows its input size: give in_channels.")
        if vectorise and not self._vectorisable:
            raise ValueError(
                f"{type(self.model).__name__} cannot be vectorised with these options: leave vectorise at None."
            )
        for module in self.model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                setattr(module, name, Parameter(_repeat(parameter, self.runs), parameter.requires_grad))
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, _repeat(buffer, self.runs))
        self._auxiliary: list[Tensor] = []
        self.reset_parameters(seeds)

    @property
    def _vectorisable(self) -> bool:
        return bool(getattr(self.model, "vectorisable", True))

    @property
    def omega(self) -> Tensor:
        """There is no ω: an empty tensor, shaped as `OmegaNet` without layers has it."""
        return torch.empty(0, self.runs, 1)

    def grouped_parameters(self) -> dict[GroupName, list[Parameter]]:
        """Return the stacked parameters in the model's groups."""
        return cast("Grouped", self.model).grouped_parameters()

    @torch.no_grad()
    def reset_parameters(self, seeds: Tensor | None = None) -> None:
        """Draw all parameters anew: run r from ``seeds[r]`` alone, or from torch's generator where there are none."""
        seeds = Draws.from_torch(self.runs).seeds if seeds is None else seeds
        single: Any = self.extract(0)
        stacked = self.model.state_dict(keep_vars=True)
        for run in range(self.runs):
            single.reset_parameters(seeds[run : run + 1])
            for name, value in single.state_dict().items():
                stacked[name][run].copy_(value)

    @torch.no_grad()
    def extract(self, run: int) -> nn.Module:
        """Return run `run` as a single model with parameters of its own."""
        single = copy.deepcopy(self.model)
        for module in single.modules():
            for name, parameter in module.named_parameters(recurse=False):
                setattr(module, name, Parameter(parameter[run].clone(), parameter.requires_grad))
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer[run].clone())
        return single

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Graph | Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        draws: Draws | None = None,
    ) -> Tensor:
        """Return logits ``[n, R, out]`` (``[graphs, R, out]``); x is ``[n, f]``, shared or sparse, or ``[n, R, f]``."""
        if isinstance(x, Tensor) and x.layout != torch.strided:
            x = SparseFeatures(x)
        if isinstance(x, Tensor) and x.dim() == 3 and x.size(1) != self.runs:
            raise ValueError(f"x has {x.size(1)} runs but the network has {self.runs}: they must agree.")
        graph = as_graph(edge_index, x.shape[0], edge_weight)
        device = next(self.model.parameters()).device
        if draws is None and self.training:
            draws = Draws.from_torch(self.runs, device)
        vectorise = device.type != "cpu" and self._vectorisable if self.vectorise is None else self.vectorise
        forward = self._forward_mapped if vectorise else self._forward_one_by_one
        return forward(x, (graph, None, batch, num_graphs), draws)

    def _forward_mapped(self, x: Tensor | SparseFeatures, rest: tuple[Any, ...], draws: Draws | None) -> Tensor:
        parameters: State = dict(self.model.named_parameters())
        buffers: State = dict(self.model.named_buffers())
        per_run = x if isinstance(x, Tensor) and x.dim() == 3 else None

        def one(state: tuple[State, State], x_run: Tensor | None, seed: Tensor | None) -> Tensor:
            drawn = None if seed is None or draws is None else Draws(seed.unsqueeze(0), draws.step)
            return self._call(state, x if x_run is None else x_run, rest, drawn)

        in_dims = (0, None if per_run is None else 1, None if draws is None else 0)
        mapped = torch.func.vmap(one, in_dims=in_dims, out_dims=1)
        return mapped((parameters, buffers), per_run, None if draws is None else draws.seeds)

    def _forward_one_by_one(self, x: Tensor | SparseFeatures, rest: tuple[Any, ...], draws: Draws | None) -> Tensor:
        # A copy begins its own memory; where a slice begins in the stack would be company that changes bits.
        parameters = {name: _own(tensor) for name, tensor in self.model.named_parameters()}
        buffers = {name: tensor.unbind(0) for name, tensor in self.model.named_buffers()}
        auxiliary_loss = getattr(self.model, "auxiliary_loss", lambda: None)
        outputs, losses = [], []
        for run in range(self.runs):
            state = tuple({name: tensors[run] for name, tensors in kind.items()} for kind in (parameters, buffers))
            x_run = x[:, run].contiguous() if isinstance(x, Tensor) and x.dim() == 3 else x
            drawn = None if draws is None else Draws(draws.seeds[run : run + 1], draws.step)
            outputs.append(self._call(cast("tuple[State, State]", state), x_run, rest, drawn))
            losses.append(auxiliary_loss())
        self._auxiliary = [loss for loss in losses if loss is not None]
        return torch.stack(outputs).transpose(0, 1)

    def _call(self, state: tuple[State, State], x: Any, rest: tuple[Any, ...], draws: Draws | None) -> Tensor:
        return torch.func.functional_call(self.model, state, (x, *rest), {"draws": draws})

    def auxiliary_loss(self) -> Tensor | None:
        """Return, once, what the last training pass adds to the loss of each run, ``[R]``, or None."""
        losses, self._auxiliary = self._auxiliary, []
        return torch.stack(losses) if losses else None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_auxiliary": []}  # a loss belongs to one pass: copies start without

    def extra_repr(self) -> str:
        """Describe the number of runs."""
        return f"runs={self.runs}"


def _repeat(tensor: Tensor, runs: int) -> Tensor:
    return tensor.detach().expand(runs, *tensor.shape).clone()


def _own(stacked: Tensor) -> list[Tensor]:
    return [run.clone() for run in stacked.unbind(0)]

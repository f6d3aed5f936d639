"""Adam over the run axis: each run has its own rates, decays, step count and leave to move."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.parameter import Parameter

from omegagnn.nn.groups import GroupName
from omegagnn.ops.adam import adam_

BETA1, BETA2 = 0.9, 0.999


class RunAdam:
    """Adam with coupled weight decay (`torch.optim.Adam`) for parameters ``[R, ...]``.

    `rates` and `decays` hold ``[R]`` for each group. Runs that are not active are left untouched to the bit, so that a run
    that has stopped keeps its state in company.
    """

    def __init__(
        self, groups: dict[GroupName, list[Parameter]], rates: dict[GroupName, Tensor], decays: dict[GroupName, Tensor]
    ) -> None:
        """Start with zero moments."""
        self.groups, self.rates, self.decays = groups, rates, decays
        self.average = {p: torch.zeros_like(p) for p in self.parameters()}
        self.square = {p: torch.zeros_like(p) for p in self.parameters()}
        self.steps = 0

    def parameters(self) -> Iterator[Parameter]:
        """Iterate over the parameters in a fixed order."""
        for parameters in self.groups.values():
            yield from parameters

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters():
            parameter.grad = None

    @torch.no_grad()
    def clip_(self, largest: float) -> None:
        """Scale each run's gradient down to a norm of at most `largest`."""
        grads = [p.grad for p in self.parameters() if p.grad is not None]
        # One run at a time: a norm over the whole axis would add in an order that depends on the company.
        for run in range(grads[0].size(0)):
            norm = torch.stack([grad[run].norm() for grad in grads]).norm()
            if norm > largest:
                for grad in grads:
                    grad[run] *= largest / norm

    @torch.no_grad()
    def step(self, active: Tensor, factor: float = 1.0) -> None:
        """Move the active runs ``[R]`` (bool) by one step with rates times `factor`."""
        self.steps += 1
        ones = torch.ones_like(active, dtype=torch.float64)  # as the kernel takes them, so that nothing is converted
        correction1, correction2 = ones * (1 - BETA1**self.steps), ones * (1 - BETA2**self.steps)
        for name, parameters in self.groups.items():
            rate, decay = self.rates[name] * factor, self.decays[name]
            for parameter in parameters:
                if parameter.grad is None:
                    continue
                adam_(
                    parameter,
                    parameter.grad,
                    self.average[parameter],
                    self.square[parameter],
                    rate=rate,
                    decay=decay,
                    correction1=correction1,
                    correction2=correction2,
                    active=active,
                    betas=(BETA1, BETA2),
                )

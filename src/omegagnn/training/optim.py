"""Adam over the run axis: each run has its own rates, decays and leave to move."""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.nn.groups import Grouped, GroupName
from omegagnn.ops.adam import adam_
from omegagnn.training.flat import BLOCK, FlatState

BETA1, BETA2 = 0.9, 0.999


def correction(step: int, factor: float) -> list[float]:
    """Return what one step needs to know: the factor of all rates, ``1 − β₁^t`` and ``1 − β₂^t``."""
    return [factor, 1 - BETA1**step, 1 - BETA2**step]


class RunAdam:
    """Adam with coupled weight decay (`torch.optim.Adam`) for a network whose parameters are ``[R, ...]``.

    `rates` and `decays` hold ``[R]`` for each group. All parameters step in one call. Runs that are not active are left
    untouched to the bit, so that a run that has stopped keeps its state in company.
    """

    def __init__(self, net: Grouped, rates: dict[GroupName, Tensor], decays: dict[GroupName, Tensor]) -> None:
        """Move the network's numbers onto one array and start with zero moments."""
        self.flat = FlatState(net)
        self.rates, self.decays = (torch.stack([table[name] for name in self.flat.groups]) for table in (rates, decays))
        self._average, self._square = torch.zeros_like(self.flat.gradient), torch.zeros_like(self.flat.gradient)
        self.average, self.square = self.flat.views(self._average), self.flat.views(self._square)
        self.steps = 0

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.flat.parameters.values():
            parameter.grad = None

    @torch.no_grad()
    def clip_(self, largest: float) -> None:
        """Scale each run's gradient down to a norm of at most `largest`."""
        grads = [p.grad for p in self.flat.parameters.values() if p.grad is not None]
        if self.flat.device.type == "cpu":
            # One run at a time: a norm over the whole axis would add in an order that depends on the company.
            parts = [torch.stack([grad[run].norm() for grad in grads]) for run in range(grads[0].size(0))]
            norms = torch.stack([part.norm() for part in parts])
        else:
            norms = torch.stack([torch.linalg.vector_norm(grad.flatten(1), dim=1) for grad in grads]).norm(dim=0)
        scale = (largest / norms).clamp(max=1.0)
        for grad in grads:
            grad.mul_(scale.view(-1, *(1,) * (grad.dim() - 1)))

    @torch.no_grad()
    def step(self, active: Tensor, factor: float | Tensor = 1.0) -> None:
        """Move the active runs ``[R]`` (bool) by one step with rates times `factor`.

        Inside a CUDA graph, where the host cannot count steps, `factor` is the whole `correction` on the device.
        """
        if not isinstance(factor, Tensor):
            self.steps += 1
            factor = torch.tensor(correction(self.steps, factor), dtype=torch.float64, device=self.flat.device)
        blocks = self.flat.collect_gradient()
        trained = self.flat.values[: self.flat.trained]
        adam_(
            trained, self.flat.gradient, self._average, self._square, rates=self.rates, decays=self.decays,
            correction=factor, active=active, blocks=blocks, largest=BLOCK, betas=(BETA1, BETA2),
        )  # fmt: skip

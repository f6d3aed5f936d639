"""A step in several shares: each is computed as if it were alone, and their gradients are added up in one order."""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.training.distributed import ALONE, Team
from omegagnn.training.flat import FlatState
from omegagnn.training.tasks import Share, Step


def add_up(step: Step, flat: FlatState, team: Team = ALONE) -> None:
    """Leave on the parameters the sum of the gradients of all shares, and on the buffers the mean of what each left there.

    The processes of a team compute every so many-th share each. Every share begins with the buffers (running moments of batch
    norm) as they were before the step, and all are added in the order of the shares: who computed which changes no bit.
    """
    before = flat.values[flat.trained :].clone()
    mine = [_computed(share, flat, before) for share in step[team.rank :: team.size]]
    width = flat.values.numel() + len(flat.parameters)
    slots = -(-len(step) // team.size)
    own = torch.stack([*mine, *[before.new_zeros(width)] * (slots - len(mine))])
    everyone = team.gathered(own)
    total = torch.zeros_like(own[0])
    for number in range(len(step)):
        total += everyone[number % team.size][number // team.size]
    gradient, buffers, present = total.split([flat.trained, before.numel(), len(flat.parameters)])
    flat.values[flat.trained :] = buffers / len(step)
    for (name, view), seen in zip(flat.views(gradient).items(), present.tolist(), strict=True):
        flat.parameters[name].grad = view if seen else None


def _computed(share: Share, flat: FlatState, buffers: Tensor) -> Tensor:
    """Return what a share gives: its gradient, the buffers it leaves, and which parameters have a gradient at all."""
    flat.values[flat.trained :] = buffers
    for parameter in flat.parameters.values():
        parameter.grad = None
    share().sum().backward()
    present = [float(parameter.grad is not None) for parameter in flat.parameters.values()]
    return torch.cat([flat.gradient_now(), flat.values[flat.trained :], buffers.new_tensor(present)])

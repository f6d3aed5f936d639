"""A step in several shares: each is computed as if it were alone, and their gradients are added up in one order."""

from __future__ import annotations

import torch

from omegagnn.training.flat import FlatState
from omegagnn.training.tasks import Step


def add_up(step: Step, flat: FlatState) -> None:
    """Leave on the parameters the sum of the gradients of all shares, and on the buffers the mean of what each left there.

    Every share begins with the buffers (running moments of batch norm) as they were before the step, so that it does not matter
    who computes it.
    """
    before = flat.values[flat.trained :].clone()
    gradient, buffers = torch.zeros_like(flat.gradient), torch.zeros_like(before)
    for share in step:
        flat.values[flat.trained :] = before
        for parameter in flat.parameters.values():
            parameter.grad = None
        share().sum().backward()
        gradient += flat.gradient_now()
        buffers += flat.values[flat.trained :]
    flat.values[flat.trained :] = buffers / len(step)
    for name, view in flat.views(gradient).items():
        flat.parameters[name].grad = view

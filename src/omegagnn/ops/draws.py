"""`Draws`: the randomness of R runs at one step, from which every place in the program takes its key."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from omegagnn.ops.autograd import Key


@dataclass(frozen=True)
class Draws:
    """The randomness of R runs at one step: seeds ``[R]`` and the step, from which each place takes its key.

    `step` may be a 0-dimensional tensor on the device, so that a captured CUDA graph moves on without new code.
    """

    seeds: Tensor
    step: int | Tensor = 0

    @classmethod
    def from_torch(cls, runs: int, device: torch.device | str = "cpu") -> Draws:
        """Take seeds from torch's own generator, so that `torch.manual_seed` governs them."""
        return cls(torch.randint(0, 2**62, (runs,)).to(device))

    def at(self, step: int | Tensor) -> Draws:
        """Return the draws of another step."""
        return Draws(self.seeds, step)

    def key(self, place: int) -> Tensor:
        """Return the two words of each run for one place in the program (a layer, an edge mask), ``[R, 2]``."""
        step = self.step
        if not isinstance(step, Tensor):
            step = torch.full((), step, dtype=torch.int64, device=self.seeds.device)
        return Key.apply(self.seeds.long(), step.long(), place)

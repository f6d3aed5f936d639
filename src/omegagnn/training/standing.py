"""`Standing`: who still trains, and the best of each run so far."""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.ops.adam import keep_
from omegagnn.training.config import TrainingConfig
from omegagnn.training.flat import BLOCK, FlatState

# Whose best weights are kept, and by which column of the metrics (sign: larger is better).
KEPT = {"honest": (0, -1.0), "validation-accuracy": (1, 1.0)}
VAL, LOSS, SCORE = 1, 0, 1


class Standing:
    """What an epoch's metrics decide for each run: whether it is the best so far, and whether the run goes on.

    Everything is a tensor on the device and nothing asks the host, so that noting an epoch can be part of a CUDA graph.
    `stopped` and `diverged` hold the epoch in which that happened, 0 before.
    """

    def __init__(self, flat: FlatState, runs: int) -> None:
        """Begin with everybody active and nothing seen."""
        device, dtype = flat.device, flat.values.dtype
        self._flat = flat
        self.active = torch.ones(runs, dtype=torch.bool, device=device)
        self.stopped = torch.zeros(runs, dtype=torch.int64, device=device)
        self.diverged = torch.zeros(runs, dtype=torch.int64, device=device)
        self.best = {rule: torch.full((runs,), -torch.inf, dtype=dtype, device=device) for rule in KEPT}
        self.best_epoch = {rule: torch.zeros(runs, dtype=torch.int64, device=device) for rule in KEPT}
        self._kept = {rule: flat.values.clone() for rule in KEPT}
        self._kept_counts = {rule: {n: b.clone() for n, b in flat.counts.items()} for rule in KEPT}

    def state(self, rule: str) -> dict[str, Tensor]:
        """Return the best parameters and buffers by name, as views."""
        return {**self._flat.views(self._kept[rule]), **self._kept_counts[rule]}

    @torch.no_grad()
    def note(self, measured: Tensor, epoch: int | Tensor, training: TrainingConfig) -> None:
        """Take in the loss and score of each part of each run, ``[R, 3, 2]``, after an epoch."""
        finite = torch.isfinite(measured[:, : VAL + 1, LOSS]).all(1)
        self.diverged.copy_(torch.where(self.active & ~finite & (self.diverged == 0), epoch, self.diverged))
        for rule, (column, sign) in KEPT.items():
            value = sign * measured[:, VAL, column]
            better = self.active & (value > self.best[rule])
            self.best[rule].copy_(torch.where(better, value, self.best[rule]))
            self.best_epoch[rule].copy_(torch.where(better, epoch, self.best_epoch[rule]))
            keep_(self._kept[rule], self._flat.values, better, self._flat.blocks, BLOCK)
            for name, kept in self._kept_counts[rule].items():
                source = self._flat.counts[name]
                kept.copy_(torch.where(better.view(-1, *(1,) * (kept.dim() - 1)), source, kept))
        self._stop(epoch, training)

    def end(self, which: Tensor, epoch: int) -> None:
        """Stop the runs `which` ``[R]`` (bool) that still train, whatever their patience says."""
        ended = which.to(self.active.device) & self.active
        self.stopped.copy_(torch.where(ended, epoch, self.stopped))
        self.active.logical_and_(~ended)

    def _stop(self, epoch: int | Tensor, training: TrainingConfig) -> None:
        last = torch.stack(list(self.best_epoch.values())).amax(0)
        over = torch.zeros_like(last) + epoch >= training.epochs
        if training.patience is not None:
            over = over | (epoch - last >= training.patience)
        newly = over & self.active
        self.stopped.copy_(torch.where(newly, epoch, self.stopped))
        self.active.logical_and_(~newly)

    def keep(self, other: Standing, kept: Tensor) -> None:
        """Take over the runs `kept` of another standing, which were all that this one has."""
        for name in ("active", "stopped", "diverged"):
            getattr(self, name).copy_(getattr(other, name)[kept])
        for rule in KEPT:
            self.best[rule].copy_(other.best[rule][kept])
            self.best_epoch[rule].copy_(other.best_epoch[rule][kept])
            self.load(rule, {name: tensor[kept] for name, tensor in other.state(rule).items()})

    @torch.no_grad()
    def load(self, rule: str, tensors: dict[str, Tensor]) -> None:
        """Set the best parameters and buffers of a rule."""
        for name, tensor in self.state(rule).items():
            tensor.copy_(tensors[name])

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that a restart needs, by name."""
        out = {"active": self.active, "stopped": self.stopped}
        for rule in KEPT:
            out[f"best/{rule}"], out[f"best_epoch/{rule}"] = self.best[rule], self.best_epoch[rule]
            out.update({f"best_state/{rule}/{name}": tensor for name, tensor in self.state(rule).items()})
        return out

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue from what `tensors` returned."""
        self.active.copy_(tensors["active"])
        self.stopped.copy_(tensors["stopped"])
        for rule in KEPT:
            self.best[rule].copy_(tensors[f"best/{rule}"])
            self.best_epoch[rule].copy_(tensors[f"best_epoch/{rule}"])
            prefix = f"best_state/{rule}/"
            self.load(rule, {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)})

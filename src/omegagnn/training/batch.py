"""`RunBatch`: the state of R runs that train together, and one epoch of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from omegagnn.errors import OmegaError
from omegagnn.nn.groups import Grouped, GroupName
from omegagnn.training.build import build_net, mean_omega
from omegagnn.training.captured import CapturedEpochs
from omegagnn.training.config import RunConfig
from omegagnn.training.distributed import ALONE, Team
from omegagnn.training.optim import RunAdam
from omegagnn.training.records import EpochRecord
from omegagnn.training.shards import add_up
from omegagnn.training.standing import KEPT, Standing
from omegagnn.training.tasks import DTYPES, NodeTask, Step, TrainingTask

RATES: dict[GroupName, tuple[str, str]] = {
    "gnn": ("lr_gnn", "wd_gnn"),
    "oc": ("lr_oc", "wd_oc"),
    "omega": ("lr_omega", "wd_omega"),
}


def arithmetic(precision: str, device: torch.device) -> Any:
    """Return the context in which networks of a precision compute on a device."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    return torch.autocast(device.type, enabled=False)


class DivergenceError(OmegaError):
    """The loss of a run became NaN or infinite."""


class RunBatch:
    """R runs: network, optimiser, who still trains, and the best weights of each so far.

    `members` are their numbers within the whole run; `settings` replace training values (rates, decays) member by member.
    `captured` says whether epochs are replayed from a CUDA graph: by default wherever task and network allow it.
    `team` shares the steps of the runs, where they come in shards.
    `exploring` lets a run whose loss is not finite end alone, where it would otherwise end them all with an error.
    """

    def __init__(
        self,
        config: RunConfig,
        task: TrainingTask,
        members: list[int],
        seeds: Tensor,
        settings: list[dict[str, Any]],
        device: torch.device,
        captured: bool | None = None,
        exploring: bool = False,
        team: Team = ALONE,
    ) -> None:
        """Start all runs from their seeds."""
        self.team = team
        self.config, self.task, self.device, self.exploring = config, task, device, exploring
        self.members, self.settings = members, settings
        self.seeds = seeds.to(device)
        self.net = self._build(seeds)
        self.operator = task.operator(self.net)
        self.adam = self._make_adam()
        self.standing = Standing(self.adam.flat, len(members))
        self.epoch = 0
        self.metrics = torch.full((len(members), 3, 2), torch.nan, dtype=DTYPES[config.training.precision])
        self._capture = device.type == "cuda" and self._capturable if captured is None else captured
        self._graph: CapturedEpochs | None = None

    @property
    def _capturable(self) -> bool:
        return isinstance(self.task, NodeTask) and bool(getattr(self.net, "capturable", False))

    def _build(self, seeds: Tensor) -> Grouped:
        task = self.task
        model = self.config.model
        net = build_net(model, task.in_channels, task.dataset.num_classes, task.dataset.task, seeds)
        return net.to(device=self.device, dtype=DTYPES[self.config.training.precision])

    def _make_adam(self) -> RunAdam:
        def column(name: str) -> Tensor:
            values = [settings.get(name, getattr(self.config.training, name)) for settings in self.settings]
            return torch.tensor(values, dtype=torch.float64, device=self.device)

        rates = {group: column(rate) for group, (rate, _) in RATES.items()}
        decays = {group: column(decay) for group, (_, decay) in RATES.items()}
        return RunAdam(self.net, rates, decays)

    def _state(self) -> dict[str, Tensor]:
        """Return parameters and buffers by name, each once (a shared ω has several names)."""
        return {**dict(self.net.named_parameters()), **dict(self.net.named_buffers())}

    # ------------------------------------------------------------------------------------------------------ training

    def advance(self, seconds: float = 0.0) -> list[EpochRecord]:
        """Train all active runs for an epoch, measure them, keep what is best, stop who has waited too long.

        From a CUDA graph as many epochs are replayed as fit into `seconds`, one at least: asking after each what it gave would
        cost more than a small epoch itself.
        """
        if self._capture and self._graph is None:
            self._graph = CapturedEpochs(self)
        records = [self._train_epoch()] if self._graph is None else self._graph.replay(seconds)
        self.epoch, self.metrics = records[-1].epoch, records[-1].metrics
        self._check_finite()
        return records

    def _train_epoch(self) -> EpochRecord:
        epoch = self.epoch + 1
        trained = self.active.cpu().clone()
        measured = self.compute_epoch(epoch, self.config.training.rate_factor(epoch))
        omega = mean_omega(self.net)
        return EpochRecord(epoch, trained, measured.cpu(), None if omega is None else omega.cpu())

    def compute_epoch(self, epoch: int | Tensor, factor: float | Tensor) -> Tensor:
        """Train and measure, leaving nothing to the host; return loss and score of each part of each run, ``[R, 3, 2]``."""
        with arithmetic(self.config.training.precision, self.device):
            self.train_steps(epoch, factor)
            measured = self._measure()
        self.standing.note(measured, epoch, self.config.training)
        return measured

    def _measure(self) -> Tensor:
        if self.team.size == 1:
            return self.task.evaluate(self.net, self.operator)
        return self.team.measured(lambda: self.task.evaluate(self.net, self.operator), self.metrics.to(self.device))

    def train_steps(self, epoch: int | Tensor, factor: float | Tensor = 1.0) -> None:
        """Take the training steps of an epoch, whose draws `epoch` decides; `factor` is as `RunAdam.step` takes it."""
        for step in self.task.steps(self.net, self.operator, self.seeds, epoch):
            self._step(step, factor)

    def _step(self, step: Step, factor: float | Tensor) -> None:
        self.adam.zero_grad()
        if len(step) == self.team.size == 1:
            step[0]().sum().backward()
        else:
            add_up(step, self.adam.flat, self.team)
        if self.config.training.clip is not None:
            self.adam.clip_(self.config.training.clip)
        self.adam.step(self.active, factor)

    def _check_finite(self) -> None:
        bad = self.standing.diverged.nonzero().squeeze(1)
        if not bad.numel():
            return
        if self.exploring:
            self.standing.end(self.standing.diverged > 0, self.epoch)
            return
        run = int(bad[0])
        # The group that broke is the one with entries that are not finite, else the one that grew largest.
        sizes = {
            group: max(float(torch.nan_to_num(p[run].detach().abs(), nan=torch.inf).max()) for p in parameters)
            for group, parameters in self.net.grouped_parameters().items()
            if parameters
        }
        group = max(sizes, key=lambda name: sizes[name])
        raise DivergenceError(
            f"The loss of member {self.members[run]} is not finite at epoch {int(self.standing.diverged[run])} (group {group!r} "
            f"diverged, its largest entry is {sizes[group]:g}): lower training.lr_{group}, set training.clip=1, or use fewer "
            f"layers."
        )

    @property
    def active(self) -> Tensor:
        """Which runs still train, bool ``[R]``."""
        return self.standing.active

    @property
    def stopped(self) -> Tensor:
        """The epoch in which each run stopped, 0 before."""
        return self.standing.stopped

    @property
    def best_epoch(self) -> dict[str, Tensor]:
        """The best epoch of each run so far, by rule."""
        return self.standing.best_epoch

    def best_state(self, rule: str) -> dict[str, Tensor]:
        """Return the best parameters and buffers of each run by a rule."""
        return self.standing.state(rule)

    @property
    def omega(self) -> Tensor | None:
        """Mean ω of each run."""
        return mean_omega(self.net)

    # ------------------------------------------------------------------------------- dropping, saving and restoring runs

    def keep(self, kept: Tensor) -> None:
        """Go on with some runs only; as company changes no bit, the others' going changes none either."""
        state = {name: tensor.detach()[kept] for name, tensor in self._state().items()}
        before, standing, self._graph = self.adam, self.standing, None
        self.members = [self.members[k] for k in kept.tolist()]
        self.settings = [self.settings[k] for k in kept.tolist()]
        self.seeds = self.seeds[kept]
        self.task.keep_runs(kept)
        self.net = self._build(self.seeds.cpu())
        self.adam = self._make_adam()
        self._load(state)
        self.adam.steps = before.steps
        for name in self.adam.average:
            self.adam.average[name].copy_(before.average[name][kept])
            self.adam.square[name].copy_(before.square[name][kept])
        self.standing = Standing(self.adam.flat, len(self.members))
        self.standing.keep(standing, kept)
        self.metrics = self.metrics[kept.cpu()]

    @torch.no_grad()
    def _load(self, state: dict[str, Tensor]) -> None:
        for name, tensor in self._state().items():
            tensor.copy_(state[name])

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that a restart needs, by name."""
        out = {f"net/{name}": tensor for name, tensor in self._state().items()}
        out.update({f"average/{name}": tensor for name, tensor in self.adam.average.items()})
        out.update({f"square/{name}": tensor for name, tensor in self.adam.square.items()})
        return {**out, **self.standing.tensors()}

    def facts(self) -> dict[str, Any]:
        """Return the numbers that go with `tensors`."""
        return {"epoch": self.epoch, "steps": self.adam.steps, "members": self.members}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Continue from what `tensors` and `facts` saved, to the bit; `members` must be those of the save."""
        self._load({name[4:]: tensor for name, tensor in tensors.items() if name.startswith("net/")})
        for name in self.adam.average:
            self.adam.average[name].copy_(tensors[f"average/{name}"])
            self.adam.square[name].copy_(tensors[f"square/{name}"])
        self.standing.restore(tensors)
        self.epoch, self.adam.steps = facts["epoch"], facts["steps"]


__all__ = ["DTYPES", "KEPT", "DivergenceError", "RunBatch", "arithmetic"]

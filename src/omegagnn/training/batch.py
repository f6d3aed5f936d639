"""`RunBatch`: the state of R runs that train together, and one epoch of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from omegagnn.errors import OmegaError
from omegagnn.nn.groups import Grouped, GroupName
from omegagnn.training.build import build_net, mean_omega
from omegagnn.training.config import RunConfig
from omegagnn.training.optim import RunAdam
from omegagnn.training.tasks import TrainingTask

# Whose best weights are kept, and by which column of the metrics (sign: larger is better).
KEPT = {"honest": (0, -1.0), "validation-accuracy": (1, 1.0)}
VAL, LOSS, SCORE = 1, 0, 1
DTYPES = {"float32": torch.float32, "float64": torch.float64, "tf32": torch.float32, "bfloat16": torch.float32}
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
    """

    def __init__(
        self,
        config: RunConfig,
        task: TrainingTask,
        members: list[int],
        seeds: Tensor,
        settings: list[dict[str, Any]],
        device: torch.device,
    ) -> None:
        """Start all runs from their seeds."""
        self.config, self.task, self.device = config, task, device
        self.members, self.settings = members, settings
        self.seeds = seeds.to(device)
        self.net = self._build(seeds)
        self.operator = task.operator(self.net)
        self.adam = self._make_adam()
        runs = len(members)
        dtype = DTYPES[config.training.precision]
        self.epoch = 0
        self.active = torch.ones(runs, dtype=torch.bool, device=device)
        self.stopped = torch.zeros(runs, dtype=torch.int64)
        self.best = {rule: torch.full((runs,), -torch.inf, dtype=dtype, device=device) for rule in KEPT}
        self.best_epoch = {rule: torch.zeros(runs, dtype=torch.int64, device=device) for rule in KEPT}
        self.best_state = {rule: self._copy_state() for rule in KEPT}
        self.metrics = torch.full((runs, 3, 2), torch.nan, dtype=dtype)

    def _build(self, seeds: Tensor) -> Grouped:
        task = self.task
        model = self.config.model
        net = build_net(model, task.in_channels, task.dataset.num_classes, task.dataset.task, seeds)
        return net.to(device=self.device, dtype=DTYPES[self.config.training.precision])

    def _make_adam(self) -> RunAdam:
        def column(name: str) -> Tensor:
            values = [settings.get(name, getattr(self.config.training, name)) for settings in self.settings]
            return torch.tensor(values, dtype=torch.float64, device=self.device)

        groups = self.net.grouped_parameters()
        rates = {group: column(rate) for group, (rate, _) in RATES.items()}
        decays = {group: column(decay) for group, (_, decay) in RATES.items()}
        return RunAdam(groups, rates, decays)

    def _state(self) -> dict[str, Tensor]:
        """Return parameters and buffers by name, each once (a shared ω has several names)."""
        return {**dict(self.net.named_parameters()), **dict(self.net.named_buffers())}

    def _copy_state(self) -> dict[str, Tensor]:
        return {name: tensor.detach().clone() for name, tensor in self._state().items()}

    # ------------------------------------------------------------------------------------------------------ training

    def train_epoch(self) -> None:
        """Train all active runs for an epoch, measure them, keep what is best, stop who has waited too long."""
        self.epoch += 1
        factor = self.config.training.rate_factor(self.epoch)
        with arithmetic(self.config.training.precision, self.device):
            self.task.train_epoch(
                self.net, self.operator, self.seeds, self.epoch, lambda losses: self._step(losses, factor)
            )
            measured = self.task.evaluate(self.net, self.operator)
        self._check_finite(measured)
        self.metrics = measured.cpu()
        self._keep_best(measured)
        self._stop_waiting()

    def _step(self, losses: Tensor, factor: float) -> None:
        self.adam.zero_grad()
        losses.sum().backward()
        if self.config.training.clip is not None:
            self.adam.clip_(self.config.training.clip)
        self.adam.step(self.active, factor)

    def _keep_best(self, measured: Tensor) -> None:
        for rule, (column, sign) in KEPT.items():
            value = sign * measured[:, VAL, column]
            better = self.active & (value > self.best[rule])
            if not bool(better.any()):
                continue
            self.best[rule] = torch.where(better, value, self.best[rule])
            self.best_epoch[rule][better] = self.epoch
            kept, current = self.best_state[rule], self._state()
            everyone = bool(better.all())
            for name, tensor in current.items():
                if everyone:
                    kept[name].copy_(tensor.detach())
                else:
                    kept[name][better] = tensor.detach()[better]

    def _stop_waiting(self) -> None:
        training = self.config.training
        stop = torch.zeros_like(self.active)
        if training.patience is not None:
            last = torch.stack(list(self.best_epoch.values())).amax(0)
            stop = self.epoch - last >= training.patience
        if self.epoch >= training.epochs:
            stop = torch.ones_like(stop)
        newly = stop & self.active
        if bool(newly.any()):
            self.stopped[newly.cpu()] = self.epoch
            self.active = self.active & ~newly

    def _check_finite(self, measured: Tensor) -> None:
        bad = self.active & ~torch.isfinite(measured[:, :2, LOSS]).all(1)
        if not bool(bad.any()):
            return
        run = int(bad.nonzero()[0])
        # The group that broke is the one with entries that are not finite, else the one that grew largest.
        sizes = {
            group: max(float(torch.nan_to_num(p[run].detach().abs(), nan=torch.inf).max()) for p in parameters)
            for group, parameters in self.net.grouped_parameters().items()
            if parameters
        }
        group = max(sizes, key=lambda name: sizes[name])
        raise DivergenceError(
            f"The loss of member {self.members[run]} is not finite at epoch {self.epoch} (group {group!r} diverged, its largest "
            f"entry is {sizes[group]:g}): lower training.lr_{group}, set training.clip=1, or use fewer layers."
        )

    @property
    def omega(self) -> Tensor | None:
        """Mean ω of each run."""
        return mean_omega(self.net)

    # ------------------------------------------------------------------------------- dropping, saving and restoring runs

    def keep(self, kept: Tensor) -> None:
        """Go on with some runs only; as company changes no bit, the others' going changes none either."""
        state, adam = self._copy_state(), self.adam
        moments = [(adam.average[p][kept], adam.square[p][kept]) for p in adam.parameters()]
        self.members = [self.members[k] for k in kept.tolist()]
        self.settings = [self.settings[k] for k in kept.tolist()]
        self.seeds = self.seeds[kept]
        self.task.keep_runs(kept)
        self.net = self._build(self.seeds.cpu())
        self._load({name: tensor[kept] for name, tensor in state.items()})
        self.adam = self._make_adam()
        self.adam.steps = adam.steps
        for parameter, (average, square) in zip(self.adam.parameters(), moments, strict=True):
            self.adam.average[parameter], self.adam.square[parameter] = average, square
        self.active, self.stopped = self.active[kept], self.stopped[kept.cpu()]
        self.best = {rule: value[kept] for rule, value in self.best.items()}
        self.best_epoch = {rule: value[kept] for rule, value in self.best_epoch.items()}
        self.best_state = {rule: {n: t[kept] for n, t in state.items()} for rule, state in self.best_state.items()}
        self.metrics = self.metrics[kept.cpu()]

    @torch.no_grad()
    def _load(self, state: dict[str, Tensor]) -> None:
        for name, tensor in self._state().items():
            tensor.copy_(state[name])

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that a restart needs, by name."""
        out = {f"net/{name}": tensor for name, tensor in self._state().items()}
        names = {parameter: name for name, parameter in self.net.named_parameters()}
        for parameter in self.adam.parameters():
            out[f"average/{names[parameter]}"] = self.adam.average[parameter]
            out[f"square/{names[parameter]}"] = self.adam.square[parameter]
        for rule in KEPT:
            out[f"best/{rule}"], out[f"best_epoch/{rule}"] = self.best[rule], self.best_epoch[rule]
            out.update({f"best_state/{rule}/{name}": tensor for name, tensor in self.best_state[rule].items()})
        return {**out, "active": self.active, "stopped": self.stopped}

    def facts(self) -> dict[str, Any]:
        """Return the numbers that go with `tensors`."""
        return {"epoch": self.epoch, "steps": self.adam.steps, "members": self.members}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Continue from what `tensors` and `facts` saved, to the bit; `members` must be those of the save."""
        self._load({name[4:]: tensor for name, tensor in tensors.items() if name.startswith("net/")})
        names = {parameter: name for name, parameter in self.net.named_parameters()}
        for parameter in self.adam.parameters():
            self.adam.average[parameter].copy_(tensors[f"average/{names[parameter]}"])
            self.adam.square[parameter].copy_(tensors[f"square/{names[parameter]}"])
        for rule in KEPT:
            self.best[rule] = tensors[f"best/{rule}"].to(self.device)
            self.best_epoch[rule] = tensors[f"best_epoch/{rule}"].to(self.device)
            for name, tensor in self.best_state[rule].items():
                tensor.copy_(tensors[f"best_state/{rule}/{name}"])
        self.active, self.stopped = tensors["active"].to(self.device), tensors["stopped"]
        self.epoch, self.adam.steps = facts["epoch"], facts["steps"]

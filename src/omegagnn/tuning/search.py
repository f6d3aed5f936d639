"""`Search`: asks a study for trials, trains many of them as one batch, tells what came of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.errors import InterruptedRun, OmegaError
from omegagnn.training.batch import RunBatch
from omegagnn.training.engine import Plan, Progress, Trainer
from omegagnn.training.protocol import Honest, ValidationCurve
from omegagnn.tuning.space import Dimension, Range
from omegagnn.tuning.study import Study
from omegagnn.tuning.workers import SURPLUS, WORKER, Worker, abandon, take_up_the_dead

if TYPE_CHECKING:
    import optuna

REPORT_EPOCHS = 25  # between two looks at whether a trial is worth going on with
STARTING_TRIALS = 10  # drawn evenly
COMPARED_TRIALS = 5  # fewer are no median to lag behind
WAIT_SECONDS = 2.0
Listener = Callable[[str], None]


@dataclass
class Search:
    """The part of a study that this process does; any number of processes may do theirs."""

    study: Study
    dataset: Dataset
    splits: Sequence[Split]
    device: torch.device
    at_once: int | None = None
    progress: Progress = field(default_factory=Progress)
    tell: Listener = lambda _: None

    def run(self) -> None:
        """Train trials until the budget of the study is spent, by whomever."""
        with Worker(self.study.storage) as worker:
            while not self.study.complete:
                taken = take_up_the_dead(self.study.storage, worker.name)
                if taken:
                    self.tell(f"trials {_list(taken)} were left by a worker that died: they are tried again")
                asked = self._ask(worker)
                if not asked:
                    time.sleep(WAIT_SECONDS)  # others train the rest; if they die, their trials are ours
                for shared, trials in asked.items():
                    self._train(dict(shared), trials)

    # ---------------------------------------------------------------------------------------------------------- asking

    def _ask(self, worker: Worker) -> dict[tuple[tuple[str, Any], ...], list[optuna.Trial]]:
        """Return up to a batch of trials, those together that one batch of runs can train."""
        asked: dict[tuple[tuple[str, Any], ...], list[optuna.Trial]] = {}
        fixed: dict[str, Any] = {}
        space = self.study.plan.space
        for _ in range(self.study.plan.batch):
            if len(self.study.trials) >= self.study.plan.trials and not self._waiting():
                break
            trial = self._ask_one(fixed, worker)
            if not self.study.counts(trial.number):  # another process asked at the same time
                trial.set_user_attr(SURPLUS, True)
                self.study.storage.tell(trial.number, state=_state("FAIL"))
                break
            values = {key: _suggest(trial, key, dimension) for key, dimension in space.dimensions.items()}
            shared = {key: values[key] for key in space.shared()}
            fixed = fixed or shared
            asked.setdefault(tuple(shared.items()), []).append(trial)
        return asked

    def _ask_one(self, fixed: dict[str, Any], worker: Worker) -> optuna.Trial:
        import optuna

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler: optuna.samplers.BaseSampler = optuna.samplers.TPESampler(
                n_startup_trials=STARTING_TRIALS, constant_liar=True, seed=self._sampler_seed()
            )
            if fixed:
                sampler = optuna.samplers.PartialFixedSampler(fixed, sampler)
        self.study.storage.sampler = sampler
        trial = self.study.storage.ask()
        trial.set_user_attr(WORKER, worker.name)
        return trial

    def _sampler_seed(self) -> int:
        """Return a seed that the plan and the number of trials so far decide: one process alone searches the same way twice."""
        return (int(self.study.plan.hash[:8], 16) + len(self.study.storage.get_trials(deepcopy=False))) % 2**32

    def _waiting(self) -> bool:
        return any(trial.state.name == "WAITING" for trial in self.study.trials)

    # -------------------------------------------------------------------------------------------------------- training

    def _train(self, shared: dict[str, Any], trials: list[optuna.Trial]) -> None:
        """Train trials that differ in their members' own settings only, and tell what came of each."""
        began = time.monotonic()
        try:
            config = self.study.plan.config.with_values(shared)
            pairs = [(seed, split) for split in self.splits for seed in self.study.plan.seeds]
            own = [
                {key.removeprefix("training."): trial.params[key] for key in self.study.plan.space.own()}
                for trial in trials
            ]
            members = [(seed, split, settings) for settings in own for seed, split in pairs]
            seeds, splits, settings = zip(*members, strict=True)
            plan = Plan(config, self.dataset, seeds, splits, settings, exploring=True)
            watch = Watch(self.study, trials, len(pairs), self.progress)
            trainer = Trainer.start(plan, self.study.journal, self.device, at_once=self.at_once, progress=watch)
            trainer.train()
            curves = [curve.validation for curve in self.study.journal.curves(trainer.run_name)]
        except (KeyboardInterrupt, InterruptedRun):
            self._give_back(trials)
            raise InterruptedRun(
                "Interrupted: finished trials are kept, those under way are tried again when the same command goes on."
            ) from None
        except BaseException:
            self._give_back(trials)
            raise
        seconds = (time.monotonic() - began) / len(trials)
        for k, trial in enumerate(trials):
            first = k * len(pairs)
            facts = {"run": trainer.run_name, "first member": first, "seconds": round(seconds, 3)}
            self._tell(trial, curves[first : first + len(pairs)], watch, facts)
        self.tell(self._line(trials, shared, seconds))

    def _tell(self, trial: optuna.Trial, curves: list[ValidationCurve], watch: Watch, facts: dict[str, Any]) -> None:
        """Tell the value of a trial; one that was cut short or whose loss was not finite counts as pruned, without value."""
        from optuna.exceptions import UpdateFinishedTrialError

        diverged = trial.number in watch.diverged
        value = measure(curves, self.study.plan.objective)
        facts = {**facts, "diverged": diverged, "epochs": sum(len(curve.loss) for curve in curves)}
        try:
            for key, fact in facts.items():
                trial.set_user_attr(key, fact)
            if diverged or trial.number in watch.pruned or not np.isfinite(value):
                self.study.storage.tell(trial, state=_state("PRUNED"), skip_if_finished=True)
            else:
                self.study.storage.tell(trial, value, skip_if_finished=True)
        except UpdateFinishedTrialError:
            self.tell(
                f"trial {trial.number} was taken up by another worker, which heard nothing of this one for too long"
            )

    def _give_back(self, trials: list[optuna.Trial]) -> None:
        for trial in trials:
            abandon(self.study.storage, trial.number)
        take_up_the_dead(self.study.storage)

    def _line(self, trials: list[optuna.Trial], shared: dict[str, Any], seconds: float) -> str:
        done, all_ = len(self.study.finished), self.study.plan.trials
        try:
            best = self.study.winner
            text = f"best {self.study.plan.objective} {best.value:.4f} (trial {best.number})"
        except OmegaError:
            text = "none trained to its end yet"
        parts = " ".join(f"{key}={value}" for key, value in shared.items())
        return f"{done} of {all_} trials, {text}; {len(trials)} with {parts or 'one network'}, {seconds:.1f} s each"


def measure(curves: Sequence[ValidationCurve], objective: str) -> float:
    """Return the value of a trial from what validation saw of its members; nothing else is handed in.

    Both objectives read each member at the epoch e of its lowest validation loss, as the rule `honest` does:
    ``mean score[e]`` or ``mean loss[e]``.
    """
    rule = Honest()
    best = [(curve, rule.select(curve)) for curve in curves]
    return float(np.mean([(curve.score if objective == "accuracy" else curve.loss)[epoch] for curve, epoch in best]))


@dataclass
class Watch(Progress):
    """Notes whose loss stopped being finite, and ends trials whose value lags behind the median of the others.

    Runs beside each other are compared by epoch: the mean over a trial's members of their best value so far. Runs one after
    another (tasks of many graphs) are compared by how many of a trial's members have ended.
    """

    study: Study
    trials: list[optuna.Trial]
    size: int
    inner: Progress
    best: dict[int, float] = field(default_factory=dict)
    pruned: set[int] = field(default_factory=set)
    diverged: set[int] = field(default_factory=set)
    _current: int = -1

    def started(self, run: str, members: int, epochs: int) -> None:
        """Tell the inner listener."""
        self.inner.started(run, members, epochs)

    def epoch(self, batch: RunBatch, done: int) -> None:
        """Note what each member has reached; now and then ask which trials should end."""
        self.inner.epoch(batch, done)
        for place, epoch in zip(batch.members, batch.standing.diverged.tolist(), strict=True):
            if epoch:
                self.diverged.add(self.trials[place // self.size].number)
        if not self.study.plan.prune:
            return
        alone = len(batch.members) == 1
        if alone and batch.members[0] != self._current:
            self._report(batch.members[0] // self.size, batch.members[0] % self.size, warm_up=1)
            self._current = batch.members[0]
        self._note(batch)
        if not alone and batch.epoch % REPORT_EPOCHS == 0:
            active = zip(batch.members, batch.active.tolist(), strict=True)
            for number in sorted({member // self.size for member, is_active in active if is_active}):
                self._report(number, batch.epoch, warm_up=2 * REPORT_EPOCHS)
        ended = [self.trials[member // self.size].number in self.pruned for member in batch.members]
        if any(ended):
            batch.standing.end(torch.tensor(ended), batch.epoch)

    def finished(self) -> None:
        """Tell the inner listener."""
        self.inner.finished()

    def _note(self, batch: RunBatch) -> None:
        accuracy = self.study.plan.maximizes
        values = batch.standing.best["validation-accuracy" if accuracy else "honest"].tolist()
        self.best.update(zip(batch.members, (value if accuracy else -value for value in values), strict=True))

    def _report(self, place: int, step: int, warm_up: int) -> None:
        """Report a trial at a step, counted from 1, against the trials that got as far."""
        import optuna

        members = range(place * self.size, (place + 1) * self.size)
        seen = [self.best[member] for member in members if member in self.best]
        trial = self.trials[place]
        if step < 1 or not seen or not np.isfinite(seen).all() or trial.number in self.pruned:
            return
        self.study.storage.pruner = optuna.pruners.MedianPruner(COMPARED_TRIALS, n_warmup_steps=warm_up)
        trial.report(float(np.mean(seen)), step)
        if trial.should_prune():
            self.pruned.add(trial.number)


def _suggest(trial: optuna.Trial, key: str, dimension: Dimension) -> Any:
    if isinstance(dimension, Range):
        return trial.suggest_float(key, dimension.low, dimension.high, log=dimension.log)
    return trial.suggest_categorical(key, list(dimension.values))


def _state(name: str) -> Any:
    from optuna.trial import TrialState

    return TrialState[name]


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


__all__ = ["Search", "Watch", "measure"]

"""`Study`: a search with a fixed budget, written down before its first trial, in a storage that many processes share."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omegagnn.data.dataset import Split
from omegagnn.errors import OmegaError, WrongUse
from omegagnn.training.config import RunConfig, parse_config
from omegagnn.training.journal import WAIT_SECONDS, Journal
from omegagnn.tuning.space import Space
from omegagnn.tuning.workers import ABANDONED, SURPLUS

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

Objective = Literal["accuracy", "loss"]
OBJECTIVES: dict[str, str] = {
    "accuracy": "mean validation score at the epoch of lowest validation loss, over all seeds and splits (largest wins)",
    "loss": "mean of the lowest validation losses, over all seeds and splits (smallest wins)",
}
STUDIES = "studies"
_PLAN = "plan"


@dataclass(frozen=True)
class StudyPlan:
    """All that decides a study before its first trial: what is tried, how often, and what is the better of two trials.

    Two models are compared at equal budgets when their plans have the same `trials`, `seeds`, `splits` and epochs.
    """

    config: RunConfig
    space: Space
    trials: int
    seeds: tuple[int, ...]
    splits: tuple[str, ...]  # their hashes
    objective: Objective = "accuracy"
    batch: int = 16
    prune: bool = True

    def __post_init__(self) -> None:
        """Check every searched key once, with a value of its range."""
        if self.objective not in OBJECTIVES:
            raise WrongUse(f"There is no objective {self.objective!r}: choose one of {', '.join(OBJECTIVES)}.")
        if not self.space.dimensions:
            raise WrongUse("A study needs something to search: leave a key unset, or name one with --search.")
        for key, dimension in self.space.dimensions.items():
            for value in getattr(dimension, "values", None) or (getattr(dimension, "low", None),):
                self.config.with_values({key: value})

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON: equal hashes, the same study."""
        return _digest(self.to_dict())

    @property
    def name(self) -> str:
        """What the study is called unless it is given a name: its plan decides it, so the same command finds it again."""
        return f"{self.config.data.name.replace(':', '-').replace('/', '-')}-{self.config.model.name}-{self.hash[:8]}"

    @property
    def maximizes(self) -> bool:
        """Whether the larger of two values is the better."""
        return self.objective == "accuracy"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON holds it."""
        return {
            "config": self.config.canonical(),
            "space": self.space.to_dict(),
            "trials": self.trials,
            "seeds": list(self.seeds),
            "splits": list(self.splits),
            "objective": self.objective,
            "batch": self.batch,
            "prune": self.prune,
        }

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> StudyPlan:
        """Read what `to_dict` returned."""
        rest = {key: tree[key] for key in ("trials", "objective", "batch", "prune")}
        return cls(
            parse_config(tree["config"]),
            Space.from_dict(tree["space"]),
            seeds=tuple(tree["seeds"]),
            splits=tuple(tree["splits"]),
            **rest,
        )


@dataclass(frozen=True)
class Study:
    """A study in its storage, and the folder of this host with the curves of the trials that were trained here."""

    storage: optuna.Study
    folder: Path

    @cached_property
    def plan(self) -> StudyPlan:
        """What was written down before the first trial."""
        return StudyPlan.from_dict(json.loads(self.storage.user_attrs[_PLAN]))

    @property
    def name(self) -> str:
        """The study's name."""
        return self.storage.study_name

    @cached_property
    def journal(self) -> Journal:
        """The journal of all trials trained on this host."""
        return Journal(self.folder)

    @property
    def trials(self) -> list[FrozenTrial]:
        """The trials that count, in order; abandoned ones have a successor, surplus ones were never trained."""
        everyone = self.storage.get_trials(deepcopy=False)
        counting = [t for t in everyone if not t.user_attrs.get(ABANDONED) and not t.user_attrs.get(SURPLUS)]
        return counting[: self.plan.trials]

    @property
    def finished(self) -> list[FrozenTrial]:
        """The trials of the budget that have ended."""
        return [trial for trial in self.trials if trial.state.is_finished()]

    def counts(self, number: int) -> bool:
        """Return whether a trial is within the budget."""
        return any(trial.number == number for trial in self.trials)

    @property
    def complete(self) -> bool:
        """Whether the whole budget was spent."""
        return len(self.finished) == self.plan.trials

    @property
    def hash(self) -> str:
        """SHA-256 of the plan and of what came of each trial."""
        rows = [[t.number, t.state.name, t.params, t.value] for t in self.finished]
        return _digest({"plan": self.plan.to_dict(), "trials": rows})

    @property
    def winner(self) -> FrozenTrial:
        """The best trial, the earliest of equals."""
        done = [trial for trial in self.finished if trial.state.name == "COMPLETE" and trial.value is not None]
        if not done:
            raise OmegaError(f"No trial of {self.name} was trained to its end: widen the space or search longer.")
        sign = 1.0 if self.plan.maximizes else -1.0
        return max(done, key=lambda trial: (sign * (trial.value or 0.0), -trial.number))

    @property
    def best_config(self) -> RunConfig:
        """The configuration of the winner."""
        return self.plan.config.with_values(self.winner.params)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``omegagnn tune --json`` prints."""
        states: dict[str, int] = {}
        for trial in self.finished:
            states[trial.state.name.lower()] = states.get(trial.state.name.lower(), 0) + 1
        return {
            "study": self.name,
            "hash": self.hash,
            "plan_hash": self.plan.hash,
            "dataset": self.plan.config.data.name,
            "model": self.plan.config.model.name,
            "objective": self.plan.objective,
            "budget": {
                "trials": self.plan.trials,
                "seeds": len(self.plan.seeds),
                "splits": len(self.plan.splits),
                "epochs": self.plan.config.training.epochs,
            },
            "trials": {"finished": len(self.finished), **states},
            "winner": {"trial": self.winner.number, "value": self.winner.value, "settings": self.winner.params},
            "config_hash": self.best_config.hash,
        }


def start_study(plan: StudyPlan, runs: Path, storage: str | None = None, name: str | None = None) -> Study:
    """Return the study of a plan, found again or begun; `storage` is `open_storage`'s."""
    optuna = _optuna()
    name = name or plan.name
    folder = runs / STUDIES / name
    study = optuna.create_study(
        study_name=name,
        storage=open_storage(storage, folder),
        direction="maximize" if plan.maximizes else "minimize",
        load_if_exists=True,
    )
    if _PLAN not in study.user_attrs:
        study.set_user_attr(_PLAN, json.dumps(plan.to_dict()))
    found = Study(study, folder)
    if found.plan.hash != plan.hash:
        raise WrongUse(
            f"The study {name} was begun with other settings or another budget: give those again, or another --study."
        )
    return found


def find_study(name: str, runs: Path, storage: str | None = None) -> Study:
    """Return a study that was begun, by its name."""
    optuna = _optuna()
    folder = runs / STUDIES / name
    if storage is None and not folder.exists():
        known = sorted(path.name for path in (runs / STUDIES).glob("*"))
        hint = f"there are {', '.join(known)}" if known else "begin one with `omegagnn tune`"
        raise WrongUse(f"There is no study {name!r} in {runs}: {hint}.")
    try:
        study = optuna.load_study(study_name=name, storage=open_storage(storage, folder))
    except KeyError:
        study = None
    if study is None or _PLAN not in study.user_attrs:
        raise WrongUse(f"There is no study {name!r} in {storage or folder}: check its name.")
    return Study(study, folder)


def open_storage(storage: str | None, folder: Path) -> Any:
    """Return Optuna's storage: a database by its URL, a journal file by its path, else the journal in `folder`.

    A journal file may lie on a network disk, where SQLite must not be.
    """
    optuna = _optuna()
    try:
        if storage is not None and "://" not in storage:
            path = Path(storage)
            path.parent.mkdir(parents=True, exist_ok=True)
            backend = optuna.storages.journal.JournalFileBackend(str(path))
            return optuna.storages.JournalStorage(backend)
        if storage is None:
            storage = f"sqlite:///{Journal(folder).path.resolve()}"
        return _open_database(optuna, storage)
    except OmegaError:
        raise
    except Exception as error:  # whatever a driver raises
        raise WrongUse(f"The storage {storage} cannot be opened ({_first_line(error)}): check it.") from None


def _open_database(optuna: Any, url: str) -> Any:
    options = {"connect_args": {"timeout": WAIT_SECONDS}} if url.startswith("sqlite") else {}
    for pause in (0.1, 0.5, 2.0):
        try:
            return optuna.storages.RDBStorage(url, engine_kwargs=options)
        except Exception:  # another process may be making the same tables at this moment
            time.sleep(pause)
    return optuna.storages.RDBStorage(url, engine_kwargs=options)


def hashes_of(splits: Sequence[Split]) -> tuple[str, ...]:
    """Return the hash of each split."""
    return tuple(split.hash for split in splits)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise WrongUse("Tuning needs Optuna: install omegagnn with its extra, pip install 'omegagnn[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _digest(tree: Any) -> str:
    canonical = json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")

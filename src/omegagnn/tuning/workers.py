"""Who works on a study: each trial names its worker, each worker shows signs of life, and the trials of the dead are taken up."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegagnn.errors import OmegaError

if TYPE_CHECKING:
    import optuna

BEAT_SECONDS = 15.0
SILENCE_SECONDS = (
    300.0  # after which a worker of another host counts as dead; its clock may differ by some minutes less
)
WORKER, ABANDONED, RETRY_OF, SURPLUS = "worker", "abandoned", "retry of", "surplus"
_BEAT = "beat of "


def host() -> str:
    """Return a name for the processes that can see each other: the host's, and its process namespace where there are any."""
    with suppress(OSError):
        return f"{socket.gethostname()}/{os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def started(process: int) -> str | None:
    """Return when a process of this host began, in the system's own words; None where there is none."""
    stat = Path(f"/proc/{process}/stat")
    if stat.parent.parent.joinpath("self").exists():
        try:
            state, *rest = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            return None
        return None if state in "ZX" else rest[18]
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "?"


class Worker:
    """This process as a worker of a study; as a context it shows signs of life."""

    def __init__(self, study: optuna.Study) -> None:
        """Take a name that no other process has or had."""
        self.study = study
        self.name = f"{host()}|{os.getpid()}|{started(os.getpid())}"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Worker:
        self.study.set_user_attr(_BEAT + self.name, time.time())
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._done.wait(BEAT_SECONDS):
            with suppress(Exception):  # a storage that is away for a moment: the next beat may reach it
                self.study.set_user_attr(_BEAT + self.name, time.time())


def is_alive(worker: str | None, beats: dict[str, Any], since: float, me: str | None = None) -> bool:
    """Return whether a worker lives: as its host sees it where that is this one, else by its last sign of life.

    A trial that names none was asked for at the time `since` by a worker that may have died before it signed: by one of those
    that ever gave a sign of life, and not by the one who asks (`me`).
    """
    if worker is None:
        others = [name.removeprefix(_BEAT) for name in beats if name.startswith(_BEAT)]
        somebody = any(is_alive(other, beats, 0.0) for other in others if other != me)
        return somebody and time.time() - since < SILENCE_SECONDS
    if worker.startswith(host() + "|"):
        _, process, began = worker.rsplit("|", 2)
        return started(int(process)) == began
    return time.time() - max(since, beats.get(_BEAT + worker, 0.0)) < SILENCE_SECONDS


def take_up_the_dead(study: optuna.Study, me: str | None = None) -> list[int]:
    """Fail every running trial whose worker is dead and enqueue its settings again; return the numbers of those trials.

    It may be called at any time by any worker. A kill in its middle loses nothing: a trial that was failed as abandoned and
    has no successor yet gets one at the next call.
    """
    from optuna.trial import TrialState

    beats = study.user_attrs
    taken = []
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        since = 0.0 if trial.datetime_start is None else trial.datetime_start.timestamp()
        if not is_alive(trial.user_attrs.get(WORKER), beats, since, me):
            abandon(study, trial.number)
            taken.append(trial.number)
    trials = study.get_trials(deepcopy=False)
    successors = {trial.user_attrs.get(RETRY_OF) for trial in trials}
    for trial in trials:
        lost = trial.state == TrialState.FAIL and trial.user_attrs.get(ABANDONED)
        if lost and trial.number not in successors:
            study.enqueue_trial(trial.params, user_attrs={RETRY_OF: trial.number})
    return taken


def abandon(study: optuna.Study, number: int) -> None:
    """Fail a running trial in such a way that `take_up_the_dead` enqueues it again."""
    import optuna

    trial = study.get_trials(deepcopy=False)[number]
    try:
        study._storage.set_trial_user_attr(trial._trial_id, ABANDONED, True)
        study.tell(number, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)
    except optuna.exceptions.UpdateFinishedTrialError:
        return  # another worker was quicker
    except (optuna.exceptions.OptunaError, RuntimeError) as error:
        raise OmegaError(f"The study {study.study_name} could not be written: {error}.") from None

"""The trainer: members in chunks that fit, dealt to processes, epochs into the journal, checkpoints, resume."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset
from omegagnn.errors import InterruptedRun, OmegaError, WrongUse
from omegagnn.files import CONFIG, MODEL, write_bytes
from omegagnn.training.batch import KEPT, RunBatch
from omegagnn.training.captured import STRIDE
from omegagnn.training.checkpoint import sha256, write_tensors
from omegagnn.training.config import parse_config
from omegagnn.training.distributed import ALONE, LostProcess, Team
from omegagnn.training.environment import describe, one_thread_where_it_wins, peak_mib
from omegagnn.training.journal import Journal, Member, MuteJournal
from omegagnn.training.memory import explain_out_of_memory, memory_kept, runs_at_once
from omegagnn.training.plan import Plan
from omegagnn.training.records import EpochRecord
from omegagnn.training.run_files import Finished, RunFiles
from omegagnn.training.sampled import configured_task
from omegagnn.training.signature import Signature
from omegagnn.training.tasks import TrainingTask

FLUSH_SECONDS, CHECKPOINT_SECONDS = 1.0, 20.0
STRIDE_SECONDS = 0.2  # how long a GPU may train before it is asked what came of it


@dataclass
class Progress:
    """What a listener is told: called for each epoch; the base does nothing."""

    def started(self, run: str, members: int, epochs: int) -> None:
        """A run begins or goes on."""

    def epoch(self, batch: RunBatch, done: int) -> None:
        """An epoch of a chunk has ended; `done` members have finished altogether."""

    def finished(self) -> None:
        """The training ended, one way or another."""


@dataclass
class _Clock:
    """Seconds of training, over all parts of an interrupted run."""

    before: float = 0.0
    since: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.since


class Trainer:
    """Trains the members of a plan; `run` is its name in the journal, `folder` its own folder."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        device: torch.device,
        run: str,
        at_once: int | None = None,
        progress: Progress | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        team: Team = ALONE,
    ) -> None:
        """Take a plan whose run is in the journal already; `start` and `resume` make a trainer."""
        self.plan, self.device, self.run_name, self.team = plan, device, run, team
        self.shares_steps = team.size > 1 and plan.config.training.shards > 1
        self.writes = team.leads or not self.shares_steps
        self.journal = journal if self.writes else MuteJournal(journal.folder, create=False, shared=journal.shared)
        self.folder = journal.folder / run
        self.files = RunFiles(self.folder)
        self.progress = progress or Progress()
        self.at_once, self.checkpoint_seconds = at_once, checkpoint_seconds
        self.clock = _Clock()
        self._rows: list[tuple[int, int, list[float]]] = []
        self._finished: Finished = {}
        self._interrupted = False

    # ------------------------------------------------------------------------------------------- starting and going on

    @classmethod
    def start(cls, plan: Plan, journal: Journal, device: torch.device, team: Team = ALONE, **options: Any) -> Trainer:
        """Enter a new run into the journal."""
        config, dataset = plan.config, plan.dataset
        members = [
            Member(seed, split.name, split.hash, plan.settings_of(k))
            for k, (seed, split) in enumerate(zip(plan.seeds, plan.splits, strict=True))
        ]
        fields = {
            "dataset": dataset.name,
            "task": dataset.task,
            "model": config.model.name,
            "preset": plan.preset,
            "preset_hash": plan.preset_hash,
            "protocol": plan.protocol,
            "config": json.dumps(config.model_dump(mode="json"), ensure_ascii=False),
            "config_hash": config.hash,
            "environment": json.dumps(describe(device)),
        }
        stem = f"{dataset.name}-{config.model.name}-{config.model.layers}"
        run = team.told(lambda: journal.start(stem, fields, members))
        trainer = cls(plan, journal, device, run, team=team, **options)
        try:
            trainer._settle_chunks()
        except BaseException:
            if team.leads:
                journal.delete(run)  # it never began
            raise
        return trainer

    @classmethod
    def resume(cls, run: str, journal: Journal, dataset: Dataset, device: torch.device, **options: Any) -> Trainer:
        """Go on with a run of the journal from its last checkpoint (or its start)."""
        row = journal.run(run)
        if row["status"] == "done":
            raise WrongUse(f"Run {row['run']} is done already: `omegagnn runs show {row['run']}` prints its results.")
        by_hash = {split.hash: split for split in dataset.splits}
        members = journal.members(row["run"])
        missing = [member["split"] for member in members if member["split_hash"] not in by_hash]
        if missing:
            raise WrongUse(
                f"Split {missing[0]!r} of {dataset.name} is not what {row['run']} was started on: use the same data."
            )
        plan = Plan(
            parse_config(json.loads(row["config"])),
            dataset,
            [member["seed"] for member in members],
            [by_hash[member["split_hash"]] for member in members],
            [json.loads(member["settings"]) for member in members],
            row["preset"],
            row["protocol"],
            row["preset_hash"],
        )
        trainer = cls(plan, journal, device, row["run"], **options)
        trainer._settle_chunks()
        trainer.clock = _Clock(row["seconds"])
        if trainer.team.leads:
            journal.update(row["run"], status="running")
        return trainer

    def _settle_chunks(self) -> None:
        """Decide once for the whole run how many members train at once, and write it down with the configuration."""
        self.at_once = self.team.told(self._settled_chunks)

    def _settled_chunks(self) -> int:
        file = self.folder / CONFIG
        if file.exists():
            settled: int = json.loads(file.read_text(encoding="utf-8"))["runs_at_once"]
            return settled
        self.at_once = self._chunk_size()
        Signature.of(self.plan.dataset).save(self.folder)
        facts = {
            "config": self.plan.config.model_dump(mode="json"),
            "preset": self.plan.preset,
            "protocol": self.plan.protocol,
            "features": self.plan.dataset.num_features,
            "classes": self.plan.dataset.num_classes,
            "runs_at_once": self.at_once,
        }
        write_bytes(file, json.dumps(facts, indent=2, ensure_ascii=False).encode())
        return self.at_once

    # ------------------------------------------------------------------------------------------------------- training

    def train(self) -> None:
        """Train every member to its end and write the best weights."""
        try:
            with self._ending_epochs_on_interrupt(), one_thread_where_it_wins(self.device), memory_kept(self.device):
                chunks = self._train_chunks()
            self.team.wait()
            if self.team.leads:
                self._conclude(chunks)
            self.team.wait()
        except LostProcess as error:
            self._try_update(status="interrupted")
            raise LostProcess(
                f"{str(error).rstrip('.')}: go on with `omegagnn train --resume {self.run_name}`."
            ) from None
        except (KeyboardInterrupt, InterruptedRun):
            self._try_update(status="interrupted")
            raise
        except OmegaError as error:
            self._try_update(status="failed", note=str(error))
            raise
        finally:
            self.progress.finished()

    def _conclude(self, chunks: int) -> None:
        model = self.folder / MODEL
        if not self.plan.exploring:
            facts = {"config": self.plan.config.model_dump(mode="json"), "run": self.run_name}
            self.files.write_model(chunks, facts)
            self.journal.record_artefact(self.run_name, MODEL, MODEL, sha256(model), model.stat().st_size)
        self.journal.update(self.run_name, status="done", note=None)
        self._note_costs()
        self.files.remove_parts()

    def _note_costs(self) -> None:
        if self.team.leads:  # whose clock and memory stand for all
            self.journal.update(self.run_name, seconds=self.clock.seconds, peak_mib=peak_mib(self.device))

    @contextmanager
    def _ending_epochs_on_interrupt(self) -> Iterator[None]:
        """Let the first Ctrl-C or SIGTERM end after the epoch under way, with a checkpoint; a second one ends at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, _: Any) -> None:
            self._interrupted = True
            signal.signal(number, before[number])

        before: dict[int, Any] = {n: signal.signal(n, note) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _try_update(self, **fields: Any) -> None:
        with suppress(OmegaError):  # the first error is the one to tell: a full disk takes no note of itself
            self.journal.update(self.run_name, **fields)

    def _train_chunks(self) -> int:
        """Train the chunks that are this process's and unfinished; return how many there are in all."""
        size = self._chunk_size()
        everyone = list(range(len(self.plan.seeds)))
        chunks = [everyone[k : k + size] for k in range(0, len(everyone), size)]
        numbers = self.team.told(lambda: self.files.unfinished(len(chunks)))
        if not self.shares_steps:
            numbers = numbers[self.team.rank :: self.team.size]
        mine = sum(len(chunks[number]) for number in numbers)
        self.progress.started(self.run_name, mine, self.plan.config.training.epochs)
        self._done_before = 0
        for number in numbers:
            self._train_chunk(number, chunks[number])
            self._done_before += len(chunks[number])
        return len(chunks)

    def _chunk_size(self) -> int:
        task = self._make_task([0])
        if self.at_once is not None and not task.own_steps:
            return self.at_once
        runs = -(-len(self.plan.seeds) // self.team.size)  # none of the processes is left without
        return runs_at_once(self.plan.config, task, runs, self.device, self.team.local_size)

    def _make_task(self, members: Sequence[int]) -> TrainingTask:
        splits = [self.plan.splits[k] for k in members]
        return configured_task(self.plan.dataset, self.plan.config, splits)

    def _make_batch(self, members: list[int]) -> RunBatch:
        seeds = torch.tensor([self.plan.seeds[k] for k in members])
        settings = [self.plan.settings_of(k) for k in members]
        task = self._make_task(members).to(self.device)
        return RunBatch(
            self.plan.config, task, members, seeds, settings, self.device,
            exploring=self.plan.exploring, team=self.team if self.shares_steps else ALONE,
        )  # fmt: skip

    def _train_chunk(self, number: int, members: list[int]) -> None:
        self._finished = {}
        try:
            batch = self._begin_chunk(number, members)
            self._train_epochs(number, members, batch)
        except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
            if isinstance(error, RuntimeError) and "memory" not in str(error):
                raise
            task = self._make_task(members[:1])
            raise explain_out_of_memory(self.plan.config, task, len(members), self.device) from None
        self._finish_chunk(number, batch)

    def _begin_chunk(self, number: int, members: list[int]) -> RunBatch:
        saved = self.files.saved(number)
        if saved is not None:
            batch = self._restored(*saved)
        else:
            # Nothing of this chunk was saved: what it recorded before a kill is trained and recorded again.
            batch = self._make_batch(members)
            self.journal.forget_after(self.run_name, members, 0)
        self._count_parameters(batch)
        return batch

    def _train_epochs(self, number: int, members: list[int], batch: RunBatch) -> None:
        last_flush = last_save = time.monotonic()
        while bool(batch.active.any()):
            for record in batch.advance(STRIDE_SECONDS):
                self._collect(batch, record)
            now = time.monotonic()
            self.progress.epoch(batch, self._done_before + len(members) - int(batch.active.sum()))
            if now - last_flush > FLUSH_SECONDS:
                self._flush()
                last_flush = now
            if now - last_save > self.checkpoint_seconds and not self.plan.exploring:
                self._checkpoint(number, batch)
                last_save = now
            if self.team.any(self._interrupted) if self.shares_steps else self._interrupted:
                self._interrupt(number, batch)
            self._drop_stopped(batch)

    def _interrupt(self, number: int, batch: RunBatch) -> None:
        if self.plan.exploring:
            raise InterruptedRun(f"Interrupted at epoch {batch.epoch}; an exploration keeps no checkpoint.")
        self._checkpoint(number, batch)
        raise InterruptedRun(
            f"Interrupted and saved at epoch {batch.epoch}: go on with `omegagnn train --resume {self.run_name}`."
        )

    def _collect(self, batch: RunBatch, record: EpochRecord) -> None:
        means = [float("nan")] * len(batch.members) if record.omega is None else record.omega.tolist()
        values = record.metrics.flatten(1).double().tolist()
        for k in record.trained.nonzero().squeeze(1).tolist():
            self._rows.append((batch.members[k], record.epoch, [*values[k], means[k]]))

    def _flush(self) -> None:
        if self._rows:
            self.journal.record_epochs(self.run_name, self._rows)
            self._rows = []

    def _drop_stopped(self, batch: RunBatch) -> None:
        """Take stopped members out of the batch once they are half of it; on a GPU, where company decides last digits, in
        epochs that do not depend on the clock.
        """
        if self.device.type != "cpu" and batch.epoch % STRIDE:
            return
        active = batch.active.cpu()
        if 0 < int(active.sum()) <= len(batch.members) // 2:
            self._put_away(batch, ~active)
            batch.keep(active.nonzero().squeeze(1).to(self.device))

    def _put_away(self, batch: RunBatch, which: Tensor) -> None:
        """Keep the best weights of members that have stopped, and record where they stopped."""
        self._flush()
        for k in which.nonzero().squeeze(1).tolist():
            member, stopped = batch.members[k], int(batch.stopped[k])
            self.journal.finish_member(self.run_name, member, stopped, stopped >= self.plan.config.training.epochs)
            for rule in () if self.plan.exploring else KEPT:
                for name, tensor in batch.best_state(rule).items():
                    self._finished.setdefault(f"{rule}/{name}", {})[member] = tensor[k].cpu().clone()
                self._finished.setdefault(f"{rule}/epoch", {})[member] = batch.best_epoch[rule][k].cpu().clone()

    def _finish_chunk(self, number: int, batch: RunBatch) -> None:
        self._put_away(batch, torch.ones(len(batch.members), dtype=torch.bool))
        if self.writes and not self.plan.exploring:
            self.files.finish_chunk(number, self._finished)
        self._note_costs()

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def _checkpoint(self, number: int, batch: RunBatch) -> None:
        self._flush()
        if not self.writes:
            return
        tensors = batch.tensors()
        for name, by_member in self._finished.items():
            tensors.update({f"finished/{member}/{name}": tensor for member, tensor in by_member.items()})
        write_tensors(self.files.checkpoint(number), tensors, batch.facts())
        self._note_costs()

    def _restored(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> RunBatch:
        for name, tensor in tensors.items():
            if name.startswith("finished/"):
                _, member, rest = name.split("/", 2)
                self._finished.setdefault(rest, {})[int(member)] = tensor
        batch = self._make_batch(facts["members"])
        batch.restore(tensors, facts)
        self.journal.forget_after(self.run_name, facts["members"], facts["epoch"])
        return batch

    def _count_parameters(self, batch: RunBatch) -> None:
        count = sum(parameter[0].numel() for parameter in batch.net.parameters())
        self.journal.update(self.run_name, parameters=count)


__all__ = ["CONFIG", "MODEL", "Plan", "Progress", "Trainer"]

"""The trainer: members in chunks that fit, epochs into the journal, checkpoints, resume."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset, Split
from omegagnn.errors import InterruptedRun, OmegaError, WrongUse
from omegagnn.files import CONFIG, MODEL, write_bytes
from omegagnn.training.batch import DTYPES, KEPT, RunBatch
from omegagnn.training.build import sized_for
from omegagnn.training.captured import STRIDE
from omegagnn.training.checkpoint import read_tensors, sha256, write_tensors
from omegagnn.training.config import RunConfig, parse_config
from omegagnn.training.environment import describe, one_thread_where_it_wins, peak_mib
from omegagnn.training.journal import Journal, Member
from omegagnn.training.memory import explain_out_of_memory, runs_at_once
from omegagnn.training.records import EpochRecord
from omegagnn.training.signature import Signature
from omegagnn.training.tasks import TrainingTask, make_task

CHECKPOINT = "checkpoint.safetensors"
FLUSH_SECONDS, CHECKPOINT_SECONDS = 1.0, 20.0
STRIDE_SECONDS = 0.2  # how long a GPU may train before it is asked what came of it


@dataclass(frozen=True)
class Plan:
    """What is to be trained: a configuration and its members, each a seed on a split with settings of its own.

    `exploring` asks for curves only: a member that diverges ends alone, and no weights are written."""

    config: RunConfig
    dataset: Dataset
    seeds: Sequence[int]
    splits: Sequence[Split]
    settings: Sequence[dict[str, Any]] = ()
    preset: str | None = None
    protocol: str = "honest"
    preset_hash: str | None = None
    exploring: bool = False

    def __post_init__(self) -> None:
        """Check that seeds, splits and settings belong together; tell the network of the size of the graph where it asks."""
        if not self.seeds or len(self.seeds) != len(self.splits):
            raise WrongUse(f"A plan needs a split for each seed, not {len(self.splits)} for {len(self.seeds)}.")
        if self.settings and len(self.settings) != len(self.seeds):
            raise WrongUse(
                f"A plan needs settings for each seed or none, not {len(self.settings)} for {len(self.seeds)}."
            )
        object.__setattr__(self, "config", sized_for(self.config, self.dataset.num_nodes))

    def settings_of(self, member: int) -> dict[str, Any]:
        """Return the training values that replace the configuration's for one member."""
        return self.settings[member] if self.settings else {}


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
    ) -> None:
        """Take a plan whose run is in the journal already; `start` and `resume` make a trainer."""
        self.plan, self.journal, self.device, self.run_name = plan, journal, device, run
        self.folder = journal.folder / run
        self.progress = progress or Progress()
        self.at_once, self.checkpoint_seconds = at_once, checkpoint_seconds
        self.clock = _Clock()
        self._rows: list[tuple[int, int, list[float]]] = []
        self._finished: dict[str, dict[int, Tensor]] = {}
        self._next_chunk = 0
        self._interrupted = False
        self._saved: tuple[dict[str, Tensor], dict[str, Any]] | None = None

    # ------------------------------------------------------------------------------------------- starting and going on

    @classmethod
    def start(cls, plan: Plan, journal: Journal, device: torch.device, **options: Any) -> Trainer:
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
        run = journal.start(stem, fields, members)
        trainer = cls(plan, journal, device, run, **options)
        try:
            trainer._settle_chunks()
        except BaseException:
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
        if (trainer.folder / CHECKPOINT).exists():
            trainer._saved = read_tensors(trainer.folder / CHECKPOINT)
            facts = trainer._saved[1]
            trainer._next_chunk, trainer.clock = facts["chunk"], _Clock(facts["seconds"])
        journal.update(row["run"], status="running")
        return trainer

    def _settle_chunks(self) -> None:
        """Decide once for the whole run how many members train at once, and write it down with the configuration."""
        file = self.folder / CONFIG
        if file.exists():
            self.at_once = json.loads(file.read_text(encoding="utf-8"))["runs_at_once"]
            return
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

    # ------------------------------------------------------------------------------------------------------- training

    def train(self) -> None:
        """Train every member to its end and write the best weights."""
        try:
            with self._ending_epochs_on_interrupt(), one_thread_where_it_wins(self.device):
                self._train_chunks()
            self._conclude()
        except (KeyboardInterrupt, InterruptedRun):
            self._try_update(status="interrupted", seconds=self.clock.seconds)
            raise
        except OmegaError as error:
            self._try_update(status="failed", note=str(error))
            raise
        finally:
            self.progress.finished()

    def _conclude(self) -> None:
        model = self.folder / MODEL
        if not self.plan.exploring:
            self.journal.record_artefact(self.run_name, MODEL, MODEL, sha256(model), model.stat().st_size)
        self.journal.update(
            self.run_name, status="done", seconds=self.clock.seconds, peak_mib=peak_mib(self.device), note=None
        )
        for part in [self.folder / CHECKPOINT, *self.folder.glob("chunk-*.safetensors")]:
            part.unlink(missing_ok=True)

    @contextmanager
    def _ending_epochs_on_interrupt(self) -> Iterator[None]:
        """Let the first Ctrl-C end after the epoch under way, with a checkpoint; a second one ends at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(_: int, __: Any) -> None:
            self._interrupted = True
            signal.signal(signal.SIGINT, before)

        before = signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _try_update(self, **fields: Any) -> None:
        with suppress(OmegaError):  # the first error is the one to tell: a full disk takes no note of itself
            self.journal.update(self.run_name, **fields)

    def _train_chunks(self) -> None:
        size = self._chunk_size()
        everyone = list(range(len(self.plan.seeds)))
        chunks = [everyone[k : k + size] for k in range(0, len(everyone), size)]
        self.progress.started(self.run_name, len(everyone), self.plan.config.training.epochs)
        for number in range(self._next_chunk, len(chunks)):
            self._train_chunk(number, chunks[number])
        if not self.plan.exploring:
            self._write_model(len(chunks))

    def _chunk_size(self) -> int:
        if self.at_once is not None and self.plan.dataset.task == "node":
            return self.at_once
        task = self._make_task([0])
        return runs_at_once(self.plan.config, task, len(self.plan.seeds), self.device)

    def _make_task(self, members: Sequence[int]) -> TrainingTask:
        training = self.plan.config.training
        splits = [self.plan.splits[k] for k in members]
        return make_task(
            self.plan.dataset, self.plan.config.data, splits, DTYPES[training.precision], training.batch_size
        )

    def _make_batch(self, members: list[int]) -> RunBatch:
        seeds = torch.tensor([self.plan.seeds[k] for k in members])
        settings = [self.plan.settings_of(k) for k in members]
        task = self._make_task(members).to(self.device)
        return RunBatch(self.plan.config, task, members, seeds, settings, self.device, exploring=self.plan.exploring)

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
        if self._saved is not None and self._saved[1]["chunk"] == number:
            batch = self._restored(self._saved, members)
        else:
            # Nothing of this chunk was saved: what it recorded before a kill is trained and recorded again.
            batch = self._make_batch(members)
            self.journal.forget_after(self.run_name, members, 0)
        self._saved = None
        self._count_parameters(batch)
        return batch

    def _train_epochs(self, number: int, members: list[int], batch: RunBatch) -> None:
        last_flush = last_save = time.monotonic()
        while bool(batch.active.any()):
            for record in batch.advance(STRIDE_SECONDS):
                self._collect(batch, record)
            now = time.monotonic()
            self.progress.epoch(batch, members[0] + len(members) - int(batch.active.sum()))
            if now - last_flush > FLUSH_SECONDS:
                self._flush()
                last_flush = now
            if now - last_save > self.checkpoint_seconds and not self.plan.exploring:
                self._checkpoint(number, batch)
                last_save = now
            if self._interrupted:
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
        if not self.plan.exploring:
            self._write_chunk(number)
        self.journal.update(self.run_name, seconds=self.clock.seconds, peak_mib=peak_mib(self.device))

    def _write_chunk(self, number: int) -> None:
        first = min(min(by_member) for by_member in self._finished.values())
        tensors = {
            name: torch.stack([by_member[member] for member in sorted(by_member)])
            for name, by_member in self._finished.items()
        }
        write_tensors(self._chunk_file(number), tensors, {"first": first})
        # From here on a restart begins with the next chunk.
        write_tensors(self.folder / CHECKPOINT, {}, {"chunk": number + 1, "seconds": self.clock.seconds})

    def _chunk_file(self, number: int) -> Path:
        return self.folder / f"chunk-{number}.safetensors"

    def _write_model(self, chunks: int) -> None:
        parts = [read_tensors(self._chunk_file(number))[0] for number in range(chunks)]
        whole = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        facts = {"config": self.plan.config.model_dump(mode="json"), "run": self.run_name}
        write_tensors(self.folder / MODEL, whole, facts)

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def _checkpoint(self, number: int, batch: RunBatch) -> None:
        self._flush()
        tensors = batch.tensors()
        for name, by_member in self._finished.items():
            tensors.update({f"finished/{member}/{name}": tensor for member, tensor in by_member.items()})
        facts = {**batch.facts(), "chunk": number, "seconds": self.clock.seconds}
        write_tensors(self.folder / CHECKPOINT, tensors, facts)
        self.journal.update(self.run_name, seconds=self.clock.seconds, peak_mib=peak_mib(self.device))

    def _restored(self, saved: tuple[dict[str, Tensor], dict[str, Any]], members: list[int]) -> RunBatch:
        tensors, facts = saved
        if "epoch" not in facts:  # written between two chunks: the next one starts afresh
            self.journal.forget_after(self.run_name, members, 0)
            return self._make_batch(members)
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

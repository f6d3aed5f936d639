"""The journal: every run, every epoch, in one SQLite file that many processes write and none can damage.

A *run* is one call of the trainer; its *members* are the seeds, splits or settings that were trained as a batch. A row is
written when it is acknowledged; epochs are keyed by (run, member, epoch), so nothing is ever recorded twice.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from omegagnn.errors import OmegaError, WrongUse
from omegagnn.files import replacing
from omegagnn.training.protocol import Curve, ValidationCurve

SCHEMA_VERSION = 2
WAIT_SECONDS = 120
SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, created TEXT NOT NULL, status TEXT NOT NULL, dataset TEXT NOT NULL, task TEXT NOT NULL,
    model TEXT NOT NULL, preset TEXT, protocol TEXT NOT NULL, config TEXT NOT NULL, config_hash TEXT NOT NULL,
    environment TEXT NOT NULL, parameters INTEGER, seconds REAL NOT NULL DEFAULT 0, peak_mib REAL, note TEXT, preset_hash TEXT
);
CREATE TABLE IF NOT EXISTS members (
    run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, member INTEGER NOT NULL, seed INTEGER NOT NULL,
    split TEXT NOT NULL, split_hash TEXT NOT NULL, settings TEXT NOT NULL, stopped INTEGER, complete INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, member)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS epochs (
    run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, member INTEGER NOT NULL, epoch INTEGER NOT NULL,
    train_loss REAL, train_score REAL, val_loss REAL, val_score REAL, test_loss REAL, test_score REAL, omega REAL,
    PRIMARY KEY (run, member, epoch)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS artefacts (
    run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, name TEXT NOT NULL, path TEXT NOT NULL, sha256 TEXT NOT NULL,
    bytes INTEGER NOT NULL, PRIMARY KEY (run, name)
) WITHOUT ROWID;
"""
# What makes a journal of an older format into one of the next.
MIGRATIONS = {1: "ALTER TABLE runs ADD COLUMN preset_hash TEXT"}
METRICS = ("train_loss", "train_score", "val_loss", "val_score", "test_loss", "test_score", "omega")
TABLES = ("runs", "members", "epochs", "artefacts")


@dataclass(frozen=True)
class Member:
    """One run of the batch: where its randomness comes from, its split, and its own settings."""

    seed: int
    split: str
    split_hash: str
    settings: dict[str, Any]


class Journal:
    """The SQLite file of a runs folder."""

    def __init__(self, folder: Path | str, *, create: bool = True, shared: bool = False) -> None:
        """Open the journal of `folder`, making both where they are missing; `shared` if other machines write to it too."""
        self.folder, self.shared = Path(folder), shared
        folder = self.folder
        self.path = folder / "journal.sqlite"
        if not create and not self.path.exists():
            raise WrongUse(f"There is no journal in {folder}: train something first, or pass --runs-dir.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # One connection for good: closing the last one makes SQLite fold its log into the file, at the cost of seconds.
            self._connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
            self._connection.row_factory = sqlite3.Row
            # The log of WAL is shared memory, which machines do not share; a rollback journal needs file locks only.
            mode = "DELETE" if shared else "WAL"
            self._connection.executescript(
                f"PRAGMA journal_mode={mode}; PRAGMA foreign_keys=ON; PRAGMA synchronous=FULL;"
            )
            found = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if not 0 <= found <= SCHEMA_VERSION:
                raise OmegaError(
                    f"{self.path} has format {found}, this version reads {SCHEMA_VERSION}: use another folder."
                )
            if found == 0:
                self._connection.executescript(f"{SCHEMA} PRAGMA user_version={SCHEMA_VERSION};")
            elif found < SCHEMA_VERSION:
                self._migrate()
        except (sqlite3.Error, OSError) as error:
            raise OmegaError(_explain(self.path, error)) from None

    def _migrate(self) -> None:
        """Bring an older journal to this format, once, however many processes open it."""
        with self._transaction() as connection:
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            for version in range(found, SCHEMA_VERSION):
                connection.execute(MIGRATIONS[version])
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, which is either whole on disk when this returns or not there at all."""
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise OmegaError(_explain(self.path, error)) from None

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        try:
            return [dict(row) for row in self._connection.execute(query, values)]
        except sqlite3.Error as error:
            raise OmegaError(_explain(self.path, error)) from None

    # ------------------------------------------------------------------------------------------------------ writing

    def start(self, stem: str, fields: dict[str, Any], members: Sequence[Member]) -> str:
        """Record a new run with its members and return its name, which no other run ever had."""
        run = f"{stem}-{secrets.token_hex(4)}"
        row = {"run": run, "created": datetime.now(UTC).isoformat(timespec="seconds"), "status": "running", **fields}
        with self._transaction() as connection:
            names = ", ".join(row)
            connection.execute(f"INSERT INTO runs ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
            connection.executemany(
                "INSERT INTO members (run, member, seed, split, split_hash, settings) VALUES (?, ?, ?, ?, ?, ?)",
                [(run, k, m.seed, m.split, m.split_hash, json.dumps(m.settings)) for k, m in enumerate(members)],
            )
        return run

    def record_epochs(self, run: str, rows: Iterable[tuple[int, int, Sequence[float]]]) -> None:
        """Write (member, epoch, metrics) rows; they are on disk when this returns."""
        columns = ", ".join(METRICS)
        with self._transaction() as connection:
            connection.executemany(
                f"INSERT INTO epochs (run, member, epoch, {columns}) VALUES ({', '.join('?' * (3 + len(METRICS)))})",
                [(run, member, epoch, *values) for member, epoch, values in rows],
            )

    def forget_after(self, run: str, members: Sequence[int], epoch: int) -> None:
        """Delete what was recorded behind a checkpoint: those epochs will be trained again."""
        with self._transaction() as connection:
            connection.executemany(
                "DELETE FROM epochs WHERE run = ? AND member = ? AND epoch > ?", [(run, m, epoch) for m in members]
            )
            connection.executemany(
                "UPDATE members SET stopped = NULL, complete = 0 WHERE run = ? AND member = ? AND stopped > ?",
                [(run, m, epoch) for m in members],
            )

    def finish_member(self, run: str, member: int, epoch: int, complete: bool) -> None:
        """Record at which epoch a member stopped, and whether because no more were allowed."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE members SET stopped = ?, complete = ? WHERE run = ? AND member = ?",
                (epoch, complete, run, member),
            )

    def update(self, run: str, **fields: Any) -> None:
        """Set columns of a run."""
        assignments = ", ".join(f"{name} = ?" for name in fields)
        with self._transaction() as connection:
            connection.execute(f"UPDATE runs SET {assignments} WHERE run = ?", (*fields.values(), run))

    def record_artefact(self, run: str, name: str, path: str, sha256: str, size: int) -> None:
        """Record a file that belongs to a run."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO artefacts (run, name, path, sha256, bytes) VALUES (?, ?, ?, ?, ?)",
                (run, name, path, sha256, size),
            )

    def delete(self, run: str) -> None:
        """Remove a run with all its rows."""
        self.run(run)
        with self._transaction() as connection:
            connection.execute("DELETE FROM runs WHERE run = ?", (run,))

    # ------------------------------------------------------------------------------------------------------ reading

    def runs(self) -> list[dict[str, Any]]:
        """Return all runs, newest first."""
        return self._read("SELECT * FROM runs ORDER BY created DESC, rowid DESC")

    def runs_of(self, config_hash: str) -> list[dict[str, Any]]:
        """Return the runs of a configuration, newest first."""
        return self._read("SELECT * FROM runs WHERE config_hash = ? ORDER BY created DESC, rowid DESC", (config_hash,))

    def run(self, run: str) -> dict[str, Any]:
        """Return one run; `run` may be an unambiguous beginning of its name, or ``last``."""
        if run == "last":
            rows = self.runs()[:1]
        else:
            rows = self._read("SELECT * FROM runs WHERE run = ?", (run,)) or [
                row for row in self.runs() if row["run"].startswith(run)
            ]
        if len(rows) == 1:
            return rows[0]
        if not rows:
            raise WrongUse(f"There is no run {run!r} in {self.folder}: `omegagnn runs list` shows what there is.")
        raise WrongUse(f"{run!r} is the beginning of {len(rows)} runs: give more of the name.")

    def members(self, run: str) -> list[dict[str, Any]]:
        """Return the members of a run in order."""
        return self._read("SELECT * FROM members WHERE run = ? ORDER BY member", (run,))

    def epochs(self, run: str) -> list[dict[str, Any]]:
        """Return every recorded epoch of a run, by member and epoch."""
        return self._read("SELECT * FROM epochs WHERE run = ? ORDER BY member, epoch", (run,))

    def epoch(self, run: str, member: int, epoch: int) -> dict[str, Any]:
        """Return what was recorded of one epoch of one member."""
        rows = self._read("SELECT * FROM epochs WHERE run = ? AND member = ? AND epoch = ?", (run, member, epoch))
        if not rows:
            raise OmegaError(
                f"The journal has no epoch {epoch} of member {member} of {run}: restore it or train again."
            )
        return rows[0]

    def artefacts(self, run: str) -> list[dict[str, Any]]:
        """Return the files of a run."""
        return self._read("SELECT * FROM artefacts WHERE run = ? ORDER BY name", (run,))

    def curves(self, run: str) -> list[Curve]:
        """Return the recorded curve of each member, as the selection rules read it."""
        query = "SELECT val_loss, val_score, test_score FROM epochs WHERE run = ? AND member = ? ORDER BY epoch"
        curves = []
        for member in self.members(run):
            rows = self._read(query, (run, member["member"]))
            columns = {
                name: np.array([row[name] for row in rows], dtype=np.float64)
                for name in ("val_loss", "val_score", "test_score")
            }
            validation = ValidationCurve(columns["val_loss"], columns["val_score"], bool(member["complete"]))
            curves.append(Curve(validation, columns["test_score"]))
        return curves

    def export(self, path: Path) -> None:
        """Write the epochs joined with run and member facts to .parquet, .csv or .json (by the name's ending)."""
        import pandas as pd

        if path.suffix not in (".parquet", ".csv", ".json"):
            raise WrongUse(f"{path.name} must end in .parquet, .csv or .json to say what to write.")
        query = (
            "SELECT runs.run, dataset, task, model, preset, preset_hash, protocol, config_hash, seed, split, split_hash, "
            "settings, epochs.* FROM epochs JOIN runs USING (run) JOIN members USING (run, member) "
            "ORDER BY runs.created, run, member, epoch"
        )
        frame = pd.DataFrame(self._read(query))
        writers: dict[str, Callable[..., Any]] = {
            ".parquet": frame.to_parquet,
            ".csv": frame.to_csv,
            ".json": frame.to_json,
        }
        options: dict[str, Any] = {"orient": "records"} if path.suffix == ".json" else {"index": False}
        with replacing(path) as part:
            writers[path.suffix](part, **options)


class MuteJournal(Journal):
    """The journal for a process that trains along and leaves the recording to another: it reads, and writes nothing."""

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        yield _Nobody()


class _Nobody:
    """Takes statements and does nothing."""

    def execute(self, *_: Any) -> None:
        """Do nothing."""

    executemany = execute


def _explain(path: Path, error: Exception) -> str:
    text = str(error)
    if "full" in text or "No space" in text:
        return f"The disk is full, so the journal {path} took nothing more: free some space, then resume the run."
    if "readonly" in text or "read-only" in text.lower() or "Permission" in text or "unable to open" in text:
        return f"The journal {path} cannot be written: make the folder writable or pass another --runs-dir."
    if "not a database" in text or "malformed" in text:
        return f"{path} is not a journal: move it away or pass another --runs-dir."
    return f"The journal {path} failed: {text}."

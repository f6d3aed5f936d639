"""The folder of results: one line of JSON for each training and each measurement, from which alone tables and figures are made.

Parts that several machines made go together: a file is read before it is written, under a lock, and what stands there stays
unless it is made anew.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from omegagnn.errors import DataError, WrongUse
from omegagnn.training.checkpoint import write_bytes

MEASUREMENTS, MISSING = "measurements", "missing"
ENDING = ".jsonl"
Record = dict[str, Any]


class Results:
    """The records of a folder: of trainings by their tags, of measurements by their names."""

    def __init__(self, folder: Path | str, *, create: bool = False) -> None:
        """Read a folder; one that is missing is made, or refused."""
        self.folder = Path(folder)
        if create:
            self.folder.mkdir(parents=True, exist_ok=True)
        elif not self.folder.is_dir():
            raise WrongUse(
                f"There are no results in {self.folder}: make some with `omegagnn reproduce`, or pass --results."
            )

    @cached_property
    def _records(self) -> dict[str, Record]:
        return {record["tag"]: record for path in sorted(self.folder.glob(f"*{ENDING}")) for record in _read(path)}

    def find(self, tag: str) -> Record | None:
        """Return the record of a training (by its tag) or of a measurement (by its name), unless it says what was missing."""
        found = self._records.get(tag)
        return None if found is None or MISSING in found else found

    def missing(self, tag: str) -> str:
        """Return why something is not there: what was missing when it was last tried, else that it was not run."""
        reason = self._records.get(tag, {}).get(MISSING)
        return "not run" if reason is None else str(reason)

    def all(self) -> list[Record]:
        """Return every record of something that was done."""
        return [record for record in self._records.values() if MISSING not in record]

    @property
    def quick(self) -> bool:
        """Whether these are results of ``--quick``, which say that everything runs and nothing about accuracy."""
        return any(record["quick"] for record in self._records.values())

    def merge(self, other: Results) -> int:
        """Take over the records of another folder that are not here; return how many."""
        taken = 0
        for path in sorted(other.folder.glob(f"*{ENDING}")):
            for record in _read(path):
                if MISSING not in record and self.find(record["tag"]) is None:
                    self.keep(path.stem, record)
                    taken += 1
        return taken

    def again(self) -> None:
        """Look at the files anew: another process may have written to them."""
        self.__dict__.pop("_records", None)

    def keep(self, group: str, record: Record) -> None:
        """Write a record into the file of its group, in the place of the one with its tag.

        A note of what is missing takes the place of nothing, and quick results never come beside full ones.
        """
        if self._records and self.quick != record["quick"]:
            raise WrongUse(
                f"{self.folder} has {'quick' if self.quick else 'full'} results: pass another --results for the others."
            )
        path = self.folder / f"{group}{ENDING}"
        with _locked(self.folder):
            known = {each["tag"]: each for each in _read(path)} if path.exists() else {}
            if MISSING not in record or MISSING in known.get(record["tag"], {MISSING: ""}):
                known[record["tag"]] = record
            ordered = sorted(known.values(), key=lambda each: (each["name"], each["tag"]))
            lines = [json.dumps(each, ensure_ascii=False, separators=(",", ":"), allow_nan=False) for each in ordered]
            write_bytes(path, ("\n".join(lines) + "\n").encode())
        self._records.update(known)


def _read(path: Path) -> list[Record]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    except ValueError as error:
        raise DataError(f"{path} is damaged ({error}): restore it, or delete it and make it again.") from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock; the system lets go of it when the process ends, however it does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


__all__ = ["MEASUREMENTS", "MISSING", "Record", "Results"]

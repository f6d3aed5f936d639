"""The journal: what is acknowledged is there, once, whoever else writes; and what goes wrong is one sentence."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from omegagnn.errors import OmegaError, WrongUse
from omegagnn.training.journal import Journal, Member

FIELDS = {
    "dataset": "tiny", "task": "node", "model": "omega-gcn", "preset": None, "protocol": "honest", "config": "{}",
    "config_hash": "0", "environment": "{}",
}  # fmt: skip
ROW = [1.0, 0.5, 1.1, 0.4, 1.2, 0.3, 0.9]


def start(journal: Journal, members: int = 2) -> str:
    return journal.start("tiny", FIELDS, [Member(k, "s", "h", {}) for k in range(members)])


def test_rows_come_back_as_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    run = start(journal)
    journal.record_epochs(run, [(0, 1, ROW), (1, 1, [float("nan")] * 7), (0, 2, ROW)])
    journal.finish_member(run, 0, 2, True)
    epochs = journal.epochs(run)
    assert [(row["member"], row["epoch"]) for row in epochs] == [(0, 1), (0, 2), (1, 1)]
    assert epochs[0]["val_score"] == 0.4
    curves = journal.curves(run)
    assert curves[0].validation.complete
    assert curves[0].test_score.tolist() == [0.3, 0.3]
    assert np.isnan(curves[1].test_score[0])


def test_an_epoch_cannot_be_recorded_twice(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    run = start(journal)
    journal.record_epochs(run, [(0, 1, ROW)])
    with pytest.raises(OmegaError, match="UNIQUE constraint"):
        journal.record_epochs(run, [(0, 2, ROW), (0, 1, ROW)])
    assert len(journal.epochs(run)) == 1  # the whole transaction was undone


def test_what_lies_behind_a_checkpoint_is_forgotten(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    run = start(journal)
    journal.record_epochs(run, [(m, e, ROW) for m in range(2) for e in range(1, 6)])
    journal.finish_member(run, 0, 5, False)
    journal.forget_after(run, [0], 3)
    assert [row["epoch"] for row in journal.epochs(run) if row["member"] == 0] == [1, 2, 3]
    assert [row["epoch"] for row in journal.epochs(run) if row["member"] == 1] == [1, 2, 3, 4, 5]
    assert journal.members(run)[0]["stopped"] is None


WRITER = """
import sys
from pathlib import Path
from omegagnn.training.journal import Journal, Member
sys.path.insert(0, {here!r})
from test_journal import FIELDS, ROW
journal = Journal(Path({folder!r}))
run = journal.start("tiny", FIELDS, [Member(0, "s", "h", {{}})])
for epoch in range(1, 41):
    journal.record_epochs(run, [(0, epoch, ROW)])
print(run)
"""


def test_sixteen_processes_write_at_once(tmp_path: Path) -> None:
    program = WRITER.format(here=str(Path(__file__).parent), folder=str(tmp_path))
    writers = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(16)]
    runs = [writer.communicate(timeout=240)[0].strip() for writer in writers]
    assert all(writer.returncode == 0 for writer in writers)
    assert len(set(runs)) == 16
    journal = Journal(tmp_path)
    for run in runs:
        assert [row["epoch"] for row in journal.epochs(run)] == list(range(1, 41))


def test_runs_are_found_by_the_beginning_of_their_name(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    one, other = start(journal), start(journal)
    assert journal.run(one)["run"] == one
    assert journal.run(one[:-2])["run"] == one
    assert journal.run("last")["run"] == other
    with pytest.raises(WrongUse, match="beginning of 2 runs"):
        journal.run("tiny")
    with pytest.raises(WrongUse, match="no run 'nothing'"):
        journal.run("nothing")


def test_deleting_a_run_takes_all_its_rows(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    run, other = start(journal), start(journal)
    for name in (run, other):
        journal.record_epochs(name, [(0, 1, ROW)])
        journal.record_artefact(name, "model", "model.safetensors", "00", 3)
    journal.delete(run)
    assert [row["run"] for row in journal.runs()] == [other]
    assert journal.epochs(run) == journal.artefacts(run) == journal.members(run) == []
    assert journal.artefacts(other)[0]["bytes"] == 3


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_export_holds_every_row(tmp_path: Path, suffix: str) -> None:
    journal = Journal(tmp_path)
    run = start(journal)
    journal.record_epochs(run, [(m, e, ROW) for m in range(2) for e in (1, 2)])
    path = tmp_path / f"out{suffix}"
    journal.export(path)
    if suffix == ".csv":
        frame = pd.read_csv(path)
    elif suffix == ".json":
        frame = pd.DataFrame(json.loads(path.read_text()))
    else:
        frame = pd.read_parquet(path)
    assert len(frame) == 4
    assert set(frame["run"]) == {run}
    assert frame["test_score"].tolist() == [0.3] * 4
    assert list(tmp_path.glob(".out*")) == []


def test_export_needs_a_known_ending(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"must end in \.parquet, \.csv or \.json"):
        Journal(tmp_path).export(tmp_path / "out.xls")


def test_faults_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="There is no journal in"):
        Journal(tmp_path / "none", create=False)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "journal.sqlite").write_bytes(b"not a database at all, but long enough to be read as one")
    with pytest.raises(OmegaError, match="is not a journal"):
        Journal(tmp_path / "bad")
    (tmp_path / "file").write_text("")
    with pytest.raises(OmegaError, match="journal"):
        Journal(tmp_path / "file")


def test_a_journal_of_another_format_is_refused(tmp_path: Path) -> None:
    from contextlib import closing

    journal = Journal(tmp_path)
    with closing(sqlite3.connect(journal.path)) as connection:
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(OmegaError, match="has format 99"):
        Journal(tmp_path)


def test_a_journal_of_the_first_format_is_brought_up_to_date(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    run = start(journal)
    journal.record_epochs(run, [(0, 1, ROW)])
    journal.close()
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:  # as the first format was
        connection.executescript("ALTER TABLE runs DROP COLUMN preset_hash; PRAGMA user_version=1;")
    connection.close()
    journal = Journal(tmp_path)
    assert journal.run(run)["preset_hash"] is None
    assert len(journal.epochs(run)) == 1
    journal.start("new", {**FIELDS, "preset_hash": "0" * 64}, [])
    again = Journal(tmp_path)
    assert sorted(row["preset_hash"] or "" for row in again.runs()) == ["", "0" * 64]

"""The folder of results: parts merge, nothing good is lost, quick and full never mix, damage is told."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from records import record

from omegagnn.errors import DataError, WrongUse
from omegagnn.paper.results import Results

ONE = np.ones((1, 1, 1))


def test_parts_of_several_processes_go_together(tmp_path: Path) -> None:
    here, there = Results(tmp_path, create=True), Results(tmp_path)
    assert there.all() == []
    here.keep("semi-cora", record(ONE, ONE, "b"))
    there.keep("semi-cora", record(ONE, ONE, "a"))
    assert [json.loads(line)["tag"] for line in (tmp_path / "semi-cora.jsonl").read_text().splitlines()] == ["a", "b"]
    assert {each["tag"] for each in there.all()} == {"a", "b"}
    assert here.find("a") is None
    here.again()
    assert here.find("a") is not None


def _write(folder: Path, number: int) -> None:
    results = Results(folder)
    for k in range(20):
        results.keep("one", record(ONE, ONE, f"{number}-{k}"))


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(tmp_path, number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(Results(tmp_path).all()) == 60


def test_what_is_missing_is_told_and_never_hides_what_was_done(tmp_path: Path) -> None:
    results = Results(tmp_path, create=True)
    assert results.missing("x") == "not run"
    missing = {"tag": "x", "name": "x", "quick": False, "missing": "not run: data not available"}
    results.keep("ppi", missing)
    assert results.find("x") is None
    assert results.missing("x") == "not run: data not available"
    results.keep("ppi", record(ONE, ONE, "x"))
    assert results.find("x") is not None
    results.keep("ppi", missing)  # a machine without the data, later
    assert Results(tmp_path).find("x") is not None


def test_quick_results_do_not_come_beside_full_ones(tmp_path: Path) -> None:
    results = Results(tmp_path, create=True)
    results.keep("a", record(ONE, ONE, "full"))
    with pytest.raises(WrongUse, match="has full results: pass another --results"):
        results.keep("a", {**record(ONE, ONE, "quick"), "quick": True})
    assert not Results(tmp_path).quick


def test_a_missing_folder_and_a_damaged_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="There are no results in"):
        Results(tmp_path / "nowhere")
    (tmp_path / "a.jsonl").write_text('{"tag": ')
    with pytest.raises(DataError, match=r"a\.jsonl is damaged"):
        Results(tmp_path).all()

"""Work is done once, goes on where it stood, leaves to others what is theirs, and says what it lacks."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from omegagnn.data import load
from omegagnn.paper.measurements import Measurement, Setting, statistics_of
from omegagnn.paper.results import Results
from omegagnn.paper.runner import CLAIMS, Runner
from omegagnn.paper.trainings import Training
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Trainer

CPU = torch.device("cpu")
VALUES: dict[str, Any] = {"data.name": "karate", "model.channels": 4, "training.epochs": 6}
CHOICES = ({"lr_gnn": 1e-3}, {"lr_gnn": 1e-2})


def training(**options: Any) -> Training:
    return Training("karate, two rates", "karate", RunConfig().with_values(VALUES), seeds=2, choices=CHOICES, **options)


def runner(folder: Path, **options: Any) -> Runner:
    return Runner(Results(folder / "results", create=True), folder / "runs", CPU, **options)


def raw(results: Results, tag: str) -> dict[str, Any]:
    found = results.find(tag)
    assert found is not None
    return {key: found[key] for key in ("members", "rules", "splits", "choices", "omega")}


def test_nothing_is_done_twice(tmp_path: Path) -> None:
    first = runner(tmp_path)
    assert first.do([training()]).done == 1
    again = runner(tmp_path)
    tally = again.do([training()])
    assert (tally.done, tally.there) == (0, 1)
    assert not (again.results.folder / "nothing").exists()
    assert len(first.journal.runs()) == 1


def test_a_lost_record_comes_back_from_the_journal_and_one_more_wish_too(tmp_path: Path) -> None:
    work = runner(tmp_path)
    work.do([training()])
    before = raw(work.results, training().tag)
    (tmp_path / "results" / "karate.jsonl").unlink()
    other = runner(tmp_path)
    assert other.do([training()]).done == 1
    assert raw(other.results, training().tag) == before
    more = training(rules=("gin",), also=("map", "energy"))
    assert other.do([more]).done == 1
    found = other.results.find(more.tag)
    assert found is not None
    assert len(found["map"]) == 2  # layers
    assert len(found["energy"]) == 3  # f⁰, f¹, f²
    assert len(found["rules"]["gin"]) == 4
    assert len(other.journal.runs()) == 1


def test_what_was_broken_off_goes_on_to_the_same_rows(tmp_path: Path) -> None:
    whole = runner(tmp_path / "whole")
    whole.do([training()])
    broken = runner(tmp_path / "broken")
    begun = Trainer.start(training().plan(load("karate")), broken.journal, CPU, at_once=4).run_name
    broken.do([training()])
    assert [row["run"] for row in broken.journal.runs()] == [begun]
    assert raw(broken.results, training().tag) == raw(whole.results, training().tag)


def test_all_anew_trains_again(tmp_path: Path) -> None:
    runner(tmp_path).do([training()])
    anew = runner(tmp_path, fresh=True)
    assert anew.do([training()]).done == 1
    assert len(anew.journal.runs()) == 2


def test_a_piece_that_another_process_is_at_is_waited_for(tmp_path: Path) -> None:
    work = runner(tmp_path)
    claim = tmp_path / "runs" / CLAIMS / training().tag
    claim.parent.mkdir(parents=True)
    lock = os.open(claim, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    done: list[str] = []

    def other_finishes(_: Setting) -> dict[str, Any]:
        runner(tmp_path / "elsewhere").do([training()])
        kept = Results(tmp_path / "elsewhere" / "results").find(training().tag)
        assert kept is not None
        Results(tmp_path / "results").keep("karate", kept)
        os.close(lock)
        done.append("other")
        return {}

    tally = work.do([training(), Measurement("m", "what happens meanwhile", other_finishes)])
    assert done == ["other"]
    assert (tally.done, tally.there) == (1, 1)
    assert not work.journal.runs()


def test_data_that_is_not_here_is_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMEGAGNN_DATA", str(tmp_path))
    lines: list[str] = []
    work = runner(tmp_path, tell=lines.append)
    config = RunConfig().with_values({"data.name": "ogbn-arxiv"})
    pieces = [Training("arxiv", "arxiv", config), statistics_of("ogbn-arxiv")]
    tally = work.do(pieces)
    assert list(tally.absent) == ["arxiv", "sizes of ogbn-arxiv"]
    assert work.results.missing(pieces[0].tag) == "not run: data not available"
    assert "ogbn-arxiv is not on this machine; `omegagnn data fetch ogbn-arxiv` may get it" in lines[0]
    assert work.do(pieces).absent  # it is tried again, since data may have come


def test_a_member_that_diverges_ends_alone(tmp_path: Path) -> None:
    wild = replace(training(), choices=({"lr_oc": 1e-3}, {"lr_oc": 1e38, "lr_gnn": 1e38}))
    work = runner(tmp_path)
    tally = work.do([wild])
    assert not tally.failed
    found = work.results.find(wild.tag)
    assert found is not None
    assert "is not finite" in found["note"]
    stopped = {choice: last for _, _, choice, last, _ in found["members"]}
    assert stopped[0] == 6
    assert stopped[1] < 6


def test_a_failure_is_kept_with_its_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    bad = replace(
        training(), config=RunConfig().with_values({**VALUES, "model.name": "gcn", "model.options": {"x": 1}})
    )
    work = runner(tmp_path)
    tally = work.do([bad, training()])
    assert tally.done == 1
    assert "does not take these options" in next(iter(tally.failed.values()))
    assert work.results.missing(bad.tag).startswith("failed: Model 'gcn'")


def test_nothing_new_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    tally = runner(tmp_path, minutes=0.0).do([training()])
    assert (tally.done, tally.left) == (0, 1)


def test_memory_that_runs_out_halves_what_trains_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omegagnn.training.engine import RunBatch

    sizes: list[int] = []
    original = RunBatch.advance

    def greedy(self: RunBatch, seconds: float = 0.0) -> Any:
        sizes.append(len(self.members))
        if len(self.members) > 1:
            raise torch.OutOfMemoryError("no memory")
        return original(self, seconds)

    monkeypatch.setattr(RunBatch, "advance", greedy)
    lines: list[str] = []
    work = runner(tmp_path, tell=lines.append)
    assert work.do([training()]).done == 1
    assert sizes[:3] == [4, 2, 1]
    assert "out of memory: trying 2 members at once" in lines

"""The studies of benchmarks/ can be broken off: what is done is taken from the journal, what is not goes on."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from omegagnn.data import load
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Plan, Trainer
from omegagnn.training.fit import Result
from omegagnn.training.journal import Journal

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def trained_once(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return cast("Callable[..., Result]", import_module("trained_once").trained_once)


def _plan(rate: float) -> Plan:
    values: dict[str, Any] = {"data.name": "karate", "model.channels": 4, "training.epochs": 6}
    data = load("karate")
    settings = [{"lr_gnn": rate}, {"lr_gnn": 10 * rate}]
    return Plan(RunConfig().with_values(values), data, [0, 0], [data.splits[0]] * 2, settings)


def test_the_same_plan_is_trained_once_and_other_settings_anew(
    tmp_path: Path, trained_once: Callable[..., Result]
) -> None:
    journal = Journal(tmp_path)
    first = trained_once(_plan(1e-3), journal)
    assert trained_once(_plan(1e-3), journal).run == first.run
    assert trained_once(_plan(1e-2), journal).run != first.run
    assert len(journal.runs()) == 2


def test_a_run_that_was_only_begun_goes_on_to_the_same_bits(
    tmp_path: Path, trained_once: Callable[..., Result]
) -> None:
    whole = trained_once(_plan(1e-3), Journal(tmp_path / "whole"))
    journal = Journal(tmp_path / "broken")
    broken = Trainer.start(_plan(1e-3), journal, torch.device("cpu")).run_name
    resumed = trained_once(_plan(1e-3), journal)
    assert resumed.run == broken
    assert [c.validation.loss.tolist() for c in resumed.curves] == [c.validation.loss.tolist() for c in whole.curves]


def test_validation_is_read_at_the_chosen_epoch(tmp_path: Path, trained_once: Callable[..., Result]) -> None:
    validation_scores = import_module("trained_once").validation_scores
    result = trained_once(_plan(1e-3), Journal(tmp_path))
    expected = [100 * float(c.validation.score[c.validation.loss.argmin()]) for c in result.curves]
    assert validation_scores(result) == expected

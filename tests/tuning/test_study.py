"""Studies: plans written down, budgets kept, trials in batches equal to trials alone, the dead found, divergence borne."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from tiny import DATASETS, node_dataset

from omegagnn.data.dataset import Dataset
from omegagnn.errors import OmegaError, WrongUse
from omegagnn.training.config import RunConfig
from omegagnn.training.fit import fit
from omegagnn.training.presets.preset import read_preset
from omegagnn.training.protocol import ValidationCurve
from omegagnn.tuning.search import COMPARED_TRIALS, Search, measure
from omegagnn.tuning.space import Space
from omegagnn.tuning.study import Study, StudyPlan, find_study, hashes_of, start_study
from omegagnn.tuning.winner import write_winner
from omegagnn.tuning.workers import ABANDONED, RETRY_OF, WORKER, Worker, is_alive, take_up_the_dead

CPU = torch.device("cpu")
QUICK = {"model.channels": 8, "training.epochs": 12, "training.batch_size": 8}
RATES = {"training.lr_oc": "1e-3..1e-1:log", "training.lr_omega": "1e-3..1e-1:log"}


def plan_for(dataset: Dataset, search: dict[str, str] | None = None, **options: Any) -> StudyPlan:
    config = RunConfig().with_values({**QUICK, "data.name": dataset.name})
    options = {"trials": 6, "seeds": (0, 1), "batch": 4, **options}
    return StudyPlan(config, Space.from_dict(search or RATES), splits=hashes_of(dataset.splits[:1]), **options)


def search(dataset: Dataset, plan: StudyPlan, folder: Path, **options: Any) -> Study:
    study = start_study(plan, folder, **options)
    Search(study, dataset, dataset.splits[: len(plan.splits)], CPU).run()
    return study


@pytest.mark.parametrize("task", list(DATASETS))
def test_a_study_spends_its_budget_and_its_best_trial_wins(task: str, tmp_path: Path) -> None:
    dataset = DATASETS[task]()
    plan = plan_for(dataset, {**RATES, "model.layers": "[1, 2]"}, trials=5, prune=False)
    study = search(dataset, plan, tmp_path)
    assert study.complete
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 5
    assert study.winner.value == max(trial.value or -1 for trial in study.trials)
    assert study.best_config.training.lr_oc == study.winner.params["training.lr_oc"]
    # The trials of a batch share their network, each has rates of its own.
    first = study.trials[:4]
    assert len({trial.params["model.layers"] for trial in first}) == 1
    assert len({trial.params["training.lr_oc"] for trial in first}) == 4
    assert len({trial.user_attrs["run"] for trial in first}) == 1


def test_a_trial_in_a_batch_is_the_training_it_would_be_alone(tmp_path: Path) -> None:
    dataset = node_dataset()
    study = search(dataset, plan_for(dataset, prune=False), tmp_path)
    for trial in study.trials:
        alone = fit(dataset, study.plan.config.with_values(trial.params), seeds=2, splits=[0], runs_dir=tmp_path)
        assert trial.value == measure([curve.validation for curve in alone.curves], "accuracy")


def test_a_trial_is_measured_on_validation_at_the_epoch_of_lowest_loss() -> None:
    one = ValidationCurve(np.array([3.0, 1.0, 2.0]), np.array([0.1, 0.5, 0.9]))
    other = ValidationCurve(np.array([2.0, 4.0]), np.array([0.3, 0.8]))
    assert measure([one, other], "accuracy") == pytest.approx(0.4)
    assert measure([one, other], "loss") == pytest.approx(1.5)


def test_test_labels_change_no_trial(tmp_path: Path) -> None:
    dataset = node_dataset()
    labels = dataset.labels.clone()
    labels[dataset.splits[0].test] = 0
    other = replace(dataset, labels=labels)
    values = [
        [(trial.params, trial.value) for trial in search(data, plan_for(data), tmp_path / name).trials]
        for data, name in ((dataset, "one"), (other, "other"))
    ]
    assert values[0] == values[1]


def test_the_same_plan_finds_its_study_again_and_another_budget_is_refused(tmp_path: Path) -> None:
    dataset = node_dataset()
    plan = plan_for(dataset)
    study = search(dataset, plan, tmp_path)
    before = [(trial.number, trial.value) for trial in study.trials]
    again = search(dataset, plan, tmp_path)
    assert [(trial.number, trial.value) for trial in again.trials] == before
    assert again.hash == study.hash == find_study(study.name, tmp_path).hash
    assert StudyPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    with pytest.raises(WrongUse, match="begun with other settings or another budget"):
        start_study(replace(plan, trials=7), tmp_path, name=study.name)
    with pytest.raises(WrongUse, match=rf"no study 'x' in .*: there are {study.name}"):
        find_study("x", tmp_path)
    with pytest.raises(WrongUse, match=r"no study 'x' in .*: begin one with"):
        find_study("x", tmp_path / "empty")


@pytest.mark.parametrize("loss", [True, False])
def test_a_diverging_trial_ends_alone(loss: bool, tmp_path: Path) -> None:
    dataset = node_dataset()
    # Some of these rates overflow within a few epochs; the others train beside them and are measured.
    plan = plan_for(
        dataset, {"training.lr_omega": "1e-3..1e30:log"}, trials=8, batch=8, objective="loss" if loss else "accuracy"
    )
    study = search(dataset, plan, tmp_path)
    diverged = {trial.number for trial in study.trials if trial.user_attrs["diverged"]}
    assert diverged
    assert study.complete
    assert {t.number for t in study.trials if t.state.name == "PRUNED"} >= diverged
    assert study.winner.number not in diverged
    assert math.isfinite(study.winner.value or math.nan)
    # To the bit what it is alone: the company that diverged changed nothing.
    alone = fit(dataset, study.best_config, seeds=2, splits=[0], runs_dir=tmp_path)
    assert study.winner.value == measure([curve.validation for curve in alone.curves], plan.objective)


def test_a_study_without_a_finished_trial_has_no_winner(tmp_path: Path) -> None:
    study = start_study(plan_for(node_dataset()), tmp_path)
    with pytest.raises(OmegaError, match=r"No trial of tiny-nodes-omega-gcn-.* was trained to its end"):
        study.winner


@pytest.mark.parametrize("task", ["node", "graph"])
def test_trials_that_lag_behind_are_pruned(task: str, tmp_path: Path) -> None:
    dataset = DATASETS[task]()
    config = {"training.epochs": 110, "training.patience": None} if task == "node" else {"training.epochs": 12}
    plan = plan_for(dataset, {"training.lr_oc": "1e-7..1e-1:log"}, trials=16, batch=4, objective="loss")
    splits = hashes_of(dataset.splits[:2])
    plan = replace(plan, config=plan.config.with_values(config), splits=splits)
    study = search(dataset, plan, tmp_path)
    pruned = [trial for trial in study.trials if trial.state.name == "PRUNED"]
    assert pruned
    assert study.complete
    assert all(trial.user_attrs["epochs"] < 4 * study.plan.config.training.epochs for trial in pruned)
    assert all(trial.number >= COMPARED_TRIALS for trial in pruned)
    assert np.median([t.params["training.lr_oc"] for t in pruned]) < study.winner.params["training.lr_oc"]


# ------------------------------------------------------------------------------------------------------------ the dead


def storages(folder: Path) -> dict[str, str | None]:
    return {"own": None, "file": str(folder / "study.log"), "url": f"sqlite:///{folder / 'shared.db'}"}


@pytest.mark.parametrize("kind", ["own", "file", "url"])
def test_the_trials_of_a_dead_worker_are_tried_again(kind: str, tmp_path: Path) -> None:
    dataset = node_dataset()
    study = start_study(plan_for(dataset), tmp_path, storages(tmp_path)[kind])
    for _ in range(3):  # a worker that asked, and was killed: its process number was another's before
        trial = study.storage.ask()
        trial.set_user_attr(WORKER, Worker(study.storage).name.rsplit("|", 1)[0] + "|before")
        trial.suggest_float("training.lr_oc", 1e-3, 1e-1, log=True)
    Search(study, dataset, dataset.splits[:1], CPU).run()
    everyone = study.storage.get_trials()
    assert [trial.number for trial in everyone if trial.user_attrs.get(ABANDONED)] == [0, 1, 2]
    retries = {t.user_attrs[RETRY_OF]: t for t in everyone if RETRY_OF in t.user_attrs}
    assert set(retries) == {0, 1, 2}
    for number, retry in retries.items():
        assert retry.params["training.lr_oc"] == everyone[number].params["training.lr_oc"]
        assert retry.state.is_finished()
    assert study.complete
    assert len(study.finished) == 6
    assert not [trial for trial in everyone if not trial.state.is_finished()]


def test_a_worker_of_another_host_lives_while_it_shows_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    assert is_alive("elsewhere|1|5", {"beat of elsewhere|1|5": now - 100}, 0.0)
    assert not is_alive("elsewhere|1|5", {"beat of elsewhere|1|5": now - 1000}, 0.0)
    assert is_alive("elsewhere|1|5", {}, now - 10)  # it began just now


def test_a_trial_without_a_name_belongs_to_whoever_else_lives() -> None:
    """A worker that was killed between asking for a trial and signing it keeps nobody waiting who is alone."""
    now, dead = time.time(), {"beat of elsewhere|1|5": time.time() - 1000}
    living = {**dead, "beat of elsewhere|2|6": now - 100}
    assert is_alive(None, living, now - 10)
    assert not is_alive(None, living, now - 1000)
    assert not is_alive(None, dead, now - 10)
    assert not is_alive(None, {}, now - 10)
    assert not is_alive(None, living, now - 10, me="elsewhere|2|6")


def test_an_unsigned_trial_of_a_killed_worker_is_tried_again_at_once(tmp_path: Path) -> None:
    study = start_study(plan_for(node_dataset()), tmp_path).storage
    trial = study.ask()
    trial.suggest_float("training.lr_oc", 1e-3, 1e-1)
    with Worker(study) as worker:
        assert take_up_the_dead(study) == [], "it may be about to be signed"
        assert take_up_the_dead(study, worker.name) == [0]
    (retry,) = (t for t in study.get_trials() if RETRY_OF in t.user_attrs)
    assert retry.state.name == "WAITING"


def test_a_kill_between_failing_and_enqueuing_loses_nothing(tmp_path: Path) -> None:
    study = start_study(plan_for(node_dataset()), tmp_path).storage
    trial = study.ask()
    trial.suggest_float("training.lr_oc", 1e-3, 1e-1)
    trial.set_user_attr(ABANDONED, True)
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    for _ in range(2):  # once is enough
        take_up_the_dead(study)
    (retry,) = (t for t in study.get_trials() if RETRY_OF in t.user_attrs)
    assert retry.state.name == "WAITING"


def test_a_living_worker_keeps_its_trials(tmp_path: Path) -> None:
    study = start_study(plan_for(node_dataset()), tmp_path).storage
    with Worker(study) as worker:
        trial = study.ask()
        trial.set_user_attr(WORKER, worker.name)
        assert take_up_the_dead(study) == []
    assert study.get_trials()[0].state.name == "RUNNING"


# ----------------------------------------------------------------------------------------------------------- the winner


def test_the_winner_becomes_a_preset_that_trains(tmp_path: Path) -> None:
    dataset = node_dataset()
    study = search(dataset, plan_for(dataset, {**RATES, "model.layers": "[1, 2]"}), tmp_path)
    path = tmp_path / "winner.yaml"
    write_winner(study, path)
    preset = read_preset(str(path))
    assert study.hash in preset.rows[1]
    assert "6 trials × 2 seeds × 1 splits" in preset.rows[0]
    assert preset.config == study.best_config
    assert preset.values["training.lr_oc"].source == preset.values["model.layers"].source == "measured"
    assert preset.values["model.channels"].source == "assumed"
    with pytest.raises(WrongUse, match=r"must end in \.yaml"):
        write_winner(study, tmp_path / "winner.txt")


def test_options_of_a_baseline_are_searched_and_written(tmp_path: Path) -> None:
    dataset = node_dataset()
    config = RunConfig().with_values({**QUICK, "data.name": dataset.name, "model.name": "appnp"})
    space = Space.from_dict({"training.lr_oc": "1e-3..1e-1:log", "model.options.alpha": "[0.1, 0.3]"})
    plan = StudyPlan(config, space, 3, (0,), hashes_of(dataset.splits[:1]), batch=2)
    study = search(dataset, plan, tmp_path)
    write_winner(study, tmp_path / "winner.yaml")
    assert read_preset(str(tmp_path / "winner.yaml")).config == study.best_config
    assert study.best_config.model.options["alpha"] in (0.1, 0.3)


def test_a_space_that_the_configuration_cannot_have_is_refused_before_anything_runs() -> None:
    with pytest.raises(WrongUse, match=r"there is no setting 'training.lr_omga', did you mean 'training.lr_omega'\?"):
        plan_for(node_dataset(), {"training.lr_omga": "0.1..0.2"})
    with pytest.raises(WrongUse, match=r"model.dropout cannot be 1.0"):
        plan_for(node_dataset(), {"model.dropout": "[0.5, 1.0]"})
    with pytest.raises(WrongUse, match="no objective 'test'"):
        plan_for(node_dataset(), objective="test")
    with pytest.raises(WrongUse, match="needs something to search"):
        StudyPlan(RunConfig(), Space({}), 1, (0,), ())

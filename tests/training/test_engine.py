"""The engine: company changes no bit, an interrupted run ends as if nothing had happened, faults are sentences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import DATASETS, graph_dataset, inductive_dataset, node_dataset

from omegagnn.data.dataset import Dataset
from omegagnn.errors import DataError, InterruptedRun, OmegaError, WrongUse
from omegagnn.training.batch import DivergenceError, RunBatch
from omegagnn.training.checkpoint import read_tensors
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Plan, Progress, Trainer
from omegagnn.training.fit import Result, fit, make_plan
from omegagnn.training.journal import Journal

CPU = torch.device("cpu")
QUICK = {
    "data.name": "tiny",
    "model.channels": 8,
    "training.epochs": 12,
    "model.dropout": 0.3,
    "training.batch_size": 5,
}


def quick(**values: Any) -> RunConfig:
    return RunConfig().with_values({**QUICK, **{key.replace("__", "."): value for key, value in values.items()}})


def train(dataset: Dataset, folder: Path, config: RunConfig, seeds: Any, splits: Any = "all", **options: Any) -> Result:
    return fit(dataset, config, seeds=seeds, splits=splits, runs_dir=folder, **options)


def rows_of(result: Result, member: int) -> list[tuple[Any, ...]]:
    rows = [row for row in result.journal.epochs(result.run) if row["member"] == member]
    return [tuple(value for key, value in row.items() if key not in ("run", "member")) for row in rows]


def assert_same_result(one: Result, other: Result) -> None:
    members = range(len(one.journal.members(one.run)))
    assert [rows_of(one, m) for m in members] == [rows_of(other, m) for m in members]
    left, right = (read_tensors(result.folder / "model.safetensors")[0] for result in (one, other))
    assert left.keys() == right.keys()
    for name in left:
        assert torch.equal(left[name], right[name]), name


CASES = {
    "node": (node_dataset, {}),
    "node-sparse-gat": (lambda: node_dataset(sparse=True), {"model__name": "omega-gat", "model__heads": 2}),
    "node-odd-sizes": (
        lambda: node_dataset(n=37),
        {"model__channels": 7, "model__omega": "global", "model__norm": "layer"},
    ),
    "node-clipped": (
        node_dataset,
        {"training__clip": 0.05, "training__schedule": "cosine", "model__residual": "initial"},
    ),
    "node-gcn-baseline": (node_dataset, {"model__name": "gcn"}),
    "graph": (graph_dataset, {}),
    "graph-authors-gat": (graph_dataset, {"model__name": "omega-gat", "model__variant": "authors"}),
    "inductive": (inductive_dataset, {"model__norm": "batch"}),
}


@pytest.mark.parametrize("case", CASES)
def test_five_runs_together_equal_five_runs_alone(case: str, tmp_path: Path) -> None:
    make, values = CASES[case]
    dataset, config = make(), quick(**values)
    together = train(dataset, tmp_path, config, 5, "0")
    weights = read_tensors(together.folder / "model.safetensors")[0]
    for seed in range(5):
        alone = train(dataset, tmp_path, config, [seed], "0")
        assert rows_of(alone, 0) == rows_of(together, seed)
        for name, tensor in read_tensors(alone.folder / "model.safetensors")[0].items():
            assert torch.equal(tensor[0], weights[name][seed]), name


def test_runs_on_different_splits_and_settings_share_a_batch(tmp_path: Path) -> None:
    dataset, config = node_dataset(), quick()
    settings = [{"lr_gnn": 0.001, "wd_oc": 0.1}, {"lr_omega": 0.1}, {}]
    journal = Journal(tmp_path)
    plan = Plan(config, dataset, [3, 4, 5], dataset.splits, settings)
    trainer = Trainer.start(plan, journal, CPU)
    trainer.train()
    together = Result(journal, trainer.run_name)
    for k in range(3):
        values = {f"training.{key}": value for key, value in settings[k].items()}
        alone = train(dataset, tmp_path, config.with_values(values), [3 + k], [k])
        assert rows_of(alone, 0) == rows_of(together, k)


def test_early_stopping_drops_runs_without_touching_the_others(tmp_path: Path) -> None:
    config = quick(training__epochs=60, training__patience=3, training__lr_oc=0.1)
    result = train(node_dataset(), tmp_path, config, 6, "0")
    stopped = [member["stopped"] for member in result.journal.members(result.run)]
    assert len(set(stopped)) > 1  # they stop at different epochs, so the batch shrinks
    for seed in (0, 5):
        alone = train(node_dataset(), tmp_path, config, [seed], "0")
        assert rows_of(alone, 0) == rows_of(result, seed)
    for curve, end in zip(result.curves, stopped, strict=True):
        assert len(curve) == end
        last = max(curve.validation.loss.argmin(), curve.validation.score.argmax()) + 1
        assert end - last >= 3 or curve.validation.complete


def test_chunks_change_nothing(tmp_path: Path) -> None:
    whole = train(node_dataset(), tmp_path, quick(), 5, "0")
    assert_same_result(whole, train(node_dataset(), tmp_path, quick(), 5, "0", runs_at_once=2))


class StopAt(Progress):
    """Asks the trainer to stop, as Ctrl-C does, after some epochs; or dies like a crash."""

    def __init__(self, epochs: int, crash: bool = False) -> None:
        self.left, self.crash, self.trainer = epochs, crash, None

    def epoch(self, batch: RunBatch, done: int) -> None:
        self.left -= 1
        if self.left == 0:
            if self.crash:
                raise ZeroDivisionError
            assert self.trainer is not None
            self.trainer._interrupted = True


@pytest.mark.parametrize("task", DATASETS)
@pytest.mark.parametrize("crash", [False, True])
def test_a_broken_off_run_ends_with_the_same_bits(task: str, crash: bool, tmp_path: Path) -> None:
    dataset, config = DATASETS[task](), quick(training__epochs=26, training__patience=20, training__lr_oc=0.1)
    whole = train(dataset, tmp_path, config, 3, "0")
    journal = Journal(tmp_path)
    plan = make_plan(dataset, config, 3, "0")
    stop = StopAt(7, crash)
    trainer = stop.trainer = Trainer.start(plan, journal, CPU, at_once=2, progress=stop, checkpoint_seconds=0.0)
    expected = ZeroDivisionError if crash else InterruptedRun
    for epochs in (7, 5, 9):  # broken off three times
        with pytest.raises(expected):
            trainer.train()
        stop.left = epochs
        trainer = stop.trainer = Trainer.resume(
            trainer.run_name, journal, dataset, CPU, progress=stop, checkpoint_seconds=0.02
        )
    stop.left = 10**9
    trainer.train()
    assert_same_result(whole, Result(journal, trainer.run_name))
    assert journal.run(trainer.run_name)["status"] == "done"
    left = sorted(path.name for path in (tmp_path / trainer.run_name).iterdir())
    assert left == ["config.json", "data.json", "model.safetensors"]


def test_ctrl_c_ends_after_the_epoch_and_says_how_to_go_on(tmp_path: Path) -> None:
    stop = StopAt(3)
    trainer = stop.trainer = Trainer.start(make_plan(node_dataset(), quick()), Journal(tmp_path), CPU, progress=stop)
    with pytest.raises(
        InterruptedRun, match=rf"saved at epoch 3: go on with `omegagnn train --resume {trainer.run_name}`"
    ):
        trainer.train()
    assert InterruptedRun.exit_code == 130
    assert trainer.journal.run(trainer.run_name)["status"] == "interrupted"


def test_a_run_that_is_done_is_not_resumed(tmp_path: Path) -> None:
    result = train(node_dataset(), tmp_path, quick(), 1, "0")
    with pytest.raises(WrongUse, match="is done already"):
        Trainer.resume(result.run, result.journal, node_dataset(), CPU)


def test_a_run_is_not_resumed_on_other_splits(tmp_path: Path) -> None:
    stop = StopAt(2)
    trainer = stop.trainer = Trainer.start(make_plan(node_dataset(), quick()), Journal(tmp_path), CPU, progress=stop)
    with pytest.raises(InterruptedRun):
        trainer.train()
    with pytest.raises(WrongUse, match=r"is not what .* was started on: use the same data"):
        Trainer.resume(trainer.run_name, trainer.journal, node_dataset(n=40), CPU)


def test_the_network_of_a_result_gives_the_recorded_score(tmp_path: Path) -> None:
    dataset = node_dataset()
    result = train(dataset, tmp_path, quick(), 2, "all")
    outcome = result.outcome()
    for member, row in enumerate(result.journal.members(result.run)):
        split = next(split for split in dataset.splits if split.hash == row["split_hash"])
        with torch.no_grad():
            logits = result.network(member)(dataset.features, dataset.graph)[:, 0]
        correct = (logits.argmax(-1) == dataset.labels)[split.test].float().mean()
        assert float(correct) == pytest.approx(outcome.scores[member])


def test_the_result_tells_the_designed_facts(tmp_path: Path) -> None:
    result = train(node_dataset(), tmp_path, quick(), 2, "0")
    facts = json.loads(json.dumps(result.to_dict()))
    designed = {"run", "dataset", "model", "preset", "protocol", "test", "omega", "seconds"}
    assert set(facts) == designed | {"preset_hash", "config_hash", "split_hashes"}
    assert set(facts["test"]) == {"mean", "sd", "low", "high", "n"}
    assert set(facts["omega"]) == {"mean", "min", "max", "per_layer"}
    assert len(facts["omega"]["per_layer"]) == 2
    row = result.row
    assert row["parameters"] == 12 * 8 + 2 * (8 * 8 + 8) + 8 * 3
    assert row["config_hash"] == result.config.hash
    assert json.loads(row["environment"])["versions"]["torch"]
    assert result.journal.artefacts(result.run)[0]["name"] == "model.safetensors"
    assert result.optimism_gap >= 0


def test_learning_happens(tmp_path: Path) -> None:
    config = quick(training__epochs=150, training__lr_oc=0.1, model__omega=0.0, model__dropout=0.0)
    assert train(node_dataset(), tmp_path, config, 2, "0").test().mean > 80
    assert train(graph_dataset(), tmp_path, quick(training__epochs=60), 1, "0").test().mean > 60
    assert train(inductive_dataset(), tmp_path, quick(training__epochs=60), 1, "0").test().mean > 70


@pytest.mark.parametrize("precision", ["float64", "tf32", "bfloat16"])
def test_other_precisions_train(precision: str, tmp_path: Path) -> None:
    result = train(node_dataset(), tmp_path, quick(training__precision=precision), 2, "0")
    weights = read_tensors(result.folder / "model.safetensors")[0]
    assert weights["honest/opening.weight"].dtype == (torch.float64 if precision == "float64" else torch.float32)


def test_a_diverging_run_stops_with_step_group_and_hint(tmp_path: Path) -> None:
    config = quick(training__lr_omega=1e30, model__layers=8)
    with pytest.raises(
        DivergenceError,
        match=r"member 0 is not finite at epoch \d+ \(group 'omega' diverged.*: lower training.lr_omega",
    ):
        train(node_dataset(), tmp_path, config, 2, "0")
    assert Journal(tmp_path).runs()[0]["status"] == "failed"


def test_out_of_memory_says_what_would_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(self: RunBatch, seconds: float) -> None:
        torch.empty(2**50)  # a real refusal of the real allocator

    monkeypatch.setattr(RunBatch, "advance", exhausted)
    with pytest.raises(OmegaError, match=r"Out of memory on cpu: 3 runs .* at once would fit: pass --runs-at-once \d"):
        train(node_dataset(), tmp_path, quick(), 3, "0", runs_at_once=3)
    with pytest.raises(OmegaError, match=r"about \d+ channels would fit: set model.channels"):
        train(node_dataset(), tmp_path, quick(), 1, "0", runs_at_once=1)


def test_too_many_runs_are_cut_into_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omegagnn.training import memory

    dataset = node_dataset()
    trainer = Trainer.start(make_plan(dataset, quick(), 4, "0"), Journal(tmp_path), CPU)
    assert trainer.at_once == 4
    need = memory.bytes_per_run(quick(), trainer._make_task([0]))
    monkeypatch.setattr(memory, "free_bytes", lambda device: int(2.5 * need / memory.SHARE))
    assert Trainer.start(make_plan(dataset, quick(), 4, "0"), Journal(tmp_path), CPU).at_once == 2


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda d, f: fit(d, device="cuda", runs_dir=f), "There is no GPU that torch can use here"),
        (lambda d, f: fit(d, device="quantum", runs_dir=f), "There is no device 'quantum': choose cpu or cuda"),
        (lambda d, f: fit(d, device="meta", runs_dir=f), "Device 'meta' is not supported"),
        (lambda d, f: fit(d, model__name="gnc", runs_dir=f), "There is no model 'gnc': choose one of omega-gcn"),
        (lambda d, f: fit(d, splits="5", runs_dir=f), "has splits 0 to 2, not 5"),
        (lambda d, f: fit(d, splits="x", runs_dir=f), "Splits are 'all' or numbers such as 0,3, not 'x'"),
        (lambda d, f: fit(d, seeds=0, runs_dir=f), "At least one seed is needed"),
        (lambda d, f: fit(d, protocol="best", runs_dir=f), "There is no protocol 'best'"),
        (lambda d, f: fit(replace(d, splits=()), runs_dir=f), "has no split: name one"),
        (lambda d, f: fit(d, model__options={"k": 1}, runs_dir=f), "model.options belongs to baselines"),
        (lambda d, f: fit(d, model__name="gcn", model__options={"zzz": 1}, runs_dir=f), "does not take these options"),
    ],
)
def test_wrong_use_is_one_sentence(call: Any, sentence: str, tmp_path: Path) -> None:
    if "GPU" in sentence and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(WrongUse, match=sentence) as caught:
        call(node_dataset(), tmp_path)
    assert "\n" not in str(caught.value)


def test_an_empty_part_of_a_split_is_refused(tmp_path: Path) -> None:
    dataset = node_dataset()
    empty = replace(dataset.splits[0], val=torch.empty(0, dtype=torch.long))
    with pytest.raises(DataError, match="has no validation items"):
        train(replace(dataset, splits=(empty,)), tmp_path, quick(), 1)


def test_plans_must_fit_together() -> None:
    dataset = node_dataset()
    with pytest.raises(WrongUse, match="a split for each seed, not 1 for 2"):
        Plan(quick(), dataset, [0, 1], dataset.splits[:1])
    with pytest.raises(WrongUse, match="settings for each seed or none"):
        Plan(quick(), dataset, [0, 1], dataset.splits[:2], [{}])

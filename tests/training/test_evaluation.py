"""Evaluation: what is recomputed is what was recorded, counts add up, and changed data or weights are noticed."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import DATASETS, graph_dataset, inductive_dataset, node_dataset

from omegagnn.data.dataset import Dataset
from omegagnn.errors import DataError, OmegaError, WrongUse
from omegagnn.training.checkpoint import read_tensors, write_tensors
from omegagnn.training.config import RunConfig
from omegagnn.training.evaluation import evaluate, kept_rule
from omegagnn.training.fit import Result, fit

QUICK = {"model.channels": 8, "training.epochs": 8, "training.lr_oc": 0.05, "training.batch_size": 5}


def train(dataset: Dataset | str, folder: Path, seeds: int = 2, **options: Any) -> Result:
    return fit(dataset, RunConfig().with_values(QUICK), seeds=seeds, runs_dir=folder, **options)


@pytest.mark.parametrize("task", DATASETS)
@pytest.mark.parametrize("model", ["omega-gcn", "gcn"])
def test_what_is_recomputed_is_what_was_recorded(task: str, model: str, tmp_path: Path) -> None:
    dataset = DATASETS[task]()
    result = train(dataset, tmp_path, model__name=model)
    for rule in ("honest", "validation-accuracy"):
        for part in ("train", "val", "test"):
            found = result.evaluate(dataset, part=part, protocol=rule)
            assert found.difference == 0
            rows = [result.journal.epoch(result.run, m.member, m.epoch) for m in found.members]
            assert [m.score for m in found.members] == [row[f"{part}_score"] for row in rows]
            assert [m.loss for m in found.members] == [row[f"{part}_loss"] for row in rows]
    assert result.evaluate(dataset).score == result.test("honest")


def test_counts_add_up_to_the_scores(tmp_path: Path) -> None:
    dataset = node_dataset()
    found = train(dataset, tmp_path, 3).evaluate(dataset, part="val")
    assert len(found.members) == 9  # three seeds on three splits
    sizes = [member.items for member in found.members]
    assert found.counts.sum() == sum(sizes)
    assert found.counts.trace() == round(sum(m.score * m.items for m in found.members))
    for k, row in enumerate(found.classes):
        assert row["recall"] == 100 * found.counts[k, k] / found.counts[k].sum()
        assert row["precision"] == 100 * found.counts[k, k] / found.counts[:, k].sum()
        assert row["f1"] == pytest.approx(2 * row["precision"] * row["recall"] / (row["precision"] + row["recall"]))
    alone = evaluate(train(dataset, tmp_path, 3), dataset, member=4)
    assert [member.member for member in alone.members] == [4]


def test_several_labels_an_item_are_counted_label_by_label(tmp_path: Path) -> None:
    dataset = inductive_dataset()
    found = train(dataset, tmp_path).evaluate(dataset)
    right, wrong, missed = found.counts.T
    f1 = 2 * right.sum() / (2 * right + wrong + missed).sum()
    assert f1 == pytest.approx(np.mean([member.score for member in found.members]), abs=0.05)
    assert found.to_dict()["confusion"] is None
    labels = dataset.labels[dataset.batch == 5]
    assert [row["items"] for row in found.classes] == (2 * labels.sum(0)).int().tolist()


def test_the_json_has_the_designed_form(tmp_path: Path) -> None:
    dataset = graph_dataset()
    found = json.loads(json.dumps(train(dataset, tmp_path).evaluate(dataset).to_dict()))
    assert set(found) == {
        "run", "dataset", "part", "protocol", "score", "members", "classes", "confusion", "calibration_error", "journal"
    }  # fmt: skip
    assert set(found["score"]) == {"mean", "sd", "low", "high", "n"}
    assert set(found["members"][0]) == {"member", "seed", "split", "epoch", "score", "loss", "items"}
    assert set(found["classes"][0]) == {"name", "precision", "recall", "f1", "items"}
    assert found["journal"] == {"equal": True, "largest_difference": 0.0}
    assert 0 <= found["calibration_error"] <= 100
    assert np.array(found["confusion"]).shape == (2, 2)


@pytest.mark.parametrize("task", DATASETS)
def test_calibration_counts_every_answer_of_every_member(task: str, tmp_path: Path) -> None:
    dataset = DATASETS[task]()
    result = train(dataset, tmp_path)
    found = result.evaluate(dataset)
    answers = sum(member.items for member in found.members) * (dataset.num_classes if found.multilabel else 1)
    sure = found.calibration
    assert sure.counts.sum() == answers
    if not found.multilabel:
        right = np.nansum(sure.right * sure.counts)
        assert right == pytest.approx(found.counts.trace())
        assert (sure.edges[1:][sure.counts > 0] * dataset.num_classes >= 1).all()  # the largest of c is 1/c at least


def test_a_run_without_its_data_or_on_changed_data_is_told(tmp_path: Path) -> None:
    dataset = node_dataset()
    result = train(dataset, tmp_path)
    with pytest.raises(WrongUse, match=r"The data of tiny-nodes.*, 'tiny-nodes', is not here any more"):
        result.evaluate()
    karate = train("karate", tmp_path)
    assert karate.evaluate().difference == 0
    settled = json.loads((karate.folder / "data.json").read_text())
    for part in ("features", "graph", "labels"):
        (karate.folder / "data.json").write_text(json.dumps({**settled, f"{part}_sha256": "0"}))
        with pytest.raises(DataError, match=rf"karate is not what .* was trained on \(other {part}\)"):
            Result(karate.journal, karate.run).evaluate()


def test_changed_weights_and_journals_are_noticed(tmp_path: Path) -> None:
    result = train("karate", tmp_path)
    tensors, facts = read_tensors(result.folder / "model.safetensors")
    tensors["honest/closing.weight"][1] *= -1
    write_tensors(result.folder / "model.safetensors", tensors, facts)
    assert result.evaluate(member=0).difference == 0
    with pytest.raises(
        OmegaError, match=r"Member 1 of .* has train loss .* where the journal recorded .* at epoch \d+"
    ):
        result.evaluate()
    with sqlite3.connect(result.journal.path) as journal:
        journal.execute("DELETE FROM epochs WHERE member = 0")
    journal.close()
    with pytest.raises(OmegaError, match=r"The journal has no epoch \d+ of member 0"):
        result.evaluate(member=0)


def test_rounding_of_another_machine_is_no_change(tmp_path: Path) -> None:
    result = train("karate", tmp_path, 1)
    epoch = result.predictor.epochs["honest"][0]
    with sqlite3.connect(result.journal.path) as journal:
        journal.execute("UPDATE epochs SET val_loss = val_loss + 1e-6 WHERE epoch = ?", (epoch,))
    journal.close()
    assert result.evaluate().difference == pytest.approx(1e-6, rel=1e-3)


def test_other_data_is_measured_on_all_that_is_labelled_or_on_a_part(tmp_path: Path) -> None:
    dataset = node_dataset()
    result = train(dataset, tmp_path)
    labels = dataset.labels.clone()
    labels[:10] = -1
    other = replace(dataset, labels=labels, splits=dataset.splits[:1], name="other")
    found = result.evaluate(other)
    assert (found.part, found.difference, found.members[0].items) == ("all", None, 50)
    assert found.counts.sum() == 50 * len(found.members)
    assert result.evaluate(other, part="val").members[0].items == int((dataset.splits[0].val >= 10).sum())
    assert result.evaluate(other, part="train", split="ratio:0.5,0.2").members[0].items == 25
    everything = result.evaluate(dataset, part="all")
    assert everything.members[0].items == 60
    with pytest.raises(WrongUse, match="other has 0 splits, so it is not clear what its part 'test' is"):
        result.evaluate(replace(other, splits=()), part="test")
    with pytest.raises(WrongUse, match="other has no label that a score could be made from"):
        result.evaluate(replace(other, labels=torch.full((60,), -1)))
    with pytest.raises(WrongUse, match="There is no part 'middle': choose one of train, val, test, all"):
        result.evaluate(other, part="middle")
    with pytest.raises(WrongUse, match="give --split together with --data"):
        result.evaluate(split="geom")


def test_labels_are_compared_by_the_names_of_the_classes(tmp_path: Path) -> None:
    dataset = replace(node_dataset(), class_names=("ant", "bee", "cow"))
    result = train(dataset, tmp_path)
    turned = replace(
        dataset, labels=(dataset.labels + 1) % 3, class_names=("cow", "ant", "bee"), splits=(), name="turned"
    )
    np.testing.assert_array_equal(result.evaluate(turned).counts, result.evaluate(dataset, part="all").counts)
    fewer = replace(dataset, labels=dataset.labels % 2, class_names=("bee", "cow"), splits=(), name="fewer")
    assert result.evaluate(fewer).counts[0].sum() == 0
    foreign = replace(turned, class_names=("cow", "ant", "dog"))
    with pytest.raises(DataError, match="turned has the class 'dog', which the model does not know"):
        result.evaluate(foreign)
    several = replace(dataset, labels=torch.ones(60, 3))
    with pytest.raises(
        DataError, match="The model gives each item one class, but the labels of tiny-nodes are of another"
    ):
        result.evaluate(several)
    many = train(inductive_dataset(), tmp_path)
    with pytest.raises(DataError, match="The labels of tiny-inductive are a, b, c, not the model's"):
        many.evaluate(replace(inductive_dataset(), class_names=("a", "b", "c")))


def test_the_rule_is_the_runs_own_where_its_weights_are_kept(tmp_path: Path) -> None:
    dataset = node_dataset()
    own = train(dataset, tmp_path, protocol="validation-accuracy")
    assert kept_rule(own) == "validation-accuracy"
    assert own.evaluate(dataset).protocol == "validation-accuracy"
    assert kept_rule(train(dataset, tmp_path, protocol="gin")) == "honest"
    with pytest.raises(WrongUse, match="not for 'gin': choose one of them"):
        own.evaluate(dataset, protocol="gin")
    with pytest.raises(WrongUse, match="The run has members 0 to 5, not 6"):
        own.evaluate(dataset, member=6)


def test_a_split_without_test_items_is_refused_by_fit(tmp_path: Path) -> None:
    dataset = node_dataset()
    split = replace(dataset.splits[0], test=torch.empty(0, dtype=torch.long))
    with pytest.raises(DataError, match="has no test items: choose another split"):
        train(replace(dataset, splits=(split,)), tmp_path)

"""Predicting: the bits of training, no need of data or journal, changed graphs, and a sentence where a graph does not fit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tiny import DATASETS, graph_dataset, inductive_dataset, node_dataset

from omegagnn.data import load
from omegagnn.data.dataset import Dataset
from omegagnn.data.own import from_pandas, store
from omegagnn.errors import DataError, OmegaError, WrongUse
from omegagnn.graph import Graph
from omegagnn.training.batch import KEPT, RunBatch
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Progress
from omegagnn.training.fit import Result, fit
from omegagnn.training.prediction import Predictor
from omegagnn.training.signature import Signature

QUICK = {
    "model.channels": 8,
    "training.epochs": 8,
    "training.lr_oc": 0.05,
    "training.batch_size": 5,
    "training.patience": 4,
}


def quick(**values: Any) -> RunConfig:
    return RunConfig().with_values({**QUICK, **{key.replace("__", "."): value for key, value in values.items()}})


def train(dataset: Dataset, folder: Path, seeds: Any = 2, progress: Progress | None = None, **values: Any) -> Result:
    return fit(dataset, quick(**values), seeds=seeds, splits="0", runs_dir=folder, progress=progress)


class Recorder(Progress):
    """Remembers the outputs of every member at every epoch, as the trainer computes them."""

    def __init__(self) -> None:
        self.logits: dict[tuple[int, int], torch.Tensor] = {}

    def epoch(self, batch: RunBatch, done: int) -> None:
        with torch.no_grad():
            logits = batch.task.logits(batch.net.eval(), batch.operator)
        for place, member in enumerate(batch.members):
            self.logits[member, batch.epoch] = logits[:, place].clone()


CASES: dict[str, tuple[Callable[[], Dataset], dict[str, Any]]] = {
    "node": (node_dataset, {"data__row_normalize": True}),
    "node-gat-sparse": (lambda: node_dataset(sparse=True), {"model__name": "omega-gat", "model__heads": 2}),
    "node-directed": (
        lambda: replace(node_dataset(), graph=Graph.from_edge_index([[0, 1, 2], [1, 2, 3]], 60)),
        {"data__symmetrize": False},
    ),
    "node-float64": (node_dataset, {"training__precision": "float64"}),
    "node-gcn": (node_dataset, {"model__name": "gcn"}),
    "node-gcnii": (node_dataset, {"model__name": "gcnii", "model__layers": 4}),
    "graph": (graph_dataset, {}),
    "graph-gin": (graph_dataset, {"model__name": "gin"}),
    "inductive": (inductive_dataset, {"model__norm": "batch"}),
}


@pytest.mark.parametrize("case", CASES)
def test_predictions_on_the_training_graph_have_the_bits_of_training(case: str, tmp_path: Path) -> None:
    make, values = CASES[case]
    recorder = Recorder()
    result = train(make(), tmp_path, 3, recorder, **values)
    for rule in KEPT:
        for member, epoch in enumerate(result.predictor.epochs[rule]):
            logits = result.predictor.logits(make(), member, rule)
            assert torch.equal(logits, recorder.logits[member, epoch])


@pytest.mark.parametrize("task", DATASETS)
def test_a_runs_folder_is_enough(task: str, tmp_path: Path) -> None:
    dataset = DATASETS[task]()
    result = train(dataset, tmp_path / "runs")
    expected = result.predictor.probabilities(dataset)
    shutil.move(result.folder, tmp_path / "moved")
    result.journal.path.unlink()
    moved = Predictor.open(tmp_path / "moved")
    assert torch.equal(moved.probabilities(dataset), expected)
    assert moved.members == 2


def test_the_default_is_the_mean_of_the_members(tmp_path: Path) -> None:
    dataset = node_dataset()
    predictor = train(dataset, tmp_path, 3).predictor
    alone = [predictor.probabilities(dataset, [member]) for member in range(3)]
    torch.testing.assert_close(predictor.probabilities(dataset), sum(alone) / 3, rtol=0, atol=1e-15)
    assert not torch.equal(alone[0], alone[1])
    with pytest.raises(WrongUse, match="The run has members 0 to 2, not 3"):
        predictor.probabilities(dataset, [3])
    with pytest.raises(WrongUse, match="Weights are kept for honest and validation-accuracy only, not for 'gin'"):
        predictor.logits(dataset, rule="gin")


def test_gradients_and_labels_play_no_part(tmp_path: Path) -> None:
    dataset = node_dataset()
    predictor = train(dataset, tmp_path).predictor
    lies = replace(dataset, labels=(dataset.labels + 1) % 3)
    fitted = predictor.read(lies)
    assert int(fitted.labels.max()) == -1
    found = predictor.probabilities(fitted)
    assert not found.requires_grad
    assert torch.equal(found, predictor.probabilities(dataset))


def test_graphs_never_seen_are_predicted_like_those_that_were(tmp_path: Path) -> None:
    dataset = graph_dataset()
    predictor = train(dataset, tmp_path, model__name="omega-gat").predictor
    assert dataset.ptr is not None
    start = int(dataset.ptr[20])
    index, _ = dataset.graph.to_edge_index()
    kept = index[:, (index >= start).all(0)] - start
    few = replace(
        dataset,
        graph=Graph.from_edge_index(kept, dataset.num_nodes - start),
        features=dataset.features[start:],
        labels=dataset.labels[20:],
        ptr=dataset.ptr[20:] - start,
        splits=(),
    )
    found = predictor.probabilities(predictor.read(few))
    torch.testing.assert_close(found, predictor.probabilities(dataset)[20:], rtol=0, atol=1e-6)


# ------------------------------------------------------------------------------------------------------ a user's tables

SIZE = 60
KIND = np.arange(SIZE) % 3


def animals(n: int = SIZE, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    nodes = pd.DataFrame(
        {
            "id": [f"a{k}" for k in range(n)],
            "weight": rng.normal(3.0 * kind, 1.0),
            "skin": np.array(["fur", "feather", "slime"])[kind],
            "wild": rng.random(n) < 0.5,
            "species": np.array(["bear", "crow", "newt"])[kind],
        }
    )
    source = rng.integers(0, n, 3 * n)
    target = (source + 3 * rng.integers(1, 6, 3 * n)) % n
    return nodes, pd.DataFrame({"source": nodes["id"].to_numpy()[source], "target": nodes["id"].to_numpy()[target]})


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Result:
    dataset = from_pandas(*animals(), name="zoo", label="species", standardize=True)
    folder = tmp_path_factory.mktemp("zoo")
    return fit(dataset, quick(), seeds=2, runs_dir=folder, data__split="ratio:0.6,0.2", training__epochs=40)


def test_frames_are_coded_as_the_first_ones_were(zoo: Result) -> None:
    nodes, edges = animals(SIZE + 30)
    nodes["species"] = "who knows"  # a class that the model does not know, and does not look at
    table = zoo.predict((nodes, edges))
    assert table.columns.tolist() == ["id", "predicted", "p(bear)", "p(crow)", "p(newt)"]
    assert table["id"].tolist() == nodes["id"].tolist()
    right = np.array(["bear", "crow", "newt"])[np.arange(SIZE + 30) % 3]
    assert (table["predicted"] == right).mean() > 0.8
    one = zoo.predict((nodes.drop(columns="species"), edges), member=1)
    assert not one.equals(table)


def test_the_schema_stays_with_the_run(zoo: Result) -> None:
    assert (zoo.folder / "schema.json").is_file()
    signature = Signature.load(zoo.folder)
    assert signature.feature_names[:2] == ("weight", "skin=feather")
    assert signature.class_names == ("bear", "crow", "newt")
    assert signature == Signature.load(zoo.folder)


def changed(**columns: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes, edges = animals()
    return nodes.assign(**columns), edges


def cell(column: str, value: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes, edges = animals()
    nodes[column] = nodes[column].astype(object)
    nodes.loc[4, column] = value
    return nodes, edges


UNFIT: dict[str, tuple[Callable[[], Any], str]] = {
    "missing column": (
        lambda: (animals()[0].drop(columns="weight"), animals()[1]),
        "nodes has no column 'weight' for a feature",
    ),
    "unknown category": (lambda: cell("skin", "bark"), r"row 4 .*: 'bark' in column 'skin' is none of its 3 known categories"),
    "text for a number": (lambda: cell("weight", "heavy"), r"row 4 .*: 'heavy' in column 'weight' is not a number"),
    "dates for numbers": (
        lambda: changed(weight=pd.Timestamp("2026-01-01")),
        r"the column 'weight' holds datetime64.*, which have no coding",
    ),
    "number for a boolean": (lambda: changed(wild="maybe"), "'maybe' in column 'wild' is neither true nor false"),
    "edge to nowhere": (
        lambda: (animals()[0].iloc[:50], animals()[1]),
        "is no node in nodes, column 'id': add the node or remove the edge",
    ),
    "one table": (lambda: (animals()[0],), r"Give the tables \(nodes, edges\) or \(nodes, edges, graphs\), not 1"),
    "another import": (
        lambda: from_pandas(*animals(seed=1), name="zoo2", label="species", standardize=True),
        "The column 'weight' of zoo2 was coded by an import of its own",
    ),
    "fewer columns": (
        lambda: from_pandas(animals()[0].drop(columns="skin"), animals()[1], name="bald", label="species", standardize=True),
        "bald has no column 'skin', which the model needs",
    ),
    "other features": (node_dataset, "has 12 features, but the model was trained on the 5 of zoo"),
    "whole graphs": (graph_dataset, "The model classifies nodes, but tiny-graphs is for the classification of whole graphs"),
    "nothing": (lambda: "no-such-thing", "There is no data set 'no-such-thing'"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNFIT)
def test_a_graph_that_does_not_fit_is_refused_in_one_sentence(case: str, zoo: Result) -> None:
    make, sentence = UNFIT[case]
    with pytest.raises(OmegaError, match=sentence) as caught:
        zoo.predict(make())
    assert "\n" not in str(caught.value)


def test_an_extra_column_is_left_out_and_named(zoo: Result) -> None:
    fitted = zoo.predictor.read(changed(colour="red", smell=1.0))
    assert fitted.warnings == ("The columns colour, smell of nodes are new to the schema and were left out.",)
    table = zoo.predict(changed(colour="red", smell=1.0))
    pd.testing.assert_frame_equal(table, zoo.predict(animals()))


def test_another_import_that_codes_alike_fits(zoo: Result) -> None:
    nodes, edges = animals()
    other = from_pandas(nodes, edges.iloc[:20], name="zoo3", label="species", standardize=True)
    assert len(zoo.predict(other)) == SIZE


def test_names_of_features_are_compared_where_there_is_no_schema(tmp_path: Path) -> None:
    dataset = replace(node_dataset(), feature_names=tuple(f"f{k}" for k in range(12)))
    predictor = train(dataset, tmp_path).predictor
    for names, sentence in (
        ([*dataset.feature_names[:11], "g"], "lacks the feature 'f11', which the model needs"),
        (["g", *dataset.feature_names[1:]], "lacks the feature 'f0'"),
        (dataset.feature_names[::-1], "has the feature 'f0' at another place than the model"),
    ):
        with pytest.raises(DataError, match=sentence):
            predictor.read(replace(dataset, feature_names=tuple(names)))
    wide = replace(dataset, features=torch.ones(60, 13), feature_names=(*dataset.feature_names, "more"))
    with pytest.raises(DataError, match="has the feature 'more', which the model does not know"):
        predictor.read(wide)
    with pytest.raises(
        WrongUse, match="data frames cannot be coded: the model was trained on tiny-nodes, which was not made"
    ):
        predictor.read(animals())


def test_one_hot_features_belong_to_their_nodes(tmp_path: Path) -> None:
    nodes, edges = animals()
    dataset = from_pandas(nodes[["id", "species"]], edges, label="species", node_features="one-hot", name="ids")
    result = fit(dataset, quick(), runs_dir=tmp_path, data__split="ratio:0.6,0.2")
    assert len(result.predict((nodes, edges.iloc[:50]))) == SIZE  # other edges, the same nodes
    other = from_pandas(
        nodes[["id", "species"]].iloc[::-1], edges, label="species", node_features="one-hot", name="back"
    )
    with pytest.raises(DataError, match="The one-hot features of the model belong to the nodes they were made for"):
        result.predict(other)


def test_an_npz_file_fits_a_model_of_a_benchmark(tmp_path: Path) -> None:
    dataset = node_dataset()
    result = train(dataset, tmp_path / "runs")
    index, _ = dataset.graph.to_edge_index()
    path = tmp_path / "g.npz"
    np.savez(path, edge_index=index.numpy(), features=dataset.features.numpy(), labels=np.full(60, 99))
    found = result.predictor.probabilities(result.predictor.read(path))
    assert torch.equal(found, result.predictor.probabilities(dataset))
    np.savez(path, edge_index=index.numpy(), features=np.ones((60, 3)))
    with pytest.raises(DataError, match=r"g.npz: there are 3 features, but the schema has 12"):
        result.predictor.read(path)


def test_an_imported_data_set_is_taken_by_name_and_by_folder(zoo: Result, tmp_path: Path) -> None:
    dataset = from_pandas(*animals(), name="zoo", label="species", standardize=True)
    assert dataset.schema is not None
    folder = store(dataset, dataset.schema, tmp_path)
    assert load("zoo", root=tmp_path).schema == dataset.schema
    expected = zoo.predict(animals())
    pd.testing.assert_frame_equal(zoo.predict("zoo", data_root=tmp_path), expected)
    pd.testing.assert_frame_equal(zoo.predict(folder), expected)


def test_several_labels_an_item_are_named_together(tmp_path: Path) -> None:
    dataset = inductive_dataset()
    result = train(dataset, tmp_path)
    table = result.predict(dataset)
    probabilities = result.predictor.probabilities(dataset).numpy()
    assert table.columns.tolist() == ["id", "predicted", "p(0)", "p(1)", "p(2)"]
    for row, text in zip(probabilities, table["predicted"], strict=True):
        assert text == ";".join(str(k) for k in range(3) if row[k] > 0.5)
    alone = replace(dataset, task="node", ptr=None, splits=())  # one graph of nodes without labels
    assert torch.equal(result.predictor.probabilities(result.predictor.read(alone)), torch.from_numpy(probabilities))


def test_damaged_folders_are_told(tmp_path: Path) -> None:
    dataset = node_dataset()
    folder = train(dataset, tmp_path).folder
    for file, sentence in (
        ("model.safetensors", "model.safetensors is damaged or not a safetensors file"),
        ("data.json", "data.json is damaged"),
        ("config.json", "config.json is damaged"),
    ):
        old = (folder / file).read_bytes()
        (folder / file).write_bytes(b"{")
        with pytest.raises(OmegaError, match=sentence):
            Predictor.open(folder).probabilities(dataset)
        (folder / file).write_bytes(old)
    (folder / "model.safetensors").unlink()
    with pytest.raises(OmegaError, match="the run saved nothing yet"):
        Predictor.open(folder).probabilities(dataset)
    (folder / "data.json").unlink()
    with pytest.raises(OmegaError, match="before runs kept what they know of their data"):
        Predictor.open(folder)
    with pytest.raises(WrongUse, match="is no folder of a run"):
        Predictor.open(tmp_path)

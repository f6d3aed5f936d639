"""From files to a stored data set, to predictions in the user's words; and nothing half-done in between."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from omegagnn.cli import main
from omegagnn.data.loading import load
from omegagnn.data.own import Recipe, Schema, from_pandas, load_own, own_names, read_source, store, write_predictions
from omegagnn.errors import WrongUse

NODES = 'id,age,label\n"owl, the",3,hoot\n007,5,roar\nyak,,hoot\nNA,9,\n'
EDGES = 'source,target\n"owl, the",007\n007,yak\nyak,NA\n'


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    folder = tmp_path / "zoo"
    folder.mkdir()
    (folder / "nodes.csv").write_text(NODES)
    (folder / "edges.csv").write_text(EDGES)
    return folder


def test_csv_to_data_set_to_predictions_keeps_ids_names_and_order(
    zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    assert main(["data", "import", str(zoo), "--label", "label", "--name", "zoo", "--data-root", str(root)]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "Dataset('zoo', node, 4 nodes, 6 edges, 2 features, 2 classes, 0 splits)",
        f"stored in {root / 'own' / 'zoo'}",
    ]
    assert captured.err.splitlines() == [
        "omegagnn: Missing values were coded by an indicator feature in the columns age.",
        "omegagnn: 1 of 4 nodes have no label and are in no split.",
    ]
    dataset = load("zoo", root=root)
    probabilities = torch.tensor([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5], [1 / 3, 2 / 3]])
    write_predictions(dataset, probabilities, tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    with (zoo / "nodes.csv").open(newline="") as stream:
        asked = [row[0] for row in csv.reader(stream)][1:]
    assert rows[0] == ["id", "predicted", "p(hoot)", "p(roar)"]
    assert [row[0] for row in rows[1:]] == asked
    assert [row[1] for row in rows[1:]] == ["roar", "hoot", "hoot", "roar"]
    assert [float(row[3]) for row in rows[1:]] == pytest.approx([0.75, 0.0, 0.5, 2 / 3], abs=1e-6)


def test_the_stored_schema_codes_a_changed_folder(zoo: Path, tmp_path: Path) -> None:
    dataset, schema = read_source(zoo, Recipe(label="label"), name="zoo")
    folder = store(dataset, schema, tmp_path / "root")
    assert sorted(path.name for path in folder.iterdir()) == ["dataset.npz", "schema.json"]
    _, stored = load_own("zoo", tmp_path / "root")
    assert stored == schema == Schema.load(folder / "schema.json")
    (zoo / "nodes.csv").write_text("id,age\nelk,4\nowl,\n")
    (zoo / "edges.csv").write_text("source,target\nelk,owl\n")
    changed, _ = read_source(zoo, schema=stored)
    assert changed.features[0].tolist() == [4.0, 0.0]
    assert changed.features[1].tolist() == pytest.approx([17 / 3, 1.0])
    assert changed.class_names == ("hoot", "roar")


def test_predictions_of_graphs_carry_the_ids_of_graphs(tmp_path: Path) -> None:
    graphs = pd.DataFrame({"id": ["g2", "g1"], "label": ["b", "a"]})
    nodes = pd.DataFrame({"graph": ["g1", "g2"], "id": ["x", "x"], "size": [1, 2]})
    edges = pd.DataFrame({"graph": ["g1"], "source": ["x"], "target": ["x"]})
    dataset = from_pandas(nodes, edges, graphs, label="label", id="id")
    write_predictions(dataset, [1, 0], tmp_path / "p.csv", ids=["g2", "g1"])
    assert (tmp_path / "p.csv").read_text() == "id,predicted\ng2,b\ng1,a\n"
    write_predictions(dataset, [1, 0], tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == "id,predicted\ng2,b\ng1,a\n"
    write_predictions(replace(dataset, schema=None), [1, 0], tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == "id,predicted\n0,b\n1,a\n"


def test_predictions_that_do_not_fit_are_refused_and_leave_nothing(zoo: Path, tmp_path: Path) -> None:
    dataset, _ = read_source(zoo, Recipe(label="label"))
    for wrong in ([0, 1], torch.ones(4, 3), torch.ones(4, 2, 2)):
        with pytest.raises(WrongUse, match="has 4 items and 2 classes: give one row for each item"):
            write_predictions(dataset, wrong, tmp_path / "out" / "p.csv")
    with pytest.raises(WrongUse, match="A predicted class lies outside 0 to 1"):
        write_predictions(dataset, [0, 1, 2, 0], tmp_path / "out" / "p.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("../zoo", "take letters, digits"),
        ("", "take letters, digits"),
        (".zoo", "take letters, digits"),
        ("a b", "take letters, digits"),
        ("Cora", "belongs to a benchmark: choose another"),
        ("csbm", "belongs to a benchmark: choose another"),
    ],
)
def test_names_that_cannot_be_used(zoo: Path, tmp_path: Path, name: str, sentence: str) -> None:
    dataset, schema = read_source(zoo, Recipe(label="label"), name=name)
    with pytest.raises(WrongUse, match=sentence):
        store(dataset, schema, tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_an_old_data_set_is_replaced_on_request_only(zoo: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    line = ["data", "import", str(zoo), "--name", "zoo", "--label", "label", "--data-root", str(root)]
    assert main(line) == 0
    before = (root / "own" / "zoo" / "schema.json").read_text()
    assert main([*line, "--standardize"]) == 2
    assert (root / "own" / "zoo" / "schema.json").read_text() == before
    assert main([*line, "--standardize", "--replace"]) == 0
    assert (root / "own" / "zoo" / "schema.json").read_text() != before
    assert os.listdir(root / "own") == ["zoo"]
    assert own_names(root) == ("zoo",)


@pytest.mark.parametrize("failing", ["schema.json", "zoo"])
def test_a_failure_while_storing_keeps_the_old_and_leaves_no_traces(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    dataset, schema = read_source(zoo, Recipe(label="label"), name="zoo")
    folder = store(dataset, schema, tmp_path / "root")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    replace_file, rename = os.replace, Path.rename

    def full(source: str, target: str) -> None:
        if Path(target).name == failing:
            raise OSError(28, "No space left on device", str(target))
        replace_file(source, target)

    def stuck(self: Path, target: Path) -> Path:
        if Path(target).name == failing and self.name.endswith(".new"):
            raise OSError(28, "No space left on device", str(target))
        return rename(self, target)

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(Path, "rename", stuck)
    with pytest.raises(OSError, match="No space left"):
        store(replace(dataset, class_names=("other", "names")), schema, tmp_path / "root", replace_old=True)
    assert os.listdir(folder.parent) == ["zoo"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="There is no imported data set 'zoo'"):
        load_own("zoo", tmp_path)
    assert own_names(tmp_path) == ()


# ------------------------------------------------------------------------------------------------- omegagnn data import


def test_single_tables_can_be_named_and_all_options_reach_the_recipe(
    zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (zoo / "edges.csv").write_text("begin;end;strength\n007;yak;2\nyak;007;3\n")
    (zoo / "nodes.csv").write_text(
        "age;zip;who;label;part\n1;10;007;x;train\n2;20;yak;y;train\n3;10;elk;x;val\n4;20;emu;y;test\n"
    )
    options = "--id who --label label --features age,zip --categorical zip --split part --source begin --target end "
    options += "--weights strength --directed --node-features degree --standardize --missing error --json"
    line = ["data", "import", "--nodes", str(zoo / "nodes.csv"), "--edges", str(zoo / "edges.csv"), *options.split()]
    assert main([*line, "--separator", ";", "--name", "zoo", "--data-root", str(tmp_path / "root")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == {
        "folder": str(tmp_path / "root" / "own" / "zoo"), "name": "zoo", "task": "node", "graphs": 1, "nodes": 4, "edges": 2,
        "features": 5, "classes": 2, "splits": ["part"], "warnings": [],
    }  # fmt: skip
    dataset, schema = load_own("zoo", tmp_path / "root")
    assert dataset.node_ids == ("007", "yak", "elk", "emu")
    assert dataset.feature_names == ("age", "zip=10", "zip=20", "log_in_degree", "log_out_degree")
    assert schema.recipe == Recipe(
        id="who", label="label", features=("age", "zip"), categorical=("zip",), source="begin", target="end",
        weights="strength", directed=True, split=("part",), node_features="degree", missing="error", standardize=True,
        separator=";",
    )  # fmt: skip


def test_the_command_refuses_too_little_and_too_much(
    zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--name", "zoo", "--data-root", str(tmp_path / "root")]
    for line, sentence in (
        ([], "Name either a folder or file to import, or tables with --edges"),
        ([str(zoo), "--edges", "e.csv"], "Name either a folder or file to import"),
        ([str(zoo), "--nodes", "n.csv"], "and single tables are named: name one of the two"),
        ([str(zoo / "none")], "There is no file or folder"),
    ):
        assert main(["data", "import", *line, *root]) in (1, 2)
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "root").exists()

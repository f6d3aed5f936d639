"""From a user's CSV files to predictions, through the command line: import, train, evaluate, predict."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from omegagnn.cli import main
from omegagnn.data.cache import save_dataset
from omegagnn.data.dataset import Dataset, Split
from omegagnn.graph import Graph

N, NEW = 90, 100
KINDS = np.array(["bear", "crow", "newt"])


def call(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def write_zoo(folder: Path, n: int, *, labels: bool = True) -> Path:
    """Write a graph of n animals; a larger one holds the smaller one, node for node and edge for edge."""
    folder.mkdir(parents=True)
    noise = np.random.default_rng(0).normal(size=1000)
    kind = np.arange(n) % 3
    skin = np.array(["fur", "feather", "slime"])[kind]
    nodes = pd.DataFrame(
        {"id": [f"animal {k}" for k in range(n)], "weight": (3 * kind + noise[:n]).round(3), "skin": skin}
    )
    if labels:
        nodes["species"] = np.where(np.arange(n) % 10 == 9, "", KINDS[kind])
    nodes.to_csv(folder / "nodes.csv", index=False)
    pairs = [(k, k + step) for k in range(n) for step in (3, 6) if k + step < n]
    edges = pd.DataFrame([(f"animal {a}", f"animal {b}") for a, b in pairs], columns=["source", "target"])
    edges.to_csv(folder / "edges.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``zoo/`` imported below ``data`` and three members trained below ``runs``."""
    home = tmp_path_factory.mktemp("home")
    zoo = write_zoo(home / "zoo", N)
    places = ("--data-root", home / "data", "--runs-dir", home / "runs")
    assert call("data", "import", zoo, "--name", "zoo", "--label", "species", "--standardize", *places[:2]) == 0
    quick = ("--set", "training.lr_oc=0.05", "--set", "model.channels=8")
    assert call("train", "zoo", "--split", "ratio:0.6,0.2", "--seeds", "3", "--epochs", "30", *quick, *places) == 0
    return home


def predict(home: Path, graph: str | Path, out: Path, *options: str | Path) -> int:
    places = ("--data-root", home / "data", "--runs-dir", home / "runs")
    return call("predict", "last", "--graph", graph, "--out", out, *places, *options)


def test_a_changed_graph_is_predicted_with_the_users_ids(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spring = write_zoo(tmp_path / "spring", N + NEW, labels=False)
    assert predict(trained, spring, tmp_path / "p.csv") == 0
    out = capsys.readouterr().out
    assert "190 nodes of spring, mean of the probabilities of 3 members" in out
    table = pd.read_csv(tmp_path / "p.csv")
    assert table.columns.tolist() == ["id", "predicted", "p(bear)", "p(crow)", "p(newt)"]
    assert table["id"].tolist() == [f"animal {k}" for k in range(N + NEW)]
    assert (table["predicted"] == KINDS[np.arange(N + NEW) % 3])[N:].mean() > 0.9
    np.testing.assert_allclose(table.iloc[:, 2:].sum(axis=1), 1, atol=1e-5)
    best = table.columns[2:].to_numpy()[table.iloc[:, 2:].to_numpy().argmax(axis=1)]
    assert (best == "p(" + table["predicted"] + ")").all()


def test_name_and_folder_of_the_training_data_give_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    assert predict(trained, "zoo", tmp_path / "name.csv") == 0
    assert predict(trained, trained / "zoo", tmp_path / "folder.csv") == 0
    assert predict(trained, write_zoo(tmp_path / "zoo", N, labels=False), tmp_path / "unlabelled.csv") == 0
    assert (tmp_path / "name.csv").read_bytes() == (tmp_path / "folder.csv").read_bytes()
    assert (tmp_path / "name.csv").read_bytes() == (tmp_path / "unlabelled.csv").read_bytes()


def test_json_says_what_was_predicted_and_scored(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predict(trained, "zoo", tmp_path / "p.csv", "--json", "--score", "--member", "1") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {
        "run", "graph", "protocol", "members", "member", "items", "out", "predicted", "score"
    }  # fmt: skip
    assert (found["members"], found["member"], found["items"]) == (1, 1, N)
    assert list(found["predicted"]) == ["bear", "crow", "newt"]
    assert sum(found["predicted"].values()) == N
    assert found["score"]["items"] == 81
    table = pd.read_csv(tmp_path / "p.csv")
    given = np.arange(N) % 10 != 9
    right = (table["predicted"] == KINDS[np.arange(N) % 3])[given].mean()
    assert found["score"]["score"] == pytest.approx(100 * right)
    assert predict(trained, "zoo", tmp_path / "p.csv", "--member", "1") == 0
    plain = capsys.readouterr().out
    assert "member 1 alone" in plain
    assert "accuracy" not in plain  # labels are not looked at unless asked


def test_data_set_and_journal_may_be_gone(trained: Path, tmp_path: Path) -> None:
    (run,) = [folder for folder in (trained / "runs").iterdir() if folder.is_dir()]
    shutil.copytree(run, tmp_path / "moved")
    zoo = write_zoo(tmp_path / "zoo", N)
    nothing = ("--data-root", tmp_path / "none", "--runs-dir", tmp_path / "none")
    assert call("predict", tmp_path / "moved", "--graph", zoo, "--out", tmp_path / "p.csv", *nothing) == 0
    assert predict(trained, "zoo", tmp_path / "q.csv") == 0
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()


def edit(column: str, row: int | None, value: str) -> tuple[str, int | None, str]:
    return column, row, value


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (edit("weight", None, ""), "nodes.csv has no column 'weight' for a feature"),
        (edit("skin", 4, "bark"), "nodes.csv, line 6: 'bark' in column 'skin' is none of its 3 known categories"),
        (edit("weight", 7, "heavy"), "nodes.csv, line 9: 'heavy' in column 'weight' is not a number"),
        (edit("id", 7, "animal 6"), "nodes.csv, line 9: the id 'animal 6' in column 'id' was used before"),
    ],
)
def test_a_wrong_table_is_one_sentence_that_names_the_column(
    change: tuple[str, int | None, str],
    sentence: str,
    trained: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    column, row, value = change
    folder = write_zoo(tmp_path / "zoo", N)
    nodes = pd.read_csv(folder / "nodes.csv", dtype=str, keep_default_na=False)
    if row is None:
        nodes = nodes.drop(columns=column)
    else:
        nodes.loc[row, column] = value
    nodes.to_csv(folder / "nodes.csv", index=False)
    assert predict(trained, folder, tmp_path / "p.csv") in (1, 2)
    error = capsys.readouterr().err.strip()
    assert sentence in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "p.csv").exists()


def test_an_extra_column_is_named_and_left_out(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_zoo(tmp_path / "zoo", N)
    nodes = pd.read_csv(folder / "nodes.csv").assign(mood="fine", species="unheard of")
    nodes.to_csv(folder / "nodes.csv", index=False)
    assert predict(trained, folder, tmp_path / "p.csv") == 0
    assert "warning: The columns mood of nodes.csv are new to the schema and were left out." in capsys.readouterr().err
    assert predict(trained, folder, tmp_path / "p.csv", "--score") == 1
    assert "'unheard of' in column 'species' is none of the classes bear, crow, newt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["predict", "last", "--graph", "zoo"], "--out"),
        (["predict", "last", "--out", "p.csv"], "--graph"),
        (["predict", "nobody", "--graph", "zoo", "--out", "p.csv"], "There is no run 'nobody'"),
        (["predict", "last", "--graph", "zooo", "--out", "p.csv"], "There is no data set 'zooo'"),
        (["predict", "last", "--graph", "zoo", "--out", "p.csv", "--member", "3"], "The run has members 0 to 2, not 3"),
        (
            ["predict", "last", "--graph", "zoo", "--out", "p.csv", "--protocol", "gin"],
            "Weights are kept for honest and",
        ),
        (["predict", "last", "--graph", "zoo", "--out", "p.csv", "--device", "tpu"], "There is no device 'tpu'"),
        (["evaluate", "nobody"], "There is no run 'nobody'"),
        (["evaluate", "last", "--part", "middle"], "There is no part 'middle'"),
        (["evaluate", "last", "--member", "7"], "The run has members 0 to 2, not 7"),
        (["evaluate", "last", "--split", "geom"], "give --split together with --data"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(
    arguments: list[str],
    sentence: str,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(*arguments, "--data-root", trained / "data", "--runs-dir", trained / "runs") == 2
    assert sentence in capsys.readouterr().err.strip().splitlines()[-1]


def test_evaluate_recomputes_and_counts(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = ("--data-root", trained / "data", "--runs-dir", trained / "runs")
    assert call("evaluate", "last", *places) == 0
    shown = capsys.readouterr().out
    for words in (
        "on zoo, test (",
        "weights by honest",
        "recorded the same for 3 member(s), to the bit",
        "ratio:0.6,0.2#0",
        "class\tprecision %\trecall %\tF1 %\titems",
        "true\tas bear\tas crow\tas newt",
    ):
        assert words in shown
    assert call("evaluate", "last", "--part", "val", "--json", *places) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["journal"] == {"equal": True, "largest_difference": 0.0}
    assert sum(map(sum, found["confusion"])) == sum(member["items"] for member in found["members"])


def test_evaluate_takes_other_data_that_fits(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spring = write_zoo(tmp_path / "spring", N + NEW)
    places = ("--data-root", trained / "data", "--runs-dir", trained / "runs")
    assert call("evaluate", "last", "--data", spring, "--json", *places) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["dataset"], found["part"], found["journal"]) == ("spring", "all", None)
    assert {member["items"] for member in found["members"]} == {171}
    assert found["score"]["mean"] > 90
    gone = ("--data-root", tmp_path, "--runs-dir", trained / "runs")
    assert call("evaluate", "last", *gone) == 2
    assert "is not here any more: say where with --data-root" in capsys.readouterr().err


def test_graphs_never_seen_are_predicted_by_their_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def write(folder: Path, first: int, last: int, labels: bool = True) -> Path:
        folder.mkdir()
        numbers = range(first, last)
        graphs = pd.DataFrame(
            {"id": [f"g{k}" for k in numbers], "label": ["ring" if k % 2 else "star" for k in numbers]}
        )
        nodes = [(f"g{k}", v, float(v == 0 and k % 2 == 0) + 0.1 * v) for k in numbers for v in range(5)]
        edges = [(f"g{k}", v, (v + 1) % 5 if k % 2 else 0) for k in numbers for v in range(5) if k % 2 or v]
        (graphs if labels else graphs[["id"]]).to_csv(folder / "graphs.csv", index=False)
        pd.DataFrame(nodes, columns=["graph", "id", "size"]).to_csv(folder / "nodes.csv", index=False)
        pd.DataFrame(edges, columns=["graph", "source", "target"]).to_csv(folder / "edges.csv", index=False)
        return folder

    places = ("--data-root", tmp_path / "data", "--runs-dir", tmp_path / "runs")
    shapes = write(tmp_path / "shapes", 0, 30)
    assert call("data", "import", shapes, "--name", "shapes", "--label", "label", "--id", "id", *places[:2]) == 0
    quick = ("--set", "training.lr_oc=0.02", "--set", "model.channels=8", "--epochs", "40", "--seeds", "2")
    assert call("train", "shapes", "--split", "kfold:3#0", *quick, *places) == 0
    unseen = write(tmp_path / "unseen", 100, 110, labels=False)
    assert call("predict", "last", "--graph", unseen, "--out", tmp_path / "p.csv", *places) == 0
    assert "10 graphs of unseen" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "p.csv")
    assert table["id"].tolist() == [f"g{k}" for k in range(100, 110)]
    assert table["predicted"].tolist() == ["star", "ring"] * 5


def test_a_baseline_and_a_model_of_a_benchmark_predict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = ("--runs-dir", tmp_path)
    assert call("train", "karate", "--model", "appnp", "--seeds", "2", "--epochs", "5", *runs) == 0
    assert call("evaluate", "last", *runs) == 0
    assert "to the bit" in capsys.readouterr().out
    assert call("predict", "last", "--graph", "karate", "--out", tmp_path / "p.csv", *runs) == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 34
    assert call("predict", "last", "--graph", write_zoo(tmp_path / "zoo", 9), "--out", tmp_path / "q.csv", *runs) == 2
    assert "the model was trained on karate, which was not made from columns" in capsys.readouterr().err
    assert call("predict", "last", "--graph", "citeseer", "--out", tmp_path / "q.csv", *runs) == 1
    assert "the model was trained on the 34 of karate" in capsys.readouterr().err


def test_several_labels_an_item_are_written_scored_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.random((60, 4), dtype=np.float32))
    ring = torch.arange(60)
    graph = Graph.from_edge_index(torch.stack([ring, ring // 20 * 20 + (ring + 1) % 20]), 60)
    parts = torch.arange(3).split(1)
    labels = (features[:, :2] > 0.5).float()
    ptr = torch.tensor([0, 20, 40, 60])
    dataset = Dataset("tissues", "inductive", graph, features, labels, (Split("fixed", *parts),), ptr, ("red", "round"))
    save_dataset(dataset, tmp_path / "data" / "own" / "tissues" / "dataset.npz")
    places = ("--data-root", tmp_path / "data", "--runs-dir", tmp_path / "runs")
    assert call("train", "tissues", "--seeds", "1", "--epochs", "40", "--set", "training.lr_oc=0.05", *places) == 0
    assert "guessing" not in capsys.readouterr().out, "there is no one class to guess"
    assert call("evaluate", "last", *places) == 0
    shown = capsys.readouterr().out
    assert "micro-F1" in shown
    assert "to the bit" in shown
    assert "as red" not in shown
    out = tmp_path / "p.csv"
    assert call("predict", "last", "--graph", "tissues", "--out", out, "--score", *places) == 0
    shown = capsys.readouterr().out
    assert "60 nodes of tissues, one member of" in shown
    table = pd.read_csv(out, keep_default_na=False)
    named = [row.split(";") if row else [] for row in table["predicted"]]
    found = np.array([["red" in row, "round" in row] for row in named])
    np.testing.assert_array_equal(found, table[["p(red)", "p(round)"]].to_numpy() > 0.5)
    true = labels.numpy() > 0.5
    f1 = 200 * (found & true).sum() / (found.sum() + true.sum())
    assert f"micro-F1   {f1:.2f} % of 60 labelled nodes" in shown

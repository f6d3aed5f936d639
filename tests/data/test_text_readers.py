"""The text formats (geom-gcn, TU Dortmund) and the npz format of heterophilous-graphs: small files and broken ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from omegagnn.data.readers.edges import simple_graph
from omegagnn.data.readers.geom_gcn import EDGES, NODES, read_geom_gcn, read_geom_splits
from omegagnn.data.readers.heterophilous import read_heterophilous
from omegagnn.data.readers.text import read_bytes, read_table
from omegagnn.data.readers.tu import read_tu
from omegagnn.errors import DataError

WRITTEN = "node_id\tfeature\tlabel\n1\t0,1,1\t2\n0\t1,0,0\t0\n2\t0,0,0\t1\n"
LISTED = "node_id\tfeature(feature_amount:4)\tlabel\n1\t3,1,3\t2\n0\t0\t0\n2\t2\t1\n"
LINKS = "node_id\tnode_id\n0\t1\n1\t0\n1\t1\n0\t1\n2\t0\n"


def geom(folder: Path, nodes: str = WRITTEN, edges: str = LINKS) -> dict[str, Path]:
    (folder / NODES).write_text(nodes)
    (folder / EDGES).write_text(edges)
    return {NODES: folder / NODES, EDGES: folder / EDGES}


def test_geom_gcn_with_written_features(tmp_path: Path) -> None:
    """Nodes go by their ids, not by their lines; edges are distinct and keep direction and loops."""
    dataset = read_geom_gcn(geom(tmp_path), "tiny")
    assert dataset.features.to_dense().tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    assert dataset.labels.tolist() == [0, 2, 1]
    assert dataset.graph.to_edge_index()[0].t().tolist() == [[1, 0], [2, 0], [0, 1], [1, 1]]
    assert dataset.class_names == ("0", "1", "2")


def test_geom_gcn_with_listed_features(tmp_path: Path) -> None:
    dataset = read_geom_gcn(geom(tmp_path, nodes=LISTED.replace("\n", "\r\n")), "tiny")
    assert dataset.features.to_dense().tolist() == [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("nodes", "edges", "sentence"),
    [
        ("", LINKS, "has no node"),
        ("heading\n", LINKS, "has no node"),
        (WRITTEN.replace("\t2\n", "\n"), LINKS, r"line 2, has 2 columns where 3 belong"),
        (WRITTEN.replace("1\t0,1,1", "x\t0,1,1"), LINKS, "not a number"),
        (WRITTEN.replace("1\t0,1,1", "7\t0,1,1"), LINKS, "does not number its 3 nodes from 0 to 2"),
        (WRITTEN.replace("1\t0,1,1", "0\t0,1,1"), LINKS, "does not number its 3 nodes from 0 to 2"),
        (WRITTEN.replace("\t2\n", "\t-2\n"), LINKS, "has the label -2"),
        (WRITTEN.replace("\t2\n", "\t999\n"), LINKS, "or 999"),
        (WRITTEN.replace("\t2\n", "\t99999999999999999999\n"), LINKS, "not a number"),
        (WRITTEN.replace("0,1,1", "0,1"), LINKS, "node 1 has another number of features"),
        (WRITTEN.replace("0,1,1", "0,5,1"), LINKS, "node 1 has features other than 0 and 1"),
        (WRITTEN.replace("0,1,1", "0;1;1"), LINKS, "node 1 has features other than 0 and 1"),
        (LISTED.replace("3,1,3", "3,x"), LINKS, "lists a feature that is not a number"),
        (LISTED.replace("3,1,3", "-3"), LINKS, "lists a feature -3"),
        (LISTED.replace("3,1,3", "99999999999"), LINKS, "lists a feature 0 or 99999999999"),
        (WRITTEN, LINKS + "7\t0\n", "has an edge at node 7, but nodes are numbered 0 to 2"),
        (WRITTEN, LINKS + "-1\t0\n", "has an edge at node -1"),
        (WRITTEN, LINKS + "1\n", "is not a table of numbers"),
        (WRITTEN, LINKS + "1\tx\n", "is not a table of numbers"),
        (WRITTEN, "a\n0\t1\t2\n", "has 3 columns where 2 belong"),
    ],
)
def test_broken_geom_gcn_files(nodes: str, edges: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        read_geom_gcn(geom(tmp_path, nodes, edges), "tiny")
    assert "out1_" in str(caught.value)


def test_geom_splits(tmp_path: Path) -> None:
    masks = np.eye(3, dtype=np.uint8)
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    np.savez(paths[0], train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])
    np.savez(paths[1], train_mask=masks[2], val_mask=masks[0], test_mask=masks[1])
    splits = read_geom_splits(paths, 3)
    assert [(s.name, s.train.tolist(), s.val.tolist(), s.test.tolist()) for s in splits] == [
        ("geom#0", [0], [1], [2]),
        ("geom#1", [2], [0], [1]),
    ]
    with pytest.raises(DataError, match="does not hold masks over 4 nodes"):
        read_geom_splits(paths, 4)
    np.savez(paths[0], train_mask=masks[0], val_mask=masks[1])
    with pytest.raises(DataError, match="lacks test_mask"):
        read_geom_splits(paths, 3)


TU = {
    "A": "1, 2\n2, 1\n2, 2\n1, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n2\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "3\n5\n3\n3\n5\n",
}


def tu(folder: Path, **changes: str) -> dict[str, Path]:
    for part, text in {**TU, **changes}.items():
        (folder / f"T_{part}.txt").write_text(text)
    return {f"T_{part}.txt": folder / f"T_{part}.txt" for part in TU}


def test_tu(tmp_path: Path) -> None:
    dataset = read_tu(tu(tmp_path), "tiny")
    assert dataset.ptr is not None
    assert dataset.ptr.tolist() == [0, 2, 5]
    assert dataset.graph.to_edge_index()[0].t().tolist() == [[1, 0], [0, 1], [4, 3], [3, 4]]
    assert dataset.features.tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert dataset.feature_names == ("label 3", "label 4", "label 5")
    assert dataset.labels.tolist() == [1, 0]
    assert dataset.class_names == ("-1", "1")
    assert dataset.batch is not None
    assert dataset.batch.tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"A": "1, 3\n"}, "edge from one graph to another"),
        ({"A": "1, 9\n"}, "edge at node 8, but nodes are numbered 0 to 4"),
        ({"A": "0, 1\n"}, "edge at node -1"),
        ({"A": "1, a\n"}, "T_A.txt is not a table of numbers"),
        ({"graph_indicator": "2\n1\n2\n2\n2\n"}, "does not give the nodes of 2 graphs in order"),
        ({"graph_indicator": "1\n1\n2\n2\n3\n"}, "does not give the nodes of 2 graphs in order"),
        ({"graph_indicator": ""}, "does not give the nodes"),
        ({"node_labels": "3\n5\n"}, "has 2 labels for 5 nodes"),
        ({"node_labels": "3\n5\n3\n3\n99999\n"}, "more than 4096"),
        ({"graph_labels": "1\n"}, "does not give the nodes of 1 graphs in order"),
    ],
)
def test_broken_tu_files(changes: dict[str, str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=sentence):
        read_tu(tu(tmp_path, **changes), "tiny")


def heterophilous(path: Path, **changes: object) -> dict[str, Path]:
    masks = np.eye(3, dtype=bool)
    arrays = {
        "node_features": np.array([[1.0, 0], [0, 1], [1, 1]], dtype=np.float32),
        "node_labels": np.array([0, 1, 1]),
        "edges": np.array([[0, 1], [2, 1]]),
        "train_masks": masks[:2],
        "val_masks": masks[1:],
        "test_masks": masks[[2, 0]],
    }
    arrays.update({key: np.asarray(value) for key, value in changes.items() if value is not None})
    np.savez(path, **{key: array for key, array in arrays.items() if changes.get(key, 0) is not None})
    return {path.name: path}


def test_heterophilous(tmp_path: Path) -> None:
    dataset = read_heterophilous(heterophilous(tmp_path / "h.npz"), "tiny")
    assert dataset.graph.to_edge_index()[0].t().tolist() == [[1, 0], [0, 1], [2, 1], [1, 2]]
    assert dataset.features.layout == torch.strided
    assert [(s.name, s.train.tolist(), s.val.tolist(), s.test.tolist()) for s in dataset.splits] == [
        ("heterophilous#0", [0], [1], [2]),
        ("heterophilous#1", [1], [2], [0]),
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"edges": None}, "lacks edges"),
        ({"edges": [[0, 1, 2]]}, "does not hold one graph"),
        ({"edges": [[0.5, 1]]}, "does not hold one graph"),
        ({"edges": [[0, 9]]}, "edge at node 9"),
        ({"node_labels": [0, 1]}, "does not hold one graph"),
        ({"node_labels": [0, 1, -1]}, "does not hold one graph"),
        ({"node_features": [1.0, 2.0, 3.0]}, "does not hold one graph"),
        ({"node_features": [[np.nan], [0.0], [0.0]]}, "does not hold one graph"),
        ({"val_masks": np.eye(2, dtype=bool)}, "does not hold one graph"),
    ],
)
def test_broken_heterophilous_files(changes: dict[str, object], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=sentence):
        read_heterophilous(heterophilous(tmp_path / "h.npz", **changes), "tiny")


def test_gzip_bombs_and_cut_files_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"0\n" * 5_000_000))
    assert bomb.stat().st_size < 20_000
    with pytest.raises(DataError, match="holds more than 1,000,000 bytes"):
        read_bytes(bomb, limit=1_000_000)
    whole = gzip.compress(np.arange(100_000).tobytes())
    for content in (whole[:-9], whole[: len(whole) // 2], whole[:5], b"plain", whole[:20] + b"\xff" * 40):
        (tmp_path / "cut.csv.gz").write_bytes(content)
        with pytest.raises(DataError, match="not a whole gzip file"):
            read_bytes(tmp_path / "cut.csv.gz")
    with pytest.raises(DataError, match="There is no file"):
        read_bytes(tmp_path / "missing")


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    assert read_table(path, 2, skip=1).tolist() == [[1, 2], [3, 4]]
    path.write_text("a,b\n")
    assert read_table(path, 2, skip=1).shape == (0, 2)
    path.write_text("1.5,nan\n")
    with pytest.raises(DataError, match="number in row 1 that is not finite"):
        read_table(path, 2, dtype=np.float32)


def test_no_edges_give_an_empty_graph() -> None:
    none = np.empty(0, dtype=np.int64)
    assert simple_graph(none, none, 3, "x").num_edges == 0
    assert simple_graph(none, none, 0, "x").num_nodes == 0

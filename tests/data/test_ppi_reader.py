"""PPI on small files in the exact upstream format, against PyTorch Geometric's loader of the same files."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.datasets import PPI

from omegagnn.data import find, load
from omegagnn.data.readers.ppi import FILES, read_ppi
from omegagnn.errors import DataError

FEATURES, LABELS = 50, 121


def make_ppi(folder: Path, graphs: tuple[int, int, int] = (20, 2, 2), is_directed: bool = False) -> dict[str, Path]:
    """Write the twelve files: node-link JSON, float64 features and labels, graph ids that go on from part to part."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    first_id = 1
    for part, count in zip(("train", "valid", "test"), graphs, strict=True):
        sizes = draw.integers(5, 9, size=count)
        n = int(sizes.sum())
        graph_id = np.repeat(np.arange(first_id, first_id + count), sizes)
        first_id += count
        net = nx.DiGraph() if is_directed else nx.Graph()
        net.add_nodes_from(range(n))
        for number in np.unique(graph_id):
            nodes = np.flatnonzero(graph_id == number)
            net.add_edges_from(zip(nodes, np.roll(nodes, 1), strict=True))
            net.add_edge(nodes[0], nodes[0])
            net.add_edges_from(draw.choice(nodes, size=(6, 2)))
        content = nx.node_link_data(net, edges="links")
        content["nodes"] = [
            {"id": int(node["id"]), "test": part == "test", "val": part == "valid"} for node in content["nodes"]
        ]
        content["links"] = [{"source": int(link["source"]), "target": int(link["target"])} for link in content["links"]]
        (folder / f"{part}_graph.json").write_text(json.dumps(content))
        np.save(folder / f"{part}_feats.npy", draw.standard_normal((n, FEATURES)))
        np.save(folder / f"{part}_labels.npy", (draw.random((n, LABELS)) < 0.3).astype(np.float64))
        np.save(folder / f"{part}_graph_id.npy", graph_id)
    return {name: folder / name for name in FILES}


@pytest.mark.parametrize("is_directed", [False, True])
def test_ppi_equals_pyg(is_directed: bool, tmp_path: Path) -> None:
    make_ppi(tmp_path / "PPI" / "raw", is_directed=is_directed)
    ours = load("ppi", root=tmp_path)
    assert ours.task == "inductive"
    assert ours.is_multilabel
    assert ours.num_graphs == 24
    assert ours.num_classes == LABELS
    (split,) = ours.splits
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([*range(20)], [20, 21], [22, 23])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = [data for part in ("train", "val", "test") for data in PPI(str(tmp_path / "PPI"), part)]
    for one, other in zip(ours.to_pyg(), theirs, strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.y, other.y)
        n = one.x.size(0)
        keys = [torch.sort(data.edge_index[0] * n + data.edge_index[1]).values for data in (one, other)]
        assert torch.equal(*keys)


def test_small_files_are_told_from_the_benchmark(tmp_path: Path) -> None:
    """Files without a known checksum are loaded, and said to differ from the published data set."""
    make_ppi(tmp_path / "PPI" / "raw")
    dataset = load("ppi", root=tmp_path)
    assert any("nodes here, but 56,944 as published" in warning for warning in dataset.warnings)
    assert find("ppi").differences(dataset) == tuple(w for w in dataset.warnings if w.endswith("as published."))


def test_nodes_of_a_graph_need_not_lie_together(tmp_path: Path) -> None:
    files = make_ppi(tmp_path, graphs=(2, 1, 1))
    order = np.random.default_rng(1).permutation(len(np.load(files["train_graph_id.npy"])))
    straight = read_ppi(files, "ppi")
    for name in ("feats", "labels", "graph_id"):
        path = files[f"train_{name}.npy"]
        np.save(path, np.load(path)[order])
    place = np.argsort(order)
    content = json.loads(files["train_graph.json"].read_text())
    for link in content["links"]:
        link.update(source=int(place[link["source"]]), target=int(place[link["target"]]))
    files["train_graph.json"].write_text(json.dumps(content))
    mixed = read_ppi(files, "ppi")
    assert straight.ptr is not None
    assert mixed.ptr is not None
    assert torch.equal(mixed.ptr, straight.ptr)
    assert torch.equal(mixed.features.sort(dim=0).values, straight.features.sort(dim=0).values)
    assert torch.equal(mixed.graph.degree().sort().values, straight.graph.degree().sort().values)
    sender, receiver = mixed.graph.to_edge_index()[0]
    assert mixed.batch is not None
    assert torch.equal(mixed.batch[sender], mixed.batch[receiver])


def damage(files: dict[str, Path], kind: str) -> None:
    feats, ids, graph = (files[f"train_{name}"] for name in ("feats.npy", "graph_id.npy", "graph.json"))
    if kind == "rows":
        np.save(feats, np.load(feats)[:-1])
    elif kind == "nan":
        np.save(feats, np.full_like(np.load(feats), np.nan))
    elif kind == "labels":
        np.save(files["valid_labels.npy"], np.load(files["valid_labels.npy"]) + 0.5)
    elif kind == "width":
        np.save(files["test_labels.npy"], np.load(files["test_labels.npy"])[:, :-1])
    elif kind == "ids":
        np.save(ids, np.load(ids).astype(float))
    elif kind == "cut":
        graph.write_text(graph.read_text()[:-20])
    elif kind == "links":
        graph.write_text(json.dumps({"nodes": []}))
    elif kind == "names":
        graph.write_text(json.dumps({"links": [{"source": "a", "target": "b"}]}))
    elif kind == "outside":
        graph.write_text(json.dumps({"links": [{"source": 0, "target": 9999}]}))
    elif kind == "deep":
        graph.write_text("[" * 100_000)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("rows", "do not fit together"),
        ("nan", "numbers that do not belong"),
        ("labels", "numbers that do not belong"),
        ("width", "differ in width"),
        ("ids", "do not fit together"),
        ("cut", "is not a graph in NetworkX's node-link form"),
        ("links", "is not a graph in NetworkX's node-link form"),
        ("names", "is not a graph in NetworkX's node-link form"),
        ("outside", "has a link to a node that is not among 0 to"),
        ("deep", "is not a graph in NetworkX's node-link form"),
    ],
)
def test_broken_files(kind: str, sentence: str, tmp_path: Path) -> None:
    files = make_ppi(tmp_path, graphs=(2, 1, 1))
    damage(files, kind)
    with pytest.raises(DataError, match=sentence):
        read_ppi(files, "ppi")


def test_a_part_without_links(tmp_path: Path) -> None:
    files = make_ppi(tmp_path, graphs=(1, 1, 1))
    files["train_graph.json"].write_text(json.dumps({"links": []}))
    dataset = read_ppi(files, "ppi")
    assert dataset.ptr is not None
    assert int(dataset.graph.rowptr[dataset.ptr[1]]) == 0


def test_the_topology_alone_is_not_taken_for_ppi(shared_data: Path, empty_cache: Path) -> None:
    with pytest.raises(
        DataError, match=r"Missing train_graph\.json, train_feats\.npy, train_labels\.npy and 9 more: looked in"
    ):
        load("ppi", root=shared_data / "partial")
    assert not empty_cache.exists()

"""`load`: names, own data sets, the cache, the embedded copy, and what goes to PyTorch Geometric."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
import torch
from test_cache import assert_same_dataset

from omegagnn import Graph
from omegagnn.data import Dataset, available, find, load, own_path, save_dataset, whereabouts
from omegagnn.data.download import sha256_of
from omegagnn.data.loading import embedded
from omegagnn.data.splits import from_column
from omegagnn.errors import DataError, WrongUse

REPOSITORY = Path(__file__).resolve().parents[2]
EMBEDDED = REPOSITORY / "src" / "omegagnn" / "data" / "embedded" / "citeseer.npz"
EMBEDDED_SHA256 = "f04a0a7c64765814ad3fa2a7c82bc1c84fe1a18976d22da54b443a5251c3ac25"


def test_every_name_of_the_issue_is_there() -> None:
    names = (
        "cora citeseer pubmed chameleon squirrel film cornell cornell-corrected texas wisconsin ppi ogbn-arxiv mutag ptc "
        "proteins nci1 nci109 chameleon-filtered squirrel-filtered minesweeper karate csbm gradient-task grid ring scale-free"
    )
    assert [entry.name for entry in available()] == names.split()
    for entry in available():
        assert entry.title
        assert entry.licence
        assert entry.sources
        assert (entry.make is None) == (entry.files is not None)
        assert all(problem.endswith(".") for problem in entry.problems)
    with pytest.raises(FrozenInstanceError):
        available()[0].name = "x"  # type: ignore[misc]


def test_names_and_aliases_go_without_case() -> None:
    assert find("Cora").name == "cora"
    assert find("actor").name == "film"
    assert find("PTC_MR").name == "ptc"
    assert find("arxiv").name == "ogbn-arxiv"
    assert load("Karate").name == "karate"
    with pytest.raises(WrongUse, match="There is no data set 'coral': did you mean cora"):
        load("coral")
    with pytest.raises(WrongUse, match="There is no data set 'zzz': choose one of cora, citeseer"):
        load("zzz")


def test_citeseer_needs_no_files(empty_cache: Path) -> None:
    assert whereabouts("citeseer") == "embedded"
    dataset = load("citeseer")
    assert (dataset.num_nodes, dataset.graph.num_edges, dataset.num_features, dataset.num_classes) == (
        3327,
        9104,
        3703,
        6,
    )
    assert [split.name for split in dataset.splits] == ["public"]
    assert len(dataset.warnings) == 2
    assert not empty_cache.exists()


def test_the_embedded_copy_is_citeseer(shared_data: Path, empty_cache: Path) -> None:
    raw = load("citeseer", root=shared_data)
    assert_same_dataset(load("citeseer"), raw)
    assert_same_dataset(replace(embedded("citeseer"), warnings=raw.warnings), raw)


def test_the_embedded_copy_is_made_by_its_tool(shared_data: Path, tmp_path: Path) -> None:
    """The same raw files, in a wheel packed here, give the committed file byte for byte."""
    from test_sources import make_wheel

    command = [sys.executable, str(REPOSITORY / "tools" / "make_embedded.py")]
    made = tmp_path / "citeseer.npz"
    subprocess.run(
        [*command, str(make_wheel(tmp_path, shared_data)), "--to", str(made)], check=True, capture_output=True
    )
    assert sha256_of(EMBEDDED) == EMBEDDED_SHA256
    assert made.read_bytes() == EMBEDDED.read_bytes()


def test_geom_splits_fit_the_embedded_copy(shared_data: Path, tmp_path: Path, empty_cache: Path) -> None:
    import shutil

    folder = "Planetoid/CiteSeer/geom-gcn/raw"
    shutil.copytree(shared_data / folder, tmp_path / folder, copy_function=shutil.copyfile)
    assert whereabouts("citeseer", tmp_path) == "embedded"
    ours, theirs = load("citeseer", "geom", tmp_path), load("citeseer", "geom", shared_data)
    assert [split.hash for split in ours.splits] == [split.hash for split in theirs.splits]


def test_a_damaged_cache_is_made_again(shared_data: Path, empty_cache: Path) -> None:
    first = load("texas", root=shared_data)
    (cached,) = (empty_cache / "npz").iterdir()
    assert cached.name.startswith("texas-")
    whole = cached.read_bytes()
    cached.write_bytes(whole[: len(whole) // 2])
    assert_same_dataset(load("texas", root=shared_data), first)
    assert cached.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_time_only(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way of the cache folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load("texas", root=shared_data).num_nodes == 183


def own(root: Path, name: str = "zoo") -> Dataset:
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3)
    splits = (from_column("mine", ["train", "val", "test"]), from_column("other", ["test", "val", "train"]))
    dataset = Dataset(name, "node", graph, torch.eye(3), torch.tensor([0, 1, -1]), splits, node_ids=("a", "b", "c"))
    save_dataset(dataset, own_path(name, root))
    return dataset


def test_own_data_sets_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = own(tmp_path)
    assert_same_dataset(load("zoo", root=tmp_path), dataset)
    monkeypatch.setenv("OMEGAGNN_DATA", str(tmp_path))
    assert [split.name for split in load("zoo", "other").splits] == ["other"]
    assert [split.name for split in load("zoo", "ratio:0.5,0").splits] == ["ratio:0.5,0#0"]
    with pytest.raises(WrongUse, match=r"no split 'public' for zoo: choose one of mine, other, ratio"):
        load("zoo", "public")
    own_path("zoo", tmp_path).write_bytes(b"PK")
    with pytest.raises(DataError, match="not a whole npz file"):
        load("zoo")


def test_names_do_not_climb_out_of_the_data_root(tmp_path: Path) -> None:
    own(tmp_path / "root" / "own", "..")  # <root>/own/own/../dataset.npz
    save_dataset(own(tmp_path / "elsewhere"), tmp_path / "secret" / "dataset.npz")
    (tmp_path / "root" / "own").mkdir(parents=True, exist_ok=True)
    for name in ("../../secret", str(tmp_path / "secret"), "..", ".", "", "a/b"):
        with pytest.raises(WrongUse, match="There is no data set"):
            load(name, root=tmp_path / "root")


def test_to_pyg_of_a_node_task(shared_data: Path) -> None:
    texas = load("texas", root=shared_data)
    data = texas.to_pyg()
    assert data.x.layout == torch.strided
    assert data.train_mask.shape == (183, 10)
    assert "edge_weight" not in data
    assert texas.to_pyg(sparse=True).x.layout == torch.sparse_csr
    one = load("texas", "geom#2", root=shared_data)
    assert one.to_pyg().val_mask.shape == (183,)
    assert torch.equal(one.to_pyg().val_mask.nonzero().flatten(), one.splits[0].val)
    assert "train_mask" not in texas.with_splits(()).to_pyg()
    assert Graph.from_pyg(data).num_edges == texas.graph.num_edges


def test_to_pyg_keeps_weights_and_graphs() -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 3, 4], [1, 0, 4, 3]]), 5, torch.tensor([1.0, 2.0, 3.0, 4.0]))
    many = Dataset("two", "graph", graph, torch.eye(5), torch.tensor([1, 0]), ptr=torch.tensor([0, 3, 5]))
    first, second = many.to_pyg()
    assert (first.num_nodes, second.num_nodes) == (3, 2)
    assert first.y.tolist() == [1]
    assert second.edge_index.tolist() == [[1, 0], [0, 1]]
    assert second.edge_weight.tolist() == [4.0, 3.0]
    sparse = replace(many, features=torch.eye(5).to_sparse_csr())
    assert torch.equal(sparse.to_pyg()[1].x, second.x)
    assert sparse.to_pyg(sparse=True)[1].x.layout == torch.sparse_csr


def test_a_data_set_audits_itself(shared_data: Path) -> None:
    """What it finds is tested with the audit; here, that it looks beside itself in the same data root."""
    cornell = replace(load("cornell", root=shared_data), warnings=())  # what is known of it is not to help
    assert any("texas" in str(warning) for warning in cornell.audit(shared_data).warnings)


def test_reprs_and_counts() -> None:
    assert repr(load("karate")) == "Dataset('karate', node, 34 nodes, 156 edges, 34 features, 2 classes, 1 splits)"
    none = Graph.from_edge_index(torch.zeros(2, 0), 3)
    many = Dataset("m", "graph", none, torch.ones(3, 1), torch.tensor([0, 1]), ptr=torch.tensor([0, 1, 3]))
    assert "2 graphs, 3 nodes" in repr(many)
    assert many.batch is not None
    assert many.batch.tolist() == [0, 1, 1]
    assert load("karate").batch is None
    labels = replace(many, labels=torch.zeros(2, 5))
    assert (labels.num_classes, labels.is_multilabel, labels.is_regression) == (5, True, False)

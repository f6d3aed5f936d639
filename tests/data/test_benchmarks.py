"""Every data set in the shared folder loads and equals what PyTorch Geometric's loader makes of the same raw files."""

from __future__ import annotations

import shutil
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric import datasets
from torch_geometric.utils import to_undirected

from omegagnn.data import Dataset, available, find, load

NODE = {
    "cora": ("Planetoid", lambda root: datasets.Planetoid(root, "Cora")),
    "citeseer": ("Planetoid", lambda root: datasets.Planetoid(root, "CiteSeer")),
    "pubmed": ("Planetoid", lambda root: datasets.Planetoid(root, "PubMed")),
    "film": ("Actor", datasets.Actor),
    "cornell": ("WebKB", lambda root: datasets.WebKB(root, "Cornell")),
    "cornell-corrected": ("WebKB-cornell-corrected", lambda root: datasets.WebKB(root, "Cornell")),
    "texas": ("WebKB", lambda root: datasets.WebKB(root, "Texas")),
    "wisconsin": ("WebKB", lambda root: datasets.WebKB(root, "Wisconsin")),
    "chameleon": ("WikipediaNetwork", lambda root: datasets.WikipediaNetwork(root, "chameleon")),
    "squirrel": ("WikipediaNetwork", lambda root: datasets.WikipediaNetwork(root, "squirrel")),
    "minesweeper": ("HeterophilousGraphDataset", lambda root: datasets.HeterophilousGraphDataset(root, "Minesweeper")),
}
GRAPH = {"mutag": "MUTAG", "ptc": "PTC_MR", "proteins": "PROTEINS", "nci1": "NCI1", "nci109": "NCI109"}
# Label counts as the notes beside the raw data print them.
CLASS_COUNTS = {
    "cora": [351, 217, 418, 818, 426, 298, 180],
    "citeseer": [264, 590, 668, 701, 596, 508],
    "pubmed": [4103, 7739, 7875],
    "chameleon": [456, 460, 453, 521, 387],
    "squirrel": [1042, 1040, 1039, 1040, 1040],
    "film": [853, 1337, 1630, 1815, 1965],
    "cornell": [33, 1, 18, 101, 30],
    "cornell-corrected": [38, 16, 30, 82, 17],
    "texas": [33, 1, 18, 101, 30],
    "wisconsin": [10, 70, 118, 32, 21],
    "mutag": [63, 125],
    "ptc": [192, 152],
    "proteins": [663, 450],
    "nci1": [2053, 2057],
    "nci109": [2048, 2079],
}
FILES = [entry.name for entry in available() if entry.files is not None and entry.name not in ("ppi", "ogbn-arxiv")]


@pytest.fixture(scope="module")
def pyg_root(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Copies of the raw folders, since PyTorch Geometric writes beside them."""
    root = tmp_path_factory.mktemp("pyg")

    def copied(folder: str) -> str:
        target = root / folder
        if not target.exists() and (shared_data / folder).is_dir():
            shutil.copytree(shared_data / folder, target, copy_function=shutil.copyfile)
            for path in (target, *target.rglob("*")):
                path.chmod(0o755)
            for splits in target.glob("*/geom-gcn/raw"):
                for raw in (splits.parent.parent / "raw").iterdir():
                    shutil.copyfile(raw, splits / raw.name)
        elif not target.exists():
            with tarfile.open(shared_data / "archives" / f"{folder}.tar.xz") as archive:
                archive.extractall(root, filter="data")
        return str(target)

    return copied


def edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    return torch.sort(edge_index[0] * num_nodes + edge_index[1]).values


def assert_equals_pyg(ours: Dataset, theirs: Any) -> None:
    n = theirs.x.size(0)
    assert ours.num_nodes == n
    assert torch.equal(ours.features.to_dense(), theirs.x)
    assert torch.equal(edges(ours.graph.to_edge_index()[0], n), edges(theirs.edge_index, n))
    assert ours.graph.weight is None
    assert torch.equal(ours.labels, theirs.y)
    masks = [theirs[f"{part}_mask"].reshape(n, -1) for part in ("train", "val", "test")]
    assert len(ours.splits) == masks[0].size(1)
    for number, split in enumerate(ours.splits):
        for part, mask in zip((split.train, split.val, split.test), masks, strict=True):
            assert torch.equal(part, mask[:, number].nonzero().flatten())


@pytest.mark.parametrize("name", NODE)
def test_node_data_sets_equal_pyg(name: str, shared_data: Path, pyg_root: Callable[[str], str]) -> None:
    folder, make = NODE[name]
    theirs = make(pyg_root(folder))[0]
    ours = load(name, root=shared_data)
    assert_equals_pyg(ours, theirs)
    assert_equals_pyg(load(name, root=shared_data), theirs)  # from the npz cache this time


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_geom_gcn_splits_equal_pyg(name: str, shared_data: Path, pyg_root: Callable[[str], str]) -> None:
    title = find(name).title
    theirs = datasets.Planetoid(pyg_root("Planetoid"), title, split="geom-gcn")[0]
    ours = load(name, "geom", root=shared_data)
    assert [split.name for split in ours.splits] == [f"geom#{number}" for number in range(10)]
    assert_equals_pyg(ours, theirs)


@pytest.mark.parametrize("name", GRAPH)
def test_graph_data_sets_equal_pyg(name: str, shared_data: Path, pyg_root: Callable[[str], str]) -> None:
    theirs = datasets.TUDataset(pyg_root("TUDataset"), GRAPH[name])
    ours = load(name, root=shared_data)
    assert ours.num_graphs == len(theirs)
    whole, slices = theirs._data, theirs.slices
    assert ours.ptr is not None
    assert torch.equal(ours.ptr, slices["x"])
    assert torch.equal(ours.features, whole.x)
    assert torch.equal(ours.labels, whole.y)
    starts = torch.repeat_interleave(slices["x"][:-1], slices["edge_index"].diff())
    n = ours.num_nodes
    assert torch.equal(edges(ours.graph.to_edge_index()[0], n), edges(whole.edge_index + starts, n))
    last = ours.to_pyg()[-1]
    assert torch.equal(last.x, theirs[-1].x)
    assert torch.equal(last.y, theirs[-1].y)
    m = last.x.size(0)
    assert torch.equal(edges(last.edge_index, m), edges(theirs[-1].edge_index, m))


@pytest.mark.parametrize("name", ["chameleon-filtered", "squirrel-filtered"])
def test_filtered_data_sets_equal_their_arrays(name: str, shared_data: Path) -> None:
    """PyTorch Geometric has no loader for these; its way with the same format is what `Minesweeper` does."""
    arrays = np.load(shared_data / "heterophilous-filtered" / f"{name.replace('-', '_')}.npz")
    ours = load(name, root=shared_data)
    undirected = to_undirected(torch.from_numpy(arrays["edges"]).t().contiguous())
    n = ours.num_nodes
    assert torch.equal(edges(ours.graph.to_edge_index()[0], n), edges(undirected, n))
    assert torch.equal(ours.features.to_dense(), torch.from_numpy(arrays["node_features"]))
    assert torch.equal(ours.labels, torch.from_numpy(arrays["node_labels"]))
    for number, split in enumerate(ours.splits):
        for part in ("train", "val", "test"):
            mask = torch.from_numpy(arrays[f"{part}_masks"][number])
            assert torch.equal(getattr(split, part), mask.nonzero().flatten())


@pytest.mark.parametrize("name", FILES)
def test_the_registry_tells_the_truth(name: str, shared_data: Path) -> None:
    entry, dataset = find(name), load(name, root=shared_data)
    assert entry.differences(dataset) == ()
    assert dataset.task == entry.task
    assert set(entry.problems) <= set(dataset.warnings)
    assert all(known is not None for known in entry.checksums.values())
    if name in CLASS_COUNTS:
        assert torch.bincount(dataset.labels).tolist() == CLASS_COUNTS[name]
    if entry.homophily is not None:
        same = dataset.labels[dataset.graph.row] == dataset.labels[dataset.graph.col]
        assert round(float(same.double().mean()), 3) == entry.homophily


SPLIT_SIZES = {
    "cora": {"public": (140, 500, 1000), "geom": (1192, 796, 497)},
    "citeseer": {"public": (120, 500, 1000)},
    "pubmed": {"public": (60, 500, 1000), "geom": (9463, 6310, 3944)},
    "chameleon": {"geom": (1092, 729, 456)},
    "squirrel": {"geom": (2496, 1664, 1041)},
    "film": {"geom": (3648, 2432, 1520)},
    "cornell": {"geom": (87, 59, 37)},
}


@pytest.mark.parametrize(("name", "split"), [(name, split) for name, splits in SPLIT_SIZES.items() for split in splits])
def test_split_sizes(name: str, split: str, shared_data: Path) -> None:
    for each in load(name, split, root=shared_data).splits:
        assert (len(each.train), len(each.val), len(each.test)) == SPLIT_SIZES[name][split]


def test_citeseer_geom_splits_4_and_5_are_smaller(shared_data: Path) -> None:
    sizes = [(len(s.train), len(s.val), len(s.test)) for s in load("citeseer", "geom", root=shared_data).splits]
    expected = [(1596, 1065, 666)] * 10
    expected[4] = expected[5] = (1017, 679, 424)
    assert sizes == expected


def test_cornell_is_texas_in_its_features_and_labels(shared_data: Path) -> None:
    cornell, texas, corrected = (load(name, root=shared_data) for name in ("cornell", "texas", "cornell-corrected"))
    assert torch.equal(cornell.features.to_dense(), texas.features.to_dense())
    assert torch.equal(cornell.labels, texas.labels)
    assert not torch.equal(corrected.features.to_dense(), texas.features.to_dense())
    assert any("Texas" in warning for warning in cornell.warnings)


@pytest.mark.parametrize(
    "name", ["cora", "citeseer", "pubmed", "chameleon", "squirrel", "film", "texas", "squirrel-filtered"]
)
def test_wide_features_stay_sparse(name: str, shared_data: Path) -> None:
    for _ in ("parsed", "cached"):
        features = load(name, root=shared_data).features
        assert features.layout == torch.sparse_csr
        assert features.dtype == torch.float32
        assert bool((features.values() != 0).all())


def test_the_data_root_is_left_as_it_was(shared_data: Path) -> None:
    """A data root that is read-only by its permission bits is not written to, even by a superuser who could."""
    before = {path: path.stat().st_mtime_ns for path in shared_data.rglob("*")}
    started = time.time_ns()
    for name in ("chameleon", "cora", "mutag"):
        load(name, root=shared_data)
    after = {path: path.stat().st_mtime_ns for path in shared_data.rglob("*")}
    assert after == before
    assert max(after.values()) < started

"""ogbn-arxiv on small files in the exact layout of the Open Graph Benchmark."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from omegagnn.data import load
from omegagnn.data.readers.ogb import FILES, read_arxiv
from omegagnn.errors import DataError

N, E, F = 40, 120, 128


def csv_gz(path: Path, table: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(table).to_csv(path, header=False, index=False, compression="gzip")


def make_arxiv(folder: Path) -> dict[str, Path]:
    draw = np.random.default_rng(0)
    years = draw.integers(2010, 2021, size=N)
    tables = {
        "raw/edge": draw.permutation(N * N)[:E, None] // [[N, 1]] % N,
        "raw/node-feat": draw.standard_normal((N, F)).astype(np.float32).round(6),
        "raw/node-label": draw.integers(0, 40, size=N),
        "raw/node_year": years,
        "raw/num-node-list": [N],
        "raw/num-edge-list": [E],
        "split/time/train": np.flatnonzero(years <= 2017),
        "split/time/valid": np.flatnonzero(years == 2018),
        "split/time/test": np.flatnonzero(years >= 2019)[::-1],
    }
    for name, table in tables.items():
        csv_gz(folder / f"{name}.csv.gz", table)
    categories = "label idx,arxiv category\n" + "".join(f"{number},arxiv cs c{number}\n" for number in range(40))
    (folder / "mapping").mkdir()
    (folder / FILES[-1]).write_bytes(gzip.compress(categories.encode()))
    return {name: folder / name for name in FILES}


def test_arxiv(tmp_path: Path) -> None:
    files = make_arxiv(tmp_path / "ogbn_arxiv")
    dataset = load("ogbn-arxiv", root=tmp_path)

    def table(name: str) -> np.ndarray:
        return pd.read_csv(files[name], header=None).to_numpy()

    edges = torch.from_numpy(table("raw/edge.csv.gz"))
    assert torch.equal(
        torch.sort(dataset.graph.to_edge_index()[0].t()[:, 0] * N + dataset.graph.to_edge_index()[0][1]).values,
        torch.sort(edges[:, 0] * N + edges[:, 1]).values,
    )
    assert dataset.features.shape == (N, F)
    np.testing.assert_array_equal(dataset.features.numpy(), table("raw/node-feat.csv.gz").astype(np.float32))
    assert dataset.labels.tolist() == table("raw/node-label.csv.gz").ravel().tolist()
    assert dataset.num_classes == 40
    assert dataset.class_names[3] == "arxiv cs c3"
    (split,) = dataset.splits
    assert split.name == "time"
    years = table("raw/node_year.csv.gz").ravel()
    assert years[split.train].max() <= 2017
    assert set(years[split.val]) == {2018}
    assert years[split.test].min() >= 2019
    assert len(split.train) + len(split.val) + len(split.test) == N
    assert load("arxiv", root=tmp_path).splits[0].hash == split.hash


@pytest.mark.parametrize(
    ("name", "table", "sentence"),
    [
        ("raw/edge", np.zeros((E - 1, 2), int), r"edge\.csv\.gz has 119 rows where 120 belong: it is cut off"),
        ("raw/edge", np.full((E, 2), N), "edge at node 40"),
        ("raw/node-feat", np.zeros((N, F - 1)), "has 127 columns where 128 belong"),
        ("raw/node-feat", np.zeros((N - 1, F)), "has 39 rows where 40 belong"),
        ("raw/node-feat", np.full((N, F), "nan"), "not finite"),
        ("raw/node-label", np.full(N, -1), "labels that do not count classes"),
        ("raw/node-label", np.full(N, 10**9), "labels that do not count classes"),
        ("raw/node_year", np.full(N, 2000), "differs from the years"),
        ("raw/num-node-list", [N, N], "has 2 numbers where one belongs"),
        ("split/time/train", [0], "differs from the years"),
        ("split/time/test", ["x"], "not a table of numbers"),
    ],
)
def test_broken_files(name: str, table: object, sentence: str, tmp_path: Path) -> None:
    files = make_arxiv(tmp_path / "ogbn_arxiv")
    csv_gz(files[f"{name}.csv.gz"], table)
    with pytest.raises(DataError, match=sentence):
        read_arxiv(files, "ogbn-arxiv")


def test_labels_and_years_alone_are_not_taken_for_arxiv(shared_data: Path, empty_cache: Path) -> None:
    with pytest.raises(
        DataError, match=r"Missing raw/edge\.csv\.gz, raw/node-feat\.csv\.gz, split/time/train\.csv\.gz and 2 more"
    ):
        load("ogbn-arxiv", root=shared_data / "partial")
    assert not empty_cache.exists()

"""ogbn-arxiv in the layout of the Open Graph Benchmark: ``raw/*.csv.gz`` without headings and ``split/time/*.csv.gz``.

The graph is directed from the citing paper to the cited one, as the source has it. The split is by year: train up to 2017,
validate on 2018, test from 2019. It is computed from ``node_year.csv.gz`` and must agree with the files in ``split/time``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from omegagnn.data.dataset import Dataset
from omegagnn.data.readers.edges import simple_graph
from omegagnn.data.readers.text import read_bytes, read_table
from omegagnn.data.splits import by_year
from omegagnn.errors import DataError

RAW = ("edge", "node-feat", "node-label", "node_year", "num-node-list", "num-edge-list")
TIME = ("train", "valid", "test")
CATEGORIES = "mapping/labelidx2arxivcategeory.csv.gz"  # spelt so in the source
FILES = (*(f"raw/{part}.csv.gz" for part in RAW), *(f"split/time/{part}.csv.gz" for part in TIME), CATEGORIES)


def read_arxiv(files: Mapping[str, Path], name: str, num_features: int = 128) -> Dataset:
    """Read the files, given by their paths below ``ogbn_arxiv``."""
    paths = {part: files[f"raw/{part}.csv.gz"] for part in RAW}
    paths |= {part: files[f"split/time/{part}.csv.gz"] for part in TIME}
    n, num_edges = (int(_single(paths[part])) for part in ("num-node-list", "num-edge-list"))
    edges = read_table(paths["edge"], 2)
    features = read_table(paths["node-feat"], num_features, dtype=np.float32)
    labels, years = (read_table(paths[part], 1).ravel() for part in ("node-label", "node_year"))
    for part, count, expected in (
        ("edge", len(edges), num_edges),
        ("node-feat", len(features), n),
        ("node-label", len(labels), n),
        ("node_year", len(years), n),
    ):
        if count != expected:
            raise DataError(f"{paths[part]} has {count} rows where {expected} belong: it is cut off; fetch it again.")
    if n == 0 or labels.min() < 0 or labels.max() >= n:
        raise DataError(f"{paths['node-label']} has labels that do not count classes: fetch it again.")
    split = by_year(years)
    for part, computed in zip(TIME, (split.train, split.val, split.test), strict=True):
        if not np.array_equal(np.sort(read_table(paths[part], 1).ravel()), computed.numpy()):
            raise DataError(f"{paths[part]} differs from the years in {paths['node_year']}: fetch both again.")
    return Dataset(
        name=name,
        task="node",
        graph=simple_graph(edges[:, 0], edges[:, 1], n, str(paths["edge"])),
        features=torch.from_numpy(features),
        labels=torch.from_numpy(labels),
        splits=(split,),
        class_names=_categories(files[CATEGORIES]),
    )


def _single(path: Path) -> int:
    numbers = read_table(path, 1)
    if numbers.shape != (1, 1):
        raise DataError(f"{path} has {len(numbers)} numbers where one belongs: fetch it again.")
    return int(numbers[0, 0])


def _categories(path: Path) -> tuple[str, ...]:
    lines = read_bytes(path, limit=2**20).decode("utf-8", errors="replace").splitlines()
    return tuple(row[1] for row in csv.reader(lines[1:]) if len(row) > 1)

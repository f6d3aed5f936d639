"""The numbers in docs/datasets.md are those that the tool prints and the registry holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from omegagnn.data import load
from omegagnn.data.sources import checksums

REPOSITORY = Path(__file__).resolve().parents[2]
DOCUMENT = (REPOSITORY / "docs" / "datasets.md").read_text(encoding="utf-8")


def test_the_table_of_counts_is_printed_by_its_tool(shared_data: Path) -> None:
    command = [sys.executable, str(REPOSITORY / "tools" / "count_edges.py"), str(shared_data)]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert len(table.splitlines()) == 10
    assert table in DOCUMENT


def test_averages_of_the_paper(shared_data: Path) -> None:
    """Nodes and undirected edges a graph; the paper prints 32.13 for both of NCI109."""
    paper = {
        "mutag": (17.93, 19.79),
        "ptc": (14.29, 14.69),
        "proteins": (39.06, 72.82),
        "nci1": (29.87, 32.30),
        "nci109": (29.68, 32.13),
    }
    for name, expected in paper.items():
        dataset = load(name, root=shared_data)
        nodes, edges = dataset.num_nodes / dataset.num_graphs, dataset.graph.num_edges / 2 / dataset.num_graphs
        assert (round(nodes, 2), round(edges, 2)) == expected


def test_the_number_of_checksums() -> None:
    assert f"({len(checksums())} files)" in DOCUMENT


def test_the_sets_named_as_wrong_are_so(shared_data: Path) -> None:
    for name in ("texas", "cornell"):
        assert load(name, root=shared_data).labels.bincount().min() == 1
    citeseer = load("citeseer", root=shared_data)
    silent = citeseer.features.crow_indices().diff() == 0
    assert int(silent.sum()) == 15
    assert set(citeseer.labels[silent].tolist()) == {0}
    assert bool((citeseer.graph.degree()[silent] > 0).all())
    assert not silent[citeseer.splits[0].test].any()
    minesweeper = load("minesweeper", root=shared_data)
    assert minesweeper.labels.bincount().tolist() == [8000, 2000]

"""Planetoid files that the test makes: gaps in the test index, and files that do not fit together."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from test_unpickle import python_2, write

from omegagnn.data.readers import planetoid
from omegagnn.data.readers.planetoid import PARTS, read_planetoid
from omegagnn.errors import DataError

KNOWN, CLASSES, WORDS = 12, 3, 5


@pytest.fixture(autouse=True)
def _few_validation_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planetoid, "NUM_VALIDATION", 6)


def one_hot(labels: list[int]) -> np.ndarray:
    return np.eye(CLASSES, dtype=np.int32)[labels]


def made(folder: Path, **changes: object) -> dict[str, Path]:
    """Twelve known nodes, four tested ones at 13, 15, 12 and 16; node 14 is a gap."""
    draw = np.random.default_rng(0)
    known = (draw.random((KNOWN, WORDS)) < 0.5) * draw.random((KNOWN, WORDS))
    tested = np.arange(1.0, 4 * WORDS + 1).reshape(4, WORDS)
    parts: dict[str, object] = {
        "x": sp.csr_matrix(known[:3]),
        "allx": sp.csr_matrix(known),
        "tx": sp.csr_matrix(tested),
        "y": one_hot([0, 1, 2]),
        "ally": one_hot([0, 1, 2] * 4),
        "ty": one_hot([2, 2, 1, 0]),
        "graph": {0: [1, 1, 0], 1: [0, 13], 13: [1], 16: [12], 12: [16]},
        "test.index": "13\n15\n12\n16\n",
    }
    parts.update({key.replace("_", "."): value for key, value in changes.items()})
    for part, value in parts.items():
        path = folder / f"ind.tiny.{part}"
        if isinstance(value, str):
            path.write_text(value)
        elif isinstance(value, np.ndarray | sp.csr_matrix):
            write(path, python_2(value))
        else:
            path.write_bytes(pickle.dumps(value, protocol=2))
    return {f"ind.tiny.{part}": folder / f"ind.tiny.{part}" for part in PARTS}


def test_gaps_are_rows_of_zeros_of_class_0(tmp_path: Path) -> None:
    dataset = read_planetoid(made(tmp_path), "tiny")
    x = dataset.features.to_dense()
    assert dataset.num_nodes == 17
    for node, row in ((13, 0), (15, 1), (12, 2), (16, 3)):
        assert x[node].tolist() == list(range(row * WORDS + 1, row * WORDS + WORDS + 1))
    assert x[14].tolist() == [0.0] * WORDS
    assert dataset.labels[12:].tolist() == [1, 2, 0, 2, 0]
    (split,) = dataset.splits
    assert split.name == "public"
    assert split.train.tolist() == [0, 1, 2]
    assert split.val.tolist() == [3, 4, 5, 6, 7, 8]
    assert split.test.tolist() == [12, 13, 15, 16]
    pairs = dataset.graph.to_edge_index()[0].t().tolist()
    assert sorted(pairs) == [[0, 1], [1, 0], [1, 13], [12, 16], [13, 1], [16, 12]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"x": np.eye(3)}, "x file .* does not hold a csr_array"),
        ({"graph": np.eye(3)}, "graph file .* does not hold a dict"),
        ({"y": sp.csr_matrix(np.eye(3))}, "y file .* does not hold a table of classes"),
        ({"ally": np.ones(KNOWN)}, "ally file .* does not hold a table of classes"),
        ({"tx": sp.csr_matrix(np.ones((4, 6)))}, "do not fit together"),
        ({"ty": one_hot([0, 1])}, "do not fit together"),
        ({"ally": one_hot([0])}, "do not fit together"),
        ({"y": np.eye(2)}, "do not fit together"),
        ({"test_index": "13\n15\n12\n"}, "do not fit together"),
        ({"test_index": ""}, "do not fit together"),
        ({"test_index": "13\n15\n12\n12\n"}, "does not number the nodes behind allx"),
        ({"test_index": "13\n15\n12\n1\n"}, "does not number the nodes behind allx"),
        ({"test_index": "13\n15\n12\n999999999\n"}, "does not number the nodes behind allx"),
        ({"test_index": "13\n15\nx\n16\n"}, "not a table of numbers"),
        ({"test_index": "13 15\n"}, "not a table of numbers"),
        ({"test_index": "13,15\n12,16\n"}, "has 2 columns where 1 belong"),
        ({"graph": {0: [99]}}, "has an edge at node 99, but nodes are numbered 0 to 16"),
        ({"graph": {-1: [0]}}, "has an edge at node -1"),
        ({"graph": {0: 5}}, "does not hold lists of neighbours"),
        ({"graph": {0: ["a"]}}, "does not hold lists of neighbours"),
        ({"graph": {2**70: [0]}}, "is not a Planetoid file"),
    ],
)
def test_files_that_do_not_fit_are_refused(changes: dict[str, object], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=sentence):
        read_planetoid(made(tmp_path, **changes), "tiny")


def test_a_graph_without_edges_is_read(tmp_path: Path) -> None:
    assert read_planetoid(made(tmp_path, graph={}), "tiny").graph.num_edges == 0


def test_features_are_float32_with_rising_columns(tmp_path: Path) -> None:
    features = read_planetoid(made(tmp_path), "tiny").features
    assert features.dtype == torch.float32
    for low, high in zip(features.crow_indices()[:-1], features.crow_indices()[1:], strict=True):
        columns = features.col_indices()[low:high]
        assert bool((columns.diff() > 0).all())

"""What an op cannot take is refused in one sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from omegagnn.graph import Graph
from omegagnn.ops import (
    Draws,
    SparseFeatures,
    attention_propagate,
    dropout,
    omega_propagate,
    sparse_linear,
    spmm,
    use_backend,
)

PATH = Graph.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3)
X = torch.ones(3, 4)
KEY = Draws(torch.tensor([1])).key(0)
FEATURES = SparseFeatures(torch.eye(3).to_sparse_csr())

MISUSES: list[tuple[str, Any, type[Exception], str]] = [
    (
        "one dimension",
        lambda: omega_propagate(torch.ones(3), PATH, 1.0),
        ValueError,
        "Features must be [n, c] or [n, R, c], but their shape is (3,).",
    ),
    (
        "four dimensions",
        lambda: omega_propagate(torch.ones(3, 1, 1, 1), PATH, 1.0),
        ValueError,
        "Features must be [n, c] or [n, R, c], but their shape is (3, 1, 1, 1).",
    ),
    (
        "integers",
        lambda: omega_propagate(torch.ones(3, 1, dtype=torch.long), PATH, 0.5),
        TypeError,
        "Features must be real floating-point numbers, but their dtype is torch.int64: convert them.",
    ),
    (
        "rows",
        lambda: spmm(PATH, torch.ones(4, 2)),
        ValueError,
        "The graph has 3 nodes but x has 4 rows: they must agree.",
    ),
    (
        "omega",
        lambda: omega_propagate(X, PATH, torch.ones(3)),
        ValueError,
        "omega of shape (3,) does not fit features of shape (3, 4): it must broadcast to [4].",
    ),
    (
        "omega of runs",
        lambda: omega_propagate(torch.ones(3, 2, 4), PATH, torch.ones(3, 4)),
        ValueError,
        "omega of shape (3, 4) does not fit features of shape (3, 2, 4): it must broadcast to [2, 4].",
    ),
    (
        "heads",
        lambda: attention_propagate(X, torch.ones(4, 6), PATH, 1.0),
        ValueError,
        "4 channels cannot be split evenly over 3 heads: change one of them.",
    ),
    (
        "no heads",
        lambda: attention_propagate(X, torch.ones(4, 0), PATH, 1.0),
        ValueError,
        "4 channels cannot be split evenly over 0 heads: change one of them.",
    ),
    (
        "maps",
        lambda: attention_propagate(torch.ones(3, 2, 4), torch.ones(3, 2), PATH, 1.0),
        ValueError,
        "maps must be [4, 2 · heads], with 2 runs in front or without, but their shape is (3, 2).",
    ),
    (
        "maps of other runs",
        lambda: attention_propagate(torch.ones(3, 2, 4), torch.ones(3, 4, 2), PATH, 1.0),
        ValueError,
        "maps must be [4, 2 · heads], with 2 runs in front or without, but their shape is (3, 4, 2).",
    ),
    (
        "an odd number of maps",
        lambda: attention_propagate(X, torch.ones(4, 3), PATH, 1.0),
        ValueError,
        "maps must be [4, 2 · heads], with 1 runs in front or without, but their shape is (4, 3).",
    ),
    (
        "maps of four dimensions",
        lambda: attention_propagate(X, torch.ones(1, 1, 4, 2), PATH, 1.0),
        ValueError,
        "maps must be [4, 2 · heads], with 1 runs in front or without, but their shape is (1, 1, 4, 2).",
    ),
    (
        "probability",
        lambda: dropout(X, 1.0, KEY),
        ValueError,
        "A dropout probability must be at least 0 and below 1, but it is 1.0.",
    ),
    (
        "probability of attention",
        lambda: attention_propagate(X, torch.ones(4, 2), PATH, 1.0, dropout=-0.1),
        ValueError,
        "A dropout probability must be at least 0 and below 1, but it is -0.1.",
    ),
    (
        "no key",
        lambda: sparse_linear(FEATURES, torch.ones(3, 2), 0.5),
        ValueError,
        "Dropout needs a key: take one from Draws(...).key(place).",
    ),
    (
        "key of other runs",
        lambda: dropout(torch.ones(3, 2, 4), 0.5, KEY),
        ValueError,
        "The key has shape (1, 2), but 2 runs need [2, 2].",
    ),
    (
        "dropout of a vector",
        lambda: dropout(torch.ones(3), 0.5, KEY),
        ValueError,
        "Features must be [n, c] or [n, R, c], but their shape is (3,).",
    ),
    (
        "columns",
        lambda: sparse_linear(FEATURES, torch.ones(4, 2)),
        ValueError,
        "The features have 3 columns but the weight has 4 rows.",
    ),
    (
        "backend",
        lambda: use_backend("fast").__enter__(),
        ValueError,
        "There is no backend 'fast': choose 'reference' or 'fused'.",
    ),
]


@pytest.mark.parametrize(("call", "error", "sentence"), [m[1:] for m in MISUSES], ids=[m[0] for m in MISUSES])
def test_misuse_is_one_sentence(call: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == sentence

"""R runs on the run axis give, bit for bit on a CPU, what each of them gives alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from assertions import BACKENDS, assert_close, assert_runs_equal_single_runs, assert_same_bits
from graphs import random_graph

from omegagnn.nn.runs import batched_matmul, node_mean, node_sum, run_matmul, spread
from omegagnn.ops import SparseFeatures, use_backend

# nodes, edges, features, hidden, classes, runs: odd sizes, where batched products and reductions change their order
SIZES = [
    (1, 0, 3, 4, 2, 2),
    (1, 2, 5, 8, 1, 8),
    (2, 3, 3, 3, 1, 3),
    (7, 20, 5, 6, 3, 8),
    (33, 100, 17, 8, 7, 5),
    (100, 400, 33, 16, 7, 4),
    (500, 2000, 70, 33, 7, 3),
    (501, 1500, 64, 64, 1, 2),
]
OPTIONS: dict[str, dict[str, Any]] = {
    "dropouts": {"dropout": 0.5, "layer_dropout": 0.2, "attention_dropout": 0.3},
    "layer norm, residual, bias": {"norm": "layer", "residual": "previous", "bias": True},
    "pair norm, initial residual": {"norm": "pair", "residual": "initial"},
    "batch norm without ReLU": {"norm": "batch", "activation": None},
    "graphs": {"task": "graph", "dropout": 0.5},
    "authors' nodes": {"variant": "authors", "init": "glorot"},
    "authors' graphs": {"variant": "authors", "task": "graph"},
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("conv", ["gcn", "gat"])
@pytest.mark.parametrize("omega", ["channel", "layer", "global", 0.5])
def test_company_changes_no_bit(backend: str, conv: str, omega: Any, name: str) -> None:
    extra = OPTIONS[name]
    # Two sizes a combination, so that every size meets every option over the combinations.
    first = (len(name) * 3 + len(str(omega)) + len(conv)) % len(SIZES)
    for place in (first, first + 3):
        n, e, f, h, out, runs = SIZES[place % len(SIZES)]
        batch_normed = extra.get("norm") == "batch" or extra.get("task") == "graph"
        n = max(n, 2) if batch_normed else n
        options = {
            **{"in_channels": f, "hidden_channels": h, "num_layers": 2, "out_channels": out},
            **{"conv": conv, "omega": omega, "heads": 2 if conv == "gat" and h % 2 == 0 else 1, **extra},
        }
        batch = torch.arange(n) * 3 // n if extra.get("task") == "graph" and n % 2 else None
        with use_backend(backend):
            assert_runs_equal_single_runs(options, torch.randn(n, f), random_graph(n, e, seed=n), runs, batch)


@pytest.mark.parametrize("runs", range(1, 9))
@pytest.mark.parametrize("backend", BACKENDS)
def test_any_number_of_runs(backend: str, runs: int) -> None:
    options = {"in_channels": 19, "hidden_channels": 7, "num_layers": 3, "out_channels": 5, "dropout": 0.5}
    graph = random_graph(37, 120)
    with use_backend(backend):
        assert_runs_equal_single_runs(options, torch.randn(37, 19), graph, runs)
        assert_runs_equal_single_runs({**options, "conv": "gat"}, torch.randn(37, 19), graph, runs)


@pytest.mark.parametrize("backend", BACKENDS)
def test_features_of_each_run_and_sparse_features(backend: str) -> None:
    options = {"in_channels": 19, "hidden_channels": 7, "num_layers": 2, "out_channels": 5, "dropout": 0.5}
    graph, dense = random_graph(37, 120), torch.randn(37, 19).relu()
    sparse = SparseFeatures(dense.to_sparse_csr())
    with use_backend(backend):
        assert_runs_equal_single_runs(options, torch.randn(37, 4, 19), graph, 4)
        assert_runs_equal_single_runs(options, sparse, graph, 4)
        assert_runs_equal_single_runs({**options, "conv": "gat"}, sparse, graph, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 64, 7), (7, 33, 3), (500, 64, 7), (501, 16, 1), (100, 1, 33), (3, 5, 8)])
def test_products_and_sums_do_not_know_how_many_they_are(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    n, c, d = shape
    x, weight = torch.randn(8, n, c, dtype=dtype), torch.randn(8, c, d, dtype=dtype)
    together = batched_matmul(x, weight)
    summed = node_sum(x.transpose(0, 1))
    for run in range(8):
        assert_same_bits(batched_matmul(x[run], weight[run]), together[run])
        assert_close(together[run], x[run].double() @ weight[run].double())
        assert_same_bits(node_sum(x[run]), summed[run])


@pytest.mark.parametrize("x_shape", [(4, 3), (4, 2, 3)])
@pytest.mark.parametrize("weight_shape", [(3, 5), (2, 3, 5)])
def test_products_over_the_run_axis(x_shape: tuple[int, ...], weight_shape: tuple[int, ...]) -> None:
    x = torch.randn(x_shape, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(weight_shape, dtype=torch.float64, requires_grad=True)
    had_runs = x.dim() == 3 or weight.dim() == 3
    all_x = (x if x.dim() == 3 else x[:, None]).expand(-1, 2 if had_runs else 1, -1)
    all_weights = (weight if weight.dim() == 3 else weight[None]).expand(all_x.size(1), -1, -1)
    expected = torch.einsum("nrc,rcd->nrd", all_x, all_weights)
    assert_close(run_matmul(x, weight), expected if had_runs else expected[:, 0])
    assert torch.autograd.gradcheck(run_matmul, (x, weight), check_batched_grad=True)
    assert torch.autograd.gradgradcheck(run_matmul, (x, weight))


def test_sums_spread_back_and_have_all_derivatives() -> None:
    for shape in ((4, 3), (4, 2, 3)):
        x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        assert_close(node_sum(x), x.sum(0))
        assert_close(node_mean(x), x.mean(0))
        assert_close(spread(x[0], 5), x[0].expand(5, *x.shape[1:]))
        for function in (node_sum, node_mean, lambda x: spread(x[0].square(), 3)):
            assert torch.autograd.gradcheck(function, x, check_batched_grad=True)
            assert torch.autograd.gradgradcheck(function, x)


def test_under_vmap_a_product_is_a_product() -> None:
    x, weight = torch.randn(5, 4, 3), torch.randn(5, 3, 2)
    assert_close(torch.vmap(run_matmul)(x, weight), (x @ weight).double())
    grads = torch.vmap(torch.func.grad(lambda w, x: run_matmul(x, w).square().sum()))(weight, x)
    assert_close(grads, (2 * x.mT @ (x @ weight)).double())

"""Training on parts of one graph: exact where nothing is left out, bounded in memory, resumed to the bit, evaluated in full."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from test_engine import StopAt, assert_same_result, quick, rows_of, train
from tiny import graph_dataset, node_dataset

from omegagnn import Graph, OmegaNet
from omegagnn.data.cache import load_dataset, save_dataset
from omegagnn.data.dataset import Dataset
from omegagnn.errors import InterruptedRun, WrongUse
from omegagnn.training.batch import RunBatch
from omegagnn.training.engine import Trainer
from omegagnn.training.fit import make_plan
from omegagnn.training.journal import Journal
from omegagnn.training.layerwise import Pieces, layerwise_logits
from omegagnn.training.sampled import SampledNodeTask, configured_task

CPU = torch.device("cpu")
SAMPLERS = {
    "neighbor": {"training__batch_nodes": 8, "training__fan_outs": [2, 3]},
    "node": {"training__batch_nodes": 30},
    "cluster": {"training__batch_nodes": 30},
}


def sampled(kind: str, **values: Any) -> Any:
    return quick(training__sampler=kind, **{**SAMPLERS[kind], **values})


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize("model", ["omega-gcn", "omega-gat", "gcn", "gat"])
def test_every_sampler_learns_with_every_kind_of_network(kind: str, model: str, tmp_path: Path) -> None:
    config = sampled(
        kind, model__name=model, training__epochs=40, training__lr_oc=0.05, model__channels=16, training__patience=None
    )
    dataset = node_dataset(sparse=model == "omega-gcn")
    result = train(dataset, tmp_path, config, 1, "0")
    losses = [row["train_loss"] for row in result.journal.epochs(result.run)]
    assert min(losses) < 0.9 * losses[0]
    assert result.evaluate(dataset).difference is not None  # the saved weights give what was recorded


def test_with_all_neighbours_and_all_nodes_a_step_is_that_of_the_full_graph(tmp_path: Path) -> None:
    values = {"model__dropout": 0.0, "training__epochs": 5, "training__precision": "float64"}
    whole = train(node_dataset(), tmp_path, quick(**values), 1, "0")
    everything = {"training__fan_outs": [-1], "training__batch_nodes": 60}
    for kind in ("neighbor", "node"):
        parts = train(node_dataset(), tmp_path, sampled(kind, **{**everything, **values}), 1, "0")
        for one, other in zip(rows_of(whole, 0), rows_of(parts, 0), strict=True):
            assert one == pytest.approx(other, abs=1e-12), kind


@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_broken_off_run_ends_with_the_same_bits(kind: str, tmp_path: Path) -> None:
    dataset, config = node_dataset(), sampled(kind)
    whole = train(dataset, tmp_path, config, 2, "0")
    stop = StopAt(7)
    journal = Journal(tmp_path)
    trainer = stop.trainer = Trainer.start(make_plan(dataset, config, 2, "0"), journal, CPU, progress=stop)
    with pytest.raises(InterruptedRun):
        trainer.train()
    Trainer.resume(trainer.run_name, journal, dataset, CPU).train()
    assert_same_result(whole, type(whole)(journal, trainer.run_name))


def test_shards_of_a_step_are_the_step_where_nothing_is_random(tmp_path: Path) -> None:
    values = {"model__dropout": 0.0, "training__fan_outs": [-1], "training__precision": "float64"}
    whole = train(node_dataset(), tmp_path, sampled("neighbor", **values), 1, "0")
    for shards in (2, 3):
        parts = train(node_dataset(), tmp_path, sampled("neighbor", training__shards=shards, **values), 1, "0")
        for one, other in zip(rows_of(whole, 0), rows_of(parts, 0), strict=True):
            assert one == pytest.approx(other, abs=1e-10)


def test_shards_of_graphs_keep_the_moments_of_batch_norm_together(tmp_path: Path) -> None:
    result = train(graph_dataset(), tmp_path, quick(training__shards=2), 1, "0")
    task = configured_task(graph_dataset(), quick(training__shards=2), [graph_dataset().splits[0]])
    batch = RunBatch(quick(training__shards=2), task, [0], torch.tensor([0]), [{}], CPU)
    before = batch.adam.flat.values[batch.adam.flat.trained :].clone()
    batch.advance()
    after = batch.adam.flat.values[batch.adam.flat.trained :]
    assert not torch.equal(before, after)
    assert result.test().n == 1


# ------------------------------------------------------------------------------------------------- layer by layer

NETS: dict[str, dict[str, Any]] = {
    "gcn": {},
    "gat": {"conv": "gat", "heads": 2},
    "batch-previous": {"norm": "batch", "residual": "previous"},
    "layer-initial": {"norm": "layer", "residual": "initial", "bias": True},
    "no-activation-two-runs": {"activation": None, "runs": 2},
    "global": {"omega": "global"},
}


@pytest.mark.parametrize("case", NETS)
@pytest.mark.parametrize("layers", [0, 3])
@pytest.mark.parametrize("numbers", [1, 500, 10**9])
def test_layer_by_layer_equals_the_full_graph(case: str, layers: int, numbers: int) -> None:
    n = 120
    graph = Graph.from_edge_index(torch.randint(n - 1, (2, 700)), n)
    x = torch.randn(n, 5)
    net = OmegaNet(5, 8, layers, 3, **NETS[case]).eval()
    operator = net.operator(graph, n)
    found = layerwise_logits(net, lambda nodes: x[nodes], operator, numbers)
    expected = net(x, operator).detach()
    assert found.shape == (expected.shape if expected.dim() == 3 else (n, 3))
    assert float((found - expected).abs().max()) < 1e-5


def test_pieces_keep_to_their_budget_but_for_single_hubs() -> None:
    n = 500
    hub = torch.stack([torch.arange(1, n), torch.zeros(n - 1, dtype=torch.long)])
    graph = Graph.from_edge_index(torch.cat([hub, torch.randint(n, (2, 2000))], dim=1), n)
    bounds = Pieces(graph, 100).bounds()
    assert [begin for begin, _ in bounds] == [0, *(end for _, end in bounds[:-1])]
    assert bounds[-1][1] == n
    for begin, end in bounds:
        entries = int(graph.rowptr[end] - graph.rowptr[begin]) + end - begin
        assert entries <= 100 or end == begin + 1


def test_evaluation_of_a_sampled_run_is_that_of_the_full_graph(shared_data: Path) -> None:
    from omegagnn.data import load

    dataset = load("pubmed", root=shared_data)
    config = quick(training__sampler="neighbor", model__layers=4, model__channels=64)
    task, whole = (
        configured_task(dataset, c, dataset.splits) for c in (config, quick(model__layers=4, model__channels=64))
    )
    assert isinstance(task, SampledNodeTask)
    net = OmegaNet(task.in_channels, 64, 4, 3, runs=1).eval()
    with torch.no_grad():
        found, expected = task.logits(net, task.operator(net)), whole.logits(net, whole.operator(net))
    assert float((found - expected).abs().max()) < 1e-5


# ----------------------------------------------------------------------------------------------- features on disk

WITHIN = """
import resource, sys, torch
sys.path.insert(0, sys.argv[3])
from omegagnn.data.cache import load_dataset
from omegagnn.errors import OmegaError
from omegagnn.training.config import RunConfig
from omegagnn.training.fit import fit

def used():
    words = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    return int(words["VmData"].split()[0]) * 1024

values = {"training.epochs": 2, "model.channels": 4, "training.batch_nodes": 64, "training.fan_outs": [3]}
small = load_dataset(sys.argv[1] + "/small.npz")
for _ in range(2):  # kernels are compiled, libraries have what they want
    fit(small, RunConfig().with_values({**values, "training.sampler": sys.argv[2]}), runs_dir=sys.argv[1] + "/runs")
torch.set_num_threads(1)
limit = used() + 200 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    large = load_dataset(sys.argv[1] + "/large.npz")
    assert large.features.nbytes > 230 * 2**20
    fit(large, RunConfig().with_values({**values, "training.sampler": sys.argv[2]}), runs_dir=sys.argv[1] + "/runs")
except (OmegaError, MemoryError, RuntimeError) as error:
    print("out of memory", error, repr(error.__context__), used() - limit)
else:
    print("trained")
"""


def wide(dataset: Dataset, copies: int, features: int) -> Dataset:
    """Return many nodes with wide features: copies of a small data set, side by side."""
    from dataclasses import replace

    n = dataset.num_nodes * copies
    edges = torch.randint(n, (2, 2 * n))
    x = torch.rand(n, features)
    x[:, :12] = dataset.features.repeat(copies, 1)
    return replace(dataset, graph=Graph.from_edge_index(edges, n), features=x, labels=dataset.labels.repeat(copies))


def test_features_stay_on_disk_and_memory_holds_the_batch(tmp_path: Path) -> None:
    save_dataset(wide(node_dataset(), 2, 1600), tmp_path / "small.npz")
    save_dataset(wide(node_dataset(), 650, 1600), tmp_path / "large.npz")
    said = {}
    for kind in ("neighbor", "none"):
        words = [sys.executable, "-c", WITHIN, str(tmp_path), kind, str(Path(__file__).parent)]
        environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}  # threads then reserve nothing
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
        said[kind] = done.stdout + done.stderr
    assert "trained" in said["neighbor"], said["neighbor"]
    assert "out of memory" in said["none"], "the limit would have stopped a copy of the features"


def test_a_mapped_data_set_is_what_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from omegagnn.data import cache

    dataset = node_dataset()
    save_dataset(dataset, tmp_path / "one.npz")
    monkeypatch.setattr(cache, "MAPPED_BYTES", 1)
    mapped = load_dataset(tmp_path / "one.npz")
    assert torch.equal(mapped.features, dataset.features)
    assert mapped.features.data_ptr() % 64 == 0
    with np.load(tmp_path / "one.npz") as arrays:
        assert np.array_equal(arrays["features"], dataset.features.numpy())
    save_dataset(dataset, tmp_path / "two.npz", compress=True)
    assert torch.equal(load_dataset(tmp_path / "two.npz").features, dataset.features)


# ------------------------------------------------------------------------------------------------------ wrong use


LONELY = {"training__sampler": "cluster", "training__batch_nodes": 30}


@pytest.mark.parametrize(
    ("values", "dataset", "words"),
    [
        ({"training__sampler": "neighbor", "model__norm": "pair"}, node_dataset, "PairNorm takes the mean"),
        ({"training__sampler": "node"}, graph_dataset, "takes parts of one graph"),
        ({"training__shards": 2}, node_dataset, "has no shards"),
        ({**LONELY, "training__shards": 10}, node_dataset, "One cluster alone"),
    ],
)
def test_what_cannot_be_sampled_is_refused_in_a_sentence(values: Any, dataset: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=words):
        train(dataset(), tmp_path, quick(**values), 1, "0")

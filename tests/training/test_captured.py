"""Captured epochs are the plain ones: on a CPU the same bits (their counting runs there as plain calls), on a GPU for real."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny import node_dataset

from omegagnn.training.batch import RunBatch
from omegagnn.training.captured import STRIDE
from omegagnn.training.config import RunConfig
from omegagnn.training.records import EpochRecord
from omegagnn.training.standing import KEPT
from omegagnn.training.tasks import make_task

CPU = torch.device("cpu")
# Here no `choose_device` silences what cuBLAS says of the thread of a first backward pass.
pytestmark = pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
SETTINGS = [{}, {"lr_omega": 0.5, "lr_oc": 0.1}, {"wd_gnn": 0.1}]


def batch_of(captured: bool, device: torch.device = CPU, runs: int = 3, **values: Any) -> RunBatch:
    dataset = node_dataset(sparse=True)
    defaults = {
        "data__name": "tiny-nodes", "model__channels": 8, "model__layers": 2, "model__dropout": 0.4,
        "training__epochs": 150, "training__patience": 7,
    }  # fmt: skip
    config = RunConfig().with_values({key.replace("__", "."): value for key, value in {**defaults, **values}.items()})
    task = make_task(dataset, config.data, [dataset.splits[0]] * runs, torch.float32, 1).to(device)
    return RunBatch(config, task, list(range(runs)), torch.arange(runs), SETTINGS[:runs], device, captured=captured)


def train(batch: RunBatch, seconds: float) -> dict[int, EpochRecord]:
    """Train to the end, dropping the stopped where the engine would on a GPU; return the records of epochs that counted."""
    records: dict[int, EpochRecord] = {}
    while bool(batch.active.any()):
        records.update({record.epoch: record for record in batch.advance(seconds) if bool(record.trained.any())})
        if batch.epoch % STRIDE == 0 and 0 < int(batch.active.sum()) < len(batch.members):
            batch.keep(batch.active.nonzero().squeeze(1))
    return records


@pytest.mark.parametrize("seconds", [0.0, 0.05, 60.0])
@pytest.mark.parametrize("values", [
    {}, {"model__norm": "batch", "training__clip": 0.5}, {"training__schedule": "cosine", "model__omega": "global"},
    {"model__name": "omega-gat", "training__patience": None, "training__epochs": 20},
], ids=["plain", "batch norm and clipping", "cosine and one omega", "attention to the last epoch"])  # fmt: skip
def test_captured_epochs_are_plain_epochs(values: dict[str, Any], seconds: float) -> None:
    plain, captured = batch_of(False, **values), batch_of(True, **values)
    expected, found = train(plain, 0.0), train(captured, seconds)
    assert sorted(expected) == sorted(found)
    for epoch, record in expected.items():
        for ours, theirs in ((found[epoch].trained, record.trained), (found[epoch].metrics, record.metrics)):
            assert torch.equal(ours, theirs)
        assert record.omega is not None
        assert torch.equal(found[epoch].omega, record.omega)
    assert torch.equal(plain.stopped, captured.stopped)
    for rule in KEPT:
        assert torch.equal(plain.best_epoch[rule], captured.best_epoch[rule])
        for name, tensor in plain.best_state(rule).items():
            assert torch.equal(tensor, captured.best_state(rule)[name])
    assert plain.adam.steps <= captured.adam.steps  # a stride may run on behind the last stop, and move nobody


def test_a_saved_captured_batch_goes_on_as_if_nothing_had_been() -> None:
    whole, first = batch_of(True), batch_of(True)
    for _ in range(3):
        first.advance()
    second = batch_of(True)
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()}, first.facts())
    train(whole, 60.0), train(second, 60.0)
    for rule in KEPT:
        for name, tensor in whole.best_state(rule).items():
            assert torch.equal(tensor, second.best_state(rule)[name])


def test_a_run_that_diverges_is_told_with_its_epoch() -> None:
    from omegagnn.training.batch import DivergenceError

    batch = batch_of(True, training__lr_omega=1e30, model__layers=8)
    with pytest.raises(DivergenceError, match=r"member 0 is not finite at epoch [1-9]\d* \(group 'omega'"):
        train(batch, 60.0)


@needs_gpu
@pytest.mark.parametrize("values", [{}, {"model__norm": "batch", "training__clip": 0.5}, {"model__name": "omega-gat"}])
def test_a_cuda_graph_replays_what_plain_calls_compute(values: dict[str, Any]) -> None:
    device = torch.device("cuda")
    plain, captured = (batch_of(flag, device, training__epochs=40, **values) for flag in (False, True))
    expected, found = train(plain, 0.0), train(captured, 60.0)
    assert sorted(expected) == sorted(found)
    for epoch, record in expected.items():
        assert torch.equal(found[epoch].metrics, record.metrics)  # the same kernels in the same order: the same bits


@needs_gpu
@pytest.mark.parametrize("values", [{}, {"model__name": "omega-gat"}], ids=["gcn", "gat"])
def test_a_gpu_trains_as_a_cpu_does(values: dict[str, Any]) -> None:
    """Draws are equal, sums differ in their last digits: after 15 epochs losses agree to 1e-4."""
    values = {"training__epochs": 15, "training__patience": None, "training__lr_oc": 0.01, **values}
    ours, theirs = (
        train(batch_of(True, torch.device("cuda"), runs=1, **values), 60.0),
        train(batch_of(False, runs=1, **values), 0.0),
    )
    for epoch, record in theirs.items():
        assert torch.allclose(ours[epoch].metrics[:, :, 0], record.metrics[:, :, 0], rtol=1e-4, atol=1e-4)


@needs_gpu
def test_company_stays_within_its_tolerance_on_a_gpu() -> None:
    """On a GPU products are batched, so company may change last digits: losses agree to 1e-4 after 15 epochs."""
    values = {"training__epochs": 15, "training__patience": None}
    device = torch.device("cuda")
    alone, together = (
        train(batch_of(True, device, runs=1, **values), 60.0),
        train(batch_of(True, device, **values), 60.0),
    )
    for epoch, record in alone.items():
        assert torch.allclose(together[epoch].metrics[:1, :, 0], record.metrics[:, :, 0], rtol=1e-4, atol=1e-4)

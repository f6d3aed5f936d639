"""Training on a real GPU: every kind of task and model, in every precision, as a CPU does; kills and too little memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from test_engine import CASES, assert_same_result, quick, rows_of, train
from tiny import DATASETS, node_dataset

from omegagnn.errors import InterruptedRun, OmegaError
from omegagnn.nn.baselines import BASELINES
from omegagnn.training.engine import Progress, Trainer
from omegagnn.training.fit import Result, make_plan
from omegagnn.training.journal import Journal

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
CUDA = torch.device("cuda")
EPOCHS = 4  # that are compared: last digits grow from one to the next


def losses(result: Any) -> torch.Tensor:
    """Training, validation and test loss of every epoch of the first member."""
    return torch.tensor([[row[k] for k in (1, 3, 5)] for row in rows_of(result, 0)[:EPOCHS]], dtype=torch.float64)


@pytest.mark.parametrize("case", CASES)
def test_a_gpu_learns_what_a_cpu_learns(case: str, tmp_path: Path) -> None:
    """The same draws; sums differ in their last digits."""
    make, values = CASES[case]
    ours, theirs = (train(make(), tmp_path, quick(**values), 3, "0", device=device) for device in ("cuda", "cpu"))
    assert torch.allclose(losses(ours), losses(theirs), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_every_baseline_trains_on_a_gpu(name: str, tmp_path: Path) -> None:
    config = quick(model__name=name, model__dropout=0.0)
    ours, theirs = (train(node_dataset(), tmp_path, config, 2, "0", device=device) for device in ("cuda", "cpu"))
    assert torch.allclose(losses(ours), losses(theirs), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("precision", ["float64", "tf32", "bfloat16"])
@pytest.mark.parametrize("task", DATASETS)
def test_every_precision_learns(task: str, precision: str, tmp_path: Path) -> None:
    config = quick(training__precision=precision, model__dropout=0.0)
    near = {"float64": 1e-3, "tf32": 1e-2, "bfloat16": 5e-2}[precision]
    ours = train(DATASETS[task](), tmp_path, config, 2, "0", device="cuda")
    theirs = train(DATASETS[task](), tmp_path, quick(model__dropout=0.0), 2, "0", device="cpu")
    assert torch.allclose(losses(ours), losses(theirs), rtol=near, atol=near)


class Stop(Progress):
    """Interrupts as Ctrl-C does, once some epochs are behind."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer

    def epoch(self, batch: Any, done: int) -> None:
        self.trainer._interrupted = batch.epoch >= 5


@pytest.mark.parametrize("task", DATASETS)
def test_an_interrupted_run_ends_with_the_same_bits(task: str, tmp_path: Path) -> None:
    # Node tasks are replayed many epochs at a time; the others take each step from the host.
    epochs = 200 if task == "node" else 12
    dataset, config = DATASETS[task](), quick(training__epochs=epochs, training__patience=None)
    whole = train(dataset, tmp_path, config, 2, "0", device="cuda")
    trainer = Trainer.start(make_plan(dataset, config, 2, "0"), Journal(tmp_path), CUDA)
    trainer.progress = Stop(trainer)
    with pytest.raises(InterruptedRun):
        trainer.train()
    Trainer.resume(trainer.run_name, trainer.journal, dataset, CUDA).train()
    assert_same_result(whole, Result(trainer.journal, trainer.run_name))


def test_too_little_memory_is_one_sentence(tmp_path: Path) -> None:
    config = quick(model__channels=4096, model__layers=2, training__epochs=2)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(2**28 / torch.cuda.mem_get_info()[1])
    try:
        with pytest.raises(OmegaError, match=r"^Out of memory on cuda: .* fit: .*$") as caught:
            train(node_dataset(), tmp_path, config, 64, "0", device="cuda", runs_at_once=64)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "\n" not in str(caught.value)

"""What ``omegagnn doctor`` tries out: kernels against the reference, a small training, its files read back."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from omegagnn.data.loading import embedded
from omegagnn.errors import OmegaError
from omegagnn.files import MODEL
from omegagnn.graph import Graph
from omegagnn.ops import attention_propagate, fused_twin, omega_propagate, use_backend
from omegagnn.training.batch import RunBatch
from omegagnn.training.checkpoint import read_tensors
from omegagnn.training.config import DEFAULT_JOB, RunConfig
from omegagnn.training.engine import Progress, Trainer
from omegagnn.training.fit import Result, make_plan
from omegagnn.training.journal import Journal
from omegagnn.training.run_files import RunFiles
from omegagnn.training.tasks import make_task

EPOCHS, LEAST_SCORE = 20, 0.6  # eight seeds of the default job gave between 69.7 and 72.5 % after so many epochs
TOLERANCE = 1e-5  # float32, sums of at most a few hundred numbers of size 1


def kernels_agree() -> str:
    """Compare the kernels of this machine with the reference, forward and backward; raise where they differ."""
    graph, inputs = _small_case()
    fused = _outputs(graph, inputs)
    with use_backend("reference"):
        expected = _outputs(graph, inputs)
    worst = max(float((a - b).abs().max()) for a, b in zip(fused, expected, strict=True))
    if not worst <= TOLERANCE:
        raise OmegaError(f"The kernels differ from the reference by {worst:.2g} (allowed is {TOLERANCE:g}).")
    twin = fused_twin("cpu")
    name = "the reference (compared with itself)" if twin is None else twin.__name__.rsplit(".", 1)[-1]
    return f"{name}: forward and backward within {worst:.1e} of the reference"


def _small_case() -> tuple[Graph, list[Tensor]]:
    """Return a graph with a hub, an isolated node and random edges, and inputs of both ops."""
    generator = torch.Generator().manual_seed(0)
    n, channels = 200, 24
    hub = torch.stack([torch.zeros(n - 2, dtype=torch.long), torch.arange(1, n - 1)])
    some = torch.randint(1, n - 1, (2, 600), generator=generator)
    graph = Graph.from_edge_index(torch.cat([hub, some], dim=1), num_nodes=n).to_undirected()
    shapes = [(n, channels), (channels,), (channels, 4)]
    return graph, [torch.randn(shape, generator=generator) for shape in shapes]


def _outputs(graph: Graph, inputs: list[Tensor]) -> list[Tensor]:
    x, omega, maps = (each.clone().requires_grad_() for each in inputs)
    y = omega_propagate(x, graph.gcn_norm(), omega)
    z = attention_propagate(x, maps, graph.with_self_loops(), omega)
    weights = torch.linspace(-1, 1, y.numel()).view_as(y)
    ((y + z) * weights).mean(0).sum().backward()
    return [y.detach(), z.detach(), *(each.grad for each in (x, omega, maps) if each.grad is not None)]


class _CheckpointReader(Progress):
    """Reads the checkpoint of the epoch before, in the last epoch."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.read = journal, 0

    def started(self, run: str, members: int, epochs: int) -> None:
        """Learn where the run writes."""
        self.path = RunFiles(self.journal.folder / run).checkpoint(0)

    def epoch(self, batch: RunBatch, done: int) -> None:
        """Read it back once."""
        if batch.epoch == EPOCHS:
            self.read = int(read_tensors(self.path)[1]["epoch"])


def training_works() -> str:
    """Train the default job for a few epochs in a folder of its own; raise where accuracy, files or journal are wrong."""
    config = RunConfig().with_values({**DEFAULT_JOB, "training.epochs": EPOCHS, "training.patience": None})
    dataset = embedded("citeseer")
    with tempfile.TemporaryDirectory(prefix="omegagnn-doctor-") as folder:
        journal = Journal(Path(folder))
        try:
            plan = make_plan(dataset, config, seeds=1, splits="0")
            reader = _CheckpointReader(journal)
            trainer = Trainer.start(plan, journal, torch.device("cpu"), progress=reader, checkpoint_seconds=0.0)
            trainer.train()
            if reader.read != EPOCHS - 1:
                raise OmegaError(f"The checkpoint is from epoch {reader.read}, expected {EPOCHS - 1}.")
            result = Result(journal, trainer.run_name)
            score = float(result.scores()[0])
            if score < LEAST_SCORE:
                raise OmegaError(
                    f"{EPOCHS} epochs reached {100 * score:.1f} % on CiteSeer, expected at least {100 * LEAST_SCORE:g} %."
                )
            _check_files(result, score)
        finally:
            journal.close()
    return f"{100 * score:.1f} % on CiteSeer after {EPOCHS} epochs; weights, checkpoint and journal read back"


def _check_files(result: Result, score: float) -> None:
    """Measure the saved weights again: they must give the score of the journal."""
    tensors, _ = read_tensors(result.folder / MODEL)
    if not all(bool(torch.isfinite(tensor.double()).all()) for tensor in tensors.values()):
        raise OmegaError(f"The saved weights in {MODEL} are not finite.")
    dataset = embedded("citeseer")
    task = make_task(dataset, result.config.data, [dataset.splits[0]], torch.float32, 1)
    net = result.network(0)
    again = float(task.evaluate(net, task.operator(net))[0, 2, 1])
    if abs(again - score) > 0.5 / dataset.splits[0].test.numel():
        raise OmegaError(f"The saved weights give {100 * again:.2f} %, the journal says {100 * score:.2f} %.")


__all__ = ["kernels_agree", "training_works"]

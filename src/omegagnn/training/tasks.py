"""The kinds of task: what one epoch of training is, and how loss and score of each run are measured.

An epoch is a row of steps; a step is a few *shares*, whose gradients are added up. Usually it is one share; with
``training.shards`` it is several, which the processes of a team may compute (`omegagnn.training.shards`).

Every sum over items is made run by run (`metrics.weighted_sums`), so that no bit of a run depends on its company.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.sampling import take_blocks
from omegagnn.errors import DataError
from omegagnn.graph import Graph
from omegagnn.nn.groups import Grouped
from omegagnn.nn.model import OmegaNet
from omegagnn.ops import Draws, SparseFeatures
from omegagnn.ops.random import draw_bits
from omegagnn.training.config import DataConfig
from omegagnn.training.metrics import binary_nll, f1_counts, micro_f1, weighted_nll, weighted_sums

ORDER = 1_000_003  # the place of the draws that shuffle, apart from the places of a network
TRAIN = 0
DTYPES = {"float32": torch.float32, "float64": torch.float64, "tf32": torch.float32, "bfloat16": torch.float32}

# A part of a step: called once, it returns its part of the losses ``[R]``, weighted as the whole step has them.
Share = Callable[[], Tensor]
Step = list[Share]


def prepare_features(dataset: Dataset, config: DataConfig, dtype: torch.dtype) -> Tensor | SparseFeatures:
    """Return features as the network takes them, with rows scaled to sum 1 where the configuration says so."""
    return prepare_rows(dataset.features, config, dtype)


def prepare_rows(features: Tensor, config: DataConfig, dtype: torch.dtype) -> Tensor | SparseFeatures:
    """Return some rows of features, or all of them, as the network takes them."""
    x = features.to(dtype, copy=True)  # into torch's own memory, whose alignment does not vary
    sparse = x.layout != torch.strided
    if config.normalizes_rows:
        if sparse:
            rows = torch.repeat_interleave(torch.arange(x.size(0)), x.crow_indices().diff())
            total = torch.zeros(x.size(0), dtype=dtype).index_add(0, rows, x.values())
            scaled = x.values() / torch.where(total == 0, 1, total)[rows]
            x = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), scaled, x.shape)
        else:
            total = x.sum(1, keepdim=True)
            x = x / torch.where(total == 0, 1, total)
    return SparseFeatures(x) if sparse else x


def prepare_graph(dataset: Dataset, config: DataConfig) -> Graph:
    """Return the graph, with the missing directions added where the configuration says so."""
    graph = dataset.graph
    return graph.to_undirected() if config.symmetrize and not graph.is_undirected else graph


class TrainingTask(ABC):
    """One data set with the splits of R runs."""

    #: Whether each run has steps of its own, so that runs train one after another.
    own_steps = False

    def __init__(self, dataset: Dataset, config: DataConfig, splits: Sequence[Split], dtype: torch.dtype) -> None:
        """Prepare features, graph, labels and the weights of each item in each part of each run's split."""
        self.dataset, self.dtype = dataset, dtype
        self.features = self._features(dataset, config)
        self.graph = prepare_graph(dataset, config)
        self.labels = dataset.labels if not dataset.is_multilabel else dataset.labels.to(dtype)
        self.use_splits(splits)

    def _features(self, dataset: Dataset, config: DataConfig) -> Any:
        return prepare_features(dataset, config, self.dtype)

    def use_splits(self, splits: Sequence[Split]) -> None:
        """Measure by other splits, one a run; without any a task computes outputs only."""
        self.splits = splits
        weights = [self._split_weights(split) for split in splits]
        empty = torch.zeros(0, 3, self.labels.size(0), dtype=self.dtype)
        self._weigh((torch.stack(weights) if weights else empty).to(self.labels.device))

    def _weigh(self, weights: Tensor) -> None:
        """Take the weight of each item in each part of each run's split, ``[R, 3, items]``."""
        self.weights, self._present = weights, (weights > 0).to(self.dtype)
        self._sizes = (weights > 0).sum(-1)

    @property
    def in_channels(self) -> int:
        """Number of input features."""
        return self.dataset.num_features

    def to(self, device: torch.device) -> TrainingTask:
        """Move everything to a device."""
        if device.type != "cpu":
            self.features = self.features.to(device)
            self.graph, self.labels = self.graph.to(device), self.labels.to(device)
            self._weigh(self.weights.to(device))
        return self

    def keep_runs(self, kept: Tensor) -> None:
        """Drop the splits of runs that have stopped."""
        self.splits = [self.splits[k] for k in kept.tolist()]
        self._weigh(self.weights[kept.to(self.weights.device)])

    def operator(self, net: Grouped) -> Graph:
        """Return the graph as a network's layers use it, computed once."""
        return net.operator(self.graph, self.graph.num_nodes) if isinstance(net, OmegaNet) else self.graph

    def _parts(self, split: Split) -> list[Tensor]:
        """Return the items of the three parts of a split."""
        return [split.train, split.val, split.test]

    def _split_weights(self, split: Split) -> Tensor:
        items = self.labels.size(0)
        weights = torch.zeros(3, items, dtype=self.dtype)
        for row, (name, part) in enumerate(zip(("training", "validation", "test"), self._parts(split), strict=True)):
            if not part.numel() and name != "test":
                raise DataError(
                    f"Split {split.name!r} of {self.dataset.name} has no {name} items: choose another split."
                )
            weights[row, part] = 1.0 / max(1, part.numel())
        return weights

    def measure(self, logits: Tensor) -> Tensor:
        """Return loss and score of each part of each run, ``[R, 3, 2]``; NaN where a part is empty."""
        if self.dataset.is_multilabel:
            loss = weighted_sums(binary_nll(logits, self.labels), self.weights)
            counts = f1_counts(logits, self.labels)  # [R, 3 counts, items]
            score = micro_f1(torch.bmm(self._present, counts.transpose(1, 2)))  # whole numbers: exact in any order
        else:
            loss = weighted_nll(logits, self.labels, self.weights)
            correct = (logits.transpose(0, 1).argmax(-1) == self.labels).to(self.dtype)
            # Whole numbers add up exactly in any order, so an accuracy is exact.
            score = weighted_sums(correct, self._present) / self._sizes
        absent = (self._sizes == 0)[..., None]
        return torch.stack([loss, score], dim=-1).masked_fill(absent, torch.nan)

    def _losses(self, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return the training loss of each run, ``[R]``."""
        if self.dataset.is_multilabel:
            return weighted_sums(binary_nll(logits, labels), weights).squeeze(1)
        return weighted_nll(logits, labels, weights).squeeze(1)

    @abstractmethod
    def steps(self, net: Grouped, graph: Graph, seeds: Tensor, epoch: int | Tensor) -> Iterator[Step]:
        """Yield the steps of an epoch; a share is computed when it is called, with the network as it then is."""

    @abstractmethod
    def logits(self, net: Grouped, graph: Graph) -> Tensor:
        """Return the outputs for all items, ``[items, R, classes]``."""

    @torch.no_grad()
    def evaluate(self, net: Grouped, graph: Graph) -> Tensor:
        """Return loss and score of each part of each run, ``[R, 3, 2]``."""
        net.eval()
        return self.measure(self.logits(net, graph).to(self.dtype))


class NodeTask(TrainingTask):
    """One graph, every node in every step."""

    def steps(self, net: Grouped, graph: Graph, seeds: Tensor, epoch: int | Tensor) -> Iterator[Step]:
        """Yield one step on all training nodes."""
        yield [partial(self._whole, net, graph, Draws(seeds, epoch))]

    def _whole(self, net: Grouped, graph: Graph, draws: Draws) -> Tensor:
        net.train()
        logits = net(self.features, graph, draws=draws)
        losses = self._losses(logits.to(self.dtype), self.labels, self.weights[:, TRAIN : TRAIN + 1])
        return with_auxiliary(net, losses)

    def logits(self, net: Grouped, graph: Graph) -> Tensor:
        """Return the outputs for all nodes."""
        return net(self.features, graph)


class BlockTask(TrainingTask):
    """Many graphs, some in each step; labels belong to graphs (`graph`) or to their nodes (`inductive`).

    Every run shuffles for itself, so its batches are its own; the engine trains such runs one after another.
    """

    own_steps = True

    def __init__(
        self,
        dataset: Dataset,
        config: DataConfig,
        splits: Sequence[Split],
        dtype: torch.dtype,
        batch_size: int,
        shards: int = 1,
    ) -> None:
        """Take the blocks, the number of graphs a step and that of its shares."""
        if dataset.ptr is None or dataset.batch is None:
            raise DataError(
                f"{dataset.name} is one graph but its task is {dataset.task!r}: it needs the start of each graph."
            )
        self.ptr, self.batch, self.batch_size, self.shards = dataset.ptr, dataset.batch, batch_size, shards
        self.labels_of_nodes = dataset.task == "inductive"
        super().__init__(dataset, config, splits, dtype)
        if isinstance(self.features, SparseFeatures):  # batches take rows, which are few and short here
            self.features = self.features.to_dense()

    def _parts(self, split: Split) -> list[Tensor]:
        parts = super()._parts(split)
        return [torch.isin(self.batch, part).nonzero().squeeze(1) for part in parts] if self.labels_of_nodes else parts

    def to(self, device: torch.device) -> TrainingTask:
        """Move everything to a device."""
        self.ptr, self.batch = self.ptr.to(device), self.batch.to(device)
        return super().to(device)

    def batches(self, seeds: Tensor, epoch: int) -> list[Tensor]:
        """Return the training graphs of an epoch in shuffled batches; a rest of one graph joins the batch before."""
        train = self.splits[0].train
        bits = draw_bits(Draws(seeds[:1].cpu(), epoch).key(ORDER), torch.arange(train.numel()))[0]
        batches = list(train[torch.sort(bits, stable=True).indices].split(self.batch_size))
        if len(batches) > 1 and batches[-1].numel() == 1:
            batches[-2:] = [torch.cat(batches[-2:])]
        return batches

    def steps(self, net: Grouped, graph: Graph, seeds: Tensor, epoch: int | Tensor) -> Iterator[Step]:
        """Yield one step a batch."""
        assert isinstance(epoch, int)
        batches = self.batches(seeds, epoch)
        for number, chosen in enumerate(batches):
            blocks = chosen.to(self.ptr.device)
            parts = [part for part in blocks.tensor_split(self.shards) if part.numel()]
            items = self._count(blocks)
            first = (epoch * len(batches) + number) * self.shards
            yield [
                partial(self._share, net, graph, part, items, Draws(seeds, first + place))
                for place, part in enumerate(parts)
            ]

    def _count(self, blocks: Tensor) -> int:
        return int((self.ptr[blocks + 1] - self.ptr[blocks]).sum()) if self.labels_of_nodes else blocks.numel()

    def _share(self, net: Grouped, graph: Graph, blocks: Tensor, items_of_step: int, draws: Draws) -> Tensor:
        assert isinstance(self.features, Tensor)
        net.train()
        taken, nodes, batch = take_blocks(graph, self.ptr, blocks)
        items = nodes if self.labels_of_nodes else blocks
        options: dict[str, Any] = {} if self.labels_of_nodes else {"batch": batch, "num_graphs": blocks.numel()}
        logits = net(self.features[nodes], taken, draws=draws, **options).to(self.dtype)
        weights = torch.full((1, 1, items.numel()), 1.0 / items_of_step, dtype=self.dtype, device=logits.device)
        return with_auxiliary(net, self._losses(logits, self.labels[items], weights), items.numel() / items_of_step)

    def logits(self, net: Grouped, graph: Graph) -> Tensor:
        """Return the outputs for all graphs or nodes."""
        if self.labels_of_nodes:
            return net(self.features, graph)
        return net(self.features, graph, batch=self.batch, num_graphs=self.dataset.num_graphs)


def with_auxiliary(net: Grouped, losses: Tensor, share: float = 1.0) -> Tensor:
    """Add a share of what the network itself wants to be trained on, such as SuperGAT's edge prediction."""
    auxiliary = net.auxiliary_loss()
    return losses if auxiliary is None else losses + share * auxiliary.to(losses.dtype)


def make_task(
    dataset: Dataset,
    config: DataConfig,
    splits: Sequence[Split],
    dtype: torch.dtype,
    batch_size: int,
    shards: int = 1,
) -> TrainingTask:
    """Return the task of a data set whose graph is used whole; `omegagnn.training.sampled` has the one that samples."""
    if dataset.task == "node":
        return NodeTask(dataset, config, splits, dtype)
    return BlockTask(dataset, config, splits, dtype, batch_size, shards)

"""`SampledNodeTask`: one graph, of which every step sees a part; and which task a configuration asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.own.sparse import select_rows
from omegagnn.data.sampling import ClusterSampler, NeighbourSampler, NodeSampler, Subgraph
from omegagnn.data.sampling.parts import shuffled
from omegagnn.errors import WrongUse
from omegagnn.graph import Graph
from omegagnn.nn.groups import Grouped
from omegagnn.nn.model import OmegaNet
from omegagnn.nn.stacked import StackedRuns
from omegagnn.ops import Draws, SparseFeatures
from omegagnn.training.config import DataConfig, RunConfig
from omegagnn.training.layerwise import can_go_layerwise, layerwise_logits
from omegagnn.training.tasks import DTYPES, ORDER, TRAIN, Step, TrainingTask, make_task, prepare_rows, with_auxiliary

NEIGHBOURS = ORDER + 1  # the place of the draws of neighbours


class FeatureRows:
    """Features that stay where they are, in memory or in a mapped file; only the rows that are asked for are prepared."""

    def __init__(self, features: Tensor, config: DataConfig, dtype: torch.dtype) -> None:
        """Take the features of a data set."""
        self.features, self.config, self.dtype = features, config, dtype
        self.shape = features.shape

    def take(self, nodes: Tensor) -> Tensor | SparseFeatures:
        """Return the features of some nodes as the network takes them."""
        return prepare_rows(select_rows(self.features, nodes.numpy()), self.config, self.dtype)


class SampledNodeTask(TrainingTask):
    """One graph; a step is taken on training nodes with their sampled neighbourhoods, on clusters, or on random nodes.

    The parts are weighted with entries of the S of the full graph, scaled so that their expected value is S (see
    `omegagnn.data.sampling`). Every run draws its own, so runs train one after another. Evaluation is on the full graph, layer
    by layer where the network allows it; other networks are evaluated in one pass.
    """

    own_steps = True
    features: FeatureRows

    def __init__(self, dataset: Dataset, config: RunConfig, splits: Sequence[Split]) -> None:
        """Prepare the graph and labels; features stay where they are."""
        training, model = config.training, config.model
        self.kind, self.batch_nodes, self.shards = training.sampler, training.batch_nodes, training.shards
        hops = max(model.layers, len(training.fan_outs))
        self.fan_outs = (*training.fan_outs, *[training.fan_outs[-1]] * hops)[:hops]
        self.device = torch.device("cpu")
        self._sampler: Any = None
        super().__init__(dataset, config.data, splits, DTYPES[training.precision])

    def _features(self, dataset: Dataset, config: DataConfig) -> FeatureRows:
        return FeatureRows(dataset.features, config, self.dtype)

    def to(self, device: torch.device) -> SampledNodeTask:
        """Compute on a device; graph and features stay in the memory of the host, parts of them travel."""
        self.device, self.labels = device, self.labels.to(device)
        self._weigh(self.weights.to(device))
        return self

    def operator(self, net: Grouped) -> Graph:
        """Return the full graph as the layers use it, of which parts are taken: S, or the structure for attention."""
        if isinstance(net, OmegaNet):
            return net.operator(self.graph, self.graph.num_nodes)
        single: Any = net.model if isinstance(net, StackedRuns) else net
        return single.structure(self.graph)

    # ----------------------------------------------------------------------------------------------------- training

    def sampler(self, graph: Graph) -> Any:
        """Return the sampler of a graph, made once."""
        if self._sampler is None or self._sampler.graph is not graph:
            if self.kind == "neighbor":
                self._sampler = NeighbourSampler(graph, self.fan_outs)
            else:
                self._sampler = {"node": NodeSampler, "cluster": ClusterSampler}[self.kind](graph, self.batch_nodes)
        return self._sampler

    def batches(self, sampler: Any, seeds: Tensor, epoch: int) -> list[Tensor]:
        """Return the items of each step of an epoch: training nodes for neighbourhoods, else nodes or clusters."""
        key = Draws(seeds[:1].cpu(), epoch).key(ORDER)[0]
        if self.kind != "neighbor":
            return sampler.batches(key)
        train = self.splits[0].train
        return list(shuffled(train, key).split(self.batch_nodes))

    def steps(self, net: Grouped, graph: Graph, seeds: Tensor, epoch: int | Tensor) -> Iterator[Step]:
        """Yield one step a batch."""
        assert isinstance(epoch, int)
        sampler = self.sampler(graph)
        batches = self.batches(sampler, seeds, epoch)
        for number, items in enumerate(batches):
            step = epoch * len(batches) + number
            key = Draws(seeds[:1].cpu(), step).key(NEIGHBOURS)[0]
            # Whatever is drawn, a batch of neighbourhoods has its share of the loss, and so has one of random nodes on average.
            items_of_step = items.numel() if self.kind == "neighbor" else self.splits[0].train.numel() / len(batches)
            yield [
                partial(self._share, net, sampler, part, key, items_of_step, Draws(seeds, step * self.shards + place))
                for place, part in enumerate(items.tensor_split(self.shards))
                if part.numel()
            ]

    def _share(
        self, net: Grouped, sampler: Any, items: Tensor, key: Tensor, items_of_step: float, draws: Draws
    ) -> Tensor:
        net.train()
        part: Subgraph = sampler.sample(items, key) if self.kind == "neighbor" else sampler.sample(items)
        part = part.to(self.device)
        logits = net(self.features.take(part.nodes).to(self.device), part.graph, draws=draws)
        own = part.nodes[part.targets.cpu()].to(self.device)
        trained = (self.weights[0, TRAIN, own] > 0).to(self.dtype)[None, None] / items_of_step
        losses = self._losses(logits[part.targets].to(self.dtype), self.labels[own], trained)
        return with_auxiliary(net, losses, float(trained.sum()))

    # --------------------------------------------------------------------------------------------------- evaluation

    def logits(self, net: Grouped, graph: Graph) -> Tensor:
        """Return the outputs for all nodes, from the full graph."""
        if can_go_layerwise(net):
            assert isinstance(net, OmegaNet)
            return layerwise_logits(net, self.features.take, graph).to(self.device)
        whole = self.features.take(torch.arange(graph.num_nodes))
        return net(whole.to(self.device), graph.to(self.device))


def check_steps(dataset: Dataset, config: RunConfig) -> None:
    """Refuse a sampler or shards where there is nothing that they could cut, before anything is recorded or built."""
    training = config.training
    if training.sampler != "none" and dataset.task != "node":
        raise WrongUse(
            f"training.sampler takes parts of one graph, but {dataset.name} has many: training.batch_size graphs make a step."
        )
    if training.sampler != "none" and config.model.norm == "pair":
        raise WrongUse(
            "PairNorm takes the mean over all nodes, of which a sampler shows some: choose another model.norm."
        )
    if training.sampler == "none" and training.shards > 1 and dataset.task == "node":
        raise WrongUse(
            "A step on the whole graph has no shards: choose a training.sampler, or leave training.shards at 1."
        )


def configured_task(dataset: Dataset, config: RunConfig, splits: Sequence[Split]) -> TrainingTask:
    """Return the task that a configuration asks for on a data set."""
    check_steps(dataset, config)
    training = config.training
    if training.sampler != "none":
        return SampledNodeTask(dataset, config, splits)
    dtype = DTYPES[training.precision]
    return make_task(dataset, config.data, splits, dtype, training.batch_size, training.shards)

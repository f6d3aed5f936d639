"""`Predictor`: the networks of a run at work on the graph they were trained on, on a changed one, on graphs never seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from omegagnn.data import load
from omegagnn.data.dataset import Dataset
from omegagnn.data.own import Schema, import_tables, item_ids, prediction_table, read_source
from omegagnn.data.own.store import DATASET_FILE, load_stored
from omegagnn.errors import WrongUse
from omegagnn.files import CARD, CONFIG, MODEL, check_model_folder, read_config
from omegagnn.nn.groups import Grouped
from omegagnn.nn.stacked import StackedRuns
from omegagnn.training.batch import DTYPES, KEPT, arithmetic
from omegagnn.training.build import build_net, omega_net
from omegagnn.training.checkpoint import read_rows
from omegagnn.training.config import RunConfig, parse_config
from omegagnn.training.environment import one_thread_where_it_wins
from omegagnn.training.sampled import configured_task
from omegagnn.training.signature import Signature
from omegagnn.training.tasks import TrainingTask

if TYPE_CHECKING:
    import pandas as pd

# What a graph can be given as: a data set, its name, a folder or file, or data frames of nodes, edges and perhaps graphs.
Source = Any
CPU = torch.device("cpu")


@dataclass(eq=False)
class Predictor:
    """The trained networks of a run, one a member, with all that they need to know of their data.

    It needs the folder of the run and nothing else: neither the journal nor the data set.

    Args:
        config: the configuration of the run.
        signature: what the run was trained on.
        weights: the file of the weights, or the weights themselves, as the trainer names them (``RULE/PARAMETER``).
        rule: the rule whose weights are used where none is named.
    """

    config: RunConfig
    signature: Signature
    weights: Path | dict[str, Tensor]
    rule: str = "honest"

    @classmethod
    def open(cls, folder: Path | str) -> Predictor:
        """Return the predictor of a run's folder, or of a folder that `save_pretrained` wrote."""
        folder = Path(folder)
        facts = read_config(folder)
        if "config" not in facts:
            raise WrongUse(f"{folder} holds a network without its data: open it with OmegaNet.from_pretrained.")
        rule = facts.get("protocol", "honest")
        config, signature = parse_config(facts["config"], str(folder / CONFIG)), Signature.load(folder)
        return cls(config, signature, folder / MODEL, rule if rule in KEPT else "honest")

    @classmethod
    def from_pretrained(cls, folder: Path | str) -> Predictor:
        """Return the predictor of a model's folder; a pickle is refused in one sentence."""
        return cls.open(check_model_folder(folder))

    def save_pretrained(self, folder: Path | str, card: str | None = None) -> None:
        """Write a folder with all that predicting needs; `card` is the text of its ``README.md`` [the one it came with]."""
        from omegagnn.training.model_card import bare_card
        from omegagnn.training.model_folder import save_model

        save_model(self, folder, card or self.card or bare_card(self))

    @property
    def card(self) -> str | None:
        """The model card it came with, if it did."""
        path = self.weights.parent / CARD if isinstance(self.weights, Path) else None
        return path.read_text(encoding="utf-8") if path is not None and path.is_file() else None

    # ---------------------------------------------------------------------------------------------------- networks

    @cached_property
    def epochs(self) -> dict[str, list[int]]:
        """The epoch of the kept weights of each member, by the rule that chose it."""
        return {rule: self._rows(f"{rule}/epoch", slice(None))[""].tolist() for rule in KEPT}

    @property
    def members(self) -> int:
        """Number of members."""
        return len(next(iter(self.epochs.values())))

    def network(self, member: int = 0, rule: str | None = None) -> Grouped:
        """Return the network of one member with its best weights, as a batch of one run."""
        state = self._state(member, rule or self.rule)
        signature = self.signature
        net = build_net(self.config.model, signature.features, signature.classes, signature.task, torch.tensor([0]))
        net = net.to(dtype=DTYPES[self.config.training.precision])
        with torch.no_grad():
            for name, tensor in {**dict(net.named_parameters()), **dict(net.named_buffers())}.items():
                tensor.copy_(state[name])
        return net.eval()

    def single(self, member: int = 0, rule: str | None = None) -> nn.Module:
        """Return the network of one member with its best weights, without a run axis."""
        net = self.network(member, rule)
        if isinstance(net, StackedRuns):
            return net.extract(0).eval()
        signature, state = self.signature, net.state_dict()
        level = "graph" if signature.task == "graph" else "node"
        alone = omega_net(self.config.model, signature.features, signature.classes, level, runs=None)
        alone.to(next(net.parameters()).dtype).load_state_dict({name: tensor[0] for name, tensor in state.items()})
        return alone.eval()

    def _state(self, member: int, rule: str) -> dict[str, Tensor]:
        if rule not in KEPT:
            raise WrongUse(f"Weights are kept for {' and '.join(KEPT)} only, not for {rule!r}: choose one of them.")
        if not 0 <= member < self.members:
            raise WrongUse(f"The run has members 0 to {self.members - 1}, not {member}.")
        return self._rows(f"{rule}/", slice(member, member + 1))

    def _rows(self, prefix: str, rows: slice) -> dict[str, Tensor]:
        """Return the members `rows` of the tensors whose names begin with `prefix`, which their keys then lack."""
        if isinstance(self.weights, Path):
            return read_rows(self.weights, prefix, rows)
        return {name[len(prefix) :]: whole[rows] for name, whole in self.weights.items() if name.startswith(prefix)}

    # -------------------------------------------------------------------------------------------------------- data

    def read(self, source: Source, data_root: Path | str | None = None, labels: bool = False) -> Dataset:
        """Return the graph that `source` means, coded as the model's data was, or refuse it in one sentence.

        Args:
            source: a `Dataset`, the name of a data set, a folder or file as for ``omegagnn data import``, or data frames
                ``(nodes, edges)`` or ``(nodes, edges, graphs)``.
            data_root: where data sets lie.
            labels: whether to read labels, which must then be of the model's classes; else they are not looked at.
        """
        dataset = self._found(source, data_root, labels)
        self.signature.check(dataset)
        return self.signature.with_own_classes(dataset) if labels else self.signature.unlabelled(dataset)

    def _found(self, source: Source, data_root: Path | str | None, labels: bool) -> Dataset:
        if isinstance(source, Dataset):
            return source
        if isinstance(source, (tuple, list)):
            if len(source) not in (2, 3):
                raise WrongUse(f"Give the tables (nodes, edges) or (nodes, edges, graphs), not {len(source)} of them.")
            nodes, edges, graphs = (*source, None)[:3]
            return import_tables(nodes, edges, graphs, schema=self._schema("data frames", True), labels=labels)[0]
        path = Path(source)
        if path.is_dir() and (path / DATASET_FILE).is_file():
            return load_stored(path / DATASET_FILE)
        if path.exists() and (path.is_dir() or path.suffix):
            schema = self._schema(str(path), path.suffix.lower() != ".npz")
            return read_source(path, schema=schema, name=path.stem, labels=labels)[0]
        if not path.exists() and re.search(r"[/\\]|\.\w+$", str(source)) and ":" not in str(source):
            raise WrongUse(f"There is no file or folder {source}: check the path, or name a data set.")
        return load(str(source), root=data_root)

    def _schema(self, label: str, has_columns: bool) -> Schema:
        """Return the schema by which a user's own files are coded."""
        signature = self.signature
        if signature.schema is not None:
            return signature.schema
        if has_columns:
            raise WrongUse(
                f"{label} cannot be coded: the model was trained on {signature.name}, which was not made from columns; give "
                f"the name of a data set or an .npz file with {signature.features} features."
            )
        return Schema(class_names=signature.names_of_classes, width=signature.features)

    # -------------------------------------------------------------------------------------------------- predictions

    def logits(self, dataset: Dataset, member: int = 0, rule: str | None = None, device: torch.device = CPU) -> Tensor:
        """Return one member's outputs for all items of a data set that fits, ``[items, classes]``."""
        with self.working(dataset, device) as task:
            return self.outputs(task, member, rule, device)[:, 0]

    def probabilities(
        self,
        dataset: Dataset,
        members: Sequence[int] | None = None,
        rule: str | None = None,
        device: torch.device = CPU,
        told: Callable[[float], None] = lambda _: None,
    ) -> Tensor:
        """Return the probabilities of the classes, the mean over `members` (all of them if None), ``[items, classes]``.

        `told` is called with 1 whenever a member is done. Members are computed one after another, without gradients: memory does
        not grow with their number.
        """
        chosen = range(self.members) if members is None else members
        total = torch.zeros(())
        with self.working(dataset, device) as task:
            for member in chosen:
                logits = self.outputs(task, member, rule, device)[:, 0].double()
                total = total + (torch.sigmoid(logits) if self.signature.multilabel else torch.softmax(logits, dim=-1))
                told(1)
        return (total / len(chosen)).cpu()

    def table(
        self,
        source: Source,
        member: int | None = None,
        rule: str | None = None,
        device: torch.device = CPU,
        data_root: Path | str | None = None,
    ) -> pd.DataFrame:
        """Return predictions with the user's ids and class names: ``id``, ``predicted``, ``p(CLASS)`` for each class."""
        dataset = self.read(source, data_root)
        found = self.probabilities(dataset, None if member is None else [member], rule, device)
        return prediction_table(dataset, found, item_ids(dataset), self.signature.multilabel)

    @contextmanager
    def working(self, dataset: Dataset, device: torch.device) -> Iterator[TrainingTask]:
        """Yield a data set prepared as the run prepared its own, under the arithmetic and the threads of its training."""
        training = self.config.training
        task = configured_task(dataset, self.config, []).to(device)
        with torch.no_grad(), one_thread_where_it_wins(device), arithmetic(training.precision, device):
            yield task

    def outputs(self, task: TrainingTask, member: int, rule: str | None, device: torch.device) -> Tensor:
        """Return the outputs of one member, as the trainer measures them, ``[items, 1, classes]``."""
        net = self.network(member, rule).to(device)
        return task.logits(net, task.operator(net)).to(task.dtype)

    def embedding(self, task: TrainingTask, member: int, rule: str, device: torch.device) -> Tensor:
        """Return what enters the closing map of one member, ``[items, channels]``; its outputs where it has no such map."""
        net = self.network(member, rule).to(device)
        single: Any = net.model if isinstance(net, StackedRuns) else net
        if single.closing is None:
            return task.logits(net, task.operator(net))[:, 0].to(task.dtype)
        seen: list[Tensor] = []
        hook = single.closing.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
        try:
            task.logits(net, task.operator(net))
        finally:
            hook.remove()
        whole = torch.cat(seen)  # layer by layer the closing map is called for a piece of the nodes at a time
        return whole.reshape(whole.size(0), -1).to(task.dtype)

"""`Dataset` and `Split`: what every reader returns and every other part of the package takes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from omegagnn.graph import Graph

if TYPE_CHECKING:
    from pathlib import Path

    from omegagnn.data.audit import Audit
    from omegagnn.data.own.schema import Schema

Task = Literal["node", "inductive", "graph"]


@dataclass(frozen=True, eq=False)
class Split:
    """Which items train, select and test: sorted int64 positions of nodes (`node`) or of graphs (other tasks)."""

    name: str
    train: Tensor
    val: Tensor
    test: Tensor

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the three index lists: two results with the same hash were measured on the same split."""
        digest = hashlib.sha256()
        for part in (self.train, self.val, self.test):
            digest.update(part.numel().to_bytes(8, "little"))
            digest.update(part.to(torch.int64).cpu().contiguous().numpy().astype("<i8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Dataset:
    """One graph or many, with features, labels and splits.

    Many graphs are stored as one block-diagonal graph; graph ``k`` owns nodes ``ptr[k]`` to ``ptr[k + 1] - 1``.
    Edges keep the direction of the source; features are as the source has them (no row normalisation).
    """

    name: str
    task: Task
    graph: Graph
    features: Tensor  # [n, f] float32, dense or torch sparse CSR
    labels: Tensor  # node: [n] int64, -1 unknown · graph: [graphs] int64 · multi-label: [n, k] float32 · target: [n] float32
    splits: tuple[Split, ...] = ()
    ptr: Tensor | None = None  # [graphs + 1] int64 where the task has many graphs
    class_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    node_ids: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = field(default=())
    schema: Schema | None = None  # how a user's own columns were coded; stored beside the data set, never in its file

    @property
    def num_nodes(self) -> int:
        """Number of nodes over all graphs."""
        return self.graph.num_nodes

    @property
    def num_features(self) -> int:
        """Number of features a node."""
        return self.features.size(1)

    @property
    def num_graphs(self) -> int:
        """Number of graphs (1 for a node task)."""
        return 1 if self.ptr is None else self.ptr.numel() - 1

    @property
    def is_multilabel(self) -> bool:
        """Whether a node may have several labels at once."""
        return self.labels.dim() == 2

    @property
    def is_regression(self) -> bool:
        """Whether the labels are numbers to come near to, one an item, instead of classes."""
        return self.labels.dim() == 1 and self.labels.is_floating_point()

    @property
    def num_classes(self) -> int:
        """Number of classes, which is what a network puts out an item (columns of a multi-label target; 1 for a number)."""
        if self.is_multilabel:
            return self.labels.size(1)
        if self.is_regression:
            return 1
        return max(len(self.class_names), int(self.labels.max()) + 1 if self.labels.numel() else 0)

    @cached_property
    def batch(self) -> Tensor | None:
        """The graph of each node, ``[n]`` int64, or None for a node task."""
        if self.ptr is None:
            return None
        return torch.repeat_interleave(torch.arange(self.num_graphs), self.ptr.diff())

    def with_splits(self, splits: tuple[Split, ...]) -> Dataset:
        """Return the data set with other splits."""
        return replace(self, splits=splits)

    def to_pyg(self, sparse: bool = False) -> Any:
        """Return PyTorch Geometric's `Data`, or a list of them where the task has many graphs (`omegagnn.data.pyg`)."""
        from omegagnn.data.pyg import to_pyg

        return to_pyg(self, sparse)

    def audit(self, root: str | Path | None = None) -> Audit:
        """Examine the data set, beside all that are at hand below a data root (`omegagnn.data.audit`)."""
        from omegagnn.data.audit import audit, reachable

        return audit(self, reachable(self, root))

    def __repr__(self) -> str:
        """Name, task and sizes."""
        parts = [repr(self.name), self.task]
        if self.ptr is not None:
            parts.append(f"{self.num_graphs} graphs")
        parts += [f"{self.num_nodes} nodes", f"{self.graph.num_edges} edges", f"{self.num_features} features"]
        return f"Dataset({', '.join(parts)}, {self.num_classes} classes, {len(self.splits)} splits)"

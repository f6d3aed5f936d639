"""`audit`: what a user should know about a data set before believing a number measured on it.

Percentages are of what their name says; ``twins_percent`` is the mean over the splits of the percentage of test items with
a twin in training (`omegagnn.data.twins`), homophilies are defined in `omegagnn.data.homophily`, suspect columns in
`omegagnn.data.leakage`. Degrees and components are those of the undirected graph without self-loops and duplicates.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components

from omegagnn.data.cache import load_dataset
from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.homophily import adjusted_homophily, edge_homophily, node_homophily, simple
from omegagnn.data.leakage import Leak, best_single_feature
from omegagnn.data.loading import load, whereabouts
from omegagnn.data.own.store import own_names
from omegagnn.data.places import own_path
from omegagnn.data.registry import available
from omegagnn.data.twins import percent_in_training, row_groups, twin_groups
from omegagnn.graph import Graph


@dataclass(frozen=True)
class SplitAudit:
    """One split: its sizes, its hash, and how many of its test items were met in training."""

    name: str
    hash: str
    train: int
    val: int
    test: int
    twins_percent: float | None
    equal_features_percent: float
    classes_without_training: tuple[str, ...]
    in_two_parts: int
    unlabelled: int


@dataclass(frozen=True)
class Identical:
    """Another data set that shares something with this one, item for item."""

    name: str
    features: bool
    labels: bool
    edges: bool


@dataclass(frozen=True)
class Audit:
    """What was found; `warnings` are sentences. None stands for what the data set has no answer to."""

    name: str
    task: str
    graphs: int
    nodes: int
    edges: int
    features: int
    classes: dict[str, int]
    unlabelled: int
    node_homophily_percent: float | None
    edge_homophily_percent: float | None
    adjusted_homophily_percent: float | None
    same_class_percent: dict[str, float]
    degree: dict[str, float]
    degree_counts: dict[int, int]
    components: int
    largest_component_percent: float
    directed: bool
    reciprocal_percent: float
    self_loops: int
    duplicate_edges: int
    isolated_nodes: int
    twins_percent: float | None
    splits: tuple[SplitAudit, ...]
    best_single_feature_percent: float | None
    leaks: tuple[Leak, ...]
    identical: tuple[Identical, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for `json.dumps`."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    def lines(self) -> list[tuple[str, str]]:
        """Return title and value of each number, as a person reads them."""
        twins = (
            "no splits"
            if self.twins_percent is None
            else f"{self.twins_percent:.1f} % of the test set, mean of {len(self.splits)} splits"
        )
        degree = f"mean {self.degree['mean']:.2f}, median {self.degree['median']:g}, largest {self.degree['max']:g}"
        classes = ", ".join(f"{name}: {count:,}" for name, count in self.classes.items())
        return [
            (
                "data set",
                f"{self.name} ({self.task}, {self.graphs:,} graphs, {self.nodes:,} nodes, {self.edges:,} edges)",
            ),
            ("features", f"{self.features:,}"),
            ("classes", f"{classes}; unlabelled: {self.unlabelled:,}"),
            ("edge homophily", _percent(self.edge_homophily_percent)),
            ("node homophily", _percent(self.node_homophily_percent)),
            ("adjusted homophily", _percent(self.adjusted_homophily_percent)),
            ("degree", degree),
            (
                "components",
                f"{self.components:,}, the largest with {self.largest_component_percent:.1f} % of the nodes",
            ),
            (
                "direction",
                f"directed, {self.reciprocal_percent:.1f} % of the edges run both ways"
                if self.directed
                else "undirected",
            ),
            ("self-loops", f"{self.self_loops:,}"),
            ("duplicate edges", f"{self.duplicate_edges:,}"),
            ("isolated nodes", f"{self.isolated_nodes:,}"),
            ("twins in training", twins),
            ("best single feature", f"{_percent(self.best_single_feature_percent)} of the labels"),
        ]


def audit(dataset: Dataset, others: Iterable[Dataset] = ()) -> Audit:
    """Examine a data set; `others` are searched for the same features, labels and edges (see `reachable`)."""
    graph = dataset.graph
    undirected = simple(graph)
    degrees = undirected.rowptr.diff()
    sizes = _component_sizes(undirected)
    singly = dataset.task != "inductive" and not dataset.is_multilabel
    is_node_task = dataset.task == "node" and singly
    best, leaks = best_single_feature(dataset) if is_node_task else (None, ())
    splits = _audit_splits(dataset) if singly else ()
    twins = [split.twins_percent for split in splits if split.twins_percent is not None]
    names = _class_names(dataset)
    result = Audit(
        name=dataset.name,
        task=dataset.task,
        graphs=dataset.num_graphs,
        nodes=dataset.num_nodes,
        edges=graph.num_edges,
        features=dataset.num_features,
        classes=dict(zip(names, _class_counts(dataset), strict=True)),
        unlabelled=0 if dataset.is_multilabel else int((dataset.labels < 0).sum()),
        node_homophily_percent=_in_percent(node_homophily(dataset)) if is_node_task else None,
        edge_homophily_percent=_in_percent(edge_homophily(dataset)) if is_node_task else None,
        adjusted_homophily_percent=_in_percent(adjusted_homophily(dataset)) if is_node_task else None,
        same_class_percent=_same_class_percent(dataset, names) if is_node_task else {},
        degree=_degree_summary(degrees),
        degree_counts={int(d): int(c) for d, c in zip(*np.unique(degrees.numpy(), return_counts=True), strict=True)},
        components=len(sizes),
        largest_component_percent=100 * float(max(sizes, default=0)) / max(dataset.num_nodes, 1),
        directed=not graph.unweighted().is_undirected,
        reciprocal_percent=_reciprocal_percent(graph),
        self_loops=int((graph.row == graph.col).sum()),
        duplicate_edges=graph.num_edges - graph.unweighted().coalesce().num_edges,
        isolated_nodes=int((degrees == 0).sum()),
        twins_percent=float(np.mean(twins)) if twins else None,
        splits=splits,
        best_single_feature_percent=best,
        leaks=leaks,
        identical=tuple(_compare(dataset, others)),
        warnings=(),
    )
    from omegagnn.data.audit_warnings import warnings_of

    return Audit(**{**vars(result), "warnings": (*warnings_of(result), *dataset.warnings)})


def reachable(dataset: Dataset, root: str | Path | None = None) -> Iterator[Dataset]:
    """Yield the data sets that can be had without a network and might equal this one: as many nodes and features.

    The registry and the headers of imported data sets tell, so that nothing else is read.
    """
    shape = (dataset.num_nodes, dataset.num_features)
    for entry in available():
        same_shape = (entry.statistics.nodes, entry.statistics.features) == shape
        if (
            same_shape
            and entry.make is None
            and entry.name != dataset.name
            and whereabouts(entry.name, root) != "upstream"
        ):
            yield load(entry.name, root=root)
    for name in own_names(root):
        path = own_path(name, root)
        if name != dataset.name and _stored_shape(path) == shape:
            yield load_dataset(path)


def fingerprint(dataset: Dataset) -> tuple[str, str, str]:
    """Return hashes of the features, the labels and the edges, equal however the features are stored."""
    features = dataset.features if dataset.features.layout == torch.sparse_csr else dataset.features.to_sparse_csr()
    value = features.values()
    kept = value != 0
    row = torch.repeat_interleave(torch.arange(features.size(0)), features.crow_indices().diff())[kept]
    return (
        _hash(row, features.col_indices()[kept], value[kept].to(torch.float32)),
        _hash(dataset.labels),
        _hash(dataset.graph.rowptr, dataset.graph.col),
    )


def _hash(*parts: torch.Tensor) -> str:
    digest = hashlib.sha256()
    for part in parts:
        array = part.numpy()
        digest.update(array.astype("<f4" if array.dtype.kind == "f" else "<i8").tobytes())
    return digest.hexdigest()


def _compare(dataset: Dataset, others: Iterable[Dataset]) -> Iterator[Identical]:
    own: tuple[str, str, str] | None = None
    for other in others:
        if (other.num_nodes, other.num_features) != (dataset.num_nodes, dataset.num_features):
            continue
        own = own or fingerprint(dataset)
        same = [mine == theirs for mine, theirs in zip(own, fingerprint(other), strict=True)]
        if same[0]:
            yield Identical(other.name, *same)


def _stored_shape(path: Path) -> tuple[int, ...] | None:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return tuple(json.loads(arrays["header"].tobytes())["features_shape"])
    except (OSError, ValueError, KeyError):
        return None  # a damaged neighbour is not this data set's fault


def _audit_splits(dataset: Dataset) -> tuple[SplitAudit, ...]:
    if not dataset.splits:
        return ()
    twins = twin_groups(dataset)
    rows = None if dataset.task == "graph" else row_groups(dataset.features)
    names = _class_names(dataset)
    return tuple(_audit_split(split, dataset, names, twins, rows) for split in dataset.splits)


def _audit_split(split: Split, dataset: Dataset, names: list[str], twins: Any, rows: Any) -> SplitAudit:
    labels = dataset.labels
    everything = torch.cat([split.train, split.val, split.test])
    learnt = set(labels[split.train].tolist())
    asked = {int(label) for label in labels[torch.cat([split.val, split.test])].unique() if label >= 0}
    return SplitAudit(
        name=split.name,
        hash=split.hash,
        train=split.train.numel(),
        val=split.val.numel(),
        test=split.test.numel(),
        twins_percent=percent_in_training(twins, split),
        equal_features_percent=0.0 if rows is None else percent_in_training(rows, split),
        classes_without_training=tuple(names[label] for label in sorted(asked - learnt)),
        in_two_parts=everything.numel() - everything.unique().numel(),
        unlabelled=int((labels[everything] < 0).sum()),
    )


def _class_names(dataset: Dataset) -> list[str]:
    return [*dataset.class_names, *(str(k) for k in range(len(dataset.class_names), dataset.num_classes))]


def _class_counts(dataset: Dataset) -> list[int]:
    if dataset.is_multilabel:
        return [int(count) for count in dataset.labels.sum(dim=0)]
    known = dataset.labels[dataset.labels >= 0]
    return [int(count) for count in torch.bincount(known, minlength=dataset.num_classes)]


def _same_class_percent(dataset: Dataset, names: list[str]) -> dict[str, float]:
    """For each class, the percentage of the edges into its nodes that come from within it."""
    sender, receiver = dataset.labels[dataset.graph.col.long()], dataset.labels[dataset.graph.row.long()]
    known = (sender >= 0) & (receiver >= 0)
    total = torch.bincount(receiver[known], minlength=len(names))
    same = torch.bincount(receiver[known & (sender == receiver)], minlength=len(names))
    return {name: 100 * int(s) / int(t) for name, s, t in zip(names, same, total, strict=True) if t > 0}


def _degree_summary(degrees: torch.Tensor) -> dict[str, float]:
    values = degrees.numpy()
    if not values.size:
        return {"min": 0.0, "mean": 0.0, "median": 0.0, "max": 0.0}
    return {name: float(getattr(np, name)(values)) for name in ("min", "mean", "median", "max")}


def _component_sizes(undirected: Graph) -> list[int]:
    if undirected.num_nodes == 0:
        return []
    _, component = connected_components(undirected.to_scipy(), directed=False)
    return [int(size) for size in np.bincount(component)]


def _reciprocal_percent(graph: Graph) -> float:
    """The percentage of the edges, without self-loops and duplicates, that run both ways."""
    once = graph.unweighted().without_self_loops().coalesce()
    if once.num_edges == 0:
        return 100.0
    both = once.unweighted().to_undirected().num_edges
    return 100 * (2 * once.num_edges - both) / once.num_edges


def _in_percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} %"

"""`Signature`: what a run remembers of its data, so that other data can be held against it.

A run's folder keeps ``data.json`` (sizes, names, hashes) and, for a user's own data, ``schema.json`` (how each column was
coded). With them and the weights a run predicts when it was moved and when its data set is gone.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset, Task
from omegagnn.data.own.schema import Schema
from omegagnn.errors import DataError, OmegaError
from omegagnn.files import write_bytes

DATA, SCHEMA = "data.json", "schema.json"


@dataclass(frozen=True)
class Signature:
    """Names, sizes and hashes of the data that a network was trained on."""

    name: str
    task: Task
    multilabel: bool
    nodes: int
    edges: int
    graphs: int
    features: int
    classes: int
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    features_sha256: str
    graph_sha256: str
    labels_sha256: str
    schema: Schema | None = None

    @classmethod
    def of(cls, dataset: Dataset) -> Signature:
        """Take down what a data set is."""
        features, graph = dataset.features, dataset.graph
        sparse = features.layout != torch.strided
        parts = (features.crow_indices(), features.col_indices(), features.values()) if sparse else (features,)
        return cls(
            name=dataset.name,
            task=dataset.task,
            multilabel=dataset.is_multilabel,
            nodes=dataset.num_nodes,
            edges=graph.num_edges,
            graphs=dataset.num_graphs,
            features=dataset.num_features,
            classes=dataset.num_classes,
            class_names=dataset.class_names,
            feature_names=dataset.feature_names,
            features_sha256=_sha256(*parts),
            graph_sha256=_sha256(graph.rowptr, graph.col, graph.weight, dataset.ptr),
            labels_sha256=_sha256(dataset.labels),
            schema=None if dataset.schema is None else replace(dataset.schema, graph_ids=()),
        )

    @property
    def names_of_classes(self) -> tuple[str, ...]:
        """What the classes are called: their names, else their numbers."""
        return self.class_names or tuple(map(str, range(self.classes)))

    # ------------------------------------------------------------------------------------------------ in a run's folder

    def save(self, folder: Path) -> None:
        """Write ``data.json`` and, where there is a schema, ``schema.json``."""
        if self.schema is not None:
            self.schema.save(folder / SCHEMA)
        facts = asdict(replace(self, schema=None))
        facts["schema"] = None if self.schema is None else SCHEMA
        write_bytes(folder / DATA, json.dumps(facts, indent=1, ensure_ascii=False).encode())

    @classmethod
    def load(cls, folder: Path) -> Signature:
        """Read what `save` wrote."""
        path = folder / DATA
        try:
            facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            schema = None if facts.pop("schema") is None else Schema.load(folder / SCHEMA)
            for key in ("class_names", "feature_names"):
                facts[key] = tuple(map(str, facts[key]))
            return cls(**facts, schema=schema)
        except FileNotFoundError:
            raise OmegaError(
                f"There is no {path}: the run was made before runs kept what they know of their data; train it again."
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, OmegaError):
                raise
            raise OmegaError(f"{path} is damaged ({error}): restore it or train again.") from None

    # ------------------------------------------------------------------------------------------------ against other data

    def changes(self, dataset: Dataset) -> list[str]:
        """Return in which respects a data set is not the one of the run: features, graph, labels, classes."""
        other = Signature.of(dataset)
        hashes = {part: f"{part}_sha256" for part in ("features", "graph", "labels")}
        parts = {**hashes, "classes": "class_names"}
        return [part for part, name in parts.items() if getattr(self, name) != getattr(other, name)]

    def check(self, dataset: Dataset) -> None:
        """Refuse a data set whose features are not the model's, in one sentence that names the column."""
        if (self.task == "graph") != (dataset.task == "graph"):
            mine, other = ("whole graphs", "nodes") if self.task == "graph" else ("nodes", "whole graphs")
            raise DataError(
                f"The model classifies {mine}, but {dataset.name} is for the classification of {other}: give a graph of its kind."
            )
        if self.schema is not None and dataset.schema is not None:
            _check_coding(self.schema, dataset.schema, dataset.name)
        if self.feature_names and dataset.feature_names:
            _check_names(self.feature_names, dataset.feature_names, dataset.name)
        if dataset.num_features != self.features:
            raise DataError(
                f"{dataset.name} has {dataset.num_features} features, but the model was trained on the {self.features} of "
                f"{self.name}: give a graph with the same features."
            )

    def unlabelled(self, dataset: Dataset) -> Dataset:
        """Return a data set that fits, without its labels and splits and with the model's classes."""
        items = dataset.num_graphs if dataset.task == "graph" else dataset.num_nodes
        return replace(dataset, labels=torch.full((items,), -1), splits=(), class_names=self.names_of_classes)

    def with_own_classes(self, dataset: Dataset) -> Dataset:
        """Return a data set that fits, its labels numbered as the model's classes are."""
        if dataset.is_multilabel != self.multilabel or dataset.is_regression:
            kinds = ("one class", "several labels")
            raise DataError(
                f"The model gives each item {kinds[self.multilabel]}, but the labels of {dataset.name} are of another kind: "
                "score it on data of its own kind."
            )
        theirs = dataset.class_names or tuple(map(str, range(dataset.num_classes)))
        mine = self.names_of_classes
        if theirs == mine or not theirs:
            return replace(dataset, class_names=mine)
        if self.multilabel:
            raise DataError(
                f"The labels of {dataset.name} are {', '.join(theirs[:10])}, not the model's: give them in its order."
            )
        position = torch.tensor([mine.index(name) if name in mine else -1 for name in theirs])
        known = dataset.labels >= 0
        labels = torch.where(known, position[dataset.labels.clamp(min=0)], -1)
        foreign = (known & (labels < 0)).nonzero().flatten()
        if foreign.numel():
            name = theirs[int(dataset.labels[foreign[0]])]
            raise DataError(
                f"{dataset.name} has the class {name!r}, which the model does not know: its classes are {', '.join(mine[:20])}."
            )
        return replace(dataset, labels=labels, class_names=mine)


def _check_coding(mine: Schema, theirs: Schema, name: str) -> None:
    """Refuse columns that an import of its own has coded otherwise than the model's import did."""
    others = {column.name: column for column in theirs.columns}
    for column in mine.columns:
        other = others.get(column.name)
        if column.kind == "constant" or other == column:
            continue
        if other is None:
            raise DataError(f"{name} has no column {column.name!r}, which the model needs: add it.")
        same = (
            replace(other, mean=column.mean) == column and not column.has_missing
        )  # the mean fills missing cells only
        if not same:
            raise DataError(
                f"The column {column.name!r} of {name} was coded by an import of its own (as a {other.kind}), not as the "
                "model's: name the folder or file it was imported from, which is then coded as the model's data."
            )
    if mine.fingerprint and mine.fingerprint != theirs.fingerprint:
        raise DataError(
            f"The {mine.recipe.node_features} features of the model belong to the nodes they were made for and cannot code "
            f"{name}: import the first graph with --node-features degree, or with columns."
        )


def _check_names(mine: tuple[str, ...], theirs: tuple[str, ...], name: str) -> None:
    for verb, some, others in (("lacks", mine, set(theirs)), ("has", theirs, set(mine))):
        odd = next((feature for feature in some if feature not in others), None)
        if odd is not None:
            end = "which the model needs" if verb == "lacks" else "which the model does not know"
            raise DataError(f"{name} {verb} the feature {odd!r}, {end}: give a graph with the same features.")
    if mine != theirs and len(mine) == len(theirs):
        first = next(feature for feature, other in zip(mine, theirs, strict=True) if feature != other)
        raise DataError(
            f"{name} has the feature {first!r} at another place than the model: give the columns in its order."
        )


def _sha256(*tensors: Tensor | None) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        if tensor is None:
            digest.update(b"none")
            continue
        values = tensor.detach().cpu()
        values = values if values.is_floating_point() else values.to(torch.int64)
        digest.update(f"{list(values.shape)}{values.dtype}".encode())
        digest.update(values.contiguous().numpy().reshape(-1).data)
    return digest.hexdigest()

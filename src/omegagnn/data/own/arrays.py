"""Graphs that come as arrays: SciPy matrices and npz files. Their features are taken as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.own.edges import build_graph
from omegagnn.data.own.schema import NodeFeatures, Recipe, Schema
from omegagnn.data.own.sparse import sparse_or_dense
from omegagnn.data.own.structure import check_fingerprint, fingerprint, structural_features
from omegagnn.data.readers.npz import read_npz
from omegagnn.errors import DataError, WrongUse
from omegagnn.graph import Graph

Array = npt.NDArray[Any]

# The names that published npz files use, first ours.
_FEATURES = ("features", "x", "node_features")
_LABELS = ("labels", "y", "node_labels")
_CSR = (("adj_indptr", "adj_indices", "adj_data"), ("indptr", "indices", "data"))
_MASKS = tuple((f"{part}_masks", f"{part}_mask") for part in ("train", "val", "test"))


def from_scipy(
    adjacency: sp.csr_array | sp.coo_array | sp.spmatrix,
    features: Any = None,
    labels: npt.ArrayLike | None = None,
    name: str = "own",
    node_features: NodeFeatures | None = None,
    class_names: Sequence[str] = (),
    node_ids: Sequence[str] | None = None,
) -> Dataset:
    """Return the data set of an adjacency matrix whose entry ``[j, i]`` is the edge j → i, weighted where not all are 1.

    `labels` are classes from 0, -1 where unknown; `node_features` makes features where there are none.
    """
    graph = Graph.from_scipy(adjacency)
    if graph.weight is not None:
        weight = graph.weight.to(torch.float32)
        graph = graph.unweighted() if bool((weight == 1).all()) else graph.to(dtype=torch.float32)
    arrays = {"features": features, "labels": labels, "class_names": list(class_names), "node_ids": node_ids}
    return _dataset(graph, arrays, "the arrays", Recipe(node_features=node_features), None, name)[0]


def import_npz(
    path: Path, recipe: Recipe, schema: Schema | None = None, name: str = "own", labels: bool = True
) -> tuple[Dataset, Schema]:
    """Return the data set in an npz file of arrays.

    Read are ``edge_index [2, E]`` or ``edges [E, 2]`` with ``edge_weight``, or a CSR matrix (``adj_indptr``,
    ``adj_indices``, ``adj_data``, or as SciPy saves one); ``features``, ``labels`` (-1 unknown), ``train_mask(s)``,
    ``val_mask(s)``, ``test_mask(s)`` (``[n]``, ``[n, splits]`` or ``[splits, n]``), ``node_ids``, ``class_names``.
    """
    arrays = dict(read_npz(path, path.name))
    recipe = schema.recipe if schema is not None else replace(recipe, directed=bool(recipe.directed))
    for alias in (*_FEATURES, *_LABELS):
        if alias in arrays:
            arrays.setdefault("features" if alias in _FEATURES else "labels", arrays[alias])
    if not labels:
        arrays.pop("labels", None)
    return _dataset(_graph(arrays, path.name, bool(recipe.directed)), arrays, path.name, recipe, schema, name)


def _graph(arrays: Mapping[str, Any], label: str, directed: bool) -> Graph:
    for pointer, indices, data in _CSR:
        if pointer in arrays and indices in arrays:
            rows = len(arrays[pointer]) - 1
            values = np.asarray(arrays.get(data, np.ones(len(arrays[indices]))))
            try:
                matrix = sp.csr_array((values, arrays[indices], arrays[pointer]), shape=(rows, rows)).tocoo()
            except ValueError as error:
                raise DataError(
                    f"{label}: the arrays {pointer} and {indices} are no square matrix ({error}): mend them."
                ) from error
            weight = None if bool((values == 1).all()) else matrix.data
            return _checked_graph(np.stack([matrix.row, matrix.col]), rows, weight, label, directed)
    edges = (
        arrays["edge_index"] if "edge_index" in arrays else np.transpose(arrays["edges"]) if "edges" in arrays else None
    )
    if edges is None:
        raise DataError(
            f"{label} has no edges ({', '.join(sorted(arrays)) or 'no arrays'}): add edge_index, edges or adj_indptr."
        )
    count = next(
        (len(arrays[key]) for key in ("features", "labels", "node_ids") if key in arrays and arrays[key].ndim), None
    )
    return _checked_graph(edges, count, arrays.get("edge_weight"), label, directed)


def _checked_graph(edges: Array, nodes: int | None, weight: Array | None, label: str, directed: bool) -> Graph:
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
        raise DataError(
            f"{label}: the edges have shape {edges.shape} and type {edges.dtype}: give whole numbers [2, E] or [E, 2]."
        )
    n = nodes if nodes is not None else int(edges.max(initial=-1)) + 1
    lost = np.flatnonzero(((edges < 0) | (edges >= n)).any(axis=0))
    if lost.size:
        raise DataError(
            f"{label}: edge {int(lost[0])} (counted from 0) joins {edges[:, lost[0]].tolist()}, but there are {n} nodes, "
            "counted from 0: mend the edge."
        )
    if weight is not None and (weight.shape != edges.shape[1:] or weight.dtype.kind not in "fiu"):
        raise DataError(
            f"{label}: edge_weight has shape {weight.shape} and type {weight.dtype}: give one number for each edge."
        )
    if weight is not None and not bool((np.isfinite(weight) & (weight >= 0)).all()):
        row = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))[0])
        raise DataError(
            f"{label}: edge {row} (counted from 0) has the weight {weight[row]}: give a number of at least 0."
        )
    tensor = None if weight is None else torch.from_numpy(weight.astype(np.float32))
    return build_graph(torch.from_numpy(edges.astype(np.int64)), n, tensor, directed)


def _dataset(
    graph: Graph, arrays: Mapping[str, Any], label: str, recipe: Recipe, schema: Schema | None, name: str
) -> tuple[Dataset, Schema]:
    n = graph.num_nodes
    if n == 0:
        raise DataError(f"{label}: the graph has no nodes: check the arrays.")
    ids = _names(arrays.get("node_ids"), "node_ids", label, n) or tuple(map(str, range(n)))
    if len(set(ids)) < n:
        raise DataError(f"{label}: an id in node_ids is used twice: give every node its own id.")
    raw, kind = arrays.get("features"), recipe.node_features
    if raw is not None:
        features = sparse_or_dense(_features(raw, n, label))
        width, names = features.size(1), tuple(f"feature_{number}" for number in range(features.size(1)))
    elif kind is not None:
        features, names = structural_features(graph, kind)
        width = 0
    else:
        raise WrongUse(
            f"{label}: there are no features: add some, or ask for node features one-hot, degree or positional."
        )
    if schema is not None and width != schema.width:
        raise DataError(f"{label}: there are {width} features, but the schema has {schema.width}: give as many.")
    if schema is not None and raw is None:
        check_fingerprint(kind, schema.fingerprint, ids, graph)
    labels = _labels(arrays.get("labels"), n, label)
    class_names = _names(arrays.get("class_names"), "class_names", label, None) or ()
    if schema is None and not class_names:
        class_names = tuple(map(str, range(int(labels.max()) + 1)))
    elif schema is not None:
        class_names = schema.class_names
    if int(labels.max()) >= len(class_names):
        raise DataError(
            f"{label}: a label is {int(labels.max())}, but there are {len(class_names)} classes, counted from 0: mend it."
        )
    dataset = Dataset(
        name,
        "node",
        graph,
        features,
        torch.from_numpy(labels),
        _splits(arrays, n, label),
        class_names=class_names,
        feature_names=names,
        node_ids=ids,
    )
    if schema is None:
        mark = "" if raw is not None else fingerprint(kind, ids, graph)
        schema = Schema(recipe, class_names=class_names, fingerprint=mark, width=width)
    return replace(dataset, schema=schema), schema


def _features(raw: Any, n: int, label: str) -> sp.csr_array[Any] | npt.NDArray[np.float32]:
    matrix: Any = sp.csr_array(cast("Any", raw)) if sp.issparse(raw) else np.asarray(raw)
    if matrix.ndim != 2 or matrix.shape[0] != n or matrix.dtype.kind not in "fiub":
        raise DataError(
            f"{label}: the features have shape {matrix.shape} and type {matrix.dtype}: give numbers with one row for each of "
            f"the {n} nodes."
        )
    values = matrix.data if isinstance(matrix, sp.csr_array) else matrix
    if not bool(np.isfinite(np.asarray(values, dtype=np.float32)).all()):
        where = (
            ""
            if isinstance(matrix, sp.csr_array)
            else f" of node {int(np.argwhere(~np.isfinite(matrix.astype(np.float32)))[0][0])}"
        )
        raise DataError(f"{label}: a feature{where} is NaN or infinite: replace it by a number.")
    result: sp.csr_array[Any] | npt.NDArray[np.float32] = matrix.astype(np.float32)
    return result


def _labels(raw: Any, n: int, label: str) -> npt.NDArray[np.int64]:
    if raw is None:
        return np.full(n, -1, dtype=np.int64)
    labels = np.asarray(raw)
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or int(labels.min()) < -1:
        raise DataError(
            f"{label}: the labels have shape {labels.shape} and type {labels.dtype}: give each of the {n} nodes a class from 0, "
            "or -1 where it is unknown."
        )
    return labels.astype(np.int64)


def _names(raw: Any, what: str, label: str, count: int | None) -> tuple[str, ...] | None:
    if raw is None or len(raw) == 0:
        return None
    names = tuple(str(item) for item in np.asarray(raw).ravel().tolist())
    if count is not None and len(names) != count:
        raise DataError(f"{label}: {what} has {len(names)} names for {count} nodes: give one for each.")
    return names


def _splits(arrays: Mapping[str, Any], n: int, label: str) -> tuple[Split, ...]:
    found = [next((np.asarray(arrays[key]) for key in keys if key in arrays), None) for keys in _MASKS]
    masks = [mask for mask in found if mask is not None]
    if not masks:
        return ()
    if len(masks) < len(_MASKS):
        raise DataError(f"{label}: of train_mask, val_mask and test_mask some are missing: give all three or none.")
    shaped = [mask[None] if mask.ndim == 1 else mask if mask.shape[-1] == n else mask.T for mask in masks]
    if len({mask.shape for mask in shaped}) != 1 or shaped[0].ndim != 2 or shaped[0].shape[1] != n:
        raise DataError(
            f"{label}: the masks have shapes {[mask.shape for mask in masks]}: give each one value for each node."
        )
    train, val, test = (mask.astype(bool) for mask in shaped)
    if bool(((train & val) | (train & test) | (val & test)).any()):
        raise DataError(f"{label}: a node is in two of train_mask, val_mask and test_mask: put it into one.")
    parts = [[torch.from_numpy(np.flatnonzero(mask[k])) for mask in (train, val, test)] for k in range(len(train))]
    return tuple(Split("masks" if len(parts) == 1 else f"masks-{k}", *part) for k, part in enumerate(parts))

"""What `OmegaClassifier` takes: features, edges, labels and masks as NumPy, torch, SciPy or pandas have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
import torch
from torch import Tensor

from omegagnn.data.own.edges import endpoint_columns
from omegagnn.data.own.schema import Recipe
from omegagnn.data.own.sparse import to_torch
from omegagnn.errors import WrongUse
from omegagnn.graph import Graph

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Features:
    """Features ``[n, f]`` and, where they came as a data frame, its index and the names of its columns."""

    values: Tensor
    index: pd.Index[Any] | None = None
    names: tuple[str, ...] = ()


def read_features(X: Any, columns: tuple[str, ...] = ()) -> Features:
    """Return features of float32; a data frame must have exactly the `columns` of the first one, in any order."""
    if isinstance(X, pd.DataFrame):
        return _read_frame(X, columns)
    if isinstance(X, (sp.sparray, sp.spmatrix)):
        matrix = cast("Any", X).tocsr()
        _check_numbers(matrix.shape, matrix.dtype, matrix.data)
        return Features(to_torch(matrix.astype(np.float32)))
    if isinstance(X, Tensor):
        tensor = X.detach().cpu()
        tensor = tensor if tensor.layout in (torch.strided, torch.sparse_csr) else tensor.to_sparse_csr()
        values = tensor if tensor.layout == torch.strided else tensor.values()
        _check_numbers(tuple(tensor.shape), values.numpy().dtype, values.numpy())
        return Features(tensor.to(torch.float32))
    array = np.asarray(X)
    _check_numbers(array.shape, array.dtype, array)
    return Features(torch.from_numpy(np.array(array, dtype=np.float32, order="C")))


def _read_frame(frame: pd.DataFrame, columns: tuple[str, ...]) -> Features:
    names = tuple(map(str, frame.columns))
    frame = frame.set_axis(list(names), axis=1)
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise WrongUse(f"X has the column {twice!r} twice: rename one of them.")
    if columns:
        for verb, odd in (("lacks", set(columns) - set(names)), ("has", set(names) - set(columns))):
            if odd:
                end = "which fit saw" if verb == "lacks" else "which fit did not see"
                raise WrongUse(f"X {verb} the column {min(odd)!r}, {end}: give the columns that fit was given.")
        frame = frame[list(columns)]
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            raise WrongUse(
                f"The column {name!r} of X holds {frame[name].dtype}, not numbers: code it, or let `from_pandas` of "
                "omegagnn.data.own code the whole table."
            )
    array = frame.to_numpy(dtype=np.float32, na_value=np.nan)
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        row, column = bad[0].tolist()
        raise WrongUse(
            f"X is missing or infinite in row {frame.index[row]!r}, column {frame.columns[column]!r}: fill it."
        )
    return Features(torch.from_numpy(np.ascontiguousarray(array)), frame.index, tuple(frame.columns))


def _check_numbers(shape: tuple[int, ...], dtype: np.dtype[Any], values: Array) -> None:
    if len(shape) != 2 or dtype.kind not in "fiub":
        raise WrongUse(f"X has the shape {tuple(shape)} and the type {dtype}: give numbers, one row a node.")
    if not bool(np.isfinite(values).all()):
        where = "" if values.ndim != 2 else f" in row {int(np.argwhere(~np.isfinite(values))[0][0])}"
        raise WrongUse(f"X is NaN or infinite{where}: fill the value.")


def read_graph(edges: Any, features: Features, weight: Any = None) -> Graph:
    """Return the graph of ``[2, E]`` pairs (sender, receiver), a `Graph`, a sparse adjacency matrix or a frame of edges.

    A SciPy matrix has the edge j → i at ``[j, i]``, a torch matrix at ``[i, j]``, as PyTorch Geometric has them. A frame has two
    columns (``source`` and ``target``, or the first two) that name nodes by the index of the frame X, else by position.
    """
    n = features.values.size(0)
    if edges is None:
        raise WrongUse("There are no edges: give edge_index, an adjacency matrix, a Graph or a frame of edges.")
    if isinstance(edges, pd.DataFrame):
        if isinstance(weight, str):
            if weight not in edges.columns:
                raise WrongUse(f"The frame of edges has no column {weight!r} for edge_weight: name one it has.")
            weight = edges[weight].to_numpy()
        edges = _ends(edges, features.index, n)
    if weight is not None:
        weight = torch.from_numpy(np.array(_plain(weight), dtype=np.float32))
    if isinstance(edges, Graph):
        graph = edges
    elif isinstance(edges, (sp.sparray, sp.spmatrix)):
        graph = Graph.from_scipy(cast("sp.csr_array", edges))
        graph = graph if graph.weight is None else graph.to(dtype=torch.float32)
    elif isinstance(edges, Tensor) and edges.layout != torch.strided:
        graph = Graph.from_torch_sparse(edges.detach().cpu())
    else:
        pairs = torch.from_numpy(np.array(_plain(edges)))  # a copy: torch takes no array that cannot be written
        pairs = pairs.long().reshape(2, 0) if not pairs.numel() else pairs
        return Graph.from_edge_index(pairs, n, weight)
    if weight is not None:
        raise WrongUse("edge_weight goes with edge_index: a matrix or a Graph carries its own weights.")
    if graph.num_nodes != n:
        raise WrongUse(f"The graph has {graph.num_nodes} nodes, but X has {n} rows: give one row a node.")
    return graph


def _ends(edges: pd.DataFrame, index: pd.Index[Any] | None, n: int) -> Array:
    ends = endpoint_columns([str(column) for column in edges.columns], Recipe(), "The frame of edges")
    known = pd.RangeIndex(n) if index is None else index
    if not known.is_unique:
        raise WrongUse("The index of X has a label twice, so edges cannot name nodes by it: give each row its own.")
    positions = []
    for column in ends:
        found = known.get_indexer(pd.Index(edges.set_axis([str(c) for c in edges.columns], axis=1)[column]))
        lost = np.flatnonzero(found < 0)
        if lost.size:
            shown = edges.iloc[int(lost[0])].to_dict()[column]
            raise WrongUse(
                f"The edge in row {int(lost[0])} has the {column} {shown!r}, which X has no row for: add the row."
            )
        positions.append(found)
    return np.stack(positions).astype(np.int64)


def read_labels(y: Any, features: Features) -> tuple[npt.NDArray[np.int64], Array]:
    """Return the class of each node, -1 where it is unknown, and the user's labels of the classes, sorted.

    Unknown are None, NaN and pandas' NA, and -1 where the labels are whole numbers. A Series is matched to the rows of a
    frame X by its index: a row it lacks is unknown. Whole numbers that came as floats become integers.
    """
    n = features.values.size(0)
    if y is None:
        raise WrongUse("There are no labels: give y, one a node, with NaN, None or -1 where a label is unknown.")
    aligned = _aligned(y, features, "y")
    if np.ndim(aligned) != 1 or len(aligned) != n:
        raise WrongUse(
            f"y has the shape {np.shape(aligned)}, but X has {n} rows: give one label a node, NaN where unknown."
        )
    series = pd.Series(aligned)
    known = ~series.isna().to_numpy()
    listed = series[known].to_numpy(dtype=object).tolist()
    if len({isinstance(value, str) for value in listed}) > 1:
        raise WrongUse("y holds both texts and numbers: give labels of one kind.")
    values = np.asarray(listed)
    if values.dtype.kind == "f":
        if not bool((values == np.round(values)).all()):
            odd = values[values != np.round(values)][0]
            raise WrongUse(f"y holds {odd}, which is no class: give whole numbers or texts.")
        values = values.astype(np.int64)
    if values.dtype.kind in "iu":
        known[np.flatnonzero(known)[values == -1]] = False
        values = values[values != -1]
    if not values.size or values.dtype.kind not in "iubUS":
        raise WrongUse(
            "y has no label that could be learnt: give whole numbers or texts, NaN only where one is unknown."
        )
    classes, codes = np.unique(values, return_inverse=True)
    labels = np.full(n, -1, dtype=np.int64)
    labels[known] = codes
    return labels, classes


def read_items(mask: Any, features: Features, name: str) -> npt.NDArray[np.int64]:
    """Return the positions of a mask over the nodes, or positions as they are."""
    n = features.values.size(0)
    array = np.asarray(_aligned(mask, features, name))
    if array.dtype.kind == "O" and all(isinstance(value, (bool, np.bool_)) for value in array.tolist()):
        array = array.astype(bool)
    if array.dtype.kind == "b" and array.shape == (n,):
        return np.flatnonzero(array)
    if array.dtype.kind in "iu" and array.ndim == 1 and array.size and 0 <= array.min() <= array.max() < n:
        return np.unique(array).astype(np.int64)
    raise WrongUse(
        f"{name} has the shape {array.shape} and the type {array.dtype}: give {n} booleans, or positions from 0 to {n - 1}."
    )


def _aligned(values: Any, features: Features, name: str) -> Any:
    """Return a Series in the order of a frame's rows; anything else as it is."""
    values, index = _plain(values), features.index
    if not isinstance(values, pd.Series) or index is None or values.index.equals(index):
        return values.array if isinstance(values, pd.Series) else values
    if not (index.is_unique and values.index.is_unique):
        raise WrongUse(f"The indices of X and {name} differ and have a label twice: give both the same index.")
    foreign = values.index.difference(index)
    if len(foreign):
        raise WrongUse(
            f"{name} has the index label {foreign.tolist()[0]!r}, which X has no row for: add the row, or drop it."
        )
    missing = values.reindex(index)
    return (missing.fillna(False).astype(bool) if values.dtype == bool else missing).array


def _plain(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values

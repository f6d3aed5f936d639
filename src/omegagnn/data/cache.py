"""Data sets as npz files: no pickles, written in one piece or not at all, checked when read.

The layout (format version 1): ``header`` is JSON in bytes with the strings and the shape of the features; the graph is
``rowptr``, ``col`` and, where it has weights, ``weight``; the features are ``features`` or, where they are sparse,
``features_rowptr``, ``features_col`` and ``features_value``; all splits lie one after the other in ``split_index`` with
their lengths (train, val, test) in ``split_sizes``.

Large dense features are not read into memory but mapped: they are read from the file where they are used.
"""

from __future__ import annotations

import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset, Split, Task
from omegagnn.data.readers.edges import torch_csr
from omegagnn.data.readers.npz import as_tensor, mapped_array, read_npz, require, write_npz
from omegagnn.errors import DataError
from omegagnn.files import replacing
from omegagnn.graph import Graph

FORMAT = "omegagnn-dataset"
VERSION = 1
MAPPED_BYTES = 2**26

Arrays = dict[str, npt.NDArray[Any]]


def save_dataset(dataset: Dataset, path: str | Path, compress: bool = False) -> None:
    """Write a data set with all its fields to one npz file, atomically; equal data sets give equal bytes."""
    arrays = _to_arrays(dataset)
    with replacing(path) as part, part.open("wb") as stream:
        if compress:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
        else:
            write_npz(stream, arrays)
        stream.flush()
        os.fsync(stream.fileno())


def load_dataset(path: str | Path) -> Dataset:
    """Read what `save_dataset` wrote; anything else, or less, is a `DataError` that names the file."""
    label = str(path)
    mapped = _mapped_features(Path(path))
    arrays = read_npz(path, leave=mapped) | mapped
    header = _read_header(arrays, label)
    try:
        return _from_arrays(header, arrays, label)
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
        raise _damaged(label, str(error)) from error


def _mapped_features(path: Path) -> Arrays:
    """Return dense features that are too large to be copied for nothing, as a map of the file; else nothing."""
    try:
        features = mapped_array(path, "features")
    except (
        OSError,
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        ValueError,
        struct.error,
        EOFError,
        SyntaxError,
    ):
        return {}  # no such file or a damaged one, which the reader of the whole tells
    return {} if features is None or features.nbytes < MAPPED_BYTES else {"features": features}


def _to_arrays(dataset: Dataset) -> Arrays:
    graph, features = dataset.graph, dataset.features
    header = {
        "format": FORMAT,
        "version": VERSION,
        "name": dataset.name,
        "task": dataset.task,
        "is_operator": graph.is_operator,
        "features_shape": list(features.shape),
        "class_names": list(dataset.class_names),
        "feature_names": list(dataset.feature_names),
        "node_ids": None if dataset.node_ids is None else list(dataset.node_ids),
        "warnings": list(dataset.warnings),
        "splits": [split.name for split in dataset.splits],
    }
    arrays: Arrays = {
        "header": np.frombuffer(json.dumps(header, sort_keys=True).encode("ascii"), dtype=np.uint8),
        "rowptr": _numpy(graph.rowptr),
        "col": _numpy(graph.col),
        "labels": _numpy(dataset.labels),
    }
    if graph.weight is not None:
        arrays["weight"] = _numpy(graph.weight)
    if features.layout == torch.sparse_csr:
        arrays["features_rowptr"] = _numpy(features.crow_indices())
        arrays["features_col"] = _numpy(features.col_indices())
        arrays["features_value"] = _numpy(features.values())
    else:
        arrays["features"] = _numpy(features)
    if dataset.ptr is not None:
        arrays["ptr"] = _numpy(dataset.ptr)
    if dataset.splits:
        parts = [part for split in dataset.splits for part in (split.train, split.val, split.test)]
        arrays["split_sizes"] = np.array([part.numel() for part in parts], dtype=np.int64).reshape(-1, 3)
        arrays["split_index"] = _numpy(torch.cat(parts))
    return arrays


def _numpy(tensor: Tensor) -> npt.NDArray[Any]:
    return tensor.detach().cpu().contiguous().numpy()


def _read_header(arrays: Arrays, label: str) -> dict[str, Any]:
    if "header" not in arrays:
        raise DataError(f"{label} is not a data set saved by omegagnn: import it with `omegagnn data import`.")
    try:
        header = json.loads(arrays["header"].tobytes())
    except ValueError as error:
        raise _damaged(label, "its header is not JSON") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DataError(f"{label} is not a data set saved by omegagnn: import it with `omegagnn data import`.")
    if header.get("version") != VERSION:
        raise DataError(
            f"{label} has data set format {header.get('version')}, this version of omegagnn reads {VERSION}: "
            "remove the file and load or import the data set again."
        )
    return header


def _from_arrays(header: dict[str, Any], arrays: Arrays, label: str) -> Dataset:
    require(arrays, ("rowptr", "col", "labels"), label)
    graph = _read_graph(header, arrays, label)
    ptr = torch.from_numpy(arrays["ptr"]) if "ptr" in arrays else None
    node_ids = header["node_ids"]
    dataset = Dataset(
        name=str(header["name"]),
        task=header["task"],
        graph=graph,
        features=_read_features(header, arrays, label),
        labels=torch.from_numpy(arrays["labels"]),
        ptr=ptr,
        class_names=tuple(header["class_names"]),
        feature_names=tuple(header["feature_names"]),
        node_ids=None if node_ids is None else tuple(node_ids),
        warnings=tuple(header["warnings"]),
    )
    _check(dataset, label)
    return dataset.with_splits(_read_splits(header, arrays, dataset, label))


def _read_graph(header: dict[str, Any], arrays: Arrays, label: str) -> Graph:
    rowptr, col = torch.from_numpy(arrays["rowptr"]), torch.from_numpy(arrays["col"])
    weight = torch.from_numpy(arrays["weight"]) if "weight" in arrays else None
    _check_rows(rowptr, col, rowptr.numel() - 1, "the graph", label)
    if weight is not None and (weight.shape != col.shape or not bool(torch.isfinite(weight).all())):
        raise _damaged(label, "its edge weights do not fit its edges")
    return Graph(rowptr, col, weight, is_operator=bool(header["is_operator"]))


def _read_features(header: dict[str, Any], arrays: Arrays, label: str) -> Tensor:
    if "features" in arrays:
        return as_tensor(arrays["features"])
    require(arrays, ("features_rowptr", "features_col", "features_value"), label)
    rowptr, col, value = (torch.from_numpy(arrays[f"features_{part}"]) for part in ("rowptr", "col", "value"))
    rows, columns = (int(size) for size in header["features_shape"])
    _check_rows(rowptr, col, columns, "the features", label)
    if rowptr.numel() != rows + 1 or value.shape != col.shape:
        raise _damaged(label, "its sparse features do not fit together")
    return torch_csr(rowptr, col, value, shape=(rows, columns))


def _check_rows(rowptr: Tensor, col: Tensor, columns: int, what: str, label: str) -> None:
    """Refuse compressed rows that a kernel would follow out of bounds."""
    flat = rowptr.dim() == col.dim() == 1 and rowptr.numel() > 0 and rowptr.dtype == col.dtype
    if not flat or rowptr.dtype not in (torch.int32, torch.int64):
        raise _damaged(label, f"the index arrays of {what} have the wrong shape or type")
    if int(rowptr[0]) != 0 or int(rowptr[-1]) != col.numel() or bool((rowptr.diff() < 0).any()):
        raise _damaged(label, f"the rows of {what} do not fit their entries")
    if col.numel() == 0:
        return
    low, high = torch.aminmax(col)
    if int(low) < 0 or int(high) >= columns:
        raise _damaged(label, f"{what} points outside its {columns} columns")
    falls = (col[1:] < col[:-1]).nonzero().flatten() + 1
    if bool((rowptr[torch.searchsorted(rowptr, falls.to(rowptr.dtype))] != falls).any()):
        raise _damaged(label, f"the columns of {what} are out of order")


def _check(dataset: Dataset, label: str) -> None:
    n, labels, ptr = dataset.num_nodes, dataset.labels, dataset.ptr
    if dataset.task not in get_args(Task):
        raise _damaged(label, f"it has the unknown task {dataset.task!r}")
    if dataset.features.dim() != 2 or dataset.features.size(0) != n:
        raise _damaged(label, f"its features are not one row for each of its {n} nodes")
    if ptr is not None:
        whole = ptr.dim() == 1 and ptr.numel() > 0 and ptr.dtype == torch.int64
        if not whole or int(ptr[0]) != 0 or int(ptr[-1]) != n or bool((ptr.diff() < 0).any()):
            raise _damaged(label, "its graphs do not cover its nodes")
    items = dataset.num_graphs if dataset.task == "graph" else n
    if labels.dim() not in (1, 2) or labels.size(0) != items:
        raise _damaged(label, f"its labels are not one for each of its {items} items")
    if dataset.node_ids is not None and len(dataset.node_ids) != n:
        raise _damaged(label, f"its node ids are not one for each of its {n} nodes")


def _read_splits(header: dict[str, Any], arrays: Arrays, dataset: Dataset, label: str) -> tuple[Split, ...]:
    names = header["splits"]
    if not names:
        return ()
    require(arrays, ("split_sizes", "split_index"), label)
    sizes, index = arrays["split_sizes"], torch.from_numpy(arrays["split_index"])
    if sizes.shape != (len(names), 3) or int(sizes.sum()) != index.numel() or index.dtype != torch.int64:
        raise _damaged(label, "its splits do not fit together")
    items = dataset.num_nodes if dataset.task == "node" else dataset.num_graphs
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < items:
        raise _damaged(label, f"its splits point outside its {items} items")
    parts = index.split(sizes.ravel().tolist())
    return tuple(Split(str(name), *parts[3 * i : 3 * i + 3]) for i, name in enumerate(names))


def _damaged(label: str, what: str) -> DataError:
    return DataError(f"{label} is damaged ({what}): remove the file and load or import the data set again.")

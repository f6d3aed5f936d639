"""PyTorch Geometric in and out: `to_pyg` and `from_pyg`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset, Split
from omegagnn.errors import DataError
from omegagnn.graph import Graph

if TYPE_CHECKING:
    from torch_geometric.data import Data

_MASKS = ("train_mask", "val_mask", "test_mask")


def to_pyg(dataset: Dataset, sparse: bool = False) -> Data | list[Data]:
    """Return PyG's `Data` for a node task, a list of them for tasks of many graphs.

    `sparse` keeps sparse features as they are instead of making them dense. The splits of a node task become
    ``train_mask``, ``val_mask`` and ``test_mask``: ``[n]`` for one split, ``[n, splits]`` for several.
    """
    from torch_geometric.data import Data

    features = dataset.features
    if features.layout == torch.sparse_csr and not sparse:
        features = features.to_dense()
    edge_index, weight = dataset.graph.to_edge_index()
    if dataset.ptr is None:
        data = Data(x=features, edge_index=edge_index, y=dataset.labels, num_nodes=dataset.num_nodes)
        if weight is not None:
            data.edge_weight = weight
        for key, mask in _masks(dataset).items():
            data[key] = mask
        return data
    return [_one_graph(dataset, number, features, edge_index, weight) for number in range(dataset.num_graphs)]


def from_pyg(data: Data | list[Data] | tuple[Data, ...], name: str = "own") -> Dataset:
    """Return the data set of a PyG `Data` (node task, with its masks as splits) or a list of them (graph task)."""
    if isinstance(data, (list, tuple)):
        return _many(list(data), name)
    graph = Graph.from_pyg(data)
    labels = _labels(data, graph.num_nodes, "the PyG data object")
    return Dataset(name, "node", graph, _features(data, graph.num_nodes, "the PyG data object"), labels, _splits(data))


def _one_graph(dataset: Dataset, number: int, features: Tensor, edge_index: Tensor, weight: Tensor | None) -> Data:
    from torch_geometric.data import Data

    ptr = cast("Tensor", dataset.ptr)
    start, end = int(ptr[number]), int(ptr[number + 1])
    first, last = int(dataset.graph.rowptr[start]), int(dataset.graph.rowptr[end])
    labels = dataset.labels[number : number + 1] if dataset.task == "graph" else dataset.labels[start:end]
    rows = _sparse_rows(features, start, end) if features.layout == torch.sparse_csr else features[start:end]
    data = Data(x=rows, edge_index=edge_index[:, first:last] - start, y=labels, num_nodes=end - start)
    if weight is not None:
        data.edge_weight = weight[first:last]
    return data


def _sparse_rows(features: Tensor, start: int, end: int) -> Tensor:
    rowptr = features.crow_indices()[start : end + 1]
    inside = slice(int(rowptr[0]), int(rowptr[-1]))
    values, columns = features.values()[inside], features.col_indices()[inside]
    return torch.sparse_csr_tensor(rowptr - rowptr[0], columns, values, (end - start, features.size(1)))


def _masks(dataset: Dataset) -> dict[str, Tensor]:
    if not dataset.splits:
        return {}
    masks = {key: torch.zeros(dataset.num_nodes, len(dataset.splits), dtype=torch.bool) for key in _MASKS}
    for column, split in enumerate(dataset.splits):
        for key, part in zip(_MASKS, (split.train, split.val, split.test), strict=True):
            masks[key][part, column] = True
    return {key: mask.squeeze(1) if len(dataset.splits) == 1 else mask for key, mask in masks.items()}


def _features(data: Any, num_nodes: int, label: str) -> Tensor:
    features = getattr(data, "x", None)
    if not isinstance(features, Tensor) or features.dim() != 2 or features.size(0) != num_nodes:
        raise DataError(f"{label} has no features x of shape [{num_nodes}, f]: set them.")
    if features.layout not in (torch.strided, torch.sparse_csr):
        features = features.to_sparse_csr()
    return features.to(torch.float32)


def _labels(data: Any, items: int, label: str) -> Tensor:
    labels = getattr(data, "y", None)
    if labels is None:
        return torch.full((items,), -1)
    if labels.dim() == 2 and labels.size(1) > 1 and labels.size(0) == items:
        return labels.to(torch.float32)
    labels = labels.flatten()
    if labels.numel() != items or labels.dtype.is_floating_point:
        raise DataError(
            f"{label} has labels y of shape {list(data.y.shape)} and type {data.y.dtype}: give {items} whole numbers."
        )
    return labels.to(torch.int64)


def _splits(data: Any) -> tuple[Split, ...]:
    masks = [mask for mask in (getattr(data, key, None) for key in _MASKS) if mask is not None]
    if len(masks) < len(_MASKS):
        return ()
    columns = [mask.reshape(mask.size(0), -1) for mask in masks]
    count = columns[0].size(1)
    names = ["masks"] if count == 1 else [f"masks-{number}" for number in range(count)]
    # A mask of one column beside masks of many (PyG's test mask of WikiCS) belongs to every split.
    parts = [[column[:, min(k, column.size(1) - 1)].nonzero().flatten() for column in columns] for k in range(count)]
    return tuple(Split(split_name, *part) for split_name, part in zip(names, parts, strict=True))


def _many(items: list[Any], name: str) -> Dataset:
    if not items:
        raise DataError("The list of PyG data objects is empty: give at least one graph.")
    graphs = [Graph.from_pyg(item) for item in items]
    labels = [graph_label for number, item in enumerate(items) for graph_label in [_labels(item, 1, f"graph {number}")]]
    features = [
        _features(item, graph.num_nodes, f"graph {k}")
        for k, (item, graph) in enumerate(zip(items, graphs, strict=True))
    ]
    widths = {part.size(1) for part in features}
    if len(widths) > 1:
        raise DataError(f"The graphs have {sorted(widths)} features: give each the same number.")
    ptr = torch.tensor([0, *(graph.num_nodes for graph in graphs)]).cumsum(0)
    pairs = [graph.to_edge_index() for graph in graphs]
    index = torch.cat([edge_index + start for (edge_index, _), start in zip(pairs, ptr.tolist(), strict=False)], dim=1)
    weighted = [weight is not None for _, weight in pairs]
    if any(weighted) and not all(weighted):
        raise DataError("Some of the graphs have edge weights and some have none: give them to all or to none.")
    weight = torch.cat([cast("Tensor", weight) for _, weight in pairs]) if all(weighted) else None
    graph = Graph.from_edge_index(index, int(ptr[-1]), weight)
    dense = torch.cat([part.to_dense() for part in features])
    return Dataset(name, "graph", graph, dense, torch.cat(labels), ptr=ptr)

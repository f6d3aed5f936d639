"""From tables of ids to a graph of positions, piece by piece, so that millions of edges need little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from omegagnn.data.own.cells import LARGEST, Texts, is_text, numbers, texts
from omegagnn.data.own.schema import Recipe
from omegagnn.data.own.tables import Table
from omegagnn.errors import DataError, WrongUse
from omegagnn.graph import Graph

Positions = npt.NDArray[np.int64]
_ENDPOINTS = (("source", "target"), ("src", "dst"), ("from", "to"))
_BETWEEN = "\x1f"  # stands between a graph's id and a node's, and in neither


class NodeIndex:
    """The ids of nodes and the position of each; for many graphs an id is unique within its graph."""

    def __init__(self, table: Table, column: str, graph_column: str | None = None) -> None:
        """Read the ids, refusing missing and repeated ones."""
        series = table.require(column, "the node ids")
        values, empty = texts(series)
        _refuse_empty(table, column, empty, "id")
        self.ids: tuple[str, ...] = tuple(values.tolist())
        self.graph_column, self.table, self.column = graph_column, table, column
        self._arrow_ids: Any = None
        # Whole numbers on both sides are compared as such, which is many times faster than as texts.
        self._integers = graph_column is None and _is_integer(series)
        native = series.to_numpy(dtype=np.int64) if self._integers else _keys(table, values, graph_column)
        self._index: pd.Index[Any] = pd.Index(native, dtype=native.dtype)
        twice = np.flatnonzero(self._index.duplicated())
        if twice.size:
            row = int(twice[0])
            first = int(np.flatnonzero(self._index == self._index[row])[0])
            raise DataError(
                f"{table.where(row)}: the id {values[row]!r} in column {column!r} was used before ({table.where(first)}): "
                "give every node its own id."
            )

    def positions(self, piece: Table, column: str, owner: str = "edge", named: str = "node") -> Positions:
        """Return where the nodes (or what is `named`) of a column stand; an unknown one is an edge to nowhere."""
        series = piece.frame[column]
        if self._integers and _is_integer(series):
            found = self._index.get_indexer(pd.Index(series.to_numpy(dtype=np.int64)))
        elif self.graph_column is None and _is_arrow(series):
            _refuse_empty(piece, column, (series.isna() | (series == "")).to_numpy(dtype=bool), "endpoint")
            found = self._arrow_positions(series)
        else:
            values, empty = texts(series)
            _refuse_empty(piece, column, empty, "endpoint")
            keys = pd.Index(_keys(piece, values, self.graph_column), dtype=object)
            found = self._text_index().get_indexer(keys)
        lost = np.flatnonzero(found < 0)
        if lost.size:
            row = int(lost[0])
            shown = texts(series.iloc[[row]])[0][0]
            within = (
                ""
                if self.graph_column is None
                else f" of graph {texts(piece.frame[self.graph_column].iloc[[row]])[0][0]!r}"
            )
            raise DataError(
                f"{piece.where(row)}: the {owner}'s {column} {shown!r} is no {named}{within} in {self.table.label}, column "
                f"{self.column!r}: add the {named} or remove the {owner}."
            )
        return found.astype(np.int64)

    def _arrow_positions(self, series: pd.Series[Any]) -> Positions:
        """Look texts up where they lie, without a Python object for each."""
        import pyarrow as pa
        from pyarrow import compute

        column = pa.array(series)
        if self._arrow_ids is None:
            self._arrow_ids = pa.array(self.ids, type=column.type)
        result = compute.index_in(column, value_set=self._arrow_ids).fill_null(-1)
        found: Positions = result.to_numpy(zero_copy_only=False).astype(np.int64)
        return found

    def _text_index(self) -> pd.Index[Any]:
        if self._integers:
            self._index, self._integers = pd.Index(list(self.ids), dtype=object), False
        return self._index


def endpoint_columns(columns: list[str], recipe: Recipe, label: str) -> tuple[str, str]:
    """Return the names of the source and the target column."""
    guess = next((pair for pair in _ENDPOINTS if set(pair) <= set(columns)), None)
    if guess is None:
        rest = [column for column in columns if column not in (recipe.weights, recipe.graph)]
        if len(rest) < 2:
            raise DataError(f"{label} has no two columns for the ends of an edge: write columns 'source' and 'target'.")
        guess = (rest[0], rest[1])
    source, target = recipe.source or guess[0], recipe.target or guess[1]
    if source == target:
        raise WrongUse(
            f"The column {source!r} of {label} cannot be both source and target: name two with --source and --target."
        )
    return source, target


def nodes_from_edges(pieces: list[Table], source: str, target: str) -> Table:
    """Return the table of all nodes that edges name, in the order of their first appearance."""
    seen: dict[str, None] = {}
    for piece in pieces:
        ends = []
        for column in (source, target):
            values, empty = texts(piece.require(column, "an end of the edges"))
            _refuse_empty(piece, column, empty, "endpoint")
            ends.append(values)
        seen.update(dict.fromkeys(np.stack(ends, axis=1).ravel().tolist()))
    label = pieces[0].label if pieces else "edges"
    return Table(pd.DataFrame({"id": pd.Series(list(seen), dtype=object)}), label)


def read_edges(
    pieces: Iterator[Table], index: NodeIndex, num_nodes: int, ends: tuple[str, str], recipe: Recipe
) -> Graph:
    """Return the graph of all edges; undirected ones are stored both ways, each pair once with its largest weight."""
    senders: list[Positions] = []
    receivers: list[Positions] = []
    weights: list[npt.NDArray[np.float32]] = []
    for piece in pieces:
        for column in ends:
            piece.require(column, "an end of the edges")
        senders.append(index.positions(piece, ends[0]))
        receivers.append(index.positions(piece, ends[1]))
        if recipe.weights is not None:
            weights.append(_weights(piece, recipe.weights))
    ends_of_edges = [np.concatenate(part) if part else np.empty(0, dtype=np.int64) for part in (senders, receivers)]
    weight = torch.from_numpy(np.concatenate(weights)) if weights else None
    return build_graph(torch.from_numpy(np.stack(ends_of_edges)), num_nodes, weight, directed=bool(recipe.directed))


def build_graph(edge_index: torch.Tensor, num_nodes: int, weight: torch.Tensor | None, directed: bool) -> Graph:
    """Return the graph as listed, or with every edge both ways."""
    if directed or weight is not None:
        graph = Graph.from_edge_index(edge_index, num_nodes, weight)
        return graph if directed else graph.to_undirected()
    # Without weights a sort of one number an edge is enough.
    keys = torch.cat([edge_index[0] * num_nodes + edge_index[1], edge_index[1] * num_nodes + edge_index[0]]).numpy()
    keys.sort()
    unique = torch.from_numpy(keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if keys.size else keys)
    rowptr = torch.zeros(num_nodes + 1, dtype=torch.int64)
    rowptr[1:] = torch.bincount(unique // max(num_nodes, 1), minlength=num_nodes).cumsum(0)
    return Graph.from_csr(rowptr, unique % max(num_nodes, 1))


def _weights(piece: Table, column: str) -> npt.NDArray[np.float32]:
    series = piece.require(column, "the edge weights")
    values, bad = numbers(piece, column)
    faults = {
        "is not a number": bad,
        "is missing": np.isnan(values),
        "is negative": values < 0,
        "is too large": values > LARGEST,
    }
    for fault, rows in faults.items():
        if rows.any():
            row = int(np.flatnonzero(rows)[0])
            shown = repr(series.iloc[row]) if is_text(series) else f"{values[row]:g}"
            raise DataError(
                f"{piece.where(row)}: the weight {shown} in column {column!r} {fault}: write a number of at least 0, or leave "
                "out --weights."
            )
    return values.astype(np.float32)


def _keys(table: Table, values: Texts, graph_column: str | None) -> Texts:
    if graph_column is None:
        return values
    graphs, empty = texts(table.require(graph_column, "the graph of each row"))
    _refuse_empty(table, graph_column, empty, "graph")
    joined: Texts = graphs + _BETWEEN + values
    return joined


def _is_arrow(series: pd.Series[Any]) -> bool:
    return isinstance(series.dtype, pd.StringDtype) and series.dtype.storage == "pyarrow"


def _is_integer(series: pd.Series[Any]) -> bool:
    return isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu"


def _refuse_empty(table: Table, column: str, empty: npt.NDArray[np.bool_], what: str) -> None:
    if empty.any():
        row = int(np.flatnonzero(empty)[0])
        raise DataError(
            f"{table.where(row)}: the {what} in column {column!r} is missing: fill the cell or remove the row."
        )


__all__ = ["NodeIndex", "build_graph", "endpoint_columns", "nodes_from_edges", "read_edges"]

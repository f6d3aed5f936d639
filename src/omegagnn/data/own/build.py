"""`import_tables`: from tables of nodes, edges and graphs to a `Dataset` and its `Schema`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.own.edges import NodeIndex, endpoint_columns, nodes_from_edges, read_edges
from omegagnn.data.own.labels import read_labels, read_split
from omegagnn.data.own.schema import Recipe, Schema, recipe_of
from omegagnn.data.own.sparse import select_rows
from omegagnn.data.own.structure import check_fingerprint, fingerprint, refuse_for_many_graphs, structural_features
from omegagnn.data.own.tables import Table, read_pieces, read_table
from omegagnn.errors import DataError, WrongUse
from omegagnn.graph import Graph

Source = str | Path | pd.DataFrame | Table
GRAPH_COLUMN = "graph"


class _Grouping(NamedTuple):
    """Which nodes belong to which graph: nodes are taken in the order `order`, graph k owns ptr[k] to ptr[k + 1] - 1."""

    table: Table
    ids: tuple[str, ...]
    order: npt.NDArray[np.int64]
    ptr: Tensor


def import_tables(
    nodes: Source | None,
    edges: Source,
    graphs: Source | None = None,
    recipe: Recipe | None = None,
    schema: Schema | None = None,
    name: str = "own",
    labels: bool = True,
) -> tuple[Dataset, Schema]:
    """Return the data set that the tables describe, and the schema by which it was coded.

    Args:
        nodes: one row a node, or None to take the nodes from the edges.
        edges: one row an edge.
        graphs: one row a graph, for graph classification; `nodes` and `edges` then have a column that names the graph.
        recipe: which columns are what.
        schema: the schema of an earlier import, to code a changed graph in the same way; it brings its recipe, and labels
            and splits may be absent.
        name: the name of the data set.
        labels: whether to read labels where there are some; without, their column is not looked at.
    """
    recipe = schema.recipe if schema is not None else (recipe or Recipe())
    columns, pieces = read_pieces(edges, "edges", recipe.separator)
    label_of_edges = (
        edges.label if isinstance(edges, Table) else "edges" if isinstance(edges, pd.DataFrame) else Path(edges).name
    )
    ends = endpoint_columns(columns, recipe, label_of_edges)
    if nodes is None:
        table, pieces = nodes_from_edges(listed := list(pieces), *ends), iter(listed)
        recipe = replace(recipe, id="id", features=recipe.features or ())
    else:
        table = read_table(nodes, "nodes", recipe.separator)
    recipe = _resolved(recipe, table, ends, is_many=graphs is not None)
    index = NodeIndex(table, str(recipe.id), recipe.graph)
    grouping = None if graphs is None else _group(table, read_table(graphs, "graphs", recipe.separator), recipe)
    target, class_names, splits = _targets(table if grouping is None else grouping.table, recipe, schema, labels)
    coding = schema or replace(Schema.of(table, _feature_columns(table, recipe), recipe), class_names=class_names)
    graph = read_edges(pieces, index, len(table), ends, recipe)
    features, ids = coding.encode(table), index.ids
    if grouping is not None:
        graph, features = _grouped(graph, features, grouping)
        ids = tuple(np.array(ids, dtype=object)[grouping.order].tolist())
    features, names, coding = _with_structure(features, graph, ids, coding, is_new=schema is None)
    coding = replace(
        coding, recipe=recipe if schema is None else schema.recipe, graph_ids=grouping.ids if grouping else ()
    )
    dataset = Dataset(
        name=name,
        task="node" if grouping is None else "graph",
        graph=graph,
        features=features,
        labels=target,
        splits=splits,
        ptr=None if grouping is None else grouping.ptr,
        class_names=class_names,
        feature_names=names,
        node_ids=ids,
    )
    warnings = _warnings(dataset, coding) if schema is None else _warnings_of_a_changed_graph(dataset, coding, table)
    return replace(dataset, warnings=warnings, schema=coding), coding


def _resolved(recipe: Recipe, table: Table, ends: tuple[str, str], is_many: bool) -> Recipe:
    """Return the recipe with every rule replaced by the column it leads to, so that a changed graph is read alike."""
    if len(table) == 0:
        raise DataError(f"{table.label} has no nodes: write one row for each node.")
    refuse_for_many_graphs(recipe.node_features if is_many else None)
    graph = (recipe.graph or GRAPH_COLUMN) if is_many else None
    if recipe.graph is not None and not is_many:
        raise WrongUse(
            f"The column {recipe.graph!r} names the graph of each node, but there is no table of graphs: give one."
        )
    if graph is not None:
        table.require(graph, "the graph of each node")
    rest = [column for column in table.columns if column != graph]
    if recipe.id is None and not rest:
        raise DataError(f"{table.label} has no column of node ids: add one.")
    for column in recipe.categorical:
        table.require(column, "a category")
    return replace(
        recipe, id=recipe.id or rest[0], graph=graph, source=ends[0], target=ends[1], directed=bool(recipe.directed)
    )


def _feature_columns(table: Table, recipe: Recipe) -> tuple[str, ...]:
    if recipe.features is not None:
        for column in recipe.features:
            table.require(column, "a feature")
        chosen = recipe.features
        if recipe.label is not None and recipe.label in chosen and recipe.graph is None:
            raise WrongUse(
                f"The label column {recipe.label!r} is among the features, which would give the answer away: remove it."
            )
    else:
        used = {recipe.id, recipe.graph, *(() if recipe.graph is not None else (recipe.label, *recipe.split))}
        chosen = tuple(column for column in table.columns if column not in used)
    if not chosen and recipe.node_features is None:
        raise WrongUse(f"{table.label} has no feature columns: pass --node-features one-hot, degree or positional.")
    return chosen


def _targets(
    table: Table, recipe: Recipe, schema: Schema | None, wanted: bool
) -> tuple[Tensor, tuple[str, ...], tuple[Split, ...]]:
    known = () if schema is None else schema.class_names
    absent = schema is not None and recipe.label not in table.columns
    lacks_label = recipe.label is None or not wanted or absent
    if lacks_label or recipe.label is None:
        if recipe.split and schema is None:
            raise WrongUse(f"The split column {recipe.split[0]!r} needs labels: name their column with --label.")
        return torch.full((len(table),), -1), known, ()
    labels, class_names = read_labels(table, recipe.label, known)
    columns = [column for column in recipe.split if schema is None]
    return labels, class_names, tuple(read_split(table, column, labels, class_names) for column in columns)


def _group(table: Table, graphs: Table, recipe: Recipe) -> _Grouping:
    if len(graphs) == 0:
        raise DataError(f"{graphs.label} has no graphs: write one row for each graph.")
    of_graphs = NodeIndex(graphs, recipe.graph_id or graphs.columns[0])
    graph_of_node = of_graphs.positions(table, str(recipe.graph), "node", "graph")
    sizes = np.bincount(graph_of_node, minlength=len(graphs))
    empty = np.flatnonzero(sizes == 0)
    if empty.size:
        row = int(empty[0])
        raise DataError(
            f"{graphs.where(row)}: the graph {of_graphs.ids[row]!r} has no nodes in {table.label}: add them or remove the graph."
        )
    ptr = torch.from_numpy(np.concatenate([[0], sizes.cumsum()]).astype(np.int64))
    return _Grouping(graphs, of_graphs.ids, np.argsort(graph_of_node, kind="stable").astype(np.int64), ptr)


def _grouped(graph: Graph, features: Tensor, grouping: _Grouping) -> tuple[Graph, Tensor]:
    """Renumber the nodes so that those of one graph lie together."""
    order = torch.from_numpy(grouping.order)
    place = torch.empty_like(order)
    place[order] = torch.arange(order.numel())
    edge_index, weight = graph.to_edge_index()
    return Graph.from_edge_index(place[edge_index], graph.num_nodes, weight), select_rows(features, grouping.order)


def _with_structure(
    features: Tensor, graph: Graph, ids: tuple[str, ...], schema: Schema, is_new: bool
) -> tuple[Tensor, tuple[str, ...], Schema]:
    kind = schema.recipe.node_features
    if kind is None:
        if not schema.feature_names:
            raise DataError(
                "Every feature column has the same value in each row, so no features are left: "
                "add others, or pass --node-features degree."
            )
        return features, schema.feature_names, schema
    if is_new:
        schema = replace(schema, fingerprint=fingerprint(kind, ids, graph))
    else:
        check_fingerprint(kind, schema.fingerprint, ids, graph)
    added, names = structural_features(graph, kind)
    if features.size(1) == 0:
        return added, names, schema
    dense = [part.to_dense() if part.layout == torch.sparse_csr else part for part in (features, added)]
    return torch.cat(dense, dim=1), (*schema.feature_names, *names), schema


def _warnings(dataset: Dataset, schema: Schema) -> tuple[str, ...]:
    """What a user should know about the data, each in one sentence."""
    told: list[str] = []
    constant = [column.name for column in schema.columns if column.kind == "constant"]
    if constant:
        told.append(f"Columns with one value were left out: {', '.join(constant)}.")
    filled = [column.name for column in schema.columns if column.has_missing and column.kind != "constant"]
    if filled:
        told.append(f"Missing values were coded by an indicator feature in the columns {', '.join(filled)}.")
    large = [
        column.name for column in schema.columns if column.kind == "number" and abs(column.mean - column.shift) > 100
    ]
    if large:
        told.append(
            f"The columns {', '.join(large)} have means above 100, which slows training: import with --standardize."
        )
    unlabelled = int((dataset.labels < 0).sum())
    if unlabelled:
        items = "nodes" if dataset.task == "node" else "graphs"
        told.append(f"{unlabelled:,} of {dataset.labels.size(0):,} {items} have no label and are in no split.")
    if dataset.graph.num_edges == 0:
        told.append("The graph has no edges.")
    return tuple(told)


def _warnings_of_a_changed_graph(dataset: Dataset, schema: Schema, table: Table) -> tuple[str, ...]:
    """What a user should know about a graph that was coded as an earlier one."""
    told: list[str] = []
    recipe = schema.recipe
    if recipe.features is None:  # the first import took every column, so one that it did not see is new
        used = {recipe.id, recipe.graph, recipe.label, *recipe.split, *(column.name for column in schema.columns)}
        new = [column for column in table.columns if column not in used]
        if new:
            told.append(f"The columns {', '.join(new)} of {table.label} are new to the schema and were left out.")
    if dataset.graph.num_edges == 0:
        told.append("The graph has no edges.")
    return tuple(told)


def from_pandas(
    nodes: pd.DataFrame | None,
    edges: pd.DataFrame,
    graphs: pd.DataFrame | None = None,
    name: str = "own",
    **recipe: Any,
) -> Dataset:
    """Return the data set that data frames describe; the keyword arguments are those of `Recipe`.

    >>> people = pd.DataFrame({"id": ["ann", "bob", "eve"], "age": [30, 40, 50], "team": ["red", "blue", "red"]})
    >>> friends = pd.DataFrame({"source": ["ann", "bob"], "target": ["bob", "eve"]})
    >>> from_pandas(people, friends, label="team")
    Dataset('own', node, 3 nodes, 4 edges, 1 features, 2 classes, 0 splits)
    """
    return import_tables(nodes, edges, graphs, recipe_of(recipe), name=name)[0]

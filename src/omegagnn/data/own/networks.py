"""Graphs with attributes from NetworkX and from GraphML and GML files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError

import pandas as pd

from omegagnn.data.dataset import Dataset
from omegagnn.data.own.build import import_tables
from omegagnn.data.own.schema import Recipe, Schema, recipe_of
from omegagnn.data.own.tables import Table
from omegagnn.errors import DataError

if TYPE_CHECKING:
    import networkx as nx

ID, SOURCE, TARGET = "id", "source", "target"


def from_networkx(graph: nx.Graph, name: str = "own", **recipe: Any) -> Dataset:
    """Return the data set of a NetworkX graph: node attributes are columns, edges keep the direction of the graph.

    The keyword arguments are those of `Recipe`, such as ``label="club"`` or ``weights="weight"``.
    """
    return import_network(graph, "the graph", recipe_of(recipe), name=name)[0]


def import_network(
    graph: nx.Graph,
    label: str,
    recipe: Recipe,
    schema: Schema | None = None,
    name: str = "own",
    labels: bool = True,
) -> tuple[Dataset, Schema]:
    """Return data set and schema of a NetworkX graph that errors call `label`."""
    nodes = pd.DataFrame.from_dict(dict(graph.nodes(data=True)), orient="index")
    edges = pd.DataFrame([data for _, _, data in graph.edges(data=True)])
    for frame, reserved in ((nodes, (ID,)), (edges, (SOURCE, TARGET))):
        for column in reserved:
            if column in frame.columns:
                raise DataError(f"{label} has an attribute {column!r}, a name that is taken: rename the attribute.")
    nodes = nodes.reset_index(drop=True)
    nodes.insert(0, ID, pd.Series([str(node) for node in graph.nodes], dtype=object))
    ends = [(str(source), str(target)) for source, target in graph.edges()]
    edges.insert(0, SOURCE, pd.Series([source for source, _ in ends], dtype=object))
    edges.insert(1, TARGET, pd.Series([target for _, target in ends], dtype=object))
    directed = graph.is_directed() if recipe.directed is None else recipe.directed
    recipe = replace(recipe, id=recipe.id or ID, source=SOURCE, target=TARGET, directed=directed)
    if recipe.id != ID:
        nodes, edges = _renamed(nodes, edges, str(recipe.id), label)
    tables = (Table(nodes, f"{label} (nodes)"), Table(edges, f"{label} (edges)"))
    return import_tables(*tables, recipe=recipe, schema=schema, name=name, labels=labels)


def read_network(path: Path) -> nx.Graph:
    """Read a GraphML or GML file; a broken one is a `DataError` with its line where the parser tells."""
    import networkx as nx

    try:
        if path.suffix.lower() == ".graphml":
            return nx.read_graphml(path)
        return nx.read_gml(path, label="id")
    except ParseError as error:
        raise DataError(
            f"{path.name}, line {error.position[0]}: the XML is broken ({error}): export the graph again."
        ) from error
    except (nx.NetworkXError, KeyError, ValueError, TypeError, AttributeError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(
            f"{path.name} is no graph that can be read ({first.rstrip('.')}): export the graph again."
        ) from error


def _renamed(nodes: pd.DataFrame, edges: pd.DataFrame, column: str, label: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Call the nodes by an attribute of theirs instead of by the key that edges use."""
    names = Table(nodes, f"{label} (nodes)").require(column, "the node ids")
    called = dict(zip(nodes[ID], names, strict=True))
    edges[SOURCE], edges[TARGET] = edges[SOURCE].map(called), edges[TARGET].map(called)
    return nodes.drop(columns=ID), edges

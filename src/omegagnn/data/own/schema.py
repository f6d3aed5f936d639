"""`Recipe`, which says what each column is, and `Schema`, which remembers how it was coded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import scipy.sparse as sp
from torch import Tensor

from omegagnn.data.own.coding import Block, Column, Missing, encode, fit
from omegagnn.data.own.sparse import is_worth_sparse, sparse_or_dense, to_torch
from omegagnn.data.own.tables import Table, read_table
from omegagnn.errors import DataError, WrongUse
from omegagnn.files import replacing

NodeFeatures = Literal["one-hot", "degree", "positional"]

FORMAT, VERSION = "omegagnn-schema", 1


@dataclass(frozen=True)
class Recipe:
    """Which columns are what. None stands for the rule in brackets.

    Args:
        id: column of node ids in the nodes table [its first column].
        label: column of classes, in the graphs table where there is one, else in the nodes table [no labels].
        features: feature columns of the nodes table [all that are nothing else].
        categorical: feature columns that are categories even where they read as numbers.
        source: column of the edges table that sends [``source``, ``src`` or ``from``, else the first].
        target: column of the edges table that receives [``target``, ``dst`` or ``to``, else the second].
        weights: column of edge weights [all edges weigh 1].
        directed: keep the direction of edges instead of making each run both ways [the format's own, else False].
        split: columns that say ``train``, ``val`` or ``test`` for each row, in the table of the labels; each is one split.
        graph: column of the nodes and edges tables that says which graph a row belongs to (graph tasks) [``graph``].
        graph_id: column of graph ids in the graphs table [its first column].
        node_features: features from the structure: the node itself, its degree, or eigenvectors of the Laplacian.
        missing: what a missing number becomes: the mean with an indicator feature, or an error.
        standardize: subtract the mean of each number and divide by its standard deviation.
        separator: character between the cells of text files [comma, tab for .tsv].
    """

    id: str | None = None
    label: str | None = None
    features: tuple[str, ...] | None = None
    categorical: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    weights: str | None = None
    directed: bool | None = None
    split: tuple[str, ...] = ()
    graph: str | None = None
    graph_id: str | None = None
    node_features: NodeFeatures | None = None
    missing: Missing = "mean"
    standardize: bool = False
    separator: str | None = None

    def __post_init__(self) -> None:
        """Refuse values that do not exist; take any sequence of names for a tuple."""
        if self.node_features is not None and self.node_features not in get_args(NodeFeatures):
            raise WrongUse(f"There are no node features {self.node_features!r}: choose one-hot, degree or positional.")
        if self.missing not in get_args(Missing):
            raise WrongUse(f"There is no rule {self.missing!r} for missing values: choose mean or error.")
        for name in ("features", "categorical", "split"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise WrongUse(f"{name} must be a list of column names, not the text {value!r}: write [{value!r}].")
            if value is not None:
                object.__setattr__(self, name, tuple(map(str, value)))


@dataclass(frozen=True)
class Schema:
    """How a graph was coded, so that a changed one can be coded the same way.

    `fingerprint` names the nodes (one-hot) or the nodes and edges (positional) that structural features belong to;
    `width` counts features that came as an array and have no columns.
    """

    recipe: Recipe = field(default_factory=Recipe)
    columns: tuple[Column, ...] = ()
    class_names: tuple[str, ...] = ()
    graph_ids: tuple[str, ...] = ()
    fingerprint: str = ""
    width: int = 0

    @classmethod
    def of(cls, table: Table, names: tuple[str, ...], recipe: Recipe) -> Schema:
        """Decide the coding of the columns called `names`."""
        coded = (fit(table, name, name in recipe.categorical, recipe.missing, recipe.standardize) for name in names)
        return cls(recipe=recipe, columns=tuple(coded))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features that `encode` returns, in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def encode(self, table: Table | pd.DataFrame | str | Path) -> Tensor:
        """Code the feature columns of a nodes table: ``[n, f]`` float32, dense or sparse CSR.

        Columns that the schema does not know are ignored; a column it knows that is absent, a text where a number should
        be and a category never seen are each an error that names the column.
        """
        table = read_table(table, "nodes", self.recipe.separator)
        return _assemble([encode(column, table) for column in self.columns], len(table))

    def to_json(self) -> str:
        """Return the schema as JSON, readable and stable."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "recipe": asdict(self.recipe),
            "columns": [column.to_json() for column in self.columns],
            "feature_names": list(self.feature_names),
            "class_names": list(self.class_names),
            "graph_ids": list(self.graph_ids),
            "fingerprint": self.fingerprint,
            "width": self.width,
        }
        return json.dumps(content, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, label: str = "the schema") -> Schema:
        """Read what `to_json` wrote; `label` is what an error calls it."""
        try:
            content = json.loads(text)
            if content["format"] != FORMAT or content["version"] != VERSION:
                raise ValueError(f"format {content['format']!r}, version {content['version']!r}")
            known = {item.name for item in fields(Recipe)}
            return cls(
                recipe=Recipe(**{key: value for key, value in content["recipe"].items() if key in known}),
                columns=tuple(Column.from_json(column) for column in content["columns"]),
                class_names=tuple(map(str, content["class_names"])),
                graph_ids=tuple(map(str, content["graph_ids"])),
                fingerprint=str(content["fingerprint"]),
                width=int(content["width"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{label} is no schema of this version ({error}): import the data set again.") from error

    def save(self, path: str | Path) -> None:
        """Write the schema to a file, atomically."""
        with replacing(path) as part:
            part.write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise DataError(f"There is no schema {path}: import the data set again.") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is not in UTF-8: import the data set again.") from error
        return cls.from_json(text, str(path))


def _assemble(blocks: list[Block], rows: int) -> Tensor:
    width = sum(block.width for block in blocks)
    filled = sum(int((block.hot >= 0).sum()) if block.hot is not None else rows * block.width for block in blocks)
    if is_worth_sparse(filled, rows, width):
        return to_torch(sp.hstack([_sparse(block, rows) for block in blocks], format="csr"))
    features, start = np.zeros((rows, width), dtype=np.float32), 0
    for block in blocks:
        if block.dense is not None:
            features[:, start : start + block.width] = block.dense
        elif block.hot is not None:
            known = np.flatnonzero(block.hot >= 0)
            features[known, start + block.hot[known]] = 1.0
        start += block.width
    return sparse_or_dense(features)


def _sparse(block: Block, rows: int) -> sp.csr_array[Any]:
    if block.dense is not None:
        return sp.csr_array(block.dense)
    hot = np.full(rows, -1, dtype=np.int64) if block.hot is None else block.hot
    known = np.flatnonzero(hot >= 0)
    entries = (np.ones(known.size, dtype=np.float32), (known, hot[known]))
    return sp.csr_array(entries, shape=(rows, block.width))


def recipe_of(options: Mapping[str, Any]) -> Recipe:
    """Build a recipe from keyword arguments, naming the one that does not exist."""
    unknown = set(options) - {item.name for item in fields(Recipe)}
    if unknown:
        raise WrongUse(
            f"There is no option {sorted(unknown)[0]!r}: choose among {', '.join(f.name for f in fields(Recipe))}."
        )
    return Recipe(**options)

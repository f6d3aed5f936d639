"""How a source column becomes features, fitted once and kept in the schema.

==========  ===========================================================================================================
number      one feature; missing cells take the mean of the others and add an indicator feature ``name=missing``
boolean     true/false or yes/no, in any case: one feature 1/0, missing cells as for numbers
category    one feature ``name=value`` for each value, in sorted order; missing cells add a feature ``name=missing``
constant    none: a column with one value, or with none at all, carries nothing
==========  ===========================================================================================================

A column of texts is a number where every cell that is not missing reads as one. Where more than half do, the first that
does not is an error, since it is likely a slip. Else it is a category, unless it has so many values that it is an id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from omegagnn.data.own.cells import Floats, Texts, check_finite, is_text, missing, numbers, texts
from omegagnn.data.own.tables import Table
from omegagnn.errors import DataError

Kind = Literal["number", "boolean", "category", "constant"]
Missing = Literal["mean", "error"]

MOST_CATEGORIES = 1000
_TRUE, _FALSE = ("true", "yes"), ("false", "no")


@dataclass(frozen=True)
class Column:
    """A source column and its coding: a number is coded as ``(value - shift) / scale``."""

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    mean: float = 0.0
    shift: float = 0.0
    scale: float = 1.0
    has_missing: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features that this column becomes."""
        own = {"constant": (), "category": tuple(f"{self.name}={value}" for value in self.categories)}
        extra = (f"{self.name}=missing",) if self.has_missing and self.kind != "constant" else ()
        return (*own.get(self.kind, (self.name,)), *extra)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Column:
        """Build from `to_json`; anything else raises KeyError, TypeError or ValueError."""
        column = cls(**{**fields, "categories": tuple(map(str, fields["categories"]))})
        if column.kind not in get_args(Kind):
            raise ValueError(f"unknown kind {column.kind!r}")
        return column


@dataclass(frozen=True)
class Block:
    """The features of one column: dense values ``[n, k]``, or for a category the one position of each row (-1: none)."""

    width: int
    dense: npt.NDArray[np.float32] | None = None
    hot: npt.NDArray[np.int64] | None = None


def fit(table: Table, name: str, categorical: bool, missing_rule: Missing, standardize: bool) -> Column:
    """Decide how a column is coded."""
    series = table.frame[name]
    _refuse_odd_types(table, name, series)
    column = _fit_texts(table, name, categorical) if is_text(series) or categorical else _fit_numbers(table, name)
    if column.has_missing and missing_rule == "error":
        row = int(np.flatnonzero(missing(texts(series)[0]))[0])
        raise DataError(
            f"{table.where(row)}: the cell in column {name!r} is missing: fill it, or pass --missing mean to take the mean."
        )
    if standardize and column.kind == "number":
        values = encode(column, table).dense
        deviation = 0.0 if values is None else float(values[:, 0].std())
        return replace(column, shift=column.mean, scale=deviation or 1.0)
    return column


def encode(column: Column, table: Table) -> Block:
    """Code the cells of a column; one that does not fit is a `DataError` that names it."""
    if column.kind == "constant":
        return Block(0)
    series = table.require(column.name, "a feature")
    _refuse_odd_types(table, column.name, series)
    if column.kind == "category":
        return _encode_category(column, table, series)
    if column.kind == "boolean" and is_text(series):
        values = _booleans(texts(series)[0])
        _refuse_cell(table, column.name, np.isnan(values) & ~missing(texts(series)[0]), "neither true nor false")
    else:
        values, bad = numbers(table, column.name)
        _refuse_cell(table, column.name, bad, "not a number")
    check_finite(table, column.name, values)
    gone = np.isnan(values)
    coded = (np.where(gone, column.mean, values) - column.shift) / column.scale
    parts = [coded, gone.astype(np.float64)] if column.has_missing else [coded]
    return Block(len(parts), dense=np.stack(parts, axis=1).astype(np.float32))


def _fit_numbers(table: Table, name: str) -> Column:
    values, _ = numbers(table, name)
    check_finite(table, name, values)
    kind: Kind = "boolean" if pd.api.types.is_bool_dtype(table.frame[name].dtype) else "number"
    return _number(name, kind, values)


def _number(name: str, kind: Kind, values: Floats) -> Column:
    present = values[~np.isnan(values)]
    has_missing = present.size < values.size
    if present.size == 0 or (not has_missing and bool((present == present[0]).all())):
        return Column(name, "constant")
    return Column(name, kind, mean=float(present.mean()), has_missing=has_missing)


def _fit_texts(table: Table, name: str, categorical: bool) -> Column:
    values, _ = texts(table.frame[name])
    gone = missing(values)
    present = pd.unique(pd.Series(values[~gone], dtype=object))
    if len(present) == 0 or (len(present) == 1 and not gone.any()):
        return Column(name, "constant")
    if not categorical:
        if {text.lower() for text in present} <= {*_TRUE, *_FALSE}:
            return _number(name, "boolean", _booleans(values))
        parsed, bad = numbers(table, name)
        if not bad.any():
            check_finite(table, name, parsed)
            return _number(name, "number", parsed)
        if bad.sum() * 2 < (~gone).sum():
            row = int(np.flatnonzero(bad)[0])
            raise DataError(
                f"{table.where(row)}: {values[row]!r} in column {name!r} is not a number as most others are: "
                f"mend the cell, leave it empty, or pass --categorical {name}."
            )
        _refuse_many(table, name, len(present), int((~gone).sum()))
    return Column(name, "category", categories=tuple(sorted(present)), has_missing=bool(gone.any()))


def _refuse_many(table: Table, name: str, categories: int, rows: int) -> None:
    if categories > MOST_CATEGORIES or (rows >= 20 and categories * 2 > rows):
        raise DataError(
            f"{table.label}: the column {name!r} has {categories} different texts in {rows} rows, too many for a category: "
            f"leave it out with --features, or pass --categorical {name}."
        )


def _encode_category(column: Column, table: Table, series: pd.Series[Any]) -> Block:
    values, _ = texts(series)
    gone = missing(values)
    position = pd.Index(column.categories, dtype=object).get_indexer(pd.Index(values, dtype=object)).astype(np.int64)
    _refuse_cell(
        table, column.name, (position < 0) & ~gone, f"none of its {len(column.categories)} known categories", values
    )
    position[gone] = len(column.categories) if column.has_missing else -1
    return Block(len(column.feature_names), hot=position)


def _refuse_cell(table: Table, name: str, bad: npt.NDArray[np.bool_], fault: str, values: Texts | None = None) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        row = int(rows[0])
        shown = (texts(table.frame[name])[0] if values is None else values)[row]
        raise DataError(
            f"{table.where(row)}: {shown!r} in column {name!r} is {fault}: mend the cell, or import the data set anew."
        )


def _booleans(values: Texts) -> Floats:
    codes = {**dict.fromkeys(_TRUE, 1.0), **dict.fromkeys(_FALSE, 0.0)}
    return np.array([codes.get(text.lower(), np.nan) for text in values.tolist()], dtype=np.float64)


def _refuse_odd_types(table: Table, name: str, series: pd.Series[Any]) -> None:
    odd = pd.api.types.is_datetime64_any_dtype(series.dtype) or pd.api.types.is_timedelta64_dtype(series.dtype)
    nested = series.dtype == object and any(isinstance(cell, (list, tuple, dict, set, np.ndarray)) for cell in series)
    if odd or nested or pd.api.types.is_complex_dtype(series.dtype):
        what = "lists" if nested else str(series.dtype)
        raise DataError(
            f"{table.label}: the column {name!r} holds {what}, which have no coding: turn it into numbers or texts first."
        )

"""From cells to texts and numbers: what counts as missing, as a number, as an id."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from omegagnn.data.own.tables import Table
from omegagnn.errors import DataError

# Texts that stand for a missing value in a feature, a label, a weight or a split (an id is missing only where it is empty).
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None")
LARGEST = float(np.finfo(np.float32).max)

Texts = npt.NDArray[np.object_]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def is_text(series: pd.Series[Any]) -> bool:
    """Whether the cells are texts to be interpreted, rather than numbers or booleans already."""
    return not pd.api.types.is_numeric_dtype(series.dtype)


def texts(series: pd.Series[Any]) -> tuple[Texts, Flags]:
    """Return the cells as texts, and which are empty; a whole float such as 7.0 reads ``7``."""
    empty = series.isna().to_numpy(dtype=bool)
    values = series.to_numpy(dtype=object)
    if pd.api.types.is_bool_dtype(series.dtype):
        result = np.where(empty, "", np.where(series.fillna(False).to_numpy(dtype=bool), "true", "false")).astype(
            object
        )
    elif pd.api.types.is_float_dtype(series.dtype):
        floats = series.to_numpy(dtype=np.float64, na_value=np.nan)
        result = np.array([_float_text(value) for value in floats.tolist()], dtype=object)
    elif not isinstance(series.dtype, pd.StringDtype) and not all(type(value) is str for value in values):
        result = np.array(
            ["" if gone else _object_text(value) for value, gone in zip(values, empty, strict=True)], dtype=object
        )
    else:
        result = values
        if empty.any():
            result[empty] = ""
    return result, empty | (result == "")


def missing(values: Texts) -> Flags:
    """Return which texts stand for a missing value."""
    return pd.Series(values, dtype=object).isin(MISSING).to_numpy(dtype=bool)


def numbers(table: Table, name: str) -> tuple[Floats, Flags]:
    """Return the cells of a column as numbers (NaN where missing) and which cells are no number at all."""
    series = table.frame[name]
    if not is_text(series):
        return series.to_numpy(dtype=np.float64, na_value=np.nan), np.zeros(len(series), dtype=bool)
    values, _ = texts(series)
    gone = missing(values)
    filled: Texts = values.copy()
    filled[gone] = None
    parsed = np.asarray(pd.to_numeric(filled, errors="coerce"), dtype=np.float64)
    return parsed, np.isnan(parsed) & ~gone


def check_finite(table: Table, name: str, values: Floats) -> None:
    """Refuse infinity and numbers that float32 cannot hold; NaN means missing here."""
    bad = np.flatnonzero(np.abs(values) > LARGEST)
    if bad.size:
        row = int(bad[0])
        raise DataError(
            f"{table.where(row)}: {_shown(values[row])} in column {name!r} is too large for a number of 32 bits: "
            "mend the cell or leave it empty."
        )


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() else repr(value)


def _object_text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return _float_text(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def _shown(value: float) -> str:
    return "infinity" if np.isinf(value) else f"{value:g}"

"""Read text files of numbers, plain or compressed with gzip: sized first, then parsed, with errors that name the place."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from omegagnn.errors import DataError

LARGEST_TEXT = 4 * 2**30
_BLOCK = 2**20


def read_bytes(path: Path, limit: int = LARGEST_TEXT) -> bytes:
    """Read a file, unpacked where its name ends in ``.gz``, but never more than `limit` bytes of it."""
    parts, size = [], 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                size += len(block)
                if size > limit:
                    raise DataError(f"{path} holds more than {limit:,} bytes: it is not the file that belongs here.")
                parts.append(block)
    except FileNotFoundError as error:
        raise DataError(f"There is no file {path}: check the path.") from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}): remove it and fetch it again.") from error
    return b"".join(parts)


def read_table(
    path: Path, columns: int, dtype: type = np.int64, delimiter: str = ",", skip: int = 0
) -> npt.NDArray[Any]:
    """Read a table of numbers ``[rows, columns]``, after `skip` lines of heading; blank lines are passed over."""
    content = read_bytes(path)
    lines = content.split(b"\n", skip)[skip:]
    if not lines or not lines[0].strip():
        return np.empty((0, columns), dtype=dtype)
    try:
        table: npt.NDArray[Any] = np.loadtxt(
            io.BytesIO(lines[0]), dtype=dtype, delimiter=delimiter, ndmin=2, comments=None, encoding="ascii"
        )
    except ValueError as error:
        raise DataError(f"{path} is not a table of numbers ({_one_line(error)}): fetch it again.") from error
    if table.shape[1] != columns:
        raise DataError(f"{path} has {table.shape[1]} columns where {columns} belong: fetch it again.")
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        row = int((~np.isfinite(table)).any(axis=1).argmax()) + skip + 1
        raise DataError(f"{path} has a number in row {row} that is not finite: fetch it again.")
    return table


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".;")

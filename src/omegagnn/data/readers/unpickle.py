"""Read the pickles of the Planetoid files without trusting them.

A pickle is a program. Here it runs on a machine that has only the instructions these files use, that knows only the five
names below, and whose every name stands for a harmless record: no code of NumPy, SciPy or anyone else is called while the
file is read. What the records say is checked afterwards, when they become arrays.
"""

from __future__ import annotations

import io
import math
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from omegagnn.errors import DataError

LARGEST_PICKLE = 256 * 2**20

_INSTRUCTIONS = [
    *(pickle.PROTO, pickle.STOP, pickle.MARK, pickle.GLOBAL, pickle.REDUCE, pickle.BUILD, pickle.NEWOBJ),
    *(pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.BININT, pickle.BININT1, pickle.BININT2),
    *(pickle.BINSTRING, pickle.SHORT_BINSTRING, pickle.SHORT_BINBYTES, pickle.BINBYTES, pickle.BINUNICODE),
    *(pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3),
    *(pickle.EMPTY_LIST, pickle.APPEND, pickle.APPENDS, pickle.EMPTY_DICT, pickle.SETITEM, pickle.SETITEMS),
    *(pickle.BINPUT, pickle.LONG_BINPUT, pickle.BINGET, pickle.LONG_BINGET),
]

_NUMBERS = {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "b1"}


@dataclass
class _DType:
    """What the file says about the type of an array's numbers."""

    code: str = ""
    order: str = "="

    def __init__(self, code: Any = "", *_: Any) -> None:
        self.code = _text(code)

    def __setstate__(self, state: Any) -> None:
        self.order = _text(state[1])

    def numpy(self) -> np.dtype[Any]:
        if self.code not in _NUMBERS or self.order not in ("<", ">", "=", "|"):
            raise ValueError(f"it has an array of type {self.order}{self.code}")
        return np.dtype(("" if self.order == "|" else self.order) + self.code)


@dataclass
class _Array:
    """What the file says about an array."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def numpy(self) -> npt.NDArray[Any]:
        _, shape, dtype, fortran, content = self.state
        if not isinstance(dtype, _DType) or not isinstance(content, bytes):
            raise ValueError("it has an array that does not hold numbers")
        if not isinstance(shape, tuple) or any(not isinstance(size, int) or size < 0 for size in shape):
            raise ValueError(f"it has an array of shape {shape}")
        numbers = dtype.numpy()
        if math.prod(shape) * numbers.itemsize != len(content):
            raise ValueError(f"it has an array of shape {shape} in {len(content)} bytes")
        return np.frombuffer(content, dtype=numbers).reshape(shape, order="F" if fortran else "C")


@dataclass
class _Rows:
    """What the file says about a sparse matrix in compressed rows."""

    state: dict[str, Any] = field(default_factory=dict)

    def __setstate__(self, state: Any) -> None:
        self.state = {_text(key): value for key, value in state.items()}

    def scipy(self) -> sp.csr_array:
        data, indices, indptr = (self.state[key].numpy() for key in ("data", "indices", "indptr"))
        rows, columns = self.state["_shape"]
        flat = data.ndim == indices.ndim == indptr.ndim == 1 and data.shape == indices.shape
        integers = all(array.dtype.kind == "i" for array in (indices, indptr))
        if not flat or not integers or indptr.shape != (rows + 1,) or indptr[0] != 0 or indptr[-1] != len(indices):
            raise ValueError("its sparse matrix does not fit together")
        if (np.diff(indptr) < 0).any() or (len(indices) and not 0 <= indices.min() <= indices.max() < columns):
            raise ValueError("its sparse matrix points outside itself")
        matrix = sp.csr_array((data.astype(np.float32), indices, indptr), shape=(rows, columns))
        matrix.sum_duplicates()
        return matrix


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _defaultdict(*_: Any) -> dict[Any, Any]:
    return {}


_NAMES: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("scipy.sparse.csr", "csr_matrix"): _Rows,
    ("collections", "defaultdict"): _defaultdict,
    ("__builtin__", "list"): None,  # named as what a defaultdict makes, never called
}


# The C unpickler would have a hostile file reserve memory at will (its memo is an array), so the one in Python is used.
class _Unpickler(pickle._Unpickler):
    dispatch = {code[0]: pickle._Unpickler.dispatch[code[0]] for code in _INSTRUCTIONS}  # noqa: RUF012

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise DataError(f"it asks for {module}.{name}")
        return _NAMES[module, name]


def unpickle(path: str | Path) -> Any:
    """Read one pickle and return a dict of lists, a NumPy array or a SciPy sparse array, whichever it holds.

    Anything else is a `DataError`: another name or instruction, arrays that do not fit their bytes, a file cut off.
    """
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_PICKLE:
            raise DataError(f"it is larger than {LARGEST_PICKLE:,} bytes")
        content = _Unpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        if isinstance(content, _Rows):
            return content.scipy()
        if isinstance(content, _Array):
            return content.numpy()
        if isinstance(content, dict):
            return content
        raise DataError(f"it holds a {type(content).__name__}")
    # A program that is not what it should be may fail in any way at all; every way means the same to the reader.
    except Exception as error:
        reason = f"it has the instruction {error}" if isinstance(error, KeyError) else str(error) or "it is cut off"
        raise DataError(f"{path} is not a Planetoid file ({reason}): remove it and fetch it again.") from error


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)

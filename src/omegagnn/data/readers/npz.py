"""Read NumPy archives from strangers: no pickles, no array larger than the bytes that are there, one clear error."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from omegagnn.errors import DataError

# A cached graph of 10 million edges takes about 0.2 GB; an archive that unpacks to more than this is not one of ours.
LARGEST_ARCHIVE = 64 * 2**30

# A damaged archive surfaces in as many ways as zipfile, zlib and NumPy's header parser have.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, SyntaxError, RuntimeError)


def read_npz(source: str | Path | IO[bytes], name: str | None = None, limit: int = LARGEST_ARCHIVE) -> dict[str, Any]:
    """Read every array of an npz file, `source`, into memory; `name` is what an error calls it.

    An entry that holds pickled objects, promises more than it contains or is cut off is a `DataError`.
    """
    label = name or str(source)
    try:
        with zipfile.ZipFile(source) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > limit:
                raise DataError(f"{label} unpacks to more than {limit:,} bytes: this is no data set; remove it.")
            return {member.filename.removesuffix(".npy"): _read_array(archive, member, label) for member in members}
    except FileNotFoundError as error:
        raise DataError(f"There is no file {label}: check the path.") from error
    except IsADirectoryError as error:
        raise DataError(f"{label} is a folder, not an npz file: name the file inside it.") from error
    # A damaged archive surfaces in as many ways as zipfile, zlib and NumPy's header parser have.
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        ValueError,
        SyntaxError,
        RuntimeError,
    ) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{label} is not a whole npz file ({error}): remove it and fetch or make it again.") from error


def read_npy(source: str | Path, limit: int = LARGEST_ARCHIVE) -> npt.NDArray[Any]:
    """Read one npy file without pickles; a file that is cut off or holds objects is a `DataError`."""
    path = Path(source)
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            if size > limit:
                raise DataError(f"{path} has {size:,} bytes, more than the limit of {limit:,}: check the file.")
            return _checked_array(stream, size, str(path))
    except FileNotFoundError as error:
        raise DataError(f"There is no file {path}: check the path.") from error
    except DataError:
        raise
    except _BROKEN as error:
        raise DataError(f"{path} is not a whole npy file ({error}): fetch it again.") from error


def require(arrays: Mapping[str, Any], names: Iterable[str], label: str) -> None:
    """Raise a `DataError` that lists which of `names` the archive called `label` lacks."""
    missing = [name for name in names if name not in arrays]
    if missing:
        raise DataError(f"{label} lacks {', '.join(missing)}: it is not the file that belongs here; fetch it again.")


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, label: str) -> npt.NDArray[Any]:
    with archive.open(member) as stream:
        array = _checked_array(stream, member.file_size, f"{label}:{member.filename}")
        # Reading to the end lets zipfile compare the checksum of the entry.
        if stream.read(1):
            raise DataError(f"{label}:{member.filename} is longer than it says: remove the file and fetch it again.")
        return array


def _checked_array(stream: IO[bytes], size: int, label: str) -> npt.NDArray[Any]:
    """Read one array after comparing what its header promises with the `size` bytes that there are."""
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read_header(stream)
    if dtype.hasobject:
        raise DataError(f"{label} holds pickled Python objects, which are never read: convert it to plain arrays.")
    count = math.prod(shape)
    promised = count * dtype.itemsize
    if promised > size:
        raise DataError(f"{label} promises {promised:,} bytes but has at most {size:,}: it is cut off; fetch it again.")
    content = stream.read(promised)
    if len(content) != promised:
        raise DataError(f"{label} promises {promised:,} bytes but has {len(content):,}: it is cut off; fetch it again.")
    # A bytearray makes the array writable without a second copy by NumPy.
    array = np.frombuffer(bytearray(content), dtype=dtype, count=count)
    return array.reshape(shape, order="F" if fortran else "C")

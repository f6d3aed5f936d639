"""Read NumPy archives from strangers: no pickles, no array larger than the bytes that are there, one clear error."""

from __future__ import annotations

import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from omegagnn.errors import DataError

# A cached graph of 10 million edges takes about 0.2 GB; an archive that unpacks to more than this is not one of ours.
LARGEST_ARCHIVE = 64 * 2**30

ALIGNMENT = 64  # bytes; where the numbers of an array begin in a file of ours, so that they can be used where they lie
_PADDING_FIELD = 0xD935  # the kind of extra field that says "padding" to readers of zip files

# A damaged archive surfaces in as many ways as zipfile, zlib and NumPy's header parser have.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, SyntaxError, RuntimeError)


def read_npz(
    source: str | Path | IO[bytes], name: str | None = None, limit: int = LARGEST_ARCHIVE, leave: Iterable[str] = ()
) -> dict[str, Any]:
    """Read every array of an npz file, `source`, into memory but those to `leave`; `name` is what an error calls it.

    An entry that holds pickled objects, promises more than it contains or is cut off is a `DataError`.
    """
    label = name or str(source)
    try:
        with zipfile.ZipFile(source) as archive:
            left = {f"{entry}.npy" for entry in leave}
            members = [member for member in archive.infolist() if member.filename not in left]
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


def write_npz(stream: IO[bytes], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays as `numpy.savez` does, but each at a multiple of `ALIGNMENT` bytes, so that it can be mapped."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            # A local header is 30 bytes, the name, our padding (4 bytes and more) and the 20 bytes of sizes beyond 4 GiB.
            padding = -(stream.tell() + 30 + len(info.filename) + 4 + 20) % ALIGNMENT
            info.extra = struct.pack("<HH", _PADDING_FIELD, padding) + bytes(padding)
            with archive.open(info, "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def mapped_array(path: Path, name: str) -> npt.NDArray[Any] | None:
    """Return an array of an npz file as a read-only map of the file, or None where it is not stored plainly and aligned.

    The bytes are read when they are used, and their checksum is not looked at.
    """
    with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
        if f"{name}.npy" not in archive.namelist():
            return None
        member = archive.getinfo(f"{name}.npy")
        if member.compress_type != zipfile.ZIP_STORED:
            return None
        stream.seek(member.header_offset + 26)
        name_size, extra_size = struct.unpack("<HH", stream.read(4))
        begin = member.header_offset + 30 + name_size + extra_size
        stream.seek(begin)
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(stream)
        whole = not dtype.hasobject and stream.tell() + math.prod(shape) * dtype.itemsize <= begin + member.file_size
        if fortran or not whole or stream.tell() % ALIGNMENT or not math.prod(shape):
            return None  # read in the usual way, which says what is wrong with it
        return np.memmap(path, dtype, "r", stream.tell(), shape)


def as_tensor(array: npt.NDArray[Any]) -> Tensor:
    """Return an array as a tensor on the same memory, which nobody may write to where it is a map of a file."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


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

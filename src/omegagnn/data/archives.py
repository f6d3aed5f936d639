"""Take known files out of zip and tar archives.

Members are asked for by their exact names and written to places that the caller chose, so no name inside an archive ever
becomes a path; links, devices and files beyond the allowed size are refused.
"""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO

from omegagnn.errors import DataError
from omegagnn.files import replacing

LARGEST_MEMBER = 2 * 2**30
_BLOCK = 2**20


def extract(archive: Path, wanted: Mapping[str, Path], limit: int = LARGEST_MEMBER) -> None:
    """Write each member named in `wanted` to its place, whole or not at all; one that is missing is a `DataError`."""
    members = _zip_members if zipfile.is_zipfile(archive) else _tar_members
    missing = dict(wanted)
    try:
        with closing(members(archive, missing, limit)) as found:
            for name, size, stream in found:
                if size > limit:
                    raise DataError(f"{archive} holds {name} with {size:,} bytes, more than the {limit:,} allowed.")
                _write(stream, missing.pop(name))
                if not missing:
                    return
    except FileNotFoundError as error:
        raise DataError(f"There is no file {archive}: check the path.") from error
    except (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, NotImplementedError) as error:
        raise DataError(f"{archive} is not a whole archive ({error}): remove it and fetch it again.") from error
    if missing:
        raise DataError(f"{archive} lacks {', '.join(missing)}: it is not the archive that belongs here.")


Member = tuple[str, int, IO[bytes]]


def _zip_members(archive: Path, wanted: Mapping[str, Path], limit: int) -> Generator[Member, None, None]:
    with zipfile.ZipFile(archive) as bundle:
        for member in bundle.infolist():
            if member.filename in wanted:
                with bundle.open(member) as stream:
                    yield member.filename, member.file_size, stream


def _tar_members(archive: Path, wanted: Mapping[str, Path], limit: int) -> Generator[Member, None, None]:
    with tarfile.open(archive, "r:*") as bundle:
        for member in bundle:
            # An archive may be padded with what nobody asked for; it is not unpacked without end.
            if member.offset > limit:
                raise DataError(
                    f"{archive} unpacks to more than {limit:,} bytes: it is not the archive that belongs here."
                )
            if member.name not in wanted:
                continue
            stream = bundle.extractfile(member) if member.isreg() else None
            if stream is None:
                raise DataError(f"{archive} has {member.name} as a link or a device, which is never followed.")
            with stream:
                yield member.name, member.size, stream


def _write(stream: IO[bytes], target: Path) -> None:
    # Neither archive format reads on behind the size it tells, which was compared with the limit.
    with replacing(target) as part, part.open("wb") as out:
        shutil.copyfileobj(stream, out, _BLOCK)

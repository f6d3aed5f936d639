"""Fetch a file over HTTP: resumed where it was cut off, never larger than allowed, checked, and moved in one piece."""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from omegagnn.errors import DataError

OFFLINE_VARIABLE = "OMEGAGNN_OFFLINE"
LARGEST_DOWNLOAD = 2 * 2**30
ATTEMPTS = 3
PAUSE = 0.5  # seconds before the second attempt; doubled each time
TIMEOUT = 30.0  # seconds without a byte
_BLOCK = 2**18
_RANGE_NOT_SATISFIABLE = 416


class _CutOffError(OSError):
    """The connection ended before the file did."""


class _TooLargeError(DataError):
    """The file is not the one that was expected."""


def is_offline() -> bool:
    """Return whether ``$OMEGAGNN_OFFLINE`` forbids the network."""
    return os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def download(url: str, target: Path, sha256: str | None = None, limit: int = LARGEST_DOWNLOAD) -> Path:
    """Fetch `url` to `target`; a transfer that breaks is resumed, now or by the next call.

    The bytes so far lie beside the target in a hidden ``.part`` file; it becomes the target when it is complete and, where
    `sha256` is given, has this checksum. A second process that wants the same file is told so.
    """
    if is_offline():
        raise DataError(
            f"{url} is not fetched because {OFFLINE_VARIABLE} is set: unset it or put the file at {target}."
        )
    if not url.startswith(("http://", "https://")):
        raise DataError(f"{url} is not an http or https address: correct it.")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    with _only_one(part):
        try:
            _complete(url, part, limit)
        except _TooLargeError:
            _forget(part)
            raise
        if sha256 is not None and (found := sha256_of(part)) != sha256:
            _forget(part)
            raise DataError(
                f"{url} has SHA-256 {found}, expected {sha256}: the file changed at its source; get the old one."
            )
        os.replace(part, target)
        _forget(part)
    return target


def _complete(url: str, part: Path, limit: int) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _transfer(url, part, limit)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _RANGE_NOT_SATISFIABLE:
                _forget(part)
            elif error.code < http.HTTPStatus.INTERNAL_SERVER_ERROR or attempt == ATTEMPTS:
                raise DataError(
                    f"{url} cannot be fetched (HTTP {error.code}, {error.reason}): put it in place by hand."
                ) from None
        except (OSError, http.client.HTTPException) as error:
            if attempt == ATTEMPTS:
                reason = getattr(error, "reason", None) or error
                raise DataError(
                    f"{url} cannot be fetched ({reason}): run the command again to go on where it stopped."
                ) from error
        time.sleep(PAUSE * 2 ** (attempt - 1))
    raise DataError(f"{url} cannot be fetched (its server refuses to go on with a file): run the command again.")


def _transfer(url: str, part: Path, limit: int) -> None:
    """Fetch what is missing of `part`, or all of it where the server has another file by now."""
    done = part.stat().st_size if part.exists() else 0
    validator = _validator_path(part).read_text() if done and _validator_path(part).exists() else ""
    request = urllib.request.Request(url, headers={"User-Agent": "omegagnn"})
    if validator:
        request.add_header("Range", f"bytes={done}-")
        request.add_header("If-Range", validator)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            done = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            raise _CutOffError("the server goes on at another place than asked")
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        if total is not None and total > limit:
            raise _TooLargeError(f"{url} has {total:,} bytes, more than the {limit:,} allowed: check the address.")
        _validator_path(part).write_text(_validator(response.headers))
        with part.open("ab" if done else "wb") as stream, _progress_bar(url, total, done) as advance:
            while block := response.read(_BLOCK):
                done += len(block)
                if done > limit:
                    raise _TooLargeError(f"{url} has more than the {limit:,} bytes allowed: check the address.")
                stream.write(block)
                advance(len(block))
    if total is not None and done < total:
        raise _CutOffError(f"the connection ended after {done:,} of {total:,} bytes")


def _validator(headers: http.client.HTTPMessage) -> str:
    """Return what tells this version of the file from others, or nothing, in which case it is never resumed."""
    tag = headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")


def _validator_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator_path(part).unlink(missing_ok=True)


@contextmanager
def _only_one(part: Path) -> Iterator[None]:
    """Hold a lock beside `part`; where the system has no such locks, go without."""
    lock = part.with_name(f"{part.name}.lock")
    with lock.open("wb") as stream:
        if not _locked(stream):
            raise DataError(
                f"Another process is fetching {part.name.strip('.')[:-5]}: wait until it is done and try again."
            )
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()


def _locked(stream: IO[bytes]) -> bool:
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # pragma: no cover  (not on POSIX)
        return True
    except OSError:
        return False
    return True


@contextmanager
def _progress_bar(url: str, total: int | None, done: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal and nothing elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(url.rsplit("/", 1)[-1], total=total, completed=done)
        yield lambda size: progress.advance(task, size)

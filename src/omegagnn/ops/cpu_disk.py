"""Compiled CPU kernels on disk, so that they are compiled once and not in every process."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache

from omegagnn.ops import random


@cache
def _sources() -> str:
    """Return a digest of all that goes into compiled code, of which numba by itself sees only the kernel's own file."""
    digest = hashlib.sha256(Path(random.__file__).read_bytes())
    for file in sorted(Path(__file__).parent.glob("cpu*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class _SourcesCache(FunctionCache):
    """numba's cache on disk, whose entries are valid for the sources they were compiled from only."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _sources())


def kept_on_disk(kernel: Any) -> Any:
    """Keep the compiled code of a kernel beside its source, or where that cannot be written in the user's cache folder."""
    with suppress(RuntimeError):  # no folder can be written at all: compile in every process
        kernel._cache = _SourcesCache(kernel.py_func)
    return kernel

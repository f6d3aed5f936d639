"""Where data lies: the data root, the user's cache folder, and what may be written where.

* The **data root** is the argument, else ``$OMEGAGNN_DATA``, else the cache folder. It is laid out as PyTorch Geometric's
  loaders lay out their raw files (``Planetoid/Cora/raw/ind.cora.x`` ...), with imported data sets in ``own/<name>``.
* The **cache folder** is ``$XDG_CACHE_HOME/omegagnn``, else ``~/.cache/omegagnn``. It is searched after the data root.
* Files that are fetched or unpacked go into the data root where it may be written to, else into the cache folder.
  Permission bits count even for the superuser. Data sets parsed once (npz) always go into ``npz/`` of the cache folder.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT_VARIABLE = "OMEGAGNN_DATA"
_ANY_WRITE = 0o222


def cache_folder() -> Path:
    """Return the user's cache folder, whether it exists or not."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "omegagnn"


def data_root(root: str | Path | None = None) -> Path:
    """Return the folder that data is looked for in: the argument, else ``$OMEGAGNN_DATA``, else the cache folder."""
    chosen = root or os.environ.get(ROOT_VARIABLE) or cache_folder()
    return Path(chosen).expanduser()


def search_order(root: str | Path | None = None) -> tuple[Path, ...]:
    """Return the folders in which a file is looked for, in order."""
    return tuple(dict.fromkeys((data_root(root), cache_folder())))


def folder_to_fill(root: str | Path | None = None) -> Path:
    """Return the folder that fetched files go to: the data root where it may be written to, else the cache folder."""
    chosen = data_root(root)
    return chosen if may_be_written(chosen) else cache_folder()


def may_be_written(folder: Path) -> bool:
    """Return whether a folder, or the nearest one above it that exists, allows writing."""
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and bool(folder.stat().st_mode & _ANY_WRITE) and os.access(folder, os.W_OK)


def is_plain_name(name: str) -> bool:
    """Return whether a data set may be called so: a name that is no path and no option of `load`."""
    return bool(name) and name not in (".", "..") and not set(name) & set("/\\:\0")


def own_path(name: str, root: str | Path | None = None) -> Path:
    """Return where the imported data set `name` lies below a data root."""
    return data_root(root) / "own" / name / "dataset.npz"

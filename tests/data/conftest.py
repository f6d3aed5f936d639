"""No test of this folder touches the user's cache folder or, unless it asks for it, the network."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

with warnings.catch_warnings():  # PyTorch Geometric scripts a class while it is imported, which new torch calls deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch_geometric  # noqa: F401


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("OMEGAGNN_OFFLINE", "1")
    patch.delenv("OMEGAGNN_DATA", raising=False)
    yield
    patch.undo()


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, with nothing in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "omegagnn"

"""What every test shares: one thread, fixed seeds, and where the benchmark data lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when triton is imported: its kernels then run on the CPU

torch.set_num_threads(1)

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test touches the user's cache folder or, unless it asks for it, the network."""
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("OMEGAGNN_OFFLINE", "1")
    patch.delenv("OMEGAGNN_DATA", raising=False)
    patch.delenv("OMEGAGNN_RUNS", raising=False)
    yield
    patch.undo()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of benchmark data beside the repository; a test that needs it is skipped where it is not."""
    root = Path(os.environ.get("OMEGAGNN_TEST_DATA", SHARED_DATA))
    if not root.is_dir():
        pytest.skip(f"needs the benchmark data in {root}")
    return root

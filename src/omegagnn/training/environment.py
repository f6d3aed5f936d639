"""What a result was made with: versions, machine, device; and which device a name means."""

from __future__ import annotations

import os
import platform
import resource
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

import omegagnn
from omegagnn.errors import WrongUse
from omegagnn.ops import fused_twin

DEFAULT_THREADS = torch.get_num_threads()  # what torch chose when it was loaded
PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "numba", "triton")


def choose_device(name: str | None) -> torch.device:
    """Return the device of a name; None takes a GPU where there is one."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise WrongUse(f"There is no device {name!r}: choose cpu or cuda.") from None
    if device.type not in ("cpu", "cuda"):
        raise WrongUse(f"Device {name!r} is not supported: choose cpu or cuda.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise WrongUse(
            "There is no GPU that torch can use here: choose --device cpu, or install a CUDA build of torch."
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise WrongUse(f"There is no {name}: torch sees {torch.cuda.device_count()} GPU(s), numbered from 0.")
    # The first product of a backward pass finds its thread without a context, takes the right one and warns of nothing.
    warnings.filterwarnings("ignore", "Attempting to run cuBLAS, but there was no current CUDA context", UserWarning)
    return device


@contextmanager
def one_thread_where_it_wins(device: torch.device) -> Iterator[None]:
    """Train on one CPU thread unless ``OMP_NUM_THREADS`` or `torch.set_num_threads` asked for another number.

    The products of a layer are small: a second thread gains little on an idle machine and waits at barriers on a busy one,
    where the same step was seen to take between 7 and 677 ms.
    """
    before = torch.get_num_threads()
    if device.type != "cpu" or "OMP_NUM_THREADS" in os.environ or before != DEFAULT_THREADS:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def describe(device: torch.device) -> dict[str, Any]:
    """Return versions, machine, device and backend."""
    versions = {"omegagnn": omegagnn.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    twin = fused_twin(device.type)
    return {
        "versions": versions,
        "platform": platform.platform(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "backend": "reference" if twin is None else twin.__name__.rsplit(".", 1)[-1],
    }


def peak_mib(device: torch.device) -> float:
    """Return the highest memory use so far: of the process on a CPU, of the allocator on a GPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

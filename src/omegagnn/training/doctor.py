"""What ``omegagnn doctor`` looks at: versions, backends, threads, folders, compiled kernels, and whether it all works."""

from __future__ import annotations

import importlib
import os
import platform
import secrets
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import torch

import omegagnn
from omegagnn.data.loading import whereabouts
from omegagnn.data.own import own_names
from omegagnn.data.places import data_root, may_be_written
from omegagnn.data.registry import available
from omegagnn.errors import OmegaError
from omegagnn.files import write_bytes
from omegagnn.ops import fused_twin
from omegagnn.training.environment import DEFAULT_THREADS
from omegagnn.training.fit import runs_folder
from omegagnn.training.journal import Journal
from omegagnn.training.selftest import kernels_agree, training_works

Status = Literal["well", "slower", "note", "broken"]

REQUIRED = ("torch", "torch_geometric", "numpy", "scipy", "networkx", "pandas", "pydantic", "pyyaml", "safetensors")
OPTIONAL = {
    "numba": "fused kernels on the CPU",
    "triton": "fused kernels on a GPU",
    "pyarrow": "Parquet files (extra 'parquet')",
    "matplotlib": "PNG pictures (extra 'plots')",
}
LITTLE_SPACE = 200 * 2**20
WORTHWHILE = 1.3  # from this gain on a second thread is worth mentioning
MIB = 2**20


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, how it stands, what was seen, what to do."""

    name: str
    status: Status
    found: str
    remedy: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        """Return the fields."""
        return {"check": self.name, "status": self.status, "found": self.found, "remedy": self.remedy}


def examine(root: Path | None = None, runs_dir: Path | None = None) -> Iterator[Check]:
    """Yield the findings one after the other; none raises, whatever is broken."""
    steps: list[tuple[str, Callable[[], list[Check]]]] = [
        ("packages", _packages),
        ("device", _devices),
        ("backend", _backends),
        ("kernel cache", _kernel_cache),
        ("threads", _threads),
        ("data root", lambda: _data(root)),
        ("runs folder", lambda: _runs(runs_dir)),
        ("kernels", lambda: [_tried("kernels", kernels_agree, _kernel_remedy())]),
        (
            "training",
            lambda: [
                _tried("training", training_works, "mend what stands above first, then run it again with --debug.")
            ],
        ),
    ]
    for name, step in steps:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is said here, with what to do
            try:
                found = step()
            except Exception as error:
                found = [Check(name, "broken", _said(error), "run it again with --debug to see where.")]
        yield from found


def _said(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text if isinstance(error, OmegaError) else f"{type(error).__name__}: {text}"


def _tried(name: str, test: Callable[[], str], remedy: str) -> Check:
    began = time.monotonic()
    try:
        seen = test()
    except Exception as error:
        return Check(name, "broken", _said(error), remedy)
    return Check(name, "well", f"{seen} ({time.monotonic() - began:.1f} s)")


# --------------------------------------------------------------------------------------------- packages and devices


def _packages() -> list[Check]:
    checks = [Check("python", "well", f"{platform.python_version()}, omegagnn {omegagnn.__version__}")]
    for package in REQUIRED:
        found = _version(package)
        if found is None:
            checks.append(
                Check(package, "broken", "not installed", "install it: pip install omegagnn brings it along.")
            )
        else:
            checks.append(Check(package, "well", found))
    for package, purpose in OPTIONAL.items():
        found = _version(package)
        if found is None and package != "numba":  # what its absence means, the backends tell
            checks.append(Check(package, "note", f"not installed: no {purpose}"))
        elif found is not None:
            checks.append(Check(package, "well", found))
    return checks


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _devices() -> list[Check]:
    if torch.cuda.is_available():
        names = ", ".join(torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count()))
        cuda = Check("cuda", "well", names)
    else:
        build = torch.version.cuda
        why = "this torch is a CPU build" if build is None else f"torch is built for CUDA {build} but sees no GPU"
        cuda = Check("cuda", "note", f"none: {why}; training runs on the CPU")
    if torch.backends.mps.is_available():
        return [cuda, Check("mps", "note", "there, but omegagnn has no kernels for it; training runs on the CPU")]
    return [cuda]


def _backends() -> list[Check]:
    twin = fused_twin("cpu")
    checks = []
    if twin is not None:
        kinds = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in twin.DTYPES))
        checks.append(Check("backend on cpu", "well", f"fused kernels for {kinds}; other dtypes run in plain torch"))
    else:
        remedy = "install or mend it: pip install --force-reinstall numba."
        checks.append(
            Check("backend on cpu", "slower", f"plain torch: everything runs slower, because {_no_numba()}", remedy)
        )
    if torch.cuda.is_available():
        gpu = fused_twin("cuda")
        fused = Check("backend on cuda", "well", "fused kernels")
        plain = Check(
            "backend on cuda", "slower", "plain torch: there are no fused kernels for this GPU", "install triton."
        )
        checks.append(plain if gpu is None else fused)
    return checks


def _no_numba() -> str:
    try:
        importlib.import_module("numba")
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "numba":
            return "numba is not installed"
        return f"numba cannot be imported ({' '.join(str(error).split())})"
    return "the kernels cannot be loaded with this numba"


# ------------------------------------------------------------------------------------------------ kernels and threads


def _kernel_cache() -> list[Check]:
    if fused_twin("cpu") is None:
        return []
    folder = cache_path()
    if folder is None:
        found = "no folder can be written: the kernels are compiled anew in every process, a few seconds each"
        return [Check("kernel cache", "slower", found, "set NUMBA_CACHE_DIR to a folder that can be written.")]
    files = [file for file in folder.glob("cpu_*.nb[ic]") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    state = (
        f"{len(files)} files, {size / MIB:.1f} MiB" if files else "empty: the first use compiles for about five seconds"
    )
    return [Check("kernel cache", "well", f"{folder}: {state}")]


def cache_path() -> Path | None:
    """Return the folder of the compiled kernels, or None where there is none."""
    kernels = importlib.import_module("omegagnn.ops.cpu_kernels")
    found = getattr(kernels.propagate, "_cache", None)
    path = getattr(found, "cache_path", None)
    return Path(path) if path else None


def _kernel_remedy() -> str:
    folder = cache_path() if fused_twin("cpu") is not None else None
    if folder is None:
        return "reinstall torch and omegagnn, and run it again with --debug."
    return f"remove the compiled kernels, {folder}/cpu_*.nb*, so that they are compiled again; else reinstall numba."


def _threads() -> list[Check]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS")
    now = torch.get_num_threads()
    said = f"{now} of {cores} cores" + (f" (OMP_NUM_THREADS={asked})" if asked else "")
    if not asked and now == DEFAULT_THREADS and now > 1:
        said += "; a training takes one, unless OMP_NUM_THREADS asks for more"
    if cores == 1:
        return [Check("threads", "well", said)]
    gain = _thread_gain(cores)
    helps = f"{cores} threads multiply matrices {gain:.1f} times as fast as one"
    if gain < WORTHWHILE:
        return [Check("threads", "note", f"{said}; {helps}: more than one is not worth it here just now")]
    return [Check("threads", "well", f"{said}; {helps} (small graphs gain little)")]


def _thread_gain(threads: int) -> float:
    """Return how much faster a large product is with all threads, best of three."""
    matrix, before = torch.ones(1024, 1024), torch.get_num_threads()
    best = []
    try:
        for count in (1, threads):
            torch.set_num_threads(count)
            times = []
            for _ in range(4):
                began = time.perf_counter()
                matrix @ matrix
                times.append(time.perf_counter() - began)
            best.append(min(times[1:]))
    finally:
        torch.set_num_threads(before)
    return best[0] / best[1]


# ----------------------------------------------------------------------------------------------------------- folders


def _data(root: Path | None) -> list[Check]:
    folder = data_root(root)
    places: dict[str, list[str]] = {}
    for entry in available():
        places.setdefault(whereabouts(entry.name, root), []).append(entry.name)
    places["imported"] = list(own_names(root))
    here = [f"{len(names)} {kind}" for kind, names in places.items() if names and kind != "upstream"]
    access = "can be written" if may_be_written(folder) else "read-only"
    exists = access if folder.exists() else f"not there yet, {access}"
    found = f"{folder} ({exists}): {', '.join(here)}"
    if absent := places.get("upstream"):
        found += f"; {len(absent)} to download ({', '.join(absent[:4])}{' …' if len(absent) > 4 else ''})"
    return [Check("data root", "well", found)]


def _runs(runs_dir: Path | None) -> list[Check]:
    folder = runs_folder(runs_dir).absolute()
    problem = _cannot_be_written(folder)
    if problem is not None:
        remedy = "make it writable, or choose another with --runs-dir or OMEGAGNN_RUNS."
        return [Check("runs folder", "broken", f"{folder} cannot be written ({problem})", remedy)]
    journal = folder / "journal.sqlite"
    found = f"{folder}: {_journal_in_words(folder)}" if journal.exists() else f"{folder}: no run yet"
    free = shutil.disk_usage(_nearest(folder)).free
    if free < LITTLE_SPACE:
        return [Check("runs folder", "note", f"{found}; only {free / MIB:.0f} MiB are free", "make room on this disk.")]
    return [Check("runs folder", "well", f"{found}; {free / 2**30:.1f} GiB free")]


def _journal_in_words(folder: Path) -> str:
    journal = Journal(folder, create=False)
    try:
        runs = journal.runs()
    finally:
        journal.close()
    done = sum(run["status"] == "done" for run in runs)
    return f"{len(runs)} runs, {done} done"


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _cannot_be_written(folder: Path) -> str | None:
    """Return why a folder takes no files, tried with one where it exists."""
    if not folder.exists():
        return None if may_be_written(folder) else f"{_nearest(folder)} is no folder or read-only"
    if not folder.is_dir():
        return "it is a file"
    probe = folder / f".doctor-{secrets.token_hex(4)}"
    try:
        write_bytes(probe, b"written by omegagnn doctor\n")
    except OmegaError as error:
        return str(error).rsplit("could not be written (", 1)[-1].split(")", 1)[0]
    finally:
        with suppress(OSError):  # a read-only file system refuses even to remove what is not there
            probe.unlink(missing_ok=True)
    return None if may_be_written(folder) else "its permissions forbid it"


def summary(checks: list[Check]) -> str:
    """Return the last line: whether all is well."""
    broken = [check.name for check in checks if check.status == "broken"]
    slower = [check.name for check in checks if check.status == "slower"]
    if broken:
        return f"broken: {', '.join(broken)}."
    return f"everything works, but slower than it could: see {', '.join(slower)}." if slower else "all is well."


def to_dict(checks: list[Check]) -> dict[str, Any]:
    """Return the findings, ready for JSON."""
    return {"well": all(check.status != "broken" for check in checks), "checks": [check.to_dict() for check in checks]}


__all__ = ["Check", "cache_path", "examine", "summary", "to_dict"]

"""Files that are written whole or not at all, and folders of models, out of which nothing is unpickled."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegagnn.errors import OmegaError, WrongUse

# The folder of a model: what it is, its weights, and what a person should know of it.
CONFIG, MODEL, CARD = "config.json", "model.safetensors", "README.md"
# What torch, joblib and their like write with pickle, which can run any code when it is read; `.pt2` may hold some.
PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pt2", ".pth")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it there when the block ends well, remove it when it does not."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: to a neighbour first, forced to disk, then renamed over the old one."""
    try:
        with replacing(path) as part, part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(path.parent)
    except OSError as error:
        kept = "the last good one is kept" if path.exists() else "nothing was left behind"
        raise OmegaError(
            f"{path} could not be written ({error.strerror}): make room or choose another folder; {kept}."
        ) from None


def new_model_folder(path: str | Path) -> Path:
    """Return a folder to write a model to; one that holds anything but a saved model (a run, for one) is refused."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise WrongUse(f"{folder} is a file: name a folder for the model.")
    if folder.is_dir() and any(folder.iterdir()):
        ours = (folder / CONFIG).is_file() and str(read_config(folder).get("format", "")).startswith("omegagnn-")
        if not ours:
            raise WrongUse(f"The folder {folder} holds something else: name a new one for the model.")
    return folder


def check_model_folder(path: str | Path) -> Path:
    """Return a folder that holds a model, or say what it is instead; a pickle is never opened."""
    folder = Path(path)
    danger = "a pickle can run any code when it is read, so none is"
    if folder.suffix.lower() in PICKLES and not folder.is_dir():
        raise OmegaError(f"{folder} is not loaded ({danger}): give a folder with {CONFIG} and {MODEL}.")
    if not folder.is_dir():
        raise WrongUse(f"There is no folder {folder}: give one that holds {CONFIG} and {MODEL}.")
    if not (folder / MODEL).is_file():
        pickled = sorted(file.name for file in folder.iterdir() if file.suffix.lower() in PICKLES)
        if pickled:
            raise OmegaError(
                f"{folder} has its weights in {pickled[0]}, which is not loaded ({danger}): save them as {MODEL} where they "
                "were made."
            )
        raise OmegaError(f"{folder} has no {MODEL}: give the folder of a model or of a finished run.")
    return folder


def read_config(folder: Path) -> dict[str, Any]:
    """Return what ``config.json`` in the folder of a model says."""
    path = folder / CONFIG
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it holds no object")
        return found
    except FileNotFoundError:
        raise WrongUse(f"{folder} is no folder of a run or a model: it has no {CONFIG}.") from None
    except ValueError as error:
        raise OmegaError(f"{path} is damaged ({error}): restore it or train again.") from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

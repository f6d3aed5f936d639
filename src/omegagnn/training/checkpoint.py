"""Tensors and facts in one safetensors file, written so that a kill at any moment leaves the old file or the new one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from omegagnn.errors import OmegaError
from omegagnn.files import write_bytes


def write_tensors(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors with facts (JSON) in the header; equal content gives equal bytes."""
    flat = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, save(flat, metadata={"facts": json.dumps(facts, sort_keys=True)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_tensors` wrote; nothing is unpickled."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {}).get("facts", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except FileNotFoundError:
        raise OmegaError(f"There is no file {path}: the run saved nothing yet.") from None
    except (SafetensorError, json.JSONDecodeError, OSError) as error:
        raise OmegaError(f"{path} is damaged or not a safetensors file ({error}): restore it or train again.") from None


def read_rows(path: Path, prefix: str, rows: slice) -> dict[str, Tensor]:
    """Read some rows of the tensors whose names begin with `prefix`, which their keys then lack."""
    try:
        with safe_open(path, framework="pt") as file:
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
            return {name[len(prefix) :]: file.get_slice(name)[rows] for name in names}
    except FileNotFoundError:
        raise OmegaError(f"There is no file {path}: the run saved nothing yet.") from None
    except (SafetensorError, OSError) as error:
        raise OmegaError(f"{path} is damaged or not a safetensors file ({error}): restore it or train again.") from None


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

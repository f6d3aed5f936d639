"""A model of the user's own: made by a function in a Python file, with or without weights, looked at on a data set."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from omegagnn.analysis.diagnosis import Diagnosis, diagnose
from omegagnn.data.dataset import Dataset
from omegagnn.errors import OmegaError, WrongUse
from omegagnn.training.checkpoint import read_tensors
from omegagnn.training.config import DataConfig
from omegagnn.training.diagnosing import multilabel_loss
from omegagnn.training.tasks import prepare_features, prepare_graph


def load_model(place: str, in_channels: int, num_classes: int, weights: Path | None = None) -> nn.Module:
    """Return what ``FACTORY(in_channels, num_classes)`` of ``FILE.py:FACTORY`` returns; the file is executed."""
    path, _, name = place.rpartition(":")
    if not path or not name.isidentifier():
        raise WrongUse(f"{place!r} names no function: write FILE.py:FACTORY, such as model.py:make_model.")
    factory = getattr(_executed(Path(path)), name, None)
    if not callable(factory):
        raise WrongUse(f"There is no function {name!r} in {path}: check the name behind the colon.")
    try:
        model = factory(in_channels, num_classes)
    except Exception as error:
        raise OmegaError(_own_fault(f"{name}({in_channels}, {num_classes})", path, error)) from error
    if not isinstance(model, nn.Module):
        raise WrongUse(f"{name} in {path} returned {type(model).__name__}: it must return a torch module.")
    if weights is not None:
        _load_weights(model, weights)
    return model


def diagnose_on(model: nn.Module, dataset: Dataset, subject: str) -> Diagnosis:
    """Return the diagnosis of ``model(x, edge_index)``, or ``model(x, edge_index, batch)`` for a task of many graphs."""
    config = DataConfig(name=dataset.name)
    features = prepare_features(dataset, config, torch.get_default_dtype())
    x = features if isinstance(features, Tensor) else features.to_dense()
    graph = prepare_graph(dataset, config)
    edge_index, edge_weight = graph.to_edge_index()
    shown = _shown(dataset)
    options: dict[str, Any] = {"batch": dataset.batch} if dataset.task == "graph" else {}
    try:
        if dataset.is_multilabel or dataset.is_regression:
            classes = dataset.num_classes if dataset.is_multilabel else None
            options |= {"loss": _loss(dataset, shown), "num_classes": classes}
        else:
            options["y"] = torch.where(shown, dataset.labels, -1)
        return diagnose(model, x, edge_index, edge_weight, subject=subject, **options)
    except OmegaError:
        raise
    except Exception as error:
        raise OmegaError(_own_fault("forward", type(model).__name__, error)) from error


def _loss(dataset: Dataset, shown: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the loss of what is shown where the labels are no classes."""
    if dataset.is_multilabel:
        return multilabel_loss(dataset.labels, shown)
    return lambda output: mse_loss(output.reshape(-1)[shown], dataset.labels[shown])


def _shown(dataset: Dataset) -> Tensor:
    """Return which items the first split shows for training (all where there is none)."""
    shown = torch.zeros(dataset.labels.size(0), dtype=torch.bool)
    if not dataset.splits:
        return ~shown
    train = dataset.splits[0].train
    if dataset.task == "inductive" and dataset.batch is not None:
        return torch.isin(dataset.batch, train)
    shown[train] = True
    return shown


def _executed(path: Path) -> ModuleType:
    if not path.is_file():
        raise WrongUse(f"There is no file {path}: check the path before the colon.")
    spec = importlib.util.spec_from_file_location(f"omegagnn_own_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # its neighbours can be imported, as when it is run as a program
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise OmegaError(_own_fault("importing it", str(path), error)) from error
    finally:
        sys.path.remove(folder)
    return module


def _load_weights(model: nn.Module, path: Path) -> None:
    if path.suffix != ".safetensors":
        raise WrongUse(
            f"{path} must be a .safetensors file (nothing is unpickled): save it with safetensors.torch.save_file."
        )
    try:
        model.load_state_dict(read_tensors(path)[0])
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise WrongUse(f"{path} does not fit the model: {lines[-1].rstrip('.')}.") from None


def _own_fault(what: str, where: str, error: Exception) -> str:
    said = " ".join(str(error).split()).rstrip(".") or "no message"
    return (
        f"{where}: {what} failed with {type(error).__name__} ({said}): mend it, or run again with --debug to see where."
    )


__all__ = ["diagnose_on", "load_model"]

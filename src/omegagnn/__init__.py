"""ωGNN: deep graph neural networks whose layers learn how much they smooth or sharpen.

The names below are loaded on first use, so that ``import omegagnn`` stays fast; torch comes with the first of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegagnn.graph import Graph
    from omegagnn.nn.conv import OmegaGATConv, OmegaGCNConv
    from omegagnn.nn.model import OmegaNet
    from omegagnn.nn.omega import OmegaWeight
    from omegagnn.nn.wrap import Omega
    from omegagnn.ops import omega_propagate
    from omegagnn.training.classifier import OmegaClassifier
    from omegagnn.training.fit import fit
    from omegagnn.training.prediction import Predictor

__version__ = "0.1.0"

_HOME = {
    "Graph": "omegagnn.graph",
    "Omega": "omegagnn.nn.wrap",
    "OmegaClassifier": "omegagnn.training.classifier",
    "OmegaGATConv": "omegagnn.nn.conv",
    "OmegaGCNConv": "omegagnn.nn.conv",
    "OmegaNet": "omegagnn.nn.model",
    "OmegaWeight": "omegagnn.nn.omega",
    "Predictor": "omegagnn.training.prediction",
    "fit": "omegagnn.training.fit",
    "omega_propagate": "omegagnn.ops",
}

__all__ = [
    "Graph",
    "Omega",
    "OmegaClassifier",
    "OmegaGATConv",
    "OmegaGCNConv",
    "OmegaNet",
    "OmegaWeight",
    "Predictor",
    "__version__",
    "fit",
    "omega_propagate",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'omegagnn' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

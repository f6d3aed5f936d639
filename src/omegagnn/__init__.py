"""ωGNN: deep graph neural networks whose layers learn how much they smooth or sharpen.

The names below are loaded on first use, so that ``import omegagnn`` stays fast; torch comes with the first of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegagnn.graph import Graph

__version__ = "0.1.0"

_HOME = {
    "Graph": "omegagnn.graph",
}

__all__ = ["Graph", "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'omegagnn' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

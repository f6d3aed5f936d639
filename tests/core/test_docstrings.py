"""The examples in the docstrings of the core run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest
import torch

import omegagnn.graph
import omegagnn.nn
import omegagnn.ops

OPTIONAL = {"omegagnn.ops.gpu": "triton"}


def modules() -> list[ModuleType]:
    names = ["omegagnn.graph"]
    for package in (omegagnn.ops, omegagnn.nn):
        names += [package.__name__, *(f"{package.__name__}.{m.name}" for m in pkgutil.iter_modules(package.__path__))]
    present = [name for name in names if importlib.util.find_spec(OPTIONAL.get(name, "torch")) is not None]
    return [importlib.import_module(name) for name in present]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_examples_run(module: ModuleType) -> None:
    names = {"torch": torch, "Graph": omegagnn.graph.Graph}
    result = doctest.testmod(module, extraglobs=names, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


@pytest.mark.parametrize(
    "name", ["Graph", "OmegaGCNConv", "OmegaGATConv", "OmegaNet", "OmegaWeight", "omega_propagate"]
)
def test_what_the_front_door_shows_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(omegagnn, name).__doc__ or "")

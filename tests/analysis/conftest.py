"""The real graphs of these tests: read once."""

from __future__ import annotations

import pytest
from analysis_graphs import karate, largest_component

from omegagnn import Graph
from omegagnn.data import load


@pytest.fixture(scope="session")
def citeseer() -> Graph:
    """All 438 components of CiteSeer."""
    return load("citeseer").graph


@pytest.fixture(scope="session")
def citeseer_core(citeseer: Graph) -> Graph:
    """The largest component of CiteSeer, 2,120 nodes."""
    return largest_component(citeseer)


@pytest.fixture(scope="session")
def club() -> Graph:
    """The karate club."""
    return karate()

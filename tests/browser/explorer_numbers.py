"""What the explorer shows, computed by `omegagnn.analysis`, and a few graphs to compare on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from playwright.sync_api import Page

from omegagnn import Graph
from omegagnn.analysis import (
    dirichlet_energy,
    filter_response,
    impulse_response,
    laplacian_spectrum,
    operator_kind,
    sign_pattern,
    thresholds,
)

CLOSE = 1e-6


def shown(page: Page) -> dict[str, Any]:
    """Return the numbers on the page."""
    return page.evaluate("window.omegaExplorer.state()")


def go(page: Page, fragment: str) -> dict[str, Any]:
    """Go to a state by its address, as a shared link does, and return its numbers."""
    page.evaluate("fragment => { location.hash = fragment; }", fragment)
    page.wait_for_function(
        "omega => window.omegaExplorer.state().omega === omega",
        arg=float(fragment.split("omega=")[1].split("&", maxsplit=1)[0]),
    )
    return shown(page)


def graph_of(state: dict[str, Any]) -> Graph:
    """Return the graph on the page as one of ours."""
    edges = torch.tensor(state["graph"]["edges"], dtype=torch.long).reshape(-1, 2)
    return Graph.from_edge_index(torch.cat([edges, edges.flip(1)]).T, num_nodes=state["graph"]["n"])


def assert_equals_python(state: dict[str, Any]) -> None:
    """Hold every number on the page to `omegagnn.analysis` in float64, relative to the largest of its kind."""
    graph, node, omega, steps = graph_of(state), state["node"], state["omega"], state["steps"]
    eigenvalues = laplacian_spectrum(graph)
    close("spectrum", state["spectrum"], eigenvalues)
    close("filter", state["filter"], filter_response([omega] * steps, eigenvalues))
    for response, energies, value in (("response", "energies", omega), ("gcnResponse", "gcnEnergies", 1.0)):
        assert len(state[energies]) == steps + 1
        for step in sorted({0, 1, 2, steps // 2, steps} & set(range(steps + 1))):
            ours = impulse_response(graph, node, value, steps=step)
            energy = float(dirichlet_energy(ours[:, None], graph))
            assert abs(state[energies][step] - energy) <= CLOSE * max(energy, 1e-9), (energies, step)
        close(response, state[response], ours)
    expected = thresholds(graph)
    for key in ("one", "signs", "critical"):
        ours, theirs = getattr(expected, key), state["thresholds"][key]
        assert ours == theirs or abs(ours - theirs) < CLOSE, key
    assert state["kind"] == operator_kind(graph, omega)
    assert state["signPattern"] == sign_pattern(graph, omega)


def close(what: str, theirs: list[float], ours: torch.Tensor) -> None:
    """Compare relative to the largest value, which grows beyond every bound where ω sharpens."""
    largest = max(1e-12, float(ours.abs().max()))
    np.testing.assert_allclose(
        np.array(theirs, dtype=float) / largest, ours.numpy() / largest, rtol=0, atol=CLOSE, err_msg=what
    )

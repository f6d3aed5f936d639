"""The explorer computes in JavaScript what `omegagnn.analysis` computes in Python."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from explorer_numbers import assert_equals_python, go, graph_of, shown
from pages import OpenPage

from omegagnn.data import load

STATES = [
    "graph=grid&rows=5&columns=7&node=17&omega=0.3&steps=8",
    "graph=grid&rows=5&columns=7&node=0&omega=1&steps=32",
    "graph=grid&rows=1&columns=1&node=0&omega=0.7&steps=3",
    "graph=ring&n=16&node=3&omega=1.8&steps=16",
    "graph=ring&n=3&node=2&omega=1.5&steps=5",
    "graph=ring&n=200&node=100&omega=0.55&steps=64",
    "graph=path&n=2&node=0&omega=2&steps=7",
    "graph=path&n=40&node=39&omega=-1&steps=64",
    "graph=path&n=12&node=5&omega=1.5&steps=1",
    "graph=karate&node=33&omega=-0.5&steps=4",
    "graph=karate&node=0&omega=1.2&steps=9",
    "graph=karate&node=11&omega=0&steps=20",
    "graph=random&n=24&p=0.12&seed=7&node=1&omega=1.4&steps=10",
    "graph=random&n=120&p=0.03&seed=1&node=7&omega=2.5&steps=64",
    "graph=random&n=30&p=1&seed=0&node=7&omega=1&steps=3",
    "graph=random&n=9&p=0&seed=0&node=8&omega=1.3&steps=5",
    "graph=own&n=5&edges=0-1,1-2,2-0,2-3&at=10.10,60.10,60.60,100.100,200.200&node=4&omega=1.6&steps=3",
    "graph=own&n=4&edges=0-1,1-0,1-1,1-2&names=a,b%2Cc,%E2%82%AC,d&node=2&omega=0.25&steps=0",
]


def test_every_number_equals_pythons(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    for fragment in STATES:
        state = go(page, fragment)
        for key in ("node", "omega", "steps"):
            assert state[key] == float(re.search(rf"\b{key}=([^&]+)", fragment)[1])  # type: ignore[index]
        assert_equals_python(state)


def test_the_numbers_that_are_read_are_the_numbers_that_are_computed(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer, "graph=karate&node=0&omega=-0.5&steps=4")
    page.get_by_text("The numbers as tables").click()
    state = shown(page)

    def column(table: str, position: int) -> list[float]:
        cells = page.locator(f"#{table} tbody tr > :nth-child({position})").all_inner_texts()
        return [float(cell.replace("−", "-").translate(PLAIN).replace("\xa0×\xa010", "e")) for cell in cells]

    for table, position, key in (
        ("node-table", 4, "response"),
        ("node-table", 3, "gcnResponse"),
        ("energy-table", 3, "energies"),
        ("spectrum-table", 1, "spectrum"),
        ("spectrum-table", 3, "filter"),
    ):
        np.testing.assert_allclose(column(table, position), state[key], rtol=1e-5, atol=1e-12)
    titles = page.locator("#omega-graph .node title").all_text_contents()
    assert titles[0] == "node 0: 5.3"
    signs = page.locator("#omega-graph .glyph").all_text_contents()
    for sign, value in zip(signs, state["response"], strict=True):
        assert sign in ("", "+" if value > 0 else "−")


def test_known_graphs_are_the_known_ones(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    club = graph_of(go(page, "graph=karate&node=0&omega=0.9&steps=1"))
    ours = load("karate").graph
    assert torch.equal(club.rowptr, ours.rowptr)
    assert torch.equal(club.col, ours.col)
    grid = go(page, "graph=grid&rows=3&columns=4&node=0&omega=0.8&steps=1")["graph"]
    assert (grid["n"], len(grid["edges"])) == (12, 3 * 3 + 2 * 4)
    # A share of p of the pairs, the same ones for the same seed.
    draws = [
        go(page, f"graph=random&n=80&p=0.3&seed={seed}&node=0&omega={omega}&steps=1")["graph"]["edges"]
        for seed, omega in ((5, 0.1), (6, 0.2), (5, 0.3))
    ]
    assert draws[0] == draws[2] != draws[1]
    pairs = 80 * 79 / 2
    assert all(abs(len(edges) - 0.3 * pairs) < 4 * (pairs * 0.21) ** 0.5 for edges in draws)


@pytest.mark.slow
def test_every_number_equals_pythons_on_many_graphs(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    kinds = ["random&n={n}&p=0.02", "random&n={n}&p=0.15", "random&n={n}&p=0.6", "path&n={n}", "ring&n={n}"]
    generator = np.random.default_rng(0)
    for kind, n, steps in itertools.product(kinds, (3, 17, 64, 200), (1, 6, 48)):
        omega = round(float(generator.uniform(-1, 2.5)), 3)
        node = int(generator.integers(n))
        seed = int(generator.integers(9999))
        assert_equals_python(go(page, f"graph={kind.format(n=n)}&seed={seed}&node={node}&omega={omega}&steps={steps}"))


PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

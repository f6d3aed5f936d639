"""The printed numbers of the paper: typed once, found again in its source, read as numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from omegagnn.data.registry import find
from omegagnn.errors import WrongUse
from omegagnn.paper.published import NOTHING, parse_table, published, published_table

REPOSITORY = Path(__file__).resolve().parents[2]
PAPERS = REPOSITORY.parent / "shared" / "paper"


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_published", REPOSITORY / "tools" / "check_published.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def source() -> str:
    found = sorted(PAPERS.glob("*.txt")) if PAPERS.is_dir() else []
    if not found:
        pytest.skip(f"needs the paper's source in {PAPERS}")
    return found[0].read_text(encoding="utf-8")


@pytest.mark.parametrize("key", list(published()))
def test_every_number_is_the_papers(checker: ModuleType, source: str, key: str) -> None:
    table = published_table(key)
    assert checker.typed(table) == checker.printed(source, table)
    assert len(checker.typed(table)) >= 11


def test_a_wrong_digit_would_be_seen(checker: ModuleType, source: str) -> None:
    changed = source.replace("30.2 & 18.3", "30.2 & 13.8", 1)
    assert changed != source
    table = published_table("semi-depth")
    assert checker.typed(table) != checker.printed(changed, table)


def test_cells_are_numbers() -> None:
    assert published_table("semi-depth").cell("ωGCN", "cora-64").value == 85.9  # type: ignore[union-attr]
    mutag = published_table("tu").cell("ωGCN", "mutag")
    assert mutag is not None
    assert (mutag.value, mutag.sd, str(mutag)) == (94.6, 4.1, "94.6 ± 4.1")
    assert published_table("nodes-statistics").cell("Edges", "ppi").value == 818716  # type: ignore[union-attr]
    assert published_table("semi-depth").cell("EGNN", "cora-4") is None
    assert published_table("semi-depth").cell("no such", "cora-4") is None
    for table in published().values():
        for column in table.columns:
            for row, cell in table.column(column).items():
                assert cell.value >= 0, (table.key, row)
                assert cell.text != NOTHING


def test_columns_of_data_sets_have_the_registrys_names() -> None:
    for key in (
        "homophilic",
        "heterophilic",
        "ppi",
        "tu",
        "nodes-statistics",
        "graphs-statistics",
        "random-splits",
        "arxiv",
    ):
        for column in published_table(key).columns:
            assert find(column).name == column


def test_faults_are_told() -> None:
    with pytest.raises(WrongUse, match="no table 'tabel' here: choose one of semi-summary"):
        published_table("tabel")
    facts = {"number": 1, "label": "a", "caption": "b", "unit": "c", "cells": "  | x y\nGCN | 1.0\n"}
    with pytest.raises(ValueError, match="Row 'GCN' of table t must be unique and have 2 cells"):
        parse_table("t", facts)

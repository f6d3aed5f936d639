"""The paper on one page: every table, sortable, no network, charts and maps with the right values and colours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omegagnn.cli import main
from omegagnn.paper.experiments import ITEMS, find_items
from omegagnn.paper.results import Results
from omegagnn.report import paper_page
from omegagnn.report.paper_page import omega_map

KEPT = ("semi-depth", "tu", "energy", "omega-maps", "semi-summary")


def results_of(folder: Path) -> Results:
    """Return results in which every training has a score of its own kind."""
    folder.mkdir()
    lines = []
    omega_map_of_record = (np.random.default_rng(0).random((64, 64)) * 2).round(3).tolist()
    trainings = {t.tag: t for item in find_items(list(KEPT)) for t in item.trainings()}
    for number, training in enumerate(trainings.values()):
        members = [[0, seed, c, 9, 1] for seed in range(training.seeds) for c in range(len(training.choices))]
        rows = [[5, 0.5, 0.7, 0.6 + 0.001 * (number % 100) + 0.01 * (k % 3)] for k in range(len(members))]
        record: dict[str, Any] = {
            "tag": training.tag, "name": training.name, "quick": False, "seconds": 1.0,
            "choices": [dict(choice) for choice in training.choices], "splits": [["public", "0"]], "members": members,
            "rules": {"honest": rows, **dict.fromkeys(training.rules, rows)},
            "environment": {"device": "a GPU", "processor": "", "threads": 1, "versions": {}},
        }  # fmt: skip
        record["rules"]["authors-tu"] = [[*row[:3], row[3] + 0.05] for row in rows]
        record |= {"map": omega_map_of_record, "energy": [4.0, 2.0, 1.0]}
        lines.append(json.dumps(record))
    (folder / "all.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Results(folder)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("matplotlib")
    return paper_page(results_of(tmp_path_factory.mktemp("paper") / "results"))


def test_every_item_has_its_section_and_every_table_can_be_sorted(page: str) -> None:
    for key, item in ITEMS.items():
        assert f'<section id="{key}">' in page, key
        assert f"omegagnn reproduce {key}" in page
        assert item.table is None or f"Table {item.kind.split()[1]}:" in page
    assert page.count('<table class="sortable">') >= 20
    assert "| ---" not in page
    assert "![" not in page


def test_nothing_is_asked_of_anybody(page: str) -> None:
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert "default-src 'none'" in page
    assert "style=" not in page


def test_depth_curves_have_every_drawn_network_and_the_printed_one(page: str) -> None:
    section = page.split('<section id="semi-depth">')[1].split("</section>", maxsplit=1)[0]
    for data in ("cora", "citeseer", "pubmed"):
        assert f"{data}: honest accuracy by depth" in section
    assert "ωGCN as printed at 64: 85.9" in section
    assert "GCN, K from I at 16" in section


def test_the_optimism_gap_is_drawn(page: str) -> None:
    section = page.split('<section id="tu">')[1].split("</section>", maxsplit=1)[0]
    assert "mutag: the same runs at the best test epoch and honestly" in section
    assert "5.0 points" in section


def test_a_map_is_white_at_one_blue_below_and_red_above() -> None:
    drawn = omega_map("ω", [[1.0, 0.5], [1.0, 1.5]])
    assert 'fill="#ffffff"' in drawn
    assert 'fill="#2166ac"' in drawn
    assert 'fill="#b2182b"' in drawn
    (values,) = re.findall(r'data-values="([^"]+)"', drawn)
    assert json.loads(values) == [[1.0, 0.5], [1.0, 1.5]]  # equal means keep their order
    assert "blue to 0.50, white 1, red to 1.50" in drawn


def test_the_command_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "euler"]) == 0
    capsys.readouterr()
    assert main(["reproduce", "report", "--out", "results.md", "--no-draw", "--html", "paper.html"]) == 0
    assert capsys.readouterr().out.splitlines() == ["results.md", "paper.html"]
    assert "data:image/svg+xml;base64," in Path("paper.html").read_text(encoding="utf-8")

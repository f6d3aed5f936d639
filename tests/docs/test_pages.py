"""Every block of code in the README and in docs/ runs, offline, page by page; links lead somewhere; tables are as measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path

import pytest
from run_page import Block, blocks_of

REPOSITORY = Path(__file__).resolve().parents[2]
RUNNER = Path(__file__).with_name("run_page.py")
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def name(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def with_code(pages: list[Path]) -> list[Path]:
    return [page for page in pages if any(block.runs for block in blocks_of(page.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("path", with_code(PAGES), ids=name)
def test_a_page_runs_offline_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    write_zoo(tmp_path / "zoo")
    environment = {
        **os.environ,
        "PATH": sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"],
        "OMEGAGNN_OFFLINE": "1",
        "OMEGAGNN_DATA": str(tmp_path / "data"),
        "MPLBACKEND": "agg",
    }
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", str(RUNNER), str(path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def write_zoo(folder: Path) -> None:
    """Write two tables as a reader has them: a ring of animals of two kinds, whose weight tells the kind."""
    folder.mkdir()
    nodes = [f"a{k},{'cat' if k % 2 else 'elephant'},{4 + k % 5 if k % 2 else 4000 + k}" for k in range(40)]
    edges = [f"a{k},a{(k + 2) % 40}" for k in range(40)]
    (folder / "nodes.csv").write_text("\n".join(["name,kind,weight", *nodes]) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n", encoding="utf-8")


def test_the_blocks_are_found_with_their_files_and_lines() -> None:
    page = (
        'One\n```python\nprint(1)\n```\n\n1. item\n    ```csv title="zoo/n.csv"\n    id\n    ```\n```text\nseen\n```\n'
    )
    found = blocks_of(page)
    assert found == [
        Block("python", None, "print(1)\n", 3),
        Block("csv", "zoo/n.csv", "id\n", 8),
        Block("text", None, "seen\n", 11),
    ]
    assert [block.runs for block in found] == [True, True, False]


def test_a_page_whose_code_fails_is_told_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", encoding="utf-8")
    done = subprocess.run([sys.executable, str(RUNNER), str(page)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'page.md", line 8' in done.stderr


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_lead_to_files(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert (path.parent / target).exists(), target


def test_the_table_of_depth_in_the_readme_is_the_measured_one() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    rows = json.loads((REPOSITORY / "results" / "depth_cora.json").read_text(encoding="utf-8"))["rows"]
    for row_name in dict.fromkeys(row["row"] for row in rows):
        own = [f"{row['test']['mean']:.1f}" for row in rows if row["row"] == row_name]
        assert f"| {row_name} | {' | '.join(own)} |" in readme


def test_the_tables_of_scaling_are_the_measured_ones() -> None:
    page = (REPOSITORY / "docs" / "scaling.md").read_text(encoding="utf-8")
    sampled, million, scaling = (
        json.loads((REPOSITORY / "results" / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("sampled_pubmed", "million", "scaling")
    )
    for table in sampled["rows"].values():
        for row in table.values():
            assert f"| {row['test']['mean']:.2f} ± {row['test']['sd']:.2f} |" in page
    for step, row in million["steps"].items():
        assert f"| {step} | {row['seconds']} | {row['cpu_seconds']} | {row['peak_gb']} |" in page
    for size, sweep in scaling["sweeps"].items():
        ends = f"{sweep['rows'][0][size]:,} | {sweep['rows'][-1][size]:,}"
        assert f"| {size} | {ends} | {sweep['time_exponent']:.2f} | {sweep['memory_exponent']:.2f} |" in page


def test_the_formula_of_scaling_has_the_constants_of_the_planner() -> None:
    from omegagnn.training import expected

    page = (REPOSITORY / "docs" / "scaling.md").read_text(encoding="utf-8")
    assert f"{expected.PROGRAM // expected.MIB}\\ \\mathrm{{MiB}}" in page
    assert f"{expected.ENTRY} E + {expected.NODE} n" in page
    assert f"\\max\\bigl({expected.MAKING} E,\\; {expected.KEPT_FOR_NEXT}\\, R" in page


def test_the_tables_of_the_readme_are_written_from_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "tools")
    with_tables = import_module("readme_tables").with_tables
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert readme == with_tables(readme), "run python tools/readme_tables.py"
    assert with_tables(readme.replace("| ωGCN", "| better")) == readme
    with pytest.raises(SystemExit, match="one place for the table 'speed'"):
        with_tables(readme.replace("<!-- speed:", "<!--"))

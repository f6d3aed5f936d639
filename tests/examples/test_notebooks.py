"""The notebooks run from top to bottom (slow), are kept without outputs, and their committed outcome is of what they say now."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
sys.path.insert(0, str(Path(__file__).parent))
from run_notebooks import NOTEBOOKS, REPOSITORY, source_hash  # noqa: E402


def check(outcome: dict[str, object]) -> None:
    assert outcome["error"] is None, outcome
    assert outcome["run"] == outcome["cells"]
    assert outcome["pictures"]
    assert outcome["printed"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert code
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert book.cells[0].cell_type == "markdown"


def test_the_committed_outcome_is_of_these_notebooks() -> None:
    report = json.loads((REPOSITORY / "results" / "notebooks.json").read_text(encoding="utf-8"))
    assert {each["notebook"]: each["sha256"] for each in report["notebooks"]} == {
        path.relative_to(REPOSITORY).as_posix(): source_hash(path) for path in NOTEBOOKS
    }
    for outcome in report["notebooks"]:
        check(outcome)


@pytest.mark.slow
def test_the_notebooks_run(tmp_path: Path) -> None:
    program = Path(__file__).with_name("run_notebooks.py")
    subprocess.run([sys.executable, str(program), str(tmp_path / "notebooks.json")], check=True)
    outcomes = json.loads((tmp_path / "notebooks.json").read_text(encoding="utf-8"))["notebooks"]
    assert len(outcomes) == len(NOTEBOOKS) == 2
    for outcome in outcomes:
        check(outcome)

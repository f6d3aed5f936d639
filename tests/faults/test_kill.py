"""A killed training, resumed, ends with the same bits as one that was left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from kill import EPOCHS, torment


@pytest.mark.parametrize(("task", "kills"), [("node", 2), ("graph", 2), ("inductive", 1)])
def test_kills_change_no_bit(task: str, kills: int, tmp_path: Path) -> None:
    outcome = torment(task, kills, seed=7, folder=tmp_path)
    assert outcome.kills >= 1
    assert outcome.kills - 1 <= outcome.resumes <= outcome.kills  # the last kill may come when all is done
    assert outcome.epochs == 3 * EPOCHS[task]  # three members, no row lost or doubled
    assert outcome.same_weights
    assert outcome.same_rows


@pytest.mark.slow
def test_fifty_kills(tmp_path: Path) -> None:
    report = tmp_path / "kills.json"
    program = Path(__file__).parent / "kill.py"
    subprocess.run([sys.executable, str(program), "50", str(report)], check=True)
    outcome = json.loads(report.read_text())
    assert outcome["kills"] >= 50
    assert outcome["all_bits_equal"]

"""Every example runs offline as its reader would run it, is short, and prints what it found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
LONGEST = 60
IDEAS = {
    "diagnose_my_model", "directed_graph", "graph_classification", "heterophily", "hundred_seeds", "mini_batches", "own_csv",
    "swap_a_conv", "train_with_torchrun", "wrap_any_conv",
}  # fmt: skip
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def test_there_is_one_for_each_idea() -> None:
    assert {path.stem for path in EXAMPLES} == IDEAS


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints(path: Path, tmp_path: Path) -> None:
    start = TORCHRUN if path.stem == "train_with_torchrun" else ("-W", "error:::__main__")
    command = [sys.executable, *start, str(path)]
    environment = {**os.environ, "OMEGAGNN_DATA": str(tmp_path / "data"), "MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 2


def test_what_needs_torchrun_says_so(tmp_path: Path) -> None:
    path = next(path for path in EXAMPLES if path.stem == "train_with_torchrun")
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "start me with: torchrun --standalone --nproc-per-node 2 train_with_torchrun.py\n"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_it_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < LONGEST
    assert text.startswith('"""')

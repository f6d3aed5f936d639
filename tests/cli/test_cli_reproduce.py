"""`omegagnn reproduce` as a user meets it: items by their names, nothing twice, kills, records, the page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from omegagnn.cli import main
from omegagnn.paper.experiments import ITEMS

QUICK = "semi citeseer, ωGCN, 2 layers, published"


def call(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def test_items_are_listed_with_how_much_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("reproduce", "list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["item"] for each in found] == list(ITEMS)
    assert {each["done"] for each in found} == {0}
    assert call("reproduce", "list", "euler") == 0
    assert capsys.readouterr().out == "training\tstate\nerror of forward Euler\tmissing\n"
    assert call("reproduce", "euler") == 0
    assert call("reproduce", "list", "euler", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == [{"name": "error of forward Euler", "state": "done"}]
    assert call("reproduce", "list") == 0
    assert "euler\tfigure\t1/1\t" in capsys.readouterr().out


def test_a_table_is_trained_told_and_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("reproduce", "semi-depth", "--quick", "--only", QUICK) == 0
    out, err = capsys.readouterr()
    assert f"[1/1] {QUICK}: " in err
    assert "1 done in " in err
    assert "Records are in results/paper-quick" in err
    assert "## Table 2" in out
    assert "Made with `--quick`" in out
    (line,) = (line for line in out.splitlines() if line.startswith("| ωGCN | citeseer, 2 layers |"))
    assert "| 71.3 |" in line
    assert "below by" in line
    assert f"omegagnn reproduce semi-depth --quick --only '{QUICK}'" in line
    assert call("reproduce", "semi-depth", "--quick", "--only", QUICK, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["done"], found["there"], found["quick"]) == (0, 1, True)
    cells = [each for each in found["items"]["semi-depth"] if each["honest"] is not None]
    assert [(each["row"], each["column"], each["printed"], each["seeds_and_splits"]) for each in cells] == [
        ("ωGCN", "citeseer-2", 71.3, "2 × 1")
    ]
    assert set(cells[0]["published_settings"]) == {"validation-accuracy"}


def test_quick_results_never_come_beside_full_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("reproduce", "euler") == 0
    assert call("reproduce", "euler", "--quick", "--results", "results/paper") == 2
    assert "results/paper has full results: pass another --results" in capsys.readouterr().err


def test_data_that_is_not_here_costs_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMEGAGNN_DATA", str(tmp_path))
    assert call("reproduce", "arxiv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["absent"]) == 4
    assert {each["verdict"] for each in found["items"]["arxiv"]} == {"not run: data not available"}


def test_the_page_and_the_pictures_are_written_from_records_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("reproduce", "euler", "impulse") == 0
    (tmp_path / "runs").rename(tmp_path / "gone")
    capsys.readouterr()
    assert call("reproduce", "report", "--out", "page/results.md") == 0
    assert capsys.readouterr().out.splitlines() == [
        "page/results.md", "page/pictures/paper_impulse.svg", "page/pictures/paper_euler.svg",
    ]  # fmt: skip
    first = Path("page/results.md").read_bytes()
    drawn = Path("page/pictures/paper_euler.svg").read_bytes()
    assert b"Forward Euler" in drawn
    assert call("reproduce", "report", "--out", "page/results.md", "--json") == 0
    assert json.loads(capsys.readouterr().out)["records"] == 2
    assert Path("page/results.md").read_bytes() == first
    assert Path("page/pictures/paper_euler.svg").read_bytes() == drawn


def test_records_of_another_machine_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("reproduce", "euler", "--results", "there", "--runs-dir", "other") == 0
    assert call("reproduce", "impulse") == 0
    capsys.readouterr()
    assert call("reproduce", "merge", "there") == 0
    assert capsys.readouterr().out == "1 records taken over; results/paper has 2\n"
    assert call("reproduce", "merge", "there", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"taken": 0, "records": 2}


def records(folder: Path) -> dict[str, Any]:
    """Return what two ways to the same end must have in common."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    kept = ("members", "rules", "omega", "splits", "choices")
    return {found["name"]: {key: found[key] for key in kept} for found in map(json.loads, lines)}


@pytest.mark.slow
def test_a_killed_command_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    options = ["--quick", "--only", "citeseer 2 ωGCN", "--only", "citeseer 4 ωGCN", "--only", "citeseer 2 MLP"]

    def command(folder: Path) -> list[str]:
        places = ["--results", str(folder / "results"), "--runs-dir", str(folder / "runs")]
        return [sys.executable, "-m", "omegagnn", "reproduce", "semi-depth", *options, *places]

    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True)
    folder = tmp_path / "killed"
    kills = 0
    for wait in (1, 3, 4):
        process = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        path = folder / "results" / "semi-citeseer.jsonl"
        while process.poll() is None and time.monotonic() < deadline:
            if path.exists() and len(path.read_text().splitlines()) >= wait:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.01)
        process.wait()
    subprocess.run(command(folder), check=True, capture_output=True)
    assert kills >= 2
    assert records(folder / "results") == records(tmp_path / "whole" / "results")

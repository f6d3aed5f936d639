"""``omegagnn doctor`` on this machine, and on one that is really broken: each fault is made, none is pretended."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from omegagnn.cli import main
from omegagnn.errors import OmegaError
from omegagnn.training import selftest
from omegagnn.training.doctor import Check, examine, summary

ONE_KERNEL = """
import torch
from omegagnn import Graph, omega_propagate
edge = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
omega_propagate(torch.ones(2, 24), edge.gcn_norm(), 0.5)
"""


def checks(out: str) -> dict[str, dict[str, Any]]:
    return {check["check"]: check for check in json.loads(out)["checks"]}


def process(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "omegagnn", "doctor", "--json", "--runs-dir", str(tmp_path / "runs"), *arguments]
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(command, capture_output=True, text=True, env=surroundings, check=False)


def test_all_is_well_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--runs-dir", str(tmp_path / "runs")]) == 0
    out = capsys.readouterr()
    for name in ("python", "torch", "torch_geometric", "backend on cpu", "threads", "data root", "runs folder"):
        assert re.search(rf"^{name} +(well|note)  ", out.out, re.MULTILINE), out.out
    assert re.search(r"kernels +well +cpu: forward and backward within", out.out)
    assert re.search(r"training +well +[67]\d\.\d % on CiteSeer", out.out)
    assert "cpu_kernels" not in out.err
    assert not (tmp_path / "runs").exists()  # looked at, not made


def test_json_names_runs_and_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "karate", "--seeds", "1", "--epochs", "2", "--runs-dir", str(tmp_path), "--json"]) == 0
    capsys.readouterr()
    before = {path.name for path in tmp_path.iterdir() if not path.name.endswith(("-shm", "-wal"))}  # these come and go
    assert main(["doctor", "--json", "--runs-dir", str(tmp_path), "--data-root", str(tmp_path / "data")]) == 0
    out = capsys.readouterr().out
    found = checks(out)
    assert json.loads(out)["well"] is True
    assert "1 runs, 1 done" in found["runs folder"]["found"]
    assert str(tmp_path / "data") in found["data root"]["found"]
    assert "not there yet" in found["data root"]["found"]
    assert [path.name for path in tmp_path.glob(".doctor-*")] == []  # its probe is gone
    assert before <= {path.name for path in tmp_path.iterdir()}


def test_numba_that_cannot_be_imported_makes_everything_slower(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text('raise ImportError("built for another Python")\n')
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ended = process(tmp_path, PYTHONPATH=path)
    assert ended.returncode == 0, ended.stderr
    found = checks(ended.stdout)
    assert found["backend on cpu"]["status"] == "slower"
    assert (
        "everything runs slower, because numba cannot be imported (built for another Python)"
        in found["backend on cpu"]["found"]
    )
    assert found["training"]["status"] == "well"


def test_damaged_kernels_are_broken_and_say_what_to_remove(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", ONE_KERNEL], env=surroundings, capture_output=True, check=True)
    indices = list(cache.rglob("cpu_*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(b"garbage")
    ended = process(tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert ended.returncode == 1
    found = checks(ended.stdout)
    assert found["kernels"]["status"] == "broken"
    assert str(indices[0].parent) in found["kernels"]["remedy"]
    assert json.loads(ended.stdout)["well"] is False


def test_a_runs_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "readonly"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        folder.chmod(0o500)  # permission bits count even for the superuser
    try:
        assert main(["doctor", "--runs-dir", str(folder)]) == 1
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", folder], check=True)
        else:
            folder.chmod(0o700)
    out = capsys.readouterr()
    assert re.search(r"runs folder +broken .*cannot be written", out.out)
    assert "→ make it writable, or choose another with --runs-dir" in out.out
    assert "broken: runs folder." in out.err


def test_a_file_in_the_place_of_folder_or_journal(tmp_path: Path) -> None:
    def runs_folder(folder: Path) -> Check:
        return next(check for check in examine(runs_dir=folder) if check.name == "runs folder")  # the trials come later

    (tmp_path / "file").write_text("x")
    assert "it is a file" in runs_folder(tmp_path / "file").found
    assert "is no folder or read-only" in runs_folder(tmp_path / "file" / "deeper").found
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "journal.sqlite").write_text("no database, but quite some text instead of one" * 50)
    found = runs_folder(tmp_path / "runs")
    assert found.status == "broken"
    assert "is not a journal" in found.found


def test_the_self_test_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "LEAST_SCORE", 0.99)
    with pytest.raises(OmegaError, match=r"reached .* % on CiteSeer, expected at least 99 %"):
        selftest.training_works()
    monkeypatch.setattr(selftest, "TOLERANCE", -1.0)
    with pytest.raises(OmegaError, match="The kernels differ from the reference"):
        selftest.kernels_agree()


def test_the_last_line() -> None:
    well, slow = Check("a", "well", "x"), Check("b", "slower", "y", "z")
    assert summary([well]) == "all is well."
    assert summary([well, slow]) == "everything works, but slower than it could: see b."
    assert summary([slow, Check("c", "broken", "w")]) == "broken: c."

"""The blocks of docs/predict.md run, offline and in their order, as a reader would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

from test_readme import COMMANDS, _write_zoo

PAGE = Path(__file__).resolve().parent.parent / "docs" / "predict.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    assert [kind for kind, _ in BLOCKS] == ["bash", "bash", "python", "python"]
    _write_zoo(tmp_path / "zoo")
    _write_spring(tmp_path / "zoo", tmp_path / "spring")
    environment = {
        **os.environ,
        "PATH": sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"],
        "OMEGAGNN_OFFLINE": "1",
        "OMEGAGNN_DATA": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    printed = []
    for kind, text in BLOCKS:
        done = subprocess.run(
            [*COMMANDS[kind], text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert "mean of the probabilities of 3 members" in printed[0]
    assert "id,predicted,p(cat),p(elephant)\na0,elephant," in printed[0]
    assert "to the bit" in printed[1]
    assert "a0  elephant" in printed[2]
    assert "a0    elephant" in printed[3]


def _write_spring(zoo: Path, folder: Path) -> None:
    """Write the zoo with two animals more, two edges less and no labels."""
    folder.mkdir()
    rows = [line.split(",") for line in (zoo / "nodes.csv").read_text(encoding="utf-8").splitlines()]
    nodes = [f"{name},{weight}" for name, _, weight in rows]
    (folder / "nodes.csv").write_text("\n".join([*nodes, "b0,4500", "b1,5"]) + "\n", encoding="utf-8")
    edges = (zoo / "edges.csv").read_text(encoding="utf-8").splitlines()[:-2]
    (folder / "edges.csv").write_text("\n".join([*edges, "b0,a2", "b1,a3"]) + "\n", encoding="utf-8")

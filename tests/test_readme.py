"""Every block of code in README.md runs, offline, and its table says what the results say.

Blocks of `make` are left out: CI runs `make test` itself, and `make train` is `omegagnn train` behind the set-up of a virtual
environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
RUN = [
    (kind, text) for kind, text in BLOCKS if kind in ("python", "bash") and not re.search(r"^make ", text, re.MULTILINE)
]
COMMANDS = {"python": [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c"], "bash": ["bash", "-euc"]}


def test_every_language_of_the_blocks_is_known() -> None:
    assert {kind for kind, _ in BLOCKS} <= {"python", "bash", "text", "bibtex"}
    assert len([text for kind, text in RUN if kind == "python"]) >= 2


@pytest.mark.parametrize(("kind", "text"), RUN, ids=[f"{kind}-{number}" for number, (kind, _) in enumerate(RUN)])
def test_a_block_runs_offline(kind: str, text: str, tmp_path: Path) -> None:
    _write_zoo(tmp_path / "zoo")
    environment = {
        **os.environ,
        "PATH": sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"],
        "OMEGAGNN_OFFLINE": "1",
        "OMEGAGNN_DATA": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    command = [*COMMANDS[kind], text]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def _write_zoo(folder: Path) -> None:
    """Write two tables as a reader of the README has them: a ring of animals of two kinds, whose weight tells the kind."""
    folder.mkdir()
    nodes = [f"a{k},{'cat' if k % 2 else 'elephant'},{4 + k % 5 if k % 2 else 4000 + k}" for k in range(40)]
    edges = [f"a{k},a{(k + 2) % 40}" for k in range(40)]
    (folder / "nodes.csv").write_text("\n".join(["name,kind,weight", *nodes]) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n", encoding="utf-8")


def test_the_table_of_depth_is_the_measured_one() -> None:
    rows = json.loads((REPOSITORY / "results" / "depth_cora.json").read_text(encoding="utf-8"))["rows"]
    names = list(dict.fromkeys(row["row"] for row in rows))
    for name in names:
        own = [f"{row['test']['mean']:.1f}" for row in rows if row["row"] == name]
        assert f"| {name} | {' | '.join(own)} |" in README


def test_links_lead_to_files() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (REPOSITORY / target).exists(), target

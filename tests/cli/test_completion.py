"""What bash is offered: its own protocol, in a bash, with the script that the command prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omegagnn.cli import main
from omegagnn.data.registry import available
from omegagnn.nn.baselines import BASELINES
from omegagnn.training.build import OMEGA_MODELS
from omegagnn.training.presets.names import preset_names

OFFER = """
source <(omegagnn --show-completion)
complete -p omegagnn >/dev/null || exit 3
COMP_WORDS=("$@" ); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
_omegagnn_completion omegagnn
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """A function from the words on a line, the last perhaps unfinished, to what bash is offered for it."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    command = tmp_path / "bin" / "omegagnn"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m omegagnn "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    # The shell whose script is printed is found by looking at the parent process.
    script = tmp_path / "offer.sh"
    script.write_text(OFFER)

    def ask(*words: str) -> list[str]:
        line = [bash, str(script), "omegagnn", *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return ask


def test_verbs_options_and_names_are_completed(
    offered: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert (
            main(["train", "karate", "--seeds", "1", "--epochs", "1", "--json", "--runs-dir", str(tmp_path / "runs")])
            == 0
        )
    own = tmp_path / "data" / "own" / "corals" / "dataset.npz"
    own.parent.mkdir(parents=True)
    own.touch()
    ask = offered
    assert ask("tr") == ["train"]  # type: ignore[operator]
    assert ask("presets", "") == ["list", "show", "create"]  # type: ignore[operator]
    assert ask("train", "--pre") == ["--preset"]  # type: ignore[operator]
    depths = [f"tuned/cora-omega-gcn-{depth}" for depth in (2, 4, 8, 16, 32, 64)]
    assert ask("train", "--preset", "tuned/cora") == depths  # type: ignore[operator]
    assert ask("presets", "show", "graph/nci109-omega-ga") == ["graph/nci109-omega-gat-4"]  # type: ignore[operator]
    assert ask("presets", "list", "--task", "") == ["semi", "full", "inductive", "graph", "tuned"]  # type: ignore[operator]
    assert ask("train", "--data-root", str(tmp_path / "data"), "co") == [  # type: ignore[operator]
        "cora", "cornell", "cornell-corrected", "corals",
    ]  # fmt: skip
    assert ask("data", "fetch", "nci") == ["nci1", "nci109"]  # type: ignore[operator]
    assert ask("train", "karate", "--protocol", "g") == ["gcnii", "gin"]  # type: ignore[operator]
    assert ask("train", "karate", "--model", "omega") == ["omega-gcn", "omega-gat"]  # type: ignore[operator]
    runs = sorted(path.name for path in (tmp_path / "runs").glob("karate-*"))
    assert sorted(ask("runs", "show", "karate")) == runs  # type: ignore[operator]
    assert len(runs) == 2
    assert ask("reproduce", "semi-") == ["semi-summary", "semi-depth"]  # type: ignore[operator]
    assert ask("reproduce", "tu", "eu") == ["euler"]  # type: ignore[operator]
    assert ask("reproduce", "re") == ["report"]  # type: ignore[operator]
    assert ask("train", "--resume", "la") == ["last"]  # type: ignore[operator]
    assert ask("diagnose", runs[0]) == [runs[0]]  # type: ignore[operator]
    assert ask("export", runs[0]) == [runs[0]]  # type: ignore[operator]
    assert ask("export", "last", "--graph", "citeseer") == ["citeseer"]  # type: ignore[operator]
    assert ask("predict", "last", "--graph", "citeseer") == ["citeseer"]  # type: ignore[operator]


def test_without_a_journal_no_run_is_offered_and_none_is_made(offered: object, tmp_path: Path) -> None:
    assert offered("runs", "delete", "") == []  # type: ignore[operator]
    assert not (tmp_path / "runs").exists()


def test_what_is_offered_is_what_there_is() -> None:
    from omegagnn.cli import completion

    class Line:
        params: dict[str, object] = {}  # noqa: RUF012

    assert completion.dataset_names(Line(), "") == [entry.name for entry in available()]  # type: ignore[arg-type]
    assert set(completion.MODELS) <= {*OMEGA_MODELS, *BASELINES}
    assert completion.preset_names("") == preset_names()


def test_completing_is_quick_because_torch_stays_out() -> None:
    script = (
        "import sys; from omegagnn.cli import main; main(); "
        "print(sorted({'torch', 'pandas', 'numpy', 'scipy'} & set(sys.modules)), file=sys.stderr)"
    )
    for words in ("omegagnn train c", "omegagnn train --preset s", "omegagnn runs show k", "omegagnn reproduce t"):
        environment = {**os.environ, "_OMEGAGNN_COMPLETE": "complete_bash", "COMP_WORDS": words}
        environment["COMP_CWORD"] = str(len(words.split()) - 1)
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stderr.strip() in ("", "[]")


def test_completion_installs_itself_for_the_next_shell(
    offered: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    script = tmp_path / "install.sh"
    script.write_text("omegagnn --install-completion\n")
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "bash completion installed" in done.stdout
    asked = 'source ~/.bashrc; COMP_WORDS=(omegagnn da); COMP_CWORD=1; _omegagnn_completion omegagnn; echo "$COMPREPLY"'
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "data"

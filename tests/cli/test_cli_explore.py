"""``omegagnn explore``: the file it writes and the browser it opens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omegagnn.cli import main
from omegagnn.report import explorer_page

COMMAND = [sys.executable, "-m", "omegagnn", "explore"]


@pytest.fixture
def browser(tmp_path: Path) -> Path:
    """A browser that writes down what it was asked to open, by the variable that Python's webbrowser obeys."""
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf "%s" "$1" > "{tmp_path}/opened"\n')
    program.chmod(0o755)
    return program


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_it_writes_the_page_where_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "deep" / "page.html"
    assert main(["explore", "--no-open", "--out", str(page)]) == 0
    assert capsys.readouterr() == (f"{page}\n", "")
    assert page.read_text(encoding="utf-8") == explorer_page()
    assert [path.name for path in page.parent.iterdir()] == ["page.html"]


def test_it_opens_the_page_from_the_cache_folder(tmp_path: Path, browser: Path) -> None:
    outcome = run(XDG_CACHE_HOME=str(tmp_path / "my cache"), BROWSER=str(browser))
    page = tmp_path / "my cache" / "omegagnn" / "explorer.html"
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, f"{page}\n", "")
    assert (tmp_path / "opened").read_text() == page.as_uri()
    assert page.is_file()


def test_a_browser_that_does_not_start_is_said_and_the_page_is_there(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    outcome = run("--out", str(page), BROWSER=str(tmp_path / "no-such-browser"), PATH=str(tmp_path), DISPLAY="")
    assert outcome.returncode == 0
    assert (
        outcome.stderr
        == "no browser could be started: open the page yourself, or leave out the attempt with --no-open.\n"
    )
    assert page.is_file()


def test_wrong_places_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--no-open", "--out", "page.pdf"]) == 2
    assert capsys.readouterr() == ("", "omegagnn: --out page.pdf is no name for a page: end it in .html.\n")
    (tmp_path / "file").write_text("")
    assert main(["explore", "--no-open", "--out", str(tmp_path / "file" / "page.html")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "page.html could not be written (" in captured.err
    assert captured.err.count("\n") == 1

"""The site builds strictly and offline, with every command in it, and asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from omegagnn.cli.verbs import VERBS

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_and_every_command_is_there(site: Path) -> None:
    for page in (REPOSITORY / "docs").rglob("*.md"):
        assert (site / page.relative_to(REPOSITORY / "docs")).with_suffix(".html").is_file()
    commands = (site / "commands.html").read_text(encoding="utf-8")
    for verb in VERBS:
        assert f'<h2 id="omegagnn-{verb}' in commands


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|iframe|source)[^>]+src=\"?(https?:[^\s\">]+)", text)
        fetched += re.findall(r"<link[^>]+rel=\"?(?:stylesheet|preconnect|icon)\"?[^>]+href=\"?(https?:[^\s\">]+)", text)
        assert not fetched, page.name


def test_formulas_and_examples_are_set(site: Path) -> None:
    layers = (site / "api" / "layers.html").read_text(encoding="utf-8")
    assert "<math" in layers
    assert ".. math" not in layers
    assert "arithmatex" not in layers
    assert "&gt;&gt;&gt; " in re.sub(r"<[^>]+>", "", layers)

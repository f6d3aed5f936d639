"""The site builds strictly and offline, with every command in it, and asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

import omegagnn
from omegagnn import analysis, data
from omegagnn.cli.verbs import VERBS
from omegagnn.data import own

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


def test_every_link_inside_the_site_leads_somewhere(site: Path) -> None:
    """Pages, pictures and anchors, in what was built: also what generated pages and docstrings point to."""
    texts = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"}
    names = {page: set(re.findall(r"\s(?:id|name)=\"?([^\s\">]+)", text)) for page, text in texts.items()}
    lost = []
    for page, text in texts.items():
        for link in re.findall(r"<(?:a|link|img|script|source)\s[^>]*?(?:href|src)=\"?([^\s\">]+)", text):
            address, _, anchor = unescape(unquote(link)).partition("#")
            if re.match(r"[a-z]+:", address) or address.startswith("//"):
                continue
            target = (page.parent / address.split("?")[0]).resolve() if address else page
            if not target.exists() or (anchor and target in names and anchor not in names[target]):
                lost.append(f"{page.relative_to(site)} → {link}")
    assert not lost


def test_the_reference_holds_every_public_name(site: Path) -> None:
    reference = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    shown = set(re.findall(r"<h[2-4] id=\"?(omegagnn\.[\w.]+)", reference))
    wanted = {f"omegagnn.{name}" for name in omegagnn.__all__ if name != "__version__"}
    for part in (analysis, data, own):
        wanted |= {f"{part.__name__}.{name}" for name in part.__all__}
    # A function that hides the module it lives in is shown from there.
    wanted = {name if name in shown else f"{name}.{name.rpartition('.')[2]}" for name in wanted}
    assert not wanted - shown

"""Pages in a real browser, opened from a file as a user would open them: no server, no network, a silent console.

Every page of this project is one file that needs nothing else. `open_page` holds that for whichever test uses it: after the
test, a request for anything but the file itself, or a word on the console, is a failure.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import OpenPage
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from omegagnn.report import write_explorer

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# A page that is not there yet after this time is broken; a missing element should not hold a suite up for 30 s.
PATIENCE_MS = 8000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's own browser, without a window; none is ever downloaded."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Return ``open(path, fragment="", **context)``; `context` is what `Browser.new_context` takes, such as a colour scheme."""
    asked: list[str] = []
    said: list[str] = []
    allowed: set[str] = set()
    contexts: list[BrowserContext] = []

    def open_file(path: Path, fragment: str = "", **context: Any) -> Page:
        contexts.append(browser.new_context(**context))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: asked.append(request.url.partition("#")[0]))
        page.on("websocket", lambda socket: asked.append(socket.url))
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"uncaught: {error}"))
        allowed.add(path.as_uri())
        page.goto(path.as_uri() + (f"#{fragment}" if fragment else ""))
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert [url for url in asked if url not in allowed] == []
    assert said == []


@pytest.fixture(scope="session")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ω explorer, written once."""
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    write_explorer(path)
    return path

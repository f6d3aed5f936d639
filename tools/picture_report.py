"""Photograph a report for the documentation: its head in the light, ω in the dark, as small PNG files in docs/pictures.

Run: python tools/picture_report.py (with the extra `dev`, which brings Pillow along, and Chromium on the path). Trains 16 layers
on the embedded CiteSeer first, about a minute.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from picture_explorer import FOLDER, LARGEST, in_palette
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from omegagnn import fit
from omegagnn.report import gather, write_report

WIDE: dict[str, Any] = {"viewport": {"width": 1120, "height": 1000}}
# The heading that a picture begins at, and how the page is opened.
PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "report_light": ("omegagnn report", WIDE),
    "report_dark": ("ω", {**WIDE, "color_scheme": "dark"}),
}


def main() -> None:
    browser_path = shutil.which("chromium") or sys.exit("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        result = fit(
            "citeseer", seeds=5, model__layers=16, training__lr_omega=0.02, training__epochs=200, runs_dir=folder
        )
        path = Path(folder) / "report.html"
        write_report([gather(result)], path)
        browser = playwright.chromium.launch(executable_path=browser_path)
        for name, (heading, options) in PICTURES.items():
            page = browser.new_context(reduced_motion="reduce", **options).new_page()
            page.goto(path.as_uri())
            save(page, heading, name)
        browser.close()


def save(page: Page, heading: str, name: str) -> None:
    """Photograph the window that begins at a heading."""
    page.evaluate(
        "words => [...document.querySelectorAll('h2, .brand')].find(h => h.textContent === words).scrollIntoView()",
        heading,
    )
    packed = io.BytesIO()
    in_palette(Image.open(io.BytesIO(page.screenshot())).convert("RGB")).save(packed, "PNG", optimize=True)
    if packed.tell() > LARGEST:
        sys.exit(f"{name}.png has {packed.tell()} bytes: make it smaller than {LARGEST}.")
    (FOLDER / f"{name}.png").write_bytes(packed.getvalue())


if __name__ == "__main__":
    main()

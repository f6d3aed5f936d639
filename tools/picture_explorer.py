"""Photograph the ω explorer for the documentation: light, dark, phone, as small PNG files in docs/pictures.

Run: python tools/picture_explorer.py (with the extra `dev`, which brings Pillow along, and Chromium on the path).
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from omegagnn.report import write_explorer

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDE = {"viewport": {"width": 1120, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 1320}, "is_mobile": True, "has_touch": True}
LARGEST = 150_000  # bytes

PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "explorer_light": ("graph=grid&rows=5&columns=7&node=17&omega=0.3&steps=8", WIDE),
    "explorer_dark": ("graph=karate&node=0&omega=-0.5&steps=4", {**WIDE, "color_scheme": "dark"}),
    "explorer_phone": ("graph=ring&n=16&node=0&omega=1.8&steps=16", PHONE),
}


def main() -> None:
    browser_path = shutil.which("chromium") or sys.exit("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_path = Path(folder) / "explorer.html"
        write_explorer(page_path)
        browser = playwright.chromium.launch(executable_path=browser_path)
        for name, (fragment, options) in PICTURES.items():
            page = browser.new_context(reduced_motion="reduce", **options).new_page()
            page.goto(f"{page_path.as_uri()}#{fragment}")
            page.wait_for_function("window.omegaExplorer")
            photograph = Image.open(io.BytesIO(page.screenshot(full_page=options is not PHONE))).convert("RGB")
            packed = io.BytesIO()
            in_palette(photograph).save(packed, "PNG", optimize=True)
            if packed.tell() > LARGEST:
                sys.exit(f"{name}.png has {packed.tell()} bytes: make it smaller than {LARGEST}.")
            (FOLDER / f"{name}.png").write_bytes(packed.getvalue())
        browser.close()


def in_palette(picture: Image.Image) -> Image.Image:
    """Return the picture in 256 colours, a third of the bytes: the most frequent as they are, and a cover of the others."""
    counted = picture.getcolors(picture.width * picture.height) or []
    frequent = [colour for _, colour in sorted(counted, reverse=True)[:160]]
    cover = picture.quantize(96, method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([channel for colour in frequent for channel in colour] + cover)
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


if __name__ == "__main__":
    main()

"""Photograph the page of a study for the documentation, as a small PNG file in docs/pictures.

Run: python tools/picture_study.py (with the extra `dev` and Chromium on the path). Searches 40 settings of two layers on the
embedded CiteSeer first, some minutes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from picture_report import WIDE, save
from playwright.sync_api import sync_playwright

from omegagnn.cli import main as omegagnn

LINE = "tune citeseer --trials 40 --seeds 1 --epochs 40 --batch 10 --only --search training.lr_oc=1e-3..0.3:log"
SEARCHED = ("training.lr_gnn=1e-5..1e-1:log", "training.wd_oc=1e-5..1e-1:log", "model.dropout=[0.3, 0.5, 0.7]")


def main() -> None:
    browser_path = shutil.which("chromium") or sys.exit("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        search = [word for searched in SEARCHED for word in ("--search", searched)]
        assert omegagnn([*LINE.split(), *search, "--study", "citeseer", "--runs-dir", folder]) == 0
        assert omegagnn(["report", "citeseer", "--runs-dir", folder]) == 0
        browser = playwright.chromium.launch(executable_path=browser_path)
        page = browser.new_context(reduced_motion="reduce", **WIDE).new_page()
        page.goto((Path(folder) / "studies" / "citeseer" / "report.html").as_uri())
        save(page, "The search", "study_light")
        browser.close()


if __name__ == "__main__":
    main()

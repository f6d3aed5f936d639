"""What is handed out: a wheel and a source distribution that build, hold what they must, and work where nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Wheel and source distribution, made with the backend that is installed here."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    line = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(REPOSITORY)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.mark.slow
def test_the_index_would_take_both(built: tuple[Path, Path]) -> None:
    pytest.importorskip("twine")
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_they_hold_what_they_must_and_nothing_of_this_machine(built: tuple[Path, Path]) -> None:
    wheel, source = built
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"omegagnn", "omegagnn-0.1.0.dist-info"}
    for needed in (
        "py.typed", "data/registry.toml", "data/embedded/citeseer.npz", "paper/published.toml", "report/report_page/style.css",
        "report/explorer_page/explorer.html", "training/presets/semi/cora-omega-gcn-2.yaml",
    ):  # fmt: skip
        assert f"omegagnn/{needed}" in names
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for needed in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "tests/conftest.py",
        "examples/swap_a_conv.py",
        "docs/faq.md",
    ):
        assert needed in inside
    assert not [name for name in inside if name.endswith((".pyc", ".sqlite", ".safetensors"))]


@pytest.mark.slow
def test_the_wheel_trains_where_the_repository_is_not(built: tuple[Path, Path], tmp_path: Path) -> None:
    """In an environment of its own, which sees the libraries installed here and no copy of this package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(site)
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if "omegagnn" not in each.name:
            (libraries / each.name).symlink_to(each)
    (site / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "COVERAGE_PROCESS_START")}
    where = "import omegagnn; print(omegagnn.__file__)"
    found = subprocess.run(
        [python, "-c", where], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Path(found.stdout.strip()).is_relative_to(site)
    for line in (
        "train citeseer --seeds 2 --epochs 5 --json",
        "predict last --graph citeseer --out p.csv",
        "export last --out model",
        "explore --out explorer.html --no-open",
    ):
        done = subprocess.run(
            [python, "-m", "omegagnn", *line.split()],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "model" / "README.md").is_file()
    assert len((tmp_path / "p.csv").read_text(encoding="utf-8").splitlines()) == 3328

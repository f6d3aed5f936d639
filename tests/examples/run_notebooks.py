"""Runs every notebook from top to bottom, as its reader would, and writes down what came of it.

``python tests/examples/run_notebooks.py results/notebooks.json``
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((REPOSITORY / "examples" / "notebooks").glob("*.ipynb"))
LONGEST = 300  # seconds a cell may take


def source_hash(path: Path) -> str:
    """Return the SHA-256 of what the cells of a notebook say, whatever they put out."""
    cells = [(cell.cell_type, cell.source) for cell in nbformat.read(path, as_version=4).cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def run(path: Path) -> dict[str, Any]:
    """Run a notebook in an empty folder and return how it went, with what its cells printed."""
    book = nbformat.read(path, as_version=4)
    error = None
    with tempfile.TemporaryDirectory() as folder:
        try:
            NotebookClient(book, timeout=LONGEST, resources={"metadata": {"path": folder}}).execute()
        except CellExecutionError as failure:
            error = f"{failure.ename}: {failure.evalue}"
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    pictures = sum(any(kind.startswith("image/") for kind in output.get("data", {})) for output in outputs)
    printed = [
        line for output in outputs for line in output.get("text", "").splitlines() if output.get("name") == "stdout"
    ]
    return {
        "notebook": path.relative_to(REPOSITORY).as_posix(),
        "sha256": source_hash(path),
        "cells": len(code),
        "run": sum(cell.execution_count is not None for cell in code),
        "error": error,
        "pictures": pictures,
        "printed": printed,
    }


def main(report: Path) -> None:
    """Run all and write the report."""
    os.environ.setdefault("OMEGAGNN_OFFLINE", "1")
    environment = {name: version(name) for name in ("torch", "torch_geometric", "numpy", "nbclient")}
    found = {
        "command": "python tests/examples/run_notebooks.py results/notebooks.json",
        "versions": environment,
        "notebooks": [run(path) for path in NOTEBOOKS],
    }
    report.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

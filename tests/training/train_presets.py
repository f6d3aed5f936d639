"""Train every preset for three epochs of one seed on its first split; PPI and ogbn-arxiv on small files of their formats.

Run as a program it trains all of them and writes what came of each:
``python tests/training/train_presets.py results/presets_train.json`` (some minutes).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "data"))
from test_ogb_reader import make_arxiv
from test_ppi_reader import make_ppi

from omegagnn import fit
from omegagnn.training.batch import DivergenceError
from omegagnn.training.fit import Result
from omegagnn.training.presets import preset_names
from omegagnn.training.presets.preset import read_preset

EPOCHS = 3
MADE = ("ppi", "ogbn-arxiv")  # cannot be had where this was written
# Published settings whose 64 maps K of 256 channels grow past float32 in the second step: LR_GNN is 0.005.
DIVERGE = {f"semi/{data}-omega-gat-64{scope}" for data in ("citeseer", "pubmed") for scope in ("", "-global", "-layer")}
SHARED_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def make_root(folder: Path) -> Path:
    """Write small files in the formats of PPI and ogbn-arxiv; return the data root."""
    make_ppi(folder / "PPI" / "raw", graphs=(4, 2, 2))
    make_arxiv(folder / "ogbn_arxiv")
    return folder


def is_made(name: str) -> bool:
    return read_preset(name).config.data.name in MADE


def train(name: str, root: Path, folder: Path) -> Result:
    lasting = {"training__epochs": EPOCHS, "training__patience": None}
    return fit(preset=name, seeds=1, splits=[0], data_root=root, runs_dir=folder, **lasting)


def outcome(name: str, root: Path, folder: Path) -> dict[str, Any]:
    started = time.perf_counter()
    row: dict[str, Any] = {"preset": name, "hash": read_preset(name).hash, "made_data": is_made(name)}
    try:
        (curve,) = train(name, root, folder).curves
        row |= {"outcome": "trained", "epochs": len(curve), "val_loss": [float(v) for v in curve.validation.loss]}
    except DivergenceError as error:
        row |= {"outcome": "diverged", "said": str(error)}
    return {**row, "seconds": round(time.perf_counter() - started, 2)}


def main() -> None:
    path = Path(sys.argv[1])
    shared = Path(os.environ.get("OMEGAGNN_TEST_DATA", SHARED_DATA))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        made = make_root(Path(folder) / "made")
        for name in preset_names():
            rows.append(outcome(name, made if is_made(name) else shared, Path(folder) / "runs"))
            print(json.dumps(rows[-1]), flush=True)
    counts = {word: sum(row["outcome"] == word for row in rows) for word in ("trained", "diverged")}
    command = f"python tests/training/train_presets.py {path}"
    path.write_text(json.dumps({"command": command, "epochs": EPOCHS, **counts, "presets": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

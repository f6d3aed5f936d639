"""How the settings of ``omegagnn train`` without arguments were chosen: ``python benchmarks/default_job.py``

ωGCN, 2 layers × 64 channels, on the embedded CiteSeer: a grid of rates, decays and dropouts, five seeds each, ordered by the mean
validation accuracy at the epoch of the best validation loss. Test accuracies are neither used nor printed. The outcome is
results/default_job.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from trained_once import trained_once, validation_scores

from omegagnn.data import Dataset, load
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Plan
from omegagnn.training.journal import Journal

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "results" / "default_job.json"
SEEDS = 5
BASE = {
    "data.name": "citeseer",
    "data.split": "public",
    "model.name": "omega-gcn",
    "model.layers": 2,
    "model.channels": 64,
    "training.wd_gnn": 1e-4,
    "training.wd_omega": 0.0,
    "training.epochs": 300,
    "training.patience": 100,
}
DROPOUTS = (0.5, 0.7)  # one run of the journal each; the other settings differ from member to member
MEMBERS = {
    "lr_gnn": (1e-4, 1e-3),
    "lr_oc": (1e-2, 3e-2, 8e-2),
    "wd_oc": (1e-4, 5e-4, 2e-3),
    "lr_omega": (1e-3, 5e-3, 2e-2),
}


def search(dropout: float, data: Dataset, journal: Journal) -> list[dict[str, Any]]:
    """Train the grid at one dropout and return its settings with their validation accuracy."""
    config = RunConfig().with_values({**BASE, "model.dropout": dropout})
    grid = [dict(zip(MEMBERS, values, strict=True)) for values in itertools.product(*MEMBERS.values())]
    settings = [point for point in grid for _ in range(SEEDS)]
    seeds = [seed for _ in grid for seed in range(SEEDS)]
    result = trained_once(Plan(config, data, seeds, [data.splits[0]] * len(seeds), settings), journal, SEEDS)
    scores = np.array(validation_scores(result)).reshape(len(grid), SEEDS)
    losses = np.array([curve.validation.loss.min() for curve in result.curves]).reshape(len(grid), SEEDS)
    return [
        {
            "dropout": dropout,
            **point,
            "validation_accuracy": round(float(own.mean()), 2),
            "sd": round(float(own.std(ddof=1)), 2),
            "validation_loss": round(float(loss.mean()), 4),
        }
        for point, own, loss in zip(grid, scores, losses, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs-dir", type=Path, default=ROOT / "runs" / "default_job", help="where runs are kept")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # torch's notice about its sparse tensors
    data = load("citeseer", split="public")
    journal = Journal(arguments.runs_dir)
    started = time.process_time()
    rows = [row for dropout in DROPOUTS for row in search(dropout, data, journal)]
    rows.sort(key=lambda row: -row["validation_accuracy"])
    for row in rows[:10]:
        print(row)
    settings = {
        "command": "python benchmarks/default_job.py",
        "chosen_by": "mean validation accuracy over the seeds, at each seed's epoch of best validation loss",
        "seeds": SEEDS,
        **BASE,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cpu_seconds_of_last_call": round(time.process_time() - started),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"settings": settings, "chosen": rows[0], "grid": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

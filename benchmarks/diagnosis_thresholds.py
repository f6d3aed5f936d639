"""What sound and sick networks look like to `diagnose`: the measurements behind the thresholds of its reading.

    python benchmarks/diagnosis_thresholds.py results/diagnosis_thresholds.json docs/pictures

Trains on the embedded CiteSeer, one seed, public split, 60 epochs, default rates; writes the numbers, the readings and
two pictures. A minute and a half on one idle core.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from omegagnn import fit
from omegagnn.analysis import Diagnosis
from omegagnn.data import load
from omegagnn.files import write_bytes
from omegagnn.training.diagnosing import diagnose_run
from omegagnn.training.environment import describe

EPOCHS = 60
RUNS: list[dict[str, Any]] = [
    {"model.name": "gcn", "model.layers": 2},
    {"model.name": "gcn", "model.layers": 8},
    {"model.name": "gcn", "model.layers": 16},
    {"model.name": "gcn", "model.layers": 64},
    {"model.name": "gat", "model.layers": 2},
    {"model.name": "gcnii", "model.layers": 16},
    {"model.name": "appnp", "model.layers": 10},
    {"model.name": "mlp", "model.layers": 3},
    {"model.name": "omega-gcn", "model.layers": 2},
    {"model.name": "omega-gcn", "model.layers": 16},
    {"model.name": "omega-gcn", "model.layers": 64},
    {"model.name": "omega-gcn", "model.layers": 2, "training.lr_omega": 0.1, "training.epochs": 120},
]
PICTURES = {("gcn", 16): "diagnosis_gcn_16.svg", ("omega-gcn", 16): "diagnosis_omega_gcn_16.svg"}


def measured(values: dict[str, Any], runs: str) -> tuple[dict[str, Any], Diagnosis]:
    settings = {"training.epochs": EPOCHS, "training.patience": None, **values}
    result = fit("citeseer", runs_dir=runs, **{key.replace(".", "__"): value for key, value in settings.items()})
    found = diagnose_run(result, load("citeseer"))
    first, last = found.rows[0], found.rows[-1]
    row = {
        "settings": values,
        "test": round(result.test().mean, 1),
        "within_first": first.within,
        "within_last": last.within,
        "relative_energy_last": last.relative_energy,
        "rank_last": last.rank,
        "gradient_ratio": None if first.gradient is None or not last.gradient else first.gradient / last.gradient,
        "growth": last.norm / first.norm,
        "problems": found.problems,
        "reading": [f"{each.status}: {each}" for each in found.findings],
    }
    return row, found


def main() -> None:
    output, pictures = Path(sys.argv[1]), Path(sys.argv[2])
    rows = []
    with tempfile.TemporaryDirectory() as runs:
        for values in RUNS:
            row, found = measured(values, runs)
            rows.append(row)
            print(values, row["test"], row["problems"], flush=True)
            name = PICTURES.get((values["model.name"], values["model.layers"]))
            if name is not None:
                title = f"{values['model.name']}, {values['model.layers']} layers on CiteSeer, {EPOCHS} epochs"
                write_bytes(pictures / name, _titled(found, title).to_svg().encode())
    result = {
        "command": "python benchmarks/diagnosis_thresholds.py results/diagnosis_thresholds.json docs/pictures",
        "environment": describe(torch.device("cpu")),
        "epochs": EPOCHS,
        "rows": rows,
    }
    write_bytes(output, (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode())


def _titled(found: Diagnosis, title: str) -> Diagnosis:
    from dataclasses import replace

    return replace(found, subject=title)


if __name__ == "__main__":
    main()

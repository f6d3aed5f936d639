"""What depth does to a GCN on Cora, and what prevents it: ``python benchmarks/depth_cora.py DATA_ROOT`` (half an hour)

Three rows over 2 to 64 layers, public split, `honest` rule (the epoch of the best validation loss, patience 100):

* GCN as usually built: K from Glorot, biases, weight decay 5e-4 for everything, a usual learning rate for K (2 settings);
* GCN with K from the identity and a small learning rate for K, ω fixed at 1 (2 settings);
* ωGCN, an ω for each layer and channel, K as in the second row (4 settings: the rate of ω is a choice too).

Which setting of a row counts is chosen for each depth on the validation accuracy, never on test. Every run is in the journal of
--runs-dir, so a broken-off study goes on where it stood. Outcome: results/depth_cora.json, docs/pictures/depth_cora.svg.
"""

from __future__ import annotations

import argparse
import json
import platform
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from depth_picture import Line, draw
from trained_once import trained_once, validation_scores

from omegagnn.data import Dataset, load
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Plan
from omegagnn.training.fit import Result
from omegagnn.training.journal import Journal
from omegagnn.training.metrics import summarise

ROOT = Path(__file__).resolve().parent.parent
RESULT, PICTURE = ROOT / "results" / "depth_cora.json", ROOT / "docs" / "pictures" / "depth_cora.svg"
DEPTHS = (2, 4, 8, 16, 32, 64)
SEEDS = 5
# The longest training: deep networks get fewer epochs, which keeps the whole study short.
EPOCHS = {2: 300, 4: 300, 8: 300, 16: 200, 32: 150, 64: 150}
COMMON = {
    "data.name": "cora",
    "data.split": "public",
    "model.channels": 64,
    "model.dropout": 0.5,
    "training.lr_oc": 0.03,
    "training.wd_oc": 5e-4,
    "training.wd_omega": 0.0,
    "training.patience": 100,
}


@dataclass(frozen=True)
class Row:
    """A kind of network: what it is called, drawn in and made of, and the rates it may choose from."""

    name: str
    color: str
    values: dict[str, Any]
    choices: tuple[dict[str, float], ...]
    dashes: str = "none"


USUAL = {"model.name": "gcn", "training.wd_gnn": 5e-4}
SMALL = {"model.name": "omega-gcn", "training.wd_gnn": 1e-4}
USUAL_RATES_OF_K, SMALL_RATES_OF_K, RATES_OF_OMEGA = (1e-2, 1e-3), (1e-4, 1e-5), (3e-3, 3e-2)
ROWS = (
    Row("GCN as usually built", "#c0392b", USUAL, tuple({"lr_gnn": rate} for rate in USUAL_RATES_OF_K)),
    Row(
        "GCN, K from the identity, small rate",
        "#6b7280",
        {**SMALL, "model.omega": 1.0},
        tuple({"lr_gnn": rate} for rate in SMALL_RATES_OF_K),
        dashes="7 4",
    ),
    Row(
        "ωGCN, small rate for K",
        "#1f6fb2",
        {**SMALL, "model.omega": "channel"},
        tuple({"lr_gnn": k, "lr_omega": omega} for k in SMALL_RATES_OF_K for omega in RATES_OF_OMEGA),
    ),
)


def train(row: Row, depth: int, data: Dataset, journal: Journal) -> Result:
    """Train all choices and seeds of a row at a depth as one run, or take them from the journal."""
    values = {**COMMON, **row.values, "model.layers": depth, "training.epochs": EPOCHS[depth]}
    pairs = [(choice, seed) for choice in row.choices for seed in range(SEEDS)]
    seeds, settings = [seed for _, seed in pairs], [choice for choice, _ in pairs]
    plan = Plan(RunConfig().with_values(values), data, seeds, [data.splits[0]] * len(pairs), settings)
    return trained_once(plan, journal, SEEDS)


def measured(row: Row, depth: int, result: Result) -> dict[str, Any]:
    """Choose on validation, then read the test accuracy of the chosen setting's seeds."""
    validation = np.array(validation_scores(result)).reshape(len(row.choices), SEEDS).mean(1)
    chosen = int(validation.argmax())
    own = slice(chosen * SEEDS, (chosen + 1) * SEEDS)
    outcome = result.outcome("honest")
    return {
        "row": row.name,
        "layers": depth,
        "test": summarise(outcome.scores[own]).to_dict(),
        "test_of_each_seed": [round(100 * float(score), 2) for score in outcome.scores[own]],
        "epoch_of_each_seed": outcome.epochs[own].tolist(),
        "epochs_at_most": EPOCHS[depth],
        "chosen": row.choices[chosen],
        "validation_of_each_choice": [
            {**choice, "validation": round(float(score), 2)}
            for choice, score in zip(row.choices, validation, strict=True)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "data_root", nargs="?", help="folder with Planetoid/Cora/raw [default: $OMEGAGNN_DATA, the cache]"
    )
    parser.add_argument("--runs-dir", type=Path, default=ROOT / "runs" / "depth_cora", help="where runs are kept")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # torch's notice about its sparse tensors
    data = load("cora", split="public", root=arguments.data_root)
    journal = Journal(arguments.runs_dir)
    rows: list[dict[str, Any]] = []
    for depth in DEPTHS:
        for row in ROWS:
            result = train(row, depth, data, journal)
            rows.append(measured(row, depth, result))
            print(f"{depth:3d} layers  {row.name:38} test {shown(rows[-1])}", flush=True)
    settings = {
        "command": "python benchmarks/depth_cora.py DATA_ROOT",
        "data": "Cora, public split, rows of features scaled to sum 1",
        "protocol": "honest",
        "seeds": SEEDS,
        "interval": "95 % bootstrap of the mean",
        "rows": {row.name: {**row.values, "choices": row.choices} for row in ROWS},
        "chosen_by": "mean validation accuracy over the seeds",
        **{key: value for key, value in COMMON.items() if key.startswith(("model", "training"))},
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"settings": settings, "rows": rows}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(picture(rows), "utf-8")


def shown(row: dict[str, Any]) -> str:
    """Return a row's numbers as text."""
    test = row["test"]
    return f"{test['mean']:.1f} % ({test['low']:.1f} to {test['high']:.1f}), chosen {row['chosen']}"


def picture(rows: list[dict[str, Any]]) -> str:
    """Return the picture of the rows."""
    lines = []
    for row in ROWS:
        own = [each for each in rows if each["row"] == row.name]
        points = [(each["test"]["mean"], each["test"]["low"], each["test"]["high"]) for each in own]
        lines.append(Line(row.name, row.color, points, row.dashes))
    return draw("Test accuracy on Cora by depth", [str(depth) for depth in DEPTHS], lines)


if __name__ == "__main__":
    main()

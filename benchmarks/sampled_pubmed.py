"""Training on parts of PubMed beside training on all of it: ``python benchmarks/sampled_pubmed.py DATA_ROOT`` (half an hour)

Two protocols of the data set: ``geom`` (ten splits, about 9,460 training nodes) and ``public`` (60 training nodes, ten seeds).
Every row has the same network and rates and takes about the same number of steps (300 and 200); rows differ in what a step sees:

* the whole graph;
* ``neighbor``: 1,024 training nodes (20 of the public split) with at most 10 and then 5 neighbours a node;
* ``node``: a fifth of all nodes, drawn evenly;  ``cluster``: a fifth of all nodes, as clusters of METIS.

The rates are the defaults, chosen before and for no row. Rule: ``honest``, the epoch of lowest validation loss, in every row
measured on the full graph after every epoch; no patience. Rows are paired by split (by seed). Every run is in the journal of
--runs-dir, so a broken-off study goes on. Outcome: results/sampled_pubmed.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import warnings
from pathlib import Path
from typing import Any

import torch
from trained_once import trained_once

from omegagnn.data import load
from omegagnn.training.config import RunConfig
from omegagnn.training.fit import Result, make_plan
from omegagnn.training.journal import Journal
from omegagnn.training.metrics import paired_test, summarise

RESULT = Path(__file__).resolve().parent.parent / "results" / "sampled_pubmed.json"
ALLOWED = 0.5  # points below the whole graph
COMMON = {"data.name": "pubmed", "training.patience": None}
ROWS: dict[str, dict[str, dict[str, Any]]] = {
    "geom": {
        "none": {"training.epochs": 300},
        "neighbor": {"training.epochs": 30, "training.batch_nodes": 1024, "training.fan_outs": [10, 5]},
        "node": {"training.epochs": 60, "training.batch_nodes": 4000},
        "cluster": {"training.epochs": 60, "training.batch_nodes": 4000},
    },
    "public": {
        "none": {"training.epochs": 200},
        "neighbor": {"training.epochs": 67, "training.batch_nodes": 20, "training.fan_outs": [10, 5]},
        "node": {"training.epochs": 40, "training.batch_nodes": 4000},
        "cluster": {"training.epochs": 40, "training.batch_nodes": 4000},
    },
}
SEEDS = {"geom": 1, "public": 10}


def measure(split: str, root: Path, journal: Journal) -> dict[str, Any]:
    dataset = load("pubmed", split, root=root)
    found: dict[str, Result] = {}
    for sampler, values in ROWS[split].items():
        config = RunConfig().with_values({**COMMON, **values, "data.split": split, "training.sampler": sampler})
        found[sampler] = trained_once(make_plan(dataset, config, SEEDS[split]), journal)
        print(f"{split:7} {sampler:9} {found[sampler].test()}", flush=True)
    whole = found["none"].scores()
    return {
        sampler: {
            "test": summarise(result.scores()).to_dict(),
            "below_whole_graph": round(100 * float((whole - result.scores()).mean()), 2),
            "within_allowed": bool(100 * float((whole - result.scores()).mean()) <= ALLOWED),
            "p": None if sampler == "none" else round(paired_test(result.scores(), whole), 4),
            "seconds": round(result.row["seconds"], 1),
            "epochs": ROWS[split][sampler]["training.epochs"],
            "config_hash": result.row["config_hash"],
        }
        for sampler, result in found.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_root", type=Path)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs-sampled"))
    parser.add_argument("--splits", default="geom,public")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="Sparse")
    torch.set_num_threads(1)
    journal = Journal(options.runs_dir)
    rows = {split: measure(split, options.data_root, journal) for split in options.splits.split(",")}
    result = {
        "what": "test accuracy (%) of omega-gcn, 2 layers, 64 channels, on PubMed, by what a training step sees",
        "command": "python benchmarks/sampled_pubmed.py DATA_ROOT",
        "rule": "honest",
        "allowed_below": ALLOWED,
        "rows": rows,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(not all(table["neighbor"]["within_allowed"] for table in rows.values()))


if __name__ == "__main__":
    raise SystemExit(main())

"""The paper's synthetic gradient task over 20 connected graphs: ``python benchmarks/gradient_task.py`` (10 minutes).

Trains every network of `omegagnn.analysis.gradient_task` on every graph from three starts, at two learning rates, and
writes the losses to ``results/gradient_task.json``; ``--quick`` (one start, one rate) prints only.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import torch

from omegagnn.analysis.gradient_task import NETWORKS, gradient_task, train_pairs

RESULT = Path(__file__).resolve().parent.parent / "results" / "gradient_task.json"
GRAPHS, STARTS, STEPS, CHANNELS, LAYERS = 20, 3, 5000, 64, 2
RATES = (1e-3, 1e-4)


def measured(rate: float, starts: int) -> list[dict[str, object]]:
    """Return a row for each network: its loss on each graph (inner lists) from each start."""
    tasks = [gradient_task(seed) for seed in range(GRAPHS)]
    rows: list[dict[str, object]] = []
    for network in NETWORKS:
        pairs = [(network, task) for task in tasks]
        own = torch.stack([train_pairs(pairs, STEPS, rate, CHANNELS, LAYERS, start) for start in range(starts)])
        rows.append(
            {
                "network": network.name,
                "learning_rate": rate,
                "median": float(own.flatten().quantile(0.5)),
                "quartiles": [float(own.flatten().quantile(q)) for q in (0.25, 0.75)],
                "median_of_each_start": own.quantile(0.5, dim=1).tolist(),
                "losses": own.tolist(),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one start at one learning rate; print only")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    started = time.perf_counter()
    rows = [row for rate in (RATES[:1] if quick else RATES) for row in measured(rate, 1 if quick else STARTS)]
    print(f"{'network':30} {'rate':>7} {'median':>9} {'quartiles':>19}")
    for row in rows:
        low, high = row["quartiles"]  # type: ignore[misc]
        print(f"{row['network']:30} {row['learning_rate']:7.0e} {row['median']:9.1e} {low:9.1e} {high:9.1e}")
    if quick:
        return
    settings = {
        "command": "python benchmarks/gradient_task.py",
        "graphs": GRAPHS,
        "graph": "Erdos-Renyi, 8 nodes, edge rate 0.3, redrawn until connected; features uniform in [0, 1]",
        "starts": STARTS,
        "loss": "squared error summed over the nodes, after the last step",
        "channels": CHANNELS,
        "layers": LAYERS,
        "optimizer": "Adam without weight decay",
        "steps": STEPS,
        "dtype": "float64",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "seconds": round(time.perf_counter() - started),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"settings": settings, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"written to {RESULT.relative_to(Path.cwd()) if RESULT.is_relative_to(Path.cwd()) else RESULT.name}")


if __name__ == "__main__":
    main()

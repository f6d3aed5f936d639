"""How time and memory of full-graph training grow: ``python benchmarks/scaling.py [--largest 1000000]``

Every measurement is a process of its own that runs ``omegagnn train`` on a made graph: a ring lattice under a random
renumbering, so every row has the same number of entries at random places in memory, which is the worst that can happen to a
cache. Time is what the journal says of an epoch (a step and an evaluation); memory is the highest resident size of the process,
less what it takes on a graph of a few nodes; beside it stands what the planner said before. Outcome: results/scaling.json.

One size is varied at a time, from a middle that all share. Exponents are fitted as ``cost = a · size^b``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from omegagnn.benchmark.measure import fitted_exponent
from omegagnn.data import Dataset, Split, save_dataset
from omegagnn.graph import Graph

RESULT = Path(__file__).resolve().parent.parent / "results" / "scaling.json"
MIDDLE = {"nodes": 100_000, "degree": 10, "channels": 16, "layers": 2, "features": 16}
EPOCHS = 5
WATCH = (
    "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], capture_output=True, text=True); "
    "sys.stdout.write(done.stdout); sys.stderr.write(done.stderr); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
)


def lattice(nodes: int, degree: int, features: int) -> Dataset:
    """Return a ring lattice whose nodes have random numbers, made without a copy of the edges larger than itself."""
    random = np.random.Generator(np.random.PCG64(0))
    number = random.permutation(nodes).astype(np.int32)
    place = np.empty(nodes, dtype=np.int32)
    place[number] = np.arange(nodes, dtype=np.int32)
    col = np.empty((nodes, degree), dtype=np.int32)
    for k in range(degree // 2):
        col[:, 2 * k] = number[(place + k + 1) % nodes]
        col[:, 2 * k + 1] = number[(place - k - 1) % nodes]
    col.sort(axis=1)
    rowptr = torch.arange(nodes + 1, dtype=torch.int32) * degree
    labels = torch.from_numpy((place // max(1, nodes // 8) % 8).astype(np.int64))
    x = torch.from_numpy(random.standard_normal((nodes, features), dtype=np.float32))
    parts = torch.arange(nodes).tensor_split(3)
    graph = Graph(rowptr, torch.from_numpy(col.reshape(-1)), None)
    return Dataset("made", "node", graph, x, labels, (Split("thirds", *parts),))


def measure(size: dict[str, int], folder: Path, settings: tuple[str, ...] = ()) -> dict[str, Any]:
    """Train on a made graph and return seconds an epoch, the peak, and what the planner said."""
    save_dataset(lattice(size["nodes"], size["degree"], size["features"]), folder / "own" / "made" / "dataset.npz")
    values = [f"model.channels={size['channels']}", "training.patience=null", *settings]
    command = [
        sys.executable,
        "-m",
        "omegagnn",
        "train",
        "made",
        "--seeds",
        "1",
        "--epochs",
        str(EPOCHS),
        "--device",
        "cpu",
    ]
    command += [
        "--layers",
        str(size["layers"]),
        "--data-root",
        str(folder),
        "--runs-dir",
        str(folder / "runs"),
        "--json",
    ]
    command += [part for value in values for part in ("--set", value)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *command], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    summary, kib = done.stdout.splitlines()
    told = re.search(r"about ([\d,]+) MiB", done.stderr)
    measured = {
        **size,
        "epoch_seconds": json.loads(summary)["seconds"] / EPOCHS,
        "peak_mib": round(int(kib) / 1024),
        "expected_mib": None if told is None else int(told[1].replace(",", "")),
    }
    print(json.dumps(measured), flush=True)
    return measured


def sweeps(largest: int) -> dict[str, list[dict[str, int]]]:
    nodes = [10**4 * 10**k for k in range(4) if 10**4 * 10**k <= largest]
    return {
        "nodes": [{**MIDDLE, "nodes": n} for n in nodes],
        "degree": [{**MIDDLE, "degree": d} for d in (10, 20, 40, 80)],
        "channels": [{**MIDDLE, "channels": c} for c in (16, 32, 64)],
        "layers": [{**MIDDLE, "layers": layers} for layers in (2, 4, 8)],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--only", default="nodes,degree,channels,layers")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        floor = measure({**MIDDLE, "nodes": 100}, Path(name))
        for sweep, sizes in sweeps(options.largest).items():
            if sweep not in options.only.split(","):
                continue
            rows = [measure(size, Path(name)) for size in sizes]
            x = [float(size[sweep]) for size in sizes]
            found[sweep] = {
                "rows": rows,
                "time_exponent": round(fitted_exponent(x, [row["epoch_seconds"] for row in rows]), 3),
                "memory_exponent": round(
                    fitted_exponent(x, [max(1, row["peak_mib"] - floor["peak_mib"]) for row in rows]), 3
                ),
            }
    result = {
        "what": "omegagnn train, omega-gcn, whole graph, float32, one thread",
        "floor_mib": floor["peak_mib"],
        "sweeps": found,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, shared with others",
        "torch": torch.__version__,
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

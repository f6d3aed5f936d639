"""Import of a graph with a million nodes and ten million edges from CSV: seconds and peak memory on one thread.

    python benchmarks/import_million.py [--nodes 1000000] [--edges 10000000] [--out benchmarks/import_million.json]

The tables are made up: text ids, two numbers, one category, one flag, a label with gaps and a split. What is timed is what
``omegagnn data import`` does, in a process of its own: reading, checking, coding, building the graph, writing the npz.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

SECONDS_ALLOWED, GIB_ALLOWED = 60.0, 4.0
PIECE = 1_000_000


def write_tables(folder: Path, nodes: int, edges: int) -> None:
    random = np.random.Generator(np.random.PCG64(0))
    ids = np.array([f"user-{number}" for number in random.permutation(nodes)], dtype=object)
    table = pd.DataFrame(
        {
            "id": ids,
            "age": random.integers(18, 90, nodes),
            "income": random.lognormal(10, 1, nodes).round(2),
            "country": random.choice(np.array(["de", "fr", "jp", "us", "za", ""]), nodes),
            "active": random.choice(np.array(["true", "false"]), nodes),
            "group": random.choice(np.array(["a", "b", "c", "d", ""]), nodes),
        }
    )
    table["part"] = np.where(table["group"] == "", "", random.choice(np.array(["train", "val", "test"]), nodes))
    table.to_csv(folder / "nodes.csv", index=False)
    with (folder / "edges.csv").open("w", encoding="utf-8") as stream:
        for start in range(0, edges, PIECE):
            ends = random.integers(0, nodes, (min(PIECE, edges - start), 2))
            piece = pd.DataFrame({"source": ids[ends[:, 0]], "target": ids[ends[:, 1]]})
            piece.to_csv(stream, index=False, header=start == 0)


def import_once(folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "omegagnn", "data", "import", str(folder), "--label", "group", "--split", "part"]
    command += ["--standardize", "--name", "million", "--data-root", str(folder / "root")]
    watched = (
        "import resource, subprocess, sys, time; start = time.perf_counter(); "
        "subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    outcome = subprocess.run(
        [sys.executable, "-c", watched, *command], check=True, capture_output=True, text=True, env=environment
    )
    seconds, cpu_seconds, kib = map(float, outcome.stdout.split())
    return {"seconds": round(seconds, 1), "cpu_seconds": round(cpu_seconds, 1), "peak_gib": round(kib / 2**20, 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), options.nodes, options.edges)
        csv_mib = sum(path.stat().st_size for path in Path(folder).glob("*.csv")) / 2**20
        measured = import_once(Path(folder))
    result = {
        "nodes": options.nodes,
        "edges": options.edges,
        "csv_mib": round(csv_mib),
        "threads": 1,
        **measured,
        "allowed": {"seconds": SECONDS_ALLOWED, "peak_gib": GIB_ALLOWED},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "pandas": pd.__version__,
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result))
    return int(result["seconds"] > SECONDS_ALLOWED or result["peak_gib"] > GIB_ALLOWED)


if __name__ == "__main__":
    sys.exit(main())

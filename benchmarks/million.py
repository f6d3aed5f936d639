"""A million-node CSV, imported, trained on and predicted with, one command each: seconds, progress and peak memory.

    python benchmarks/million.py [--nodes 1000000] [--edges 10000000] [--out results/million.json]

The tables are those of `import_million.py`. The commands are what a user would type; training samples neighbourhoods and
evaluates the full graph layer by layer. Each command is a process of its own with the threads it chooses for itself; the lines it
shows of its progress are counted.
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
import time
from pathlib import Path
from typing import Any

import torch
from import_million import write_tables

RESULT = Path(__file__).resolve().parent.parent / "results" / "million.json"
MINUTES_ALLOWED, GB_ALLOWED, EPOCHS = 15.0, 4.0, 3
WATCH = (
    "import json, resource, subprocess, sys, time; start = time.perf_counter(); "
    "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True); "
    "used = resource.getrusage(resource.RUSAGE_CHILDREN); sys.stderr.write(done.stderr); "
    "print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss, done.returncode]))"
)


# fmt: off
def commands(folder: Path) -> dict[str, list[str]]:
    places = ["--data-root", str(folder / "root")]
    runs = ["--runs-dir", str(folder / "runs")]
    settings = [
        "training.sampler=neighbor",
        "training.batch_nodes=4096",
        "training.fan_outs=[5,5]",
        "model.channels=32",
    ]
    sets = [part for value in settings for part in ("--set", value)]
    return {
        "import": [
            "data",
            "import",
            str(folder),
            "--label",
            "group",
            "--split",
            "part",
            "--standardize",
            "--name",
            "million",
            *places,
        ],
        "train": ["train", "million", "--seeds", "1", "--epochs", str(EPOCHS), *sets, *places, *runs],
        "predict": ["predict", "last", "--graph", "million", "--out", str(folder / "predictions.csv"), *places, *runs],
    }
# fmt: on


def run(words: list[str]) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", WATCH, sys.executable, "-m", "omegagnn", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    seconds, cpu_seconds, kib, code = json.loads(done.stdout)
    if code:
        raise SystemExit(done.stderr)
    shown = [line for line in done.stderr.splitlines() if re.search(r"\d+ %$|^epoch \d+", line)]
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "peak_gb": round(kib * 1024 / 1e9, 2),
        "lines_of_progress": len(shown),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, options.nodes, options.edges)
        began, found = time.perf_counter(), {}
        for step, words in commands(folder).items():
            found[step] = run(words)
            print(step, found[step], flush=True)
        minutes = (time.perf_counter() - began) / 60
        with (folder / "predictions.csv").open(encoding="utf-8") as stream:
            rows = sum(1 for _ in stream) - 1
    result = {
        "nodes": options.nodes,
        "edges": options.edges,
        "epochs": EPOCHS,
        "steps": found,
        "minutes": round(minutes, 2),
        "predictions": rows,
        "load_average": round(os.getloadavg()[2], 1),
        "allowed": {"minutes": MINUTES_ALLOWED, "peak_gb": GB_ALLOWED},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, shared with others",
        "torch": torch.__version__,
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(minutes > MINUTES_ALLOWED or max(step["peak_gb"] for step in found.values()) > GB_ALLOWED)


if __name__ == "__main__":
    sys.exit(main())

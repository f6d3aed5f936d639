"""How long `load("cora")` takes once the raw files have been parsed: python benchmarks/load_cora.py DATA_ROOT

The raw files are hashed at every call, as always; the parsed arrays come from the npz cache. The import of the package is
over before the clock starts. The first call in a fresh process is timed, in one process after another, on one thread; the
outcome is written to benchmarks/load_cora.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

CODE = """
import sys, time, warnings
warnings.simplefilter("ignore")
import torch
torch.set_num_threads(1)
from omegagnn.data import load
started = time.perf_counter()
dataset = load("cora", root=sys.argv[1])
first = time.perf_counter()
load("cora", root=sys.argv[1])
print(1e3 * (first - started), 1e3 * (time.perf_counter() - first))
"""
PROCESSES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root")
    root = parser.parse_args().root
    command = [sys.executable, "-c", CODE, root]
    subprocess.run(command, check=True, capture_output=True)  # parses and fills the cache
    times = []
    for _ in range(PROCESSES):
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        times.append([float(number) for number in answer.split()])
    first, later = (sorted(column) for column in zip(*times, strict=True))
    outcome = {
        "what": "load('cora') with the npz cache filled, milliseconds, one thread",
        "processes": PROCESSES,
        "first_call": {"median": round(statistics.median(first), 2), "largest": round(first[-1], 2)},
        "second_call": {"median": round(statistics.median(later), 2), "largest": round(later[-1], 2)},
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    target = Path(__file__).with_suffix(".json")
    target.write_text(json.dumps(outcome, indent=2) + "\n")
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()

"""Is the whole paper quick with --quick? ``python benchmarks/reproduce_quick.py DATA_ROOT`` (a quarter of an hour)

Runs ``omegagnn reproduce all --quick`` on one CPU thread as on a fresh clone: no runs, no records, no cache, in a folder that is
thrown away. Writes how long it took, by the clock and by the processor (which a busy machine does not lengthen), and how much of
each item was done. Outcome: results/reproduce_quick.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from omegagnn.training.checkpoint import write_bytes
from omegagnn.training.environment import describe

RESULT = Path(__file__).resolve().parent.parent / "results" / "reproduce_quick.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data_root", type=Path, help="folder with the benchmark data")
    data_root = parser.parse_args().data_root.absolute()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "OMEGAGNN_OFFLINE": "1",
            "XDG_CACHE_HOME": f"{folder}/cache",
        }
        command = [
            "omegagnn",
            "reproduce",
            "all",
            "--quick",
            "--device",
            "cpu",
            "--data-root",
            str(data_root),
            "--json",
        ]
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, env=environment, stdout=subprocess.PIPE, check=True
        )
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        listed = subprocess.run(
            [sys.executable, "-m", "omegagnn", "reproduce", "list", "--quick", "--json"],
            cwd=folder, env=environment, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
    tally = json.loads(done.stdout)
    torch.set_num_threads(1)
    outcome = {
        "command": "omegagnn reproduce all --quick --device cpu --data-root DATA",
        "minutes": round(seconds / 60, 1),
        "processor_minutes": round((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 60, 1),
        "load_beside": round(os.getloadavg()[2] - 1, 1),
        "peak_mib": round(after.ru_maxrss / 1024),
        "done": tally["done"],
        "failed": tally["failed"],
        "without_their_data": sorted(tally["absent"]),
        "items": {each["item"]: f"{each['done']} of {each['of']}" for each in json.loads(listed.stdout)},
        "environment": describe(torch.device("cpu")),
    }
    write_bytes(RESULT, (json.dumps(outcome, indent=1, ensure_ascii=False) + "\n").encode())
    print(json.dumps(outcome, ensure_ascii=False))


if __name__ == "__main__":
    main()

"""Time ``--help`` of every command in fresh processes: ``python benchmarks/help_time.py``."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from omegagnn.cli.frame import load_verb
from omegagnn.cli.verbs import VERBS

REPEATS = 7


def seconds(arguments: list[str]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "omegagnn", *arguments, "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return round(statistics.median(times), 3)


if __name__ == "__main__":
    lines = [[], *([verb] for verb in VERBS)]
    lines += [[verb, name] for verb in VERBS for name in getattr(load_verb(verb), "commands", {})]
    found = {" ".join(["omegagnn", *line]): seconds(line) for line in lines}
    result = {"command": "python benchmarks/help_time.py", "median_seconds_of_help": found}
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(found, indent=1))

"""Run the tests that need a GPU on one and write their outcome: ``python benchmarks/gpu_tests.py results/gpu_tests.json``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

import torch

from omegagnn.training.environment import describe

ROOT = Path(__file__).resolve().parent.parent
# Each part is a process of its own: most of the time goes into compiling, which takes one core.
PARTS = (
    ("tests/ops/test_gpu_twin.py", "not propagation"),
    ("tests/ops/test_gpu_twin.py", "propagation"),
    ("tests/training/test_captured.py", ""),
    ("tests/training/test_gpu.py", "baseline"),
    ("tests/training/test_gpu.py", "not baseline"),
    ("tests/core/test_random.py", ""),
)


def outcome_of(case: ElementTree.Element) -> str:
    for kind in ("failure", "error", "skipped"):
        if case.find(kind) is not None:
            return kind
    return "passed"


def main(out: str) -> int:
    if not torch.cuda.is_available():
        sys.exit("There is no GPU here: run this where torch sees one.")
    started, outcomes = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        reports = [Path(folder) / f"{number}.xml" for number in range(len(PARTS))]
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "pytest", file, "-k", names, "-q", "--tb=short", f"--junitxml={report}"],
                cwd=ROOT,
            )
            for (file, names), report in zip(PARTS, reports, strict=True)
        ]
        codes = [process.wait() for process in processes]
        for report in reports:
            for case in ElementTree.parse(report).iter("testcase"):
                outcomes[f"{case.get('classname')}::{case.get('name')}"] = outcome_of(case)
    kinds = list(outcomes.values())
    found = {
        "command": "python benchmarks/gpu_tests.py results/gpu_tests.json",
        "environment": describe(torch.device("cuda")),
        "seconds": round(time.perf_counter() - started, 1),
        **{kind: kinds.count(kind) for kind in ("passed", "failure", "error", "skipped")},
        "not_passed": sorted(name for name, kind in outcomes.items() if kind != "passed"),
        "tests": sorted(outcomes),
    }
    Path(out).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

"""Run the tests that need a GPU on one and write their outcome: ``python benchmarks/gpu_tests.py results/gpu_tests.json``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
import torch

from omegagnn.training.environment import describe

ROOT = Path(__file__).resolve().parent.parent
FILES = (
    "tests/ops/test_gpu_twin.py",
    "tests/training/test_captured.py",
    "tests/training/test_gpu.py",
    "tests/core/test_random.py",
)


class Outcomes:
    """Collects what came of each test."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.of[report.nodeid] = report.outcome


def main(out: str) -> int:
    if not torch.cuda.is_available():
        sys.exit("There is no GPU here: run this where torch sees one.")
    outcomes, started = Outcomes(), time.perf_counter()
    code = pytest.main([*(str(ROOT / file) for file in FILES), "-q", "--tb=short"], plugins=[outcomes])
    counts = {kind: list(outcomes.of.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    found = {
        "command": "python benchmarks/gpu_tests.py results/gpu_tests.json",
        "environment": describe(torch.device("cuda")),
        "seconds": round(time.perf_counter() - started, 1),
        **counts,
        "not_passed": sorted(name for name, kind in outcomes.of.items() if kind != "passed"),
        "tests": sorted(outcomes.of),
    }
    Path(out).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

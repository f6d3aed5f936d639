"""How long ``import omegagnn`` takes in a fresh interpreter: ``python benchmarks/import_time.py`` writes import_time.json.

The import is timed inside each interpreter, so the start of Python itself does not count; the median of several is kept.
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

RESULT = Path(__file__).with_suffix(".json")
REPEATS = 15
ALLOWED_SECONDS = 0.3
TIMED = "import time; start = time.perf_counter(); import omegagnn; print(time.perf_counter() - start)"


def import_seconds() -> float:
    done = subprocess.run([sys.executable, "-c", TIMED], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    import_seconds()  # the first one compiles to bytecode
    seconds = sorted(import_seconds() for _ in range(REPEATS))
    result = {
        "median_seconds": round(statistics.median(seconds), 4),
        "slowest_seconds": round(seconds[-1], 4),
        "repeats": REPEATS,
        "allowed_seconds": ALLOWED_SECONDS,
        "machine": f"{platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))
    if result["median_seconds"] > ALLOWED_SECONDS:
        sys.exit(f"import omegagnn takes {result['median_seconds']} s, more than {ALLOWED_SECONDS} s")


if __name__ == "__main__":
    main()

"""Writes the tables of the README from what was measured and committed: ``python tools/readme_tables.py``.

Each table stands between ``<!-- NAME: … -->`` and ``<!-- end of NAME -->``. A test holds the README against this.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
README = REPOSITORY / "README.md"
BENCHES = ("bench_cpu.json", "bench_cuda.json")


def depth() -> str:
    """Return test accuracy on Cora over depth."""
    rows = _read("results/depth_cora.json")["rows"]
    depths = list(dict.fromkeys(row["layers"] for row in rows))
    lines = [["layers", *map(str, depths)], ["---"] * (1 + len(depths))]
    for name in dict.fromkeys(row["row"] for row in rows):
        by_depth = {row["layers"]: row["test"] for row in rows if row["row"] == name}
        lines.append([name, *(f"{by_depth[d]['mean']:.1f}" if d in by_depth else "" for d in depths)])
    return _table(lines)


def speed() -> str:
    """Return, for each machine, the time of ours beside the quickest peer that was measured, case by case."""
    return "\n\n".join(_speed_on(name) for name in BENCHES if (REPOSITORY / "benchmarks" / name).is_file())


def _speed_on(name: str) -> str:
    found = _read(f"benchmarks/{name}")
    versions = found["environment"]["versions"]
    about = f"torch {versions['torch']}, PyTorch Geometric {versions['torch_geometric']}"
    lines = [
        [_device(found["environment"]), "ours ms", "quickest peer", "its ms", "ratio"],
        ["---", "---:", "---", "---:", "---:"],
    ]
    cases = [case for case in found["cases"] if case.get("peer_ms") and not case["peer"].startswith("ours")]
    for title in dict.fromkeys(case["name"] for case in cases):
        best = min((case for case in cases if case["name"] == title), key=lambda case: case["peer_ms"])
        ratio = best["peer_ms"] / best["ours_ms"]
        lines.append([title, _ms(best["ours_ms"]), best["peer"], _ms(best["peer_ms"]), f"{ratio:.1f}"])
    return f"{_table(lines)}\n\n{about}; [all cases and peers](benchmarks/{name})."


def _device(environment: dict[str, Any]) -> str:
    if environment["device"] == "cpu":
        return f"CPU, {environment['threads']} thread" + ("" if environment["threads"] == 1 else "s")
    return str(environment["device"])


def _ms(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _read(path: str) -> dict[str, Any]:
    return json.loads((REPOSITORY / path).read_text(encoding="utf-8"))


def _table(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


TABLES = {"depth": depth, "speed": speed}


def with_tables(text: str) -> str:
    """Return the README with its tables as they were measured."""
    for name, make in TABLES.items():
        pattern = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(\n<!-- end of {name} -->)", re.DOTALL)
        text, count = pattern.subn(lambda match, make=make: f"{match[1]}\n{make()}\n{match[2]}", text)
        if count != 1:
            raise SystemExit(f"README.md must have one place for the table {name!r}, not {count}.")
    return text


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")

"""A made graph of a million nodes on one, two and four processes: ``python tests/training/million_processes.py RESULT [NODES]``

Once with the runs dealt (four seeds on the whole graph), once with the shares of every step (sampled neighbourhoods). What two
and four processes of a real torchrun leave behind, weights and every epoch recorded, is compared with what one process leaves.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from processes import environment, epochs_of, latest, torchrun, weights_of, words
from scaling import lattice

from omegagnn.data.cache import save_dataset
from omegagnn.training.fit import Result

MODES = {
    "runs": (["--seeds", "4", "--epochs", "2"], ["model.channels=8"]),
    "steps": (
        ["--seeds", "1", "--epochs", "1"],
        [
            "model.channels=8", "training.shards=4", "training.sampler=neighbor", "training.batch_nodes=16384",
            "training.fan_outs=[5,3]",
        ],
    ),
}  # fmt: skip


def train(folder: Path, mode: str, size: int) -> tuple[Result, float]:
    arguments, settings = MODES[mode]
    job = words(folder, "made", *arguments, settings=settings)
    command = [sys.executable, "-m", *job] if size == 1 else torchrun(size, job)
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return latest(folder), time.perf_counter() - began


def same_bits(one: Result, other: Result) -> bool:
    left, right = weights_of(one), weights_of(other)
    same = left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
    return one.run != other.run and same and epochs_of(one) == epochs_of(other)


def main() -> int:
    path, nodes = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_dataset(lattice(nodes, 10, 16), folder / "data" / "own" / "made" / "dataset.npz")
        for mode in MODES:
            alone, seconds = train(folder, mode, 1)
            rows.append({"mode": mode, "processes": 1, "seconds": round(seconds, 1)})
            for size in (2, 4):
                together, seconds = train(folder, mode, size)
                rows.append(
                    {
                        "mode": mode,
                        "processes": size,
                        "seconds": round(seconds, 1),
                        "same_bits": same_bits(alone, together),
                    }
                )
                print(rows[-1], flush=True)
    result = {
        "command": "python tests/training/million_processes.py results/million_processes.json",
        "nodes": nodes,
        "entries": 10 * nodes,
        "all_bits_equal": all(row.get("same_bits", True) for row in rows),
        "rows": rows,
        "note": "two shared cores: more processes than cores show that the result is the same, not that it comes sooner",
    }
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(not result["all_bits_equal"])


if __name__ == "__main__":
    sys.exit(main())

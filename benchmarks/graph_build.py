"""How long graphs of 2.5, 5 and 10 million edges take to build and normalise, and with how much memory.

``OMP_NUM_THREADS=1 python benchmarks/graph_build.py`` writes graph_build.json. Every size runs in a process of its own;
the peak is what the process held beyond the edges it was given, per edge: if that does not grow, memory is linear.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

RESULT = Path(__file__).with_suffix(".json")
SIZES = (2_500_000, 5_000_000, 10_000_000)
EDGES_A_NODE = 10
ALLOWED = {"seconds": 30.0, "bytes_per_edge": 200.0}


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(edges: int) -> dict[str, float | int]:
    """Build a random graph, its operator and its transpose, and return seconds and bytes for each edge."""
    import torch

    from omegagnn import Graph

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    nodes = edges // EDGES_A_NODE
    Graph.from_edge_index(torch.randint(9, (2, 20)), 9).gcn_norm()  # what is loaded once is not counted
    index = torch.randint(nodes, (2, edges), generator=generator)
    before, start = peak_bytes(), time.perf_counter()
    graph = Graph.from_edge_index(index, nodes)
    built, built_peak = time.perf_counter(), peak_bytes()
    operator = graph.gcn_norm()
    normalised = time.perf_counter()
    _ = operator.transposed, operator.transpose_order
    done = time.perf_counter()
    return {
        "edges": edges,
        "nodes": nodes,
        "build_seconds": round(built - start, 2),
        "normalise_seconds": round(normalised - built, 2),
        "transpose_seconds": round(done - normalised, 2),
        "build_bytes_per_edge": round((built_peak - before) / edges, 1),
        "all_bytes_per_edge": round((peak_bytes() - before) / edges, 1),
    }


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
        return
    cases = []
    for edges in SIZES:
        command = [sys.executable, __file__, str(edges)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        cases.append(json.loads(done.stdout))
        print(done.stdout.strip())
    result = {
        "cases": cases,
        "threads": 1,
        "allowed_for_ten_million": ALLOWED,
        "machine": f"{platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    last = cases[-1]
    seconds = sum(last[f"{part}_seconds"] for part in ("build", "normalise", "transpose"))
    if seconds > ALLOWED["seconds"] or last["all_bytes_per_edge"] > ALLOWED["bytes_per_edge"]:
        sys.exit(
            f"10 million edges took {seconds:.1f} s and {last['all_bytes_per_edge']} bytes an edge, more than {ALLOWED}"
        )


if __name__ == "__main__":
    main()

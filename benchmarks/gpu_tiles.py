"""Time every tile of the gathering kernels on a GPU: ``python benchmarks/gpu_tiles.py benchmarks/gpu_tiles.json [--write]``.

With --write the quickest ones become the table in ``omegagnn/ops/gpu_tiles.py``.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from omegagnn.benchmark.large import LARGE, large_graph
from omegagnn.data.synthetic import scale_free
from omegagnn.graph import Graph
from omegagnn.ops import gpu, gpu_tiles
from omegagnn.training.environment import describe

DEVICE = torch.device("cuda")
REPEATS, ROUNDS = 10, 5
ROWS = {
    "few": [(64, 16, 1), (64, 32, 1), (32, 32, 1), (64, 32, 2)],
    "4": [(64, 8, 1), (64, 16, 1), (128, 4, 1), (128, 8, 1), (256, 4, 1)],
    "2": [(128, 8, 1), (128, 16, 1), (256, 4, 1), (256, 8, 1)],
}
WHOLE = {
    "few": [(64, 16, 1), (64, 16, 2), (64, 32, 4)],
    "4": [(256, 2, 1), (256, 4, 1), (256, 8, 1), (256, 8, 4)],
    "2": [(256, 2, 1), (256, 4, 1), (256, 8, 1)],
}


def microseconds(call: Callable[[], object]) -> float:
    """Median time of a call replayed from a CUDA graph: launches cost what they cost inside one."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPEATS):
            call()
    graph.replay()
    found = []
    for _ in range(ROUNDS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        found.append(1e3 * start.elapsed_time(stop) / REPEATS)
    return statistics.median(found)


def calls(graph: Graph, channels: int, dtype: torch.dtype) -> dict[str, Callable[[], object]]:
    """The four kinds of kernel on one graph, as a network calls them: with ReLU folded in."""
    s, loops = graph.gcn_norm(), graph.with_self_loops()
    s_t, loops_t = s.transposed, loops.transposed
    n = graph.num_nodes
    x, grad = (torch.randn(1, n, channels, device=DEVICE).to(dtype) for _ in range(2))
    omega, maps = torch.rand(1, channels, device=DEVICE), torch.randn(1, channels, 2, device=DEVICE) / 10
    key = torch.zeros(1, 2, dtype=torch.int64, device=DEVICE)
    forth = (loops.rowptr, loops.col)
    back = (loops_t.rowptr, loops_t.col, loops.transpose_order)
    y, scores, lse = gpu.attention(*forth, x, maps, omega, 0.2, 0.0, key, True)
    state = (x, y, maps, scores, lse, omega, grad)
    return {
        "rows": lambda: gpu.propagate(s.rowptr, s.col, s.weight, x, omega, True),
        "rows_backward": lambda: gpu.propagate_backward(s_t.rowptr, s_t.col, s_t.weight, x, omega, grad, True, True),
        "attend": lambda: gpu.attention(*forth, x, maps, omega, 0.2, 0.0, key, True),
        "attend_backward": lambda: gpu.attention_backward(*forth, *back, *state, 0.2, 0.0, key, True),
    }


def measure() -> dict[str, dict[str, float]]:
    nodes, entries, _, _ = LARGE["arxiv-sized"]
    large = large_graph(nodes, entries, DEVICE)
    small = scale_free(2700, 2).graph.to_undirected().to(DEVICE)
    work = {
        "few": calls(small, 64, torch.float32),
        "4": calls(large, 256, torch.float32),
        "2": calls(large, 256, torch.bfloat16),
    }
    found: dict[str, dict[str, float]] = {}
    for size, kinds in work.items():
        for kind, call in kinds.items():
            key, before = f"{kind} {size}", gpu_tiles.TILES[f"{kind} {size}"]
            found[key] = {}
            for tile in (WHOLE if kind == "attend_backward" else ROWS)[size]:
                gpu_tiles.TILES[key] = tile
                found[key][str(tile)] = round(microseconds(call), 2)
            gpu_tiles.TILES[key] = before
            print(key, found[key], flush=True)
    return found


def write(found: dict[str, dict[str, float]]) -> None:
    path = Path(gpu_tiles.__file__)
    head = path.read_text(encoding="utf-8").split("TILES:")[0]
    lines = [f'    "{key}": {min(times, key=lambda tile: times[tile])},' for key, times in found.items()]
    path.write_text(
        head + "\n".join(["TILES: dict[str, tuple[int, int, int]] = {", *sorted(lines), "}", ""]), encoding="utf-8"
    )


if __name__ == "__main__":
    times = measure()
    result = {
        "command": "python benchmarks/gpu_tiles.py benchmarks/gpu_tiles.json",
        "environment": describe(DEVICE),
        "microseconds": times,
    }
    Path(sys.argv[1]).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if "--write" in sys.argv:
        write(times)

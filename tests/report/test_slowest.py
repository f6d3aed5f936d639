"""The clock of operations counts what runs, forward and backward, and sums to the whole."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from omegagnn import Graph, omega_propagate
from omegagnn.report.slowest import BETWEEN, slowest_parts


def test_operations_are_counted_and_their_shares_are_the_whole() -> None:
    ring = torch.stack([torch.arange(50), (torch.arange(50) + 1) % 50])
    graph = Graph.from_edge_index(ring, 50).gcn_norm()
    x, weight = torch.randn(50, 8), torch.randn(8, 8, requires_grad=True)
    omega = torch.full((8,), 0.5, requires_grad=True)

    def work() -> None:
        for _ in range(3):
            omega_propagate(x @ weight, graph, omega).sum().backward()

    parts, whole = slowest_parts(work, most=100)
    calls = {part.name: part.calls for part in parts}
    assert calls["omegagnn::propagate"] == 3
    assert calls["omegagnn::propagate_backward"] == 3
    assert calls["aten::mm"] == 6
    assert parts[-1].name == BETWEEN
    assert sum(part.share for part in parts) == pytest.approx(1)
    assert sum(part.milliseconds for part in parts) == pytest.approx(whole)
    assert [part.milliseconds for part in parts[:-1]] == sorted((p.milliseconds for p in parts[:-1]), reverse=True)


def test_what_torch_imports_for_the_clock_is_not_clocked() -> None:
    """Asked in a process of its own, where nothing was imported yet: all imports are done when the work begins."""
    program = (
        "import sys, torch; from omegagnn.report.slowest import slowest_parts; seen = []\n"
        "def work():\n"
        "    seen.append(set(sys.modules)); torch.ones(2, requires_grad=True).sum().backward()\n"
        "slowest_parts(work); print(sorted(set(sys.modules) - seen[0]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

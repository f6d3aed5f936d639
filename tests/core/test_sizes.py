"""Memory grows with the edges, not with their square and not with edges × channels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from graphs import random_graph
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from omegagnn import Graph, OmegaNet
from omegagnn.ops import fused_twin


class Largest(TorchDispatchMode):
    """Notes the largest number of elements that any torch operation puts out: a fact, where resident memory flickers."""

    def __init__(self) -> None:
        super().__init__()
        self.numel, self.name = 0, ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            # A view, such as an expanded row, takes no memory of its own.
            if isinstance(leaf, Tensor) and leaf.untyped_storage().nbytes() // leaf.element_size() > self.numel:
                self.numel, self.name = leaf.untyped_storage().nbytes() // leaf.element_size(), str(func)
        return result


def test_a_million_edges_are_built_and_normalised_in_linear_memory() -> None:
    n, edges = 100_000, 1_000_000
    index = torch.randint(n, (2, edges))
    weight = torch.rand(edges)
    with Largest() as largest:
        graph = Graph.from_edge_index(index, n, weight)
        _ = graph.gcn_norm().transposed
        _ = graph.is_undirected, graph.coalesce(), graph.with_self_loops(), graph.row_norm()
    assert graph.num_edges == edges
    assert largest.numel <= 2 * (edges + n), largest.name
    with Largest() as largest:
        graph.to_undirected()
    assert largest.numel <= 4 * edges, largest.name


FUSED_PASSES = """
import torch
from pathlib import Path
from omegagnn import Graph
from omegagnn.ops import attention_propagate, omega_propagate, use_backend

def passes(n, edges, channels, backend):
    graph = Graph.from_edge_index(torch.randint(n, (2, edges)), n)
    looped, operator = graph.with_self_loops(), graph.gcn_norm()
    _ = looped.transposed, looped.transpose_order, operator.transposed
    x, maps = torch.randn(n, channels, requires_grad=True), torch.randn(channels, 4, requires_grad=True)
    omega = torch.ones(channels, requires_grad=True)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = peak()
    with use_backend(backend):
        omega_propagate(x, operator, omega).sum().backward()
        attention_propagate(x, maps, looped, omega).sum().backward()
    return peak() - before

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

passes(10, 20, 64, "fused")
print(passes(5_000, 500_000, 64, "fused"), passes(5_000, 500_000, 64, "reference"))
"""


@pytest.mark.skipif(fused_twin("cpu") is None, reason="numba is not installed")
@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the peak of memory is reset through Linux's /proc"
)
def test_the_fused_ops_never_hold_edges_times_channels() -> None:
    done = subprocess.run([sys.executable, "-c", FUSED_PASSES], capture_output=True, text=True, check=True)
    fused, reference = map(int, done.stdout.split())
    edges_times_channels = 500_000 * 64 * 4
    assert fused < edges_times_channels / 2
    assert reference > edges_times_channels, "the measurement sees what it is there to see"


def test_attention_scores_of_a_net_never_hold_nodes_times_channels_squared() -> None:
    n, c = 50, 64
    net = OmegaNet(c, c, 1, 3, conv="gat", heads=8)
    graph = random_graph(n, 10)
    x = torch.randn(n, c)
    with Largest() as largest:
        net(x, graph).sum().backward()
    assert largest.numel <= 2 * c * c * 2, largest.name

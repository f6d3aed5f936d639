"""The peers that a machine may lack: DGL and torch.compile. Where one is missing, the reason is said, not hidden."""

from __future__ import annotations

import importlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout as torch_dropout

from omegagnn.benchmark.peers import PeerNet


class NotHere(Exception):
    """A peer cannot run on this machine; the message is the reason, in one line."""


def one_line(error: BaseException) -> str:
    """Return the kind of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def import_dgl() -> Any:
    """Return the module `dgl` with as many threads as torch has, or raise `NotHere` with the reason.

    DGL writes a settings file into the home folder unless the backend is named in the environment, so it is.
    """
    os.environ.setdefault("DGLBACKEND", "pytorch")
    try:
        dgl = importlib.import_module("dgl")
        importlib.import_module("dgl.nn.pytorch")
        dgl.utils.set_num_threads(torch.get_num_threads())
    except Exception as error:  # a DGL built for another torch fails in many ways
        raise NotHere(f"not importable, left out: {one_line(error)}") from error
    return dgl


def dgl_graph(dgl: Any, edge_index: Tensor, num_nodes: int) -> Any:
    """Return DGL's graph with one self-loop a node and every format it may want made beforehand."""
    graph = dgl.graph((edge_index[0].int(), edge_index[1].int()), num_nodes=num_nodes)
    graph = dgl.add_self_loop(dgl.remove_self_loop(graph))
    graph.create_formats_()
    return graph


def compile_net(net: PeerNet, x: Tensor, edges: Any) -> float:
    """Compile a net for training with torch.compile and return the seconds that took, or raise `NotHere`.

    All layers become one graph, dropout another; the opening stays as it is, because the compiler takes no sparse matrix.
    One call before fills what the convolutions cache. Nothing of an earlier compilation is used.
    """
    with torch.no_grad():
        net(x, edges)
    torch.compiler.reset()
    started = time.perf_counter()
    try:
        with _empty_compiler_folder():
            compiled_drop: Any = torch.compile(torch_dropout, dynamic=False)
            net.__dict__["stack"] = torch.compile(net.stack, dynamic=False)
            # The values of a sparse matrix are a view of it, and the compiler looks at what a view belongs to.
            net.drop = lambda x, *rest: compiled_drop(x.clone() if x._is_view() else x, *rest)
            net.train()
            net(x, edges).sum().backward()
    except Exception as error:  # no C++ compiler, or code the compiler cannot take
        raise NotHere(f"does not compile, left out: {one_line(error)}") from error
    net.zero_grad()
    return time.perf_counter() - started


@contextmanager
def _empty_compiler_folder() -> Iterator[None]:
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    with tempfile.TemporaryDirectory(prefix="omegagnn-bench-") as folder:
        os.environ[name] = folder
        try:
            yield
        finally:
            del os.environ[name]
            if before is not None:
                os.environ[name] = before

"""Freed memory stays with the process while it trains, and goes back to the system after it."""

from __future__ import annotations

import resource

import pytest
import torch

from omegagnn.training import memory
from omegagnn.training.memory import memory_kept

CPU, SIZE = torch.device("cpu"), 64 * 2**20


def faults() -> int:
    """Pages that the system had to bring."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def allocate() -> int:
    before = faults()
    torch.zeros(SIZE // 4)
    return faults() - before


@pytest.mark.skipif(not memory._set_allocator(), reason="the C library is not glibc")
def test_what_is_freed_is_used_again_while_it_is_kept() -> None:
    with memory_kept(CPU):
        for _ in range(10):  # an aligned array does not fit where one like it lay, only where several did
            allocate()
        assert allocate() < SIZE / resource.getpagesize() / 100


def test_elsewhere_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise AssertionError("the allocator was set")

    monkeypatch.setattr(memory, "_set_allocator", refuse)
    with memory_kept(torch.device("cuda")):
        pass
    monkeypatch.setattr(memory, "_set_allocator", lambda *_: False)
    monkeypatch.setattr(memory, "give_back_free_memory", refuse)
    with memory_kept(CPU):
        pass

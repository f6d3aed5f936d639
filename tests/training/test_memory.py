"""Freed memory stays with the process while it trains, and goes back to the system after it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from omegagnn.training import memory
from omegagnn.training.memory import memory_kept

CPU = torch.device("cpu")
# In a process of its own: where an array lies in the memory of this one depends on the tests before.
PROCESS = """
import resource
import torch
from omegagnn.training.memory import memory_kept

SIZE = 64 * 2**20

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.zeros(SIZE // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

pages = SIZE / resource.getpagesize()
with memory_kept(torch.device("cpu")):
    for _ in range(10):  # an aligned array does not fit where one like it lay, only where several did
        faults()
    kept = faults()
print(kept / pages, faults() / pages)
"""


@pytest.mark.skipif(not memory._set_allocator(), reason="the C library is not glibc")
def test_what_is_freed_is_used_again_while_it_is_kept() -> None:
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True)
    kept, given_back = map(float, done.stdout.split())
    assert kept < 0.01
    assert given_back > 0.9


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

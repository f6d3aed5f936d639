"""How the CPU twin calls its kernels: result arrays, and threads for work that is worth them."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch
from torch import Tensor

from omegagnn.ops.cpu_kernels import CHUNK

_LIKE = {torch.float32: np.float32(0), torch.float64: np.float64(0), torch.int32: np.int32(0), torch.int64: np.int64(0)}

WORTH_SHARING = 200_000_000
"""Multiplications (tens of milliseconds) from which a second thread is asked for help: less is done before it wakes."""

LARGE_PAGES_FROM = 8 * 2**20
"""Bytes from which on a result asks for large pages, whose first touch costs a fraction of that of small ones."""


@cache
def _advise() -> Callable[..., int] | None:
    """Return the C library's ``madvise`` where the system has large pages."""
    return ctypes.CDLL(None).madvise if hasattr(mmap, "MADV_HUGEPAGE") else None


def _advise_large_pages(address: int, size: int) -> None:
    """Ask for large pages under new memory; where the system declines, nothing is lost but time."""
    advise = _advise()
    if advise is not None:
        start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        advise(ctypes.c_void_p(start), ctypes.c_size_t(address + size - start), mmap.MADV_HUGEPAGE)


def fresh(like: Tensor, *shape: int) -> Tensor:
    """Return new memory in the dtype of another tensor, large pages for what is large."""
    result = like.new_empty(shape)
    if result.nbytes >= LARGE_PAGES_FROM:
        _advise_large_pages(result.data_ptr(), result.nbytes)
    return result


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="omegagnn")


if hasattr(os, "register_at_fork"):  # a forked child inherits the pools without their threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def run_kernel(
    kernel: Callable[..., None],
    work: int,
    size: int,
    indices: tuple[Tensor, ...],
    features: tuple[Tensor, ...],
    others: tuple[Tensor, ...],
    *settings: float,
    order: tuple[Tensor, ...] = (),
    kinds: tuple[bool | None, ...] = (),
    unit: int = CHUNK,
) -> None:
    """Call ``kernel(dtypes, kinds, addresses, settings, begin, end)`` over ``0 ... size``, shared by threads if worth it.

    The caller works as well and the others take pieces as long as there are any, so a thread that is held up, or never
    gets to start, leaves its share to the rest. Pieces end at multiples of `unit`, over which reductions run.
    """
    likes = []
    for group in (features, indices, order):
        if group:
            dtype = group[0].dtype
            likes.append(_LIKE[dtype])
            for tensor in group:
                if tensor.dtype is not dtype:
                    raise TypeError(f"The tensors of {kernel.__name__} have mixed dtypes: convert them to {dtype}.")
    held = [tensor.contiguous() for tensor in (*indices, *order, *features, *others)]
    args = (*likes, *kinds, *[tensor.data_ptr() for tensor in held], *settings)
    threads = torch.get_num_threads()
    if work < WORTH_SHARING or threads == 1 or size <= unit:
        kernel(*args, 0, size)
        return
    step = -(-size // (16 * threads * unit)) * unit
    pieces = deque(range(0, size, step))

    def take_pieces() -> None:
        while True:
            try:
                begin = pieces.popleft()
            except IndexError:
                return
            kernel(*args, begin, min(begin + step, size))

    helpers = [_pool(threads - 1).submit(take_pieces) for _ in range(threads - 1)]
    take_pieces()
    for helper in helpers:
        if not helper.cancel():
            helper.result()


def chunked(rows: int, like: Tensor) -> Tensor:
    """Return zeros for the part of a reduction to ``[R, ...]`` that each chunk of rows contributes."""
    return torch.zeros(like.size(0), -(-rows // CHUNK), *like.shape[1:], dtype=torch.float64)


def joined(parts: Tensor, like: Tensor) -> Tensor:
    """Add up what the chunks contribute."""
    return parts.sum(1).to(like.dtype)

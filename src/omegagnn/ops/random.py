r"""Random numbers by counter: a draw is a hash of (seed, step, place, element), with no generator state to keep.

A run therefore draws the same numbers alone or in company, on CPU or GPU, before and after a restart. `reference.draw_key` folds
(seed, step, place) into two 32-bit words ``k0, k1``; element ``e`` (low and high word ``e0, e1``) becomes

.. math::
    a = m(e_0 \oplus k_0), \qquad h = m'(a + k_1 + e_1 \cdot \phi), \qquad u = \lfloor h / 2^8 \rfloor \cdot 2^{-24},

where ``m, m'`` are a multiply and two xor-shifts each, all modulo :math:`2^{32}`. Everything is integer arithmetic in
int64 under a mask, the one form of 32-bit arithmetic that torch, numba and Triton share bit for bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

MASK = 0xFFFFFFFF
MULTIPLIER_A = 0x7FEB352D
MULTIPLIER_B = 0x846CA68B
GOLDEN = 0x9E3779B1
UNIFORM_BITS = 24


def mix(word: Tensor) -> Tensor:
    """Scramble 32-bit words held in int64 (two multiplications, three xor-shifts); a bijection."""
    word = word ^ (word >> 16)
    word = (word * MULTIPLIER_A) & MASK
    word = word ^ (word >> 15)
    word = (word * MULTIPLIER_B) & MASK
    return word ^ (word >> 16)


def draw_bits(key: Tensor, element: Tensor) -> Tensor:
    """Return 24 random bits (int64 in ``[0, 2^24)``) for each element; `key` ``[..., 2]`` broadcasts before `element`."""
    k0, k1 = key[..., 0].unsqueeze(-1), key[..., 1].unsqueeze(-1)
    word = (element & MASK) ^ k0
    word = word ^ (word >> 16)
    word = (word * MULTIPLIER_A) & MASK
    word = word ^ (word >> 15)
    word = (word + k1 + (element >> 32) * GOLDEN) & MASK
    word = (word * MULTIPLIER_B) & MASK
    return (word ^ (word >> 16)) >> (32 - UNIFORM_BITS)


def uniform(key: Tensor, count: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return `count` uniform numbers in ``[0, 1)`` for each key: ``[..., 2]`` → ``[..., count]``."""
    bits = draw_bits(key, torch.arange(count, device=key.device))
    return bits.to(dtype) * 2.0**-UNIFORM_BITS


def drop_threshold(p: float) -> int:
    """Return the integer below which 24 random bits mean "dropped", so that every backend drops the same elements."""
    return round(p * 2**UNIFORM_BITS)

"""Triton kernels on single elements: draws by counter, their keys, dropout, Adam over the run axis.

The arithmetic of `omegagnn.ops.random` in unsigned 32-bit words, which wrap as the mask does there: the same bits.
"""

from __future__ import annotations

import triton
import triton.language as tl

from omegagnn.ops import random

A = tl.constexpr(random.MULTIPLIER_A)
B = tl.constexpr(random.MULTIPLIER_B)
GOLDEN = tl.constexpr(random.GOLDEN)
UNUSED_BITS = tl.constexpr(32 - random.UNIFORM_BITS)


@triton.jit
def low_word(value):
    """Return the low 32 bits of an integer as an unsigned word."""
    return (value.to(tl.int64) & 0xFFFFFFFF).to(tl.uint32)


@triton.jit
def times(word, FACTOR: tl.constexpr):
    """Multiply a word, keeping its low 32 bits."""
    return ((word.to(tl.uint64) * FACTOR) & 0xFFFFFFFF).to(tl.uint32)


@triton.jit
def plus(word, other):
    """Add two words, keeping the low 32 bits."""
    return ((word.to(tl.uint64) + other.to(tl.uint64)) & 0xFFFFFFFF).to(tl.uint32)


@triton.jit
def mix(word):
    """Scramble words as `omegagnn.ops.random.mix` does."""
    word = word ^ (word >> 16)
    word = times(word, A)
    word = word ^ (word >> 15)
    word = times(word, B)
    return word ^ (word >> 16)


@triton.jit
def draw_bits(key0, key1, element):
    """Return 24 random bits for each element, as `omegagnn.ops.random.draw_bits` does."""
    low, high = low_word(element), low_word(element.to(tl.int64) >> 32)
    word = low ^ low_word(key0)
    word = word ^ (word >> 16)
    word = times(word, A)
    word = word ^ (word >> 15)
    word = plus(plus(word, low_word(key1)), times(high, GOLDEN))
    word = times(word, B)
    return ((word ^ (word >> 16)) >> UNUSED_BITS).to(tl.int32)


@triton.jit
def key_kernel(seeds, step, out, runs, place, BLOCK: tl.constexpr):
    """Fold (seed, step, place) into two words a run, as `omegagnn.ops.random.Draws.key` does."""
    run = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = run < runs
    seed = tl.load(seeds + run, mask=inside, other=0)
    low, high = low_word(seed), low_word(seed >> 32)
    moved = low_word(tl.load(step).to(tl.int64) * GOLDEN)
    where = low_word((place.to(tl.int64) & 0xFFFFFFFF) * B)
    for number in tl.static_range(2):
        salt = tl.full([BLOCK], GOLDEN if number == 0 else A, tl.uint32)
        word = mix(plus(low, salt))
        word = mix(plus(word ^ high, salt))
        word = mix(plus(word, moved))
        word = mix(word ^ where)
        tl.store(out + 2 * run + number, word.to(tl.int64), mask=inside)


@triton.jit
def dropout_kernel(x, key, out, size, THRESHOLD: tl.constexpr, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    """Drop elements of ``[R, size]``, each run by its own key."""
    run = tl.program_id(1).to(tl.int64)
    element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = element < size
    kept = draw_bits(tl.load(key + 2 * run), tl.load(key + 2 * run + 1), element) >= THRESHOLD
    value = tl.load(x + run * size + element, mask=inside, other=0.0)
    tl.store(out + run * size + element, tl.where(kept, value * SCALE, 0.0).to(out.dtype.element_ty), mask=inside)


@triton.jit
def adam_kernel(
    param, grad, average, square, rates, decays, correction, active, blocks, count, runs,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EPS: tl.constexpr, ACC: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Step Adam on flat arrays; block b holds elements of one run and one group, which choose rate and decay."""
    program = tl.program_id(0)
    start, stop = tl.load(blocks + program), tl.load(blocks + count + program)
    run, group = tl.load(blocks + 2 * count + program), tl.load(blocks + 3 * count + program)
    if tl.load(active + run) != 0:
        element = start + tl.arange(0, BLOCK)
        inside = element < stop
        rate = (tl.load(rates + group * runs + run) * tl.load(correction)).to(ACC)
        decay = tl.load(decays + group * runs + run).to(ACC)
        correction1, correction2 = tl.load(correction + 1).to(ACC), tl.load(correction + 2).to(ACC)
        p = tl.load(param + element, mask=inside, other=0.0)
        a = tl.load(average + element, mask=inside, other=0.0)
        s = tl.load(square + element, mask=inside, other=0.0)
        g = tl.load(grad + element, mask=inside, other=0.0) + decay * p
        a = a + (1 - BETA1) * (g - a)
        s = BETA2 * s + (1 - BETA2) * g * g
        p = p - rate / correction1 * a / (tl.sqrt(s / correction2) + EPS)
        tl.store(param + element, p, mask=inside)
        tl.store(average + element, a, mask=inside)
        tl.store(square + element, s, mask=inside)


@triton.jit
def keep_kernel(kept, source, chosen, blocks, count, BLOCK: tl.constexpr):
    """Copy the blocks of the chosen runs."""
    program = tl.program_id(0)
    if tl.load(chosen + tl.load(blocks + 2 * count + program)) != 0:
        element = tl.load(blocks + program) + tl.arange(0, BLOCK)
        inside = element < tl.load(blocks + count + program)
        tl.store(kept + element, tl.load(source + element, mask=inside, other=0.0), mask=inside)

"""Draws by counter: uniform, independent of company, and fixed for ever."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from assertions import assert_same_bits
from scipy import stats

from omegagnn.ops import Draws, dropout
from omegagnn.ops.random import MASK, draw_bits, drop_threshold, mix, uniform

COUNT = 200_000


def key_of(seed: int, step: int = 0, place: int = 0) -> torch.Tensor:
    return Draws(torch.tensor([seed]), step).key(place)


def test_the_hash_can_never_change_unnoticed() -> None:
    draws = Draws(torch.tensor([0, 1, 2**40 + 7, -3]), step=5)
    assert draws.key(3).tolist() == GOLDEN_KEYS
    elements = torch.tensor([0, 1, 2, 1000, 2**32, 2**33 + 5])
    assert draw_bits(draws.key(3), elements).tolist() == GOLDEN_BITS
    assert Draws(torch.tensor([7]), step=-1).key(4 + 8 * 3).tolist() == GOLDEN_START


def test_the_hash_is_what_its_formula_says() -> None:
    """Plain Python integers modulo 2**32, from the module's docstring."""

    def bits(k0: int, k1: int, element: int) -> int:
        low, high = element & MASK, element >> 32
        word = low ^ k0
        word ^= word >> 16
        word = word * 0x7FEB352D % 2**32
        word ^= word >> 15
        word = (word + k1 + high * 0x9E3779B1) % 2**32
        word = word * 0x846CA68B % 2**32
        return (word ^ (word >> 16)) >> 8

    (key,) = key_of(12345, 6, 7).tolist()
    elements = [0, 1, 77, 2**31, 2**32 - 1, 2**32, 2**40 + 3]
    assert draw_bits(torch.tensor([key]), torch.tensor(elements)).tolist() == [[bits(*key, e) for e in elements]]


def test_mixing_is_a_bijection() -> None:
    words = torch.arange(0, 2**32, 2**12 + 1)
    mixed = mix(words)
    assert mixed.unique().numel() == words.numel()
    assert int(mixed.min()) >= 0
    assert int(mixed.max()) <= MASK


@pytest.mark.parametrize("seed", [0, 1, 123456789, 2**61])
def test_draws_are_uniform(seed: int) -> None:
    drawn = uniform(key_of(seed), COUNT, torch.float64)[0].numpy()
    assert drawn.min() >= 0
    assert drawn.max() < 1
    # Fixed seeds: these are facts about numbers that never change, at the width of four standard deviations.
    assert abs(drawn.mean() - 1 / 2) < 4 / np.sqrt(12 * COUNT)
    assert abs(drawn.var() - 1 / 12) < 4 / np.sqrt(180 * COUNT)
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    assert stats.chisquare(np.bincount((drawn * 256).astype(int), minlength=256)).pvalue > 1e-3
    low_bits = (drawn * 2**24).astype(int) % 256
    assert stats.chisquare(np.bincount(low_bits, minlength=256)).pvalue > 1e-3


@pytest.mark.parametrize("lag", [1, 2, 3, 7, 16, 64, 1433])
def test_draws_do_not_follow_each_other(lag: int) -> None:
    drawn = uniform(key_of(5), COUNT + lag, torch.float64)[0].numpy()
    assert abs(np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]) < 4.5 / np.sqrt(COUNT)


def test_neighbouring_keys_are_strangers() -> None:
    """Seeds, steps and places side by side, and the shifted keys that one layer's start uses."""
    base = key_of(41, 7, 2)
    keys = [base, key_of(42, 7, 2), key_of(41, 8, 2), key_of(41, 7, 3), key_of(41 + 2**32, 7, 2), key_of(40, 7, 2)]
    keys += [base ^ (0x1F123BB5 * shift) for shift in (1, 2, 3)]
    drawn = torch.stack([uniform(key, COUNT, torch.float64)[0] for key in keys])
    correlation = torch.corrcoef(drawn).fill_diagonal_(0)
    assert float(correlation.abs().max()) < 4.5 / np.sqrt(COUNT)
    dropped = (drawn < 0.5).double()
    assert float(torch.corrcoef(dropped).fill_diagonal_(0).abs().max()) < 4.5 / np.sqrt(COUNT)


def test_every_bit_of_the_input_flips_half_of_the_output() -> None:
    seeds = torch.arange(1, 2001) * 7919
    keys = Draws(seeds).key(0)
    for bit in range(0, 62, 5):
        flipped = keys ^ Draws(seeds ^ (1 << bit)).key(0)
        share = sum(float(((flipped >> b) & 1).double().mean()) for b in range(32)) / 32
        assert 0.48 < share < 0.52, (bit, share)
    elements = torch.arange(20000)
    before = draw_bits(key_of(3), elements)
    for bit in range(15):
        changed = before ^ draw_bits(key_of(3), elements ^ (1 << bit))
        share = sum(float(((changed >> b) & 1).double().mean()) for b in range(24)) / 24
        assert 0.47 < share < 0.53, (bit, share)


def test_a_run_draws_the_same_alone_or_in_company() -> None:
    seeds = torch.randint(2**62, (8,))
    together = Draws(seeds, step=9).key(4)
    for run in range(8):
        alone = Draws(seeds[run : run + 1], step=9).key(4)
        assert_same_bits(alone[0], together[run])
        assert_same_bits(uniform(alone, 50)[0], uniform(together, 50)[run])
    x = torch.randn(30, 8, 5)
    for run in range(8):
        assert_same_bits(dropout(x[:, run], 0.3, together[run : run + 1]), dropout(x, 0.3, together)[:, run])


def test_a_step_may_be_a_tensor_and_seeds_of_any_width() -> None:
    assert_same_bits(Draws(torch.tensor([4])).at(torch.tensor(11)).key(1), Draws(torch.tensor([4]), 11).key(1))
    assert_same_bits(Draws(torch.tensor([4], dtype=torch.int32)).key(1), Draws(torch.tensor([4])).key(1))


def test_torchs_seed_governs_fresh_draws() -> None:
    torch.manual_seed(1)
    first = Draws.from_torch(3).seeds
    torch.manual_seed(1)
    assert_same_bits(Draws.from_torch(3).seeds, first)
    assert first.unique().numel() == 3


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.25, 0.5, 0.9])
def test_as_many_are_dropped_as_asked(p: float) -> None:
    share = float((draw_bits(key_of(1), torch.arange(COUNT)) < drop_threshold(p)).double().mean())
    assert abs(share - p) <= 4 * np.sqrt(p * (1 - p) / COUNT)
    assert abs(drop_threshold(p) / 2**24 - p) < 2**-24


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_gpu_draws_the_bits_of_a_cpu() -> None:
    seeds, elements = torch.randint(2**62, (100,)), torch.cat([torch.arange(COUNT), torch.randint(2**40, (COUNT,))])
    for step, place in ((0, 0), (7, 3), (10**6, 4 + 8 * 63), (-1, 5)):
        ours, theirs = Draws(seeds.cuda(), step).key(place), Draws(seeds, step).key(place)
        assert_same_bits(ours.cpu(), theirs)
        assert_same_bits(draw_bits(ours[:3], elements.cuda()).cpu(), draw_bits(theirs[:3], elements))
        assert_same_bits(uniform(ours[:3], COUNT).cpu(), uniform(theirs[:3], COUNT))
        x = torch.randn(1000, 100, 7)
        assert_same_bits(dropout(x.cuda(), 0.5, ours).cpu(), dropout(x, 0.5, theirs))


GOLDEN_KEYS = [[86617525, 2891134606], [2619526269, 1856375759], [200091436, 3672796767], [1810698212, 3981978238]]
GOLDEN_BITS = [
    [14547937, 4873605, 4038756, 3272951, 5877580, 12444642],
    [9651664, 16286329, 5418598, 7574442, 981266, 14391455],
    [6620412, 266830, 9195098, 1692601, 14727314, 15455358],
    [7185706, 8507094, 13348119, 12963354, 15292873, 10373212],
]
GOLDEN_START = [[4134940002, 1989011716]]

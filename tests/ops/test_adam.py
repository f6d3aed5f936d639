"""`adam_` over the run axis is `torch.optim.Adam` run by run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from omegagnn.ops import cpu, use_backend
from omegagnn.ops.adam import adam_, flat_adam_, keep_

TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}
RATES, DECAYS = (0.01, 0.3, 1e-4), (5e-4, 0.0, 0.1)


class Ours:
    """Three runs of one parameter, stepped together."""

    def __init__(self, start: Tensor, rates: tuple[float, ...] = RATES, decays: tuple[float, ...] = DECAYS) -> None:
        self.param, self.average, self.square = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
        self.rate, self.decay = (torch.tensor(numbers, dtype=torch.float64) for numbers in (rates, decays))
        self.steps = torch.zeros(len(rates), dtype=torch.float64)

    def step(self, grad: Tensor, active: Tensor, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8) -> None:
        self.steps += active
        corrections = [1 - beta ** self.steps.clamp_min(1) for beta in betas]
        adam_(
            self.param,
            grad,
            self.average,
            self.square,
            rate=self.rate,
            decay=self.decay,
            correction1=corrections[0],
            correction2=corrections[1],
            active=active,
            betas=betas,
            eps=eps,
        )

    def state(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.param, self.average, self.square


def torch_adam(start: Tensor, grads: list[Tensor], rate: float, decay: float, **options: Any) -> Tensor:
    param = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([param], lr=rate, weight_decay=decay, foreach=False, **options)
    for grad in grads:
        param.grad = grad.clone()
        optimiser.step()
    return param.detach()


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", [(5, 7), (1,), (64, 64), (0,)])
@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.9), "eps": 1e-3}])
def test_equals_torch_run_by_run(
    shape: tuple[int, ...], options: dict[str, Any], dtype: torch.dtype, backend: str
) -> None:
    start = torch.randn(3, *shape, dtype=dtype)
    grads = [torch.randn(3, *shape, dtype=dtype) * 10.0 ** (step - 3) for step in range(6)]
    ours, everyone = Ours(start), torch.ones(3, dtype=torch.bool)
    with use_backend(backend):
        for grad in grads:
            ours.step(grad, everyone, **options)
    for run in range(3):
        expected = torch_adam(start[run], [grad[run] for grad in grads], RATES[run], DECAYS[run], **options)
        assert torch.allclose(ours.param[run], expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * RATES[run])


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_runs_may_be_at_different_steps_and_the_inactive_stay_to_the_bit(backend: str) -> None:
    start, grads = torch.randn(3, 33), [torch.randn(3, 33) for _ in range(5)]
    grads[2][1] = torch.nan  # what an inactive run is handed must not matter
    ours = Ours(start)
    with use_backend(backend):
        for step, grad in enumerate(grads):
            before = [array.clone() for array in ours.state()]
            active = torch.tensor([True, step != 2, step < 3])
            ours.step(grad, active)
            for array, old in zip(ours.state(), before, strict=True):
                for run in range(3):
                    assert torch.equal(array[run], old[run]) == (not active[run])
    for run, steps in enumerate(([0, 1, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2])):
        expected = torch_adam(start[run], [grads[step][run] for step in steps], RATES[run], DECAYS[run])
        assert torch.allclose(ours.param[run], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_company_and_threads_change_no_bit(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "WORTH_SHARING", 0)
    start, grads = torch.randn(3, 2 * cpu.CHUNK + 9, dtype=dtype), [torch.randn(3, 2 * cpu.CHUNK + 9, dtype=dtype)] * 3
    together, everyone = Ours(start), torch.ones(3, dtype=torch.bool)
    for grad in grads:
        together.step(grad, everyone)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        for run in range(3):
            alone = Ours(start[run : run + 1], RATES[run : run + 1], DECAYS[run : run + 1])
            for grad in grads:
                alone.step(grad[run : run + 1], everyone[:1])
            assert all(torch.equal(a[0], b[run]) for a, b in zip(alone.state(), together.state(), strict=True))
    finally:
        torch.set_num_threads(before)


def test_a_gradient_that_is_not_finite_shows() -> None:
    ours, grad = Ours(torch.zeros(3, 20)), torch.zeros(3, 20)
    grad[1, 4], grad[2, 19] = torch.nan, torch.inf
    ours.step(grad, torch.ones(3, dtype=torch.bool))
    assert ours.param.isnan().nonzero().tolist() == [[1, 4], [2, 19]]


def test_a_strided_gradient_is_read_as_it_is_meant() -> None:
    start, grad, everyone = torch.randn(3, 4, 6), torch.randn(6, 4, 3).permute(2, 1, 0), torch.ones(3, dtype=torch.bool)
    one, other = Ours(start), Ours(start)
    one.step(grad, everyone)
    other.step(grad.contiguous(), everyone)
    assert torch.equal(one.param, other.param)


def test_strided_parameters_are_refused() -> None:
    ours = Ours(torch.randn(3, 4))
    ours.param = torch.randn(4, 3).t()
    with pytest.raises(ValueError, match="contiguous"):
        ours.step(torch.randn(3, 4), torch.ones(3, dtype=torch.bool))


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_autograd_notices_that_a_parameter_has_changed(backend: str) -> None:
    ours = Ours(torch.randn(3, 4))
    ours.param.requires_grad_()
    loss = (ours.param**2).sum()
    with use_backend(backend):
        ours.step(torch.ones(3, 4), torch.ones(3, dtype=torch.bool))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# ---------------------------------------------------------------------------------------------------- flat, in blocks

SIZES, GROUPS, LARGEST = ((5, 7), (64,), (3,)), (0, 1, 0), 16


class Flat:
    """Three runs of three parameters of two groups on flat arrays, cut into blocks of at most `LARGEST`, run by run."""

    def __init__(self, dtype: torch.dtype, runs: int = 3) -> None:
        blocks, begin = [], 0
        self.places: dict[tuple[int, int], slice] = {}
        for number, (size, group) in enumerate(zip(SIZES, GROUPS, strict=True)):
            for run in range(runs):
                end = begin + torch.Size(size).numel()
                self.places[number, run] = slice(begin, end)
                blocks += [(k, min(k + LARGEST, end), run, group) for k in range(begin, end, LARGEST)]
                begin = end
        self.blocks = torch.tensor(blocks).t().contiguous()
        self.param = torch.randn(begin, dtype=dtype)
        self.average, self.square = torch.zeros_like(self.param), torch.zeros_like(self.param)
        self.rates, self.decays = torch.tensor([RATES, RATES[::-1]]), torch.tensor([DECAYS, DECAYS[::-1]])
        self.steps = 0

    def step(self, grad: Tensor, active: Tensor, factor: float = 1.0) -> None:
        self.steps += 1
        correction = torch.tensor([factor, 1 - 0.9**self.steps, 1 - 0.999**self.steps], dtype=torch.float64)
        flat_adam_(
            self.param, grad, self.average, self.square, rates=self.rates, decays=self.decays, correction=correction,
            active=active, blocks=self.blocks, largest=LARGEST,
        )  # fmt: skip


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_flat_blocks_are_torchs_adam_of_each_run_and_group(dtype: torch.dtype, backend: str) -> None:
    ours, everyone = Flat(dtype), torch.ones(3, dtype=torch.bool)
    start = ours.param.clone()
    grads = [torch.randn_like(start) * 10.0 ** (step - 3) for step in range(6)]
    with use_backend(backend):
        for grad in grads:
            ours.step(grad, everyone, factor=0.5)
    for (number, run), place in ours.places.items():
        rate, decay = (table[GROUPS[number], run].item() for table in (ours.rates, ours.decays))
        expected = torch_adam(start[place], [grad[place] for grad in grads], 0.5 * rate, decay)
        assert torch.allclose(ours.param[place], expected, rtol=2 * TOLERANCE[dtype], atol=2 * TOLERANCE[dtype] * rate)


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_flat_runs_that_are_inactive_stay_and_chosen_ones_are_kept(backend: str) -> None:
    ours, active = Flat(torch.float32), torch.tensor([True, False, True])
    arrays = (ours.param, ours.average, ours.square)
    before, grad = [array.clone() for array in arrays], torch.randn_like(ours.param)
    for (_, run), place in ours.places.items():
        if not active[run]:
            grad[place] = torch.nan  # what an inactive run is handed must not matter
    kept = before[0].clone()
    with use_backend(backend):
        ours.step(grad, active)
        keep_(kept, ours.param, torch.tensor([False, True, True]), ours.blocks, LARGEST)
    for (_, run), place in ours.places.items():
        for array, old in zip(arrays, before, strict=True):
            assert torch.equal(array[place], old[place]) == (not active[run])
        assert torch.equal(kept[place], (before[0] if run == 0 else ours.param)[place])


def test_flat_arrays_must_be_flat() -> None:
    ours = Flat(torch.float32)
    ours.param = ours.param.view(3, -1)
    with pytest.raises(ValueError, match="one-dimensional"):
        ours.step(torch.ones_like(ours.param), torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="one-dimensional"):
        keep_(ours.param, ours.param, torch.ones(3, dtype=torch.bool), ours.blocks, LARGEST)

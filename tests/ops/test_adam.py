"""`adam_` over the run axis is `torch.optim.Adam` run by run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from omegagnn.ops import use_backend
from omegagnn.ops.adam import adam_, keep_

TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}
RATES, DECAYS = (0.01, 0.3, 1e-4), (5e-4, 0.0, 0.1)


def torch_adam(start: Tensor, grads: list[Tensor], rate: float, decay: float, **options: Any) -> Tensor:
    param = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([param], lr=rate, weight_decay=decay, foreach=False, **options)
    for grad in grads:
        param.grad = grad.clone()
        optimiser.step()
    return param.detach()


SIZES, GROUPS, LARGEST = ((5, 7), (64,), (3,), (0, 4)), (0, 1, 0, 1), 16


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
        adam_(
            self.param, grad, self.average, self.square, rates=self.rates, decays=self.decays, correction=correction,
            active=active, blocks=self.blocks, largest=LARGEST,
        )  # fmt: skip


@pytest.mark.parametrize("backend", ["fused", "reference"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_blocks_are_torchs_adam_of_each_run_and_group(dtype: torch.dtype, backend: str) -> None:
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
def test_runs_that_are_inactive_stay_and_chosen_ones_are_kept(backend: str) -> None:
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
            assert place.start == place.stop or torch.equal(array[place], old[place]) == (not active[run])
        assert torch.equal(kept[place], (before[0] if run == 0 else ours.param)[place])


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_a_gradient_that_is_not_finite_shows(backend: str) -> None:
    ours, grad = Flat(torch.float32), torch.zeros(len(Flat(torch.float32).param))
    grad[4], grad[-1] = torch.nan, torch.inf
    with use_backend(backend):
        ours.step(grad, torch.ones(3, dtype=torch.bool))
    assert ours.param.isnan().nonzero().squeeze(1).tolist() == [4, len(grad) - 1]


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_autograd_notices_that_a_parameter_has_changed(backend: str) -> None:
    ours = Flat(torch.float32)
    ours.param.requires_grad_()
    loss = (ours.param**2).sum()
    with use_backend(backend):
        ours.step(torch.ones_like(ours.param), torch.ones(3, dtype=torch.bool))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_arrays_must_be_flat() -> None:
    ours = Flat(torch.float32)
    ours.param = ours.param.view(3, -1)
    with pytest.raises(ValueError, match="one-dimensional"):
        ours.step(torch.ones_like(ours.param), torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="one-dimensional"):
        keep_(ours.param, ours.param, torch.ones(3, dtype=torch.bool), ours.blocks, LARGEST)

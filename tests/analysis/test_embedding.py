"""Principal components against the singular value decomposition in float64."""

from __future__ import annotations

import pytest
import torch

from omegagnn.analysis import principal_components


@pytest.mark.parametrize("shape", [(40, 7), (5, 9), (3, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_coordinates_and_shares_are_those_of_the_svd(shape: tuple[int, int], dtype: torch.dtype) -> None:
    x = torch.randn(shape, dtype=dtype)
    places, shares = principal_components(x, 2)
    centred = x.double() - x.double().mean(0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
    expected = u[:, :2] * s[:2]
    signs = torch.sign((places * expected).sum(0))
    torch.testing.assert_close(places, expected * signs, atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(shares, s[:2] ** 2 / (s**2).sum(), atol=1e-10, rtol=1e-10)


def test_the_sign_of_a_direction_is_fixed() -> None:
    x = torch.randn(30, 4)
    torch.testing.assert_close(principal_components(-x)[0], -principal_components(x)[0])
    x[0, 0] += 1e-9
    torch.testing.assert_close(principal_components(x)[0], -principal_components(-x)[0])


def test_what_has_no_variance_or_too_few_directions_lies_at_zero() -> None:
    places, shares = principal_components(torch.ones(4, 3))
    assert not places.any()
    assert shares.tolist() == [0, 0]
    places, shares = principal_components(torch.tensor([[0.0], [2.0]]))
    assert places.tolist() == [[-1, 0], [1, 0]]
    assert shares.tolist() == [1, 0]
    assert principal_components(torch.empty(0, 3))[0].shape == (0, 2)
    with pytest.raises(ValueError, match="must be"):
        principal_components(torch.ones(3))

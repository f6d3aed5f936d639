r"""Features in few dimensions: principal components, from the covariance in float64."""

from __future__ import annotations

import torch
from torch import Tensor


def principal_components(features: Tensor, count: int = 2) -> tuple[Tensor, Tensor]:
    r"""Return the coordinates ``[n, count]`` along the directions of largest variance, and the share of variance of each.

    With :math:`X` centred and :math:`X^⊤X = V Λ V^⊤`, eigenvalues falling: coordinates :math:`X V_{:,k}`, shares
    :math:`λ_k / \operatorname{tr} Λ`. The sign of a direction is chosen so that its largest entry is positive; where there
    are fewer directions than asked for, or no variance, coordinates and shares are 0.

    >>> line = torch.tensor([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    >>> places, shares = principal_components(line, 1)
    >>> [round(place, 6) for place in places[:, 0].tolist()], round(float(shares[0]), 6)
    ([-5.0, 0.0, 5.0], 1.0)
    """
    if features.dim() != 2:
        raise ValueError(f"features must be [n, c], but their shape is {tuple(features.shape)}.")
    x = features.detach().double()
    x = x - x.mean(0, keepdim=True) if x.size(0) else x
    values, vectors = torch.linalg.eigh(x.T @ x)
    values, vectors = values.flip(0)[:count].clamp(min=0), vectors.flip(1)[:, :count]
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)) if vectors.numel() else vectors[:1]
    vectors = vectors * torch.where(largest < 0, -1.0, 1.0)
    total = float((x**2).sum())
    places, shares = x.new_zeros(x.size(0), count), x.new_zeros(count)
    if total > 0:
        places[:, : vectors.size(1)], shares[: values.numel()] = x @ vectors, values / total
    return places, shares


__all__ = ["principal_components"]

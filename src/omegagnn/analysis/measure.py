r"""How the energy of features spreads over the frequencies of a graph, and what any polynomial filter makes of it.

With :math:`\tilde L = U Λ U^T` the features have the weight :math:`a_k = \sum_c (u_k^T f_c)^2` at frequency
:math:`λ_k`, and after a filter h the energy is :math:`E(h(\tilde L) f) = \sum_k λ_k h(λ_k)^2 a_k`: a sum over a few
numbers in place of a propagation. Small graphs are decomposed; for larger ones Lanczos gives a Gauss quadrature that
is exact for polynomials up to twice its number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from omegagnn.analysis.spectrum import DENSE_LIMIT, Method, normalised_laplacian
from omegagnn.graph import Graph

if TYPE_CHECKING:
    import numpy.typing as npt
    import scipy.sparse as sp

    Array = npt.NDArray[np.float64]

LANCZOS_STEPS = 96
NULL = 1e-10  # frequencies below count as 0: they carry no energy


@dataclass(frozen=True, eq=False)
class SpectralMeasure:
    """Positive frequencies of L̃, rising, and the weight that features have at each (frequency 0 carries no energy)."""

    frequencies: Array
    weights: Array

    @property
    def radius(self) -> float:
        """The largest frequency at which there is weight (at most ρ(L̃))."""
        return float(self.frequencies[-1]) if self.frequencies.size else 0.0

    def energy(self, response: Array | float = 1.0) -> float:
        r"""Return :math:`\sum_k λ_k h(λ_k)^2 a_k` for the response h at the frequencies."""
        return float((self.frequencies * self.weights * np.square(response)).sum())


def spectral_measure(x: Tensor, graph: Graph, add_self_loops: bool = True, method: Method = "auto") -> SpectralMeasure:
    """Return the measure of features ``[n, c]`` on an undirected graph (see `critical_omega` for `method`)."""
    if x.dim() != 2 or x.size(0) != graph.num_nodes:
        raise ValueError(f"Features must be [{graph.num_nodes}, c], but their shape is {tuple(x.shape)}.")
    laplacian = normalised_laplacian(graph, add_self_loops)
    features = x.detach().cpu().double().numpy()
    if method == "dense" or (method == "auto" and graph.num_nodes <= DENSE_LIMIT):
        frequencies, vectors = np.linalg.eigh(laplacian.toarray())
        weights = np.square(vectors.T @ features).sum(1)
    else:
        frequencies, weights = _quadrature(laplacian, features)
    order = np.argsort(frequencies)
    frequencies, weights = frequencies[order], weights[order]
    kept = (frequencies > NULL) & (weights > 0)
    return SpectralMeasure(frequencies[kept], weights[kept])


def _quadrature(laplacian: sp.csr_array, features: Array) -> tuple[Array, Array]:
    """Run Lanczos from all channels at once; the tridiagonal matrices give nodes and weights of a Gauss quadrature."""
    n, channels = features.shape
    steps = min(n, LANCZOS_STEPS)
    diagonal, beside = np.zeros((channels, steps)), np.zeros((channels, steps))
    norms = np.linalg.norm(features, axis=0)
    vector, previous = _divided(features, norms), np.zeros_like(features)
    for step in range(steps):
        image = laplacian @ vector - previous * (beside[:, step - 1] if step else 0.0)
        diagonal[:, step] = (image * vector).sum(0)
        image -= vector * diagonal[:, step]
        beside[:, step] = np.linalg.norm(image, axis=0)
        # A channel that spans few frequencies is done early; going on would divide rounding errors by rounding errors.
        beside[:, step] *= beside[:, step] > NULL
        previous, vector = vector, _divided(image, beside[:, step])
    matrices = np.zeros((channels, steps, steps))
    rows = np.arange(steps)
    matrices[:, rows, rows] = diagonal
    matrices[:, rows[1:], rows[:-1]] = beside[:, :-1]
    frequencies, vectors = np.linalg.eigh(matrices)
    return frequencies.ravel(), (np.square(vectors[:, 0, :]) * np.square(norms)[:, None]).ravel()


def _divided(columns: Array, lengths: Array) -> Array:
    return columns * np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


__all__ = ["SpectralMeasure", "spectral_measure"]

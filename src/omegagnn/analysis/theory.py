r"""The theorems of "Improving Graph Neural Networks with Learnable Propagation Operators" as functions with bounds.

Notation: :math:`S = \tilde D^{-1/2} \tilde A \tilde D^{-1/2}`, :math:`\tilde L = I - S`, :math:`P_ω = I - ω \tilde L`,
E the Dirichlet energy. Everything is computed in float64 on the CPU. Where a statement of the paper needs a correction
or a condition that the paper does not write, the function says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from omegagnn.analysis.energy import dirichlet_energy
from omegagnn.analysis.measure import SpectralMeasure, spectral_measure
from omegagnn.analysis.spectrum import (
    ROUNDING,
    critical_omega,
    float64_graph,
    laplacian_spectrum,
    leading_eigenvector,
    normalised_laplacian,
    sign_threshold,
)
from omegagnn.graph import Graph
from omegagnn.ops import omega_propagate

if TYPE_CHECKING:
    import scipy.sparse as sp

EULER_DEPTHS = (4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Comparison:
    """A value, the bounds that a theorem puts on it, and how much rounding is allowed."""

    claim: str
    value: float
    lower: float
    upper: float
    tolerance: float = 1e-9

    @property
    def holds(self) -> bool:
        """Whether the value lies within its bounds."""
        return self.lower - self.tolerance <= self.value <= self.upper + self.tolerance


def propagated(x: Tensor, graph: Graph, omega: float, depth: int) -> Tensor:
    r"""Return :math:`P_ω^L f`, step by step, in float64."""
    operator = float64_graph(graph).gcn_norm()
    features = x.detach().cpu().double()
    for _ in range(depth):
        features = omega_propagate(features, operator, omega)
    return features


def omega_for_energy(x: Tensor, graph: Graph, depth: int, energy: float) -> float:
    r"""Return the smallest ω > 0 with :math:`E(P_ω^L f) = E^*`, the ω that Theorem 2.1 lets a network learn.

    :math:`E(P_ω^L f) = \sum_k λ_k a_k (1 - ω λ_k)^{2L}` is convex in ω and falls from E(f) at ω = 0, so there are two
    roots, one, or, for few layers and a small E*, none.

    Raises:
        ValueError: where E* is not between 0 and E(f), or where no ω reaches it.
    """
    if depth < 1:
        raise ValueError(f"depth is {depth}: the theorem needs at least one layer.")
    return _smallest_root(_measure_with_energy(x, graph, energy), depth, energy)


def limit_time(x: Tensor, graph: Graph, energy: float) -> float:
    r"""Return T with :math:`E(\exp(-T \tilde L) f) = E^*`: the time at which the heat flow has the energy E*."""
    return _limit_time(_measure_with_energy(x, graph, energy), energy)


def theorem_2_1(x: Tensor, graph: Graph, depth: int, energy: float) -> Comparison:
    r"""Theorem 2.1: one ω for all layers that reaches the energy E* obeys :math:`L ω → T`.

    The value is :math:`L ω` for the smallest root (`omega_for_energy`). With :math:`y = ω ρ < 1`, comparing
    :math:`-\log(1 - ωλ)` with :math:`ωλ` at every frequency gives the bounds

    .. math:: T \frac{y}{-\log(1 - y)} \le L ω \le T,

    hence :math:`T - Lω \le T ω ρ = O(1/L)`, the theorem's "first-order accuracy". For :math:`y \ge 1` (few layers)
    nothing is claimed.
    """
    measure = _measure_with_energy(x, graph, energy)
    omega = _smallest_root(measure, depth, energy)
    lower, upper = _euler_bounds(_limit_time(measure, energy), omega * measure.radius)
    return Comparison(f"Theorem 2.1: {depth} layers, L·ω against T", depth * omega, lower, upper)


def corollary_2_2(x: Tensor, graph: Graph, shape: Sequence[float], energy: float) -> Comparison:
    r"""Corollary 2.2: with an ω for each layer, :math:`\sum_l ω^{(l)} → T` as :math:`\max_l ω^{(l)} → 0`.

    The paper omits the condition: with one layer that keeps a fixed share of the sum, the limit is another.

    Args:
        x: features ``[n, c]``.
        graph: an undirected graph.
        shape: the positive ratios of the ω of the layers; they are scaled until the energy is E*.
        energy: E*.

    Returns:
        The sum, between the bounds of `theorem_2_1` with :math:`y = ρ \max_l ω^{(l)}`.

    Raises:
        ValueError: where E* needs an ω beyond 1/ρ, that is, where there are too few layers.
    """
    from scipy.optimize import brentq

    ratios = np.asarray(shape, dtype=np.float64)
    if ratios.ndim != 1 or not ratios.size or not (ratios > 0).all():
        raise ValueError("shape must be a list of positive numbers, one for each layer.")
    measure = _measure_with_energy(x, graph, energy)
    steepness = measure.radius * float(ratios.max())

    def excess(scale: float) -> float:
        return measure.energy(np.prod(1 - scale * np.outer(ratios, measure.frequencies), axis=0)) - energy

    if excess(1 / steepness) > 0:
        raise ValueError(
            f"The energy {energy:g} needs an omega beyond 1/rho = {1 / measure.radius:.3g} in this shape: use more layers."
        )
    scale = float(brentq(excess, 0.0, 1 / steepness, xtol=1e-15, rtol=1e-14))
    lower, upper = _euler_bounds(_limit_time(measure, energy), scale * steepness)
    return Comparison(
        f"Corollary 2.2: {ratios.size} layers, sum of ω against T", float(scale * ratios.sum()), lower, upper
    )


def theorem_2_3(graph: Graph, omega: float, add_self_loops: bool = True) -> Comparison:
    r"""Theorem 2.3: the leading eigenvector of :math:`P_ω` is :math:`\tilde D^{1/2} 1` just where 0 < ω < ω₀.

    The value is the distance of the leading eigenvector (of length 1) from the span of the :math:`\tilde D^{1/2} 1_C`
    over the connected components C: 0 for 0 < ω < ω₀; 1 for ω < 0 or ω > ω₀, where it is orthogonal to them. The
    paper assumes a connected graph, for which the span is the one vector.

    Raises:
        ValueError: at ω = 0 and ω = ω₀, where no eigenvector leads alone.
    """
    critical = critical_omega(graph, add_self_loops)
    if abs(omega - critical) <= 1e-9 * abs(omega):
        raise ValueError(
            f"At omega = omega_0 = {critical:g} two eigenvectors lead: choose a value to its left or right."
        )
    vector = leading_eigenvector(graph, omega, add_self_loops)
    claimed = 0.0 if 0 < omega < critical or critical == float("inf") else 1.0
    value = distance_from_smooth(vector, graph, add_self_loops)
    return Comparison(f"Theorem 2.3 at ω = {omega:g}, ω₀ = {critical:g}", value, claimed, claimed, tolerance=1e-6)


def distance_from_smooth(vector: Tensor, graph: Graph, add_self_loops: bool = True) -> float:
    r"""Return the distance of a vector ``[n]`` from the span of :math:`\tilde D^{1/2} 1_C` over the components C."""
    from scipy.sparse.csgraph import connected_components

    if graph.is_operator:
        raise ValueError("A finished operator does not tell its degrees: pass the graph before normalisation.")
    weighted = float64_graph(graph)
    root = (weighted.with_self_loops() if add_self_loops else weighted).degree().sqrt()
    count, label = connected_components(weighted.unweighted().to_scipy(), directed=False)
    component = torch.from_numpy(label).long()
    along = torch.zeros(count, dtype=torch.float64).index_add(0, component, vector * root)
    length = torch.zeros(count, dtype=torch.float64).index_add(0, component, root.square())
    share = along / torch.where(length > 0, length, 1)
    return float(torch.linalg.vector_norm(vector - share[component] * root))


def nonnegativity_remark(graph: Graph, omega: float, add_self_loops: bool = True) -> Comparison:
    r"""The corrected remark: :math:`P_ω` has no negative entry just where :math:`0 \le ω \le 1 + 1/d_{max}`.

    The value is the smallest entry of :math:`P_ω`. The paper claims mixed signs for all ω > 1, but with self-loops the
    diagonal :math:`1 - ω d_i / (1 + d_i)` stays non-negative a little longer.
    """
    import scipy.sparse as sp

    matrix = sp.eye_array(graph.num_nodes) - omega * normalised_laplacian(graph, add_self_loops)
    smallest = float(matrix.min()) if graph.num_nodes else 0.0
    limit = sign_threshold(graph, add_self_loops)
    inside = limit == float("inf") or 0 <= omega <= limit * (1 + ROUNDING)
    lower, upper = (0.0, float("inf")) if inside else (-float("inf"), 0.0)
    return Comparison(f"Non-negativity at ω = {omega:g}, threshold {limit:g}", smallest, lower, upper, tolerance=1e-12)


def laplacian_identity(graph: Graph) -> Comparison:
    r"""Self-loops do not change the Laplacian, :math:`\tilde D - \tilde A = D - A`: the value is the largest difference."""
    weighted = float64_graph(graph)
    with_loops, without = (_laplacian(each) for each in (weighted.with_self_loops(), weighted.without_self_loops()))
    difference = abs(with_loops - without)
    largest = float(difference.max()) if difference.nnz else 0.0
    return Comparison("The Laplacian with self-loops is the Laplacian", largest, 0.0, 0.0, tolerance=1e-12)


def gradient_descent_identity(x: Tensor, graph: Graph, omega: float) -> Comparison:
    r"""A propagation is a step of gradient descent, :math:`P_ω f = f - ω \nabla (E/2)`: the value is the difference.

    The paper writes ∇E, for the energy of its appendix, which is half of that of its equation. The graph must be
    undirected.
    """
    weighted = float64_graph(graph)
    features = x.detach().cpu().double().requires_grad_()
    (slope,) = torch.autograd.grad(dirichlet_energy(features, weighted) / 2, features)
    difference = propagated(x, graph, omega, 1) - (features.detach() - omega * slope)
    largest = float(difference.abs().max()) if difference.numel() else 0.0
    scale = max(1.0, abs(omega)) * max(1.0, float(features.detach().abs().max()) if features.numel() else 0.0)
    return Comparison("P_ω f = f − ω ∇(E/2)", largest, 0.0, 0.0, tolerance=1e-11 * scale)


def energy_decay(x: Tensor, graph: Graph, omega: float, depth: int) -> Comparison:
    r"""Linear layers with one ω: :math:`E(P_ω^L f) / E(f) \le \max_{λ > 0} (1 - ω λ)^{2L}`, over the frequencies of L̃.

    For 0 < ω < ω₀ the bound goes to 0 with L, on disconnected graphs too. All frequencies are computed, so the graph
    may have up to 8,192 nodes.
    """
    before = float(dirichlet_energy(x.detach().cpu().double(), float64_graph(graph)))
    if before == 0:
        raise ValueError("The features have no energy to lose: pass others.")
    after = float(dirichlet_energy(propagated(x, graph, omega, depth), float64_graph(graph)))
    frequencies = laplacian_spectrum(graph)
    bound = float((1 - omega * frequencies[frequencies > 1e-10]).abs().max() ** (2 * depth))
    return Comparison(
        f"Energy after {depth} linear layers at ω = {omega:g}", after / before, 0.0, bound, 1e-9 * bound + 1e-28
    )


def euler_errors(
    depths: Sequence[int] = EULER_DEPTHS, size: int = 100, time: float = 1.0, seed: int = 0
) -> list[float]:
    r"""Return :math:`\|\exp(-T A) f - (I - \frac{T}{L} A)^L f\|_2` for each L: the paper's figure of forward Euler.

    A is :math:`M M^T` with Gaussian M (``size × size``), scaled from both sides to a diagonal of ones; f is Gaussian.
    """
    generator = torch.Generator().manual_seed(seed)
    factor = torch.randn(size, size, dtype=torch.float64, generator=generator)
    start = torch.randn(size, dtype=torch.float64, generator=generator)
    product = factor @ factor.T
    scale = product.diagonal().rsqrt()
    eigenvalues, vectors = torch.linalg.eigh(scale[:, None] * product * scale)
    coefficients = vectors.T @ start
    exact = torch.exp(-time * eigenvalues)
    return [
        float(torch.linalg.vector_norm((exact - (1 - time / depth * eigenvalues) ** depth) * coefficients))
        for depth in depths
    ]


def euler_slope(depths: Sequence[int] = EULER_DEPTHS, size: int = 100, time: float = 1.0, seed: int = 0) -> Comparison:
    """The remark on forward Euler: the error of L layers falls as 1/L, a slope of −1 on logarithmic axes."""
    errors = euler_errors(depths, size, time, seed)
    slope = float(np.polyfit(np.log(depths), np.log(errors), 1)[0])
    return Comparison("Slope of the Euler error over the depth", slope, -1.05, -0.95)


def _measure_with_energy(x: Tensor, graph: Graph, energy: float) -> SpectralMeasure:
    measure = spectral_measure(x, graph)
    start = measure.energy()
    if not 0 < energy < start:
        raise ValueError(
            f"The wanted energy is {energy:g}, but it must lie between 0 and that of the features, {start:g}."
        )
    return measure


def _smallest_root(measure: SpectralMeasure, depth: int, energy: float) -> float:
    from scipy.optimize import brentq

    def excess(omega: float) -> float:
        return measure.energy((1 - omega * measure.frequencies) ** depth) - energy

    def slope(omega: float) -> float:
        factors = (1 - omega * measure.frequencies) ** (2 * depth - 1)
        return -float((measure.weights * np.square(measure.frequencies) * factors).sum())

    right = 1 / measure.radius
    if excess(right) > 0:
        right = _sign_change(slope, right)
    if excess(right) > 0:
        raise ValueError(
            f"No omega brings {depth} layers to the energy {energy:g}: the least they reach is {excess(right) + energy:g}; "
            "use more layers or a higher energy."
        )
    return float(brentq(excess, 0.0, right, xtol=1e-15, rtol=1e-14))


def _sign_change(slope: Callable[[float], float], left: float) -> float:
    """Return where a rising function that is negative at `left` > 0 becomes positive (it may overflow to infinity)."""
    with np.errstate(over="ignore"):
        right = 2 * left
        while slope(right) < 0:
            left, right = right, 2 * right
        for _ in range(100):
            middle = (left + right) / 2
            left, right = (middle, right) if slope(middle) < 0 else (left, middle)
    return left


def _limit_time(measure: SpectralMeasure, energy: float) -> float:
    from scipy.optimize import brentq

    def excess(time: float) -> float:
        return measure.energy(np.exp(-time * measure.frequencies)) - energy

    right = 1 / measure.radius
    while excess(right) > 0:
        right *= 2
    return float(brentq(excess, 0.0, right, xtol=1e-15, rtol=1e-14))


def _euler_bounds(time: float, steepness: float) -> tuple[float, float]:
    if steepness >= 1:
        return 0.0, float("inf")
    return time * steepness / -float(np.log1p(-steepness)), time


def _laplacian(graph: Graph) -> sp.csr_array:
    import scipy.sparse as sp

    return sp.csr_array(sp.diags_array(graph.degree().numpy()) - graph.transposed.to_scipy())


__all__ = [
    "Comparison",
    "corollary_2_2",
    "distance_from_smooth",
    "energy_decay",
    "euler_errors",
    "euler_slope",
    "gradient_descent_identity",
    "laplacian_identity",
    "limit_time",
    "nonnegativity_remark",
    "omega_for_energy",
    "propagated",
    "theorem_2_1",
    "theorem_2_3",
]

r"""What a propagation does to each frequency: spectrum, leading eigenvector and thresholds of :math:`P_ω = I - ω\tilde L`.

:math:`\tilde L = I - S` with ``S = graph.gcn_norm()``; everything is computed in float64 on the CPU. Three values of ω
part the operators of a graph:

=====================  ===============================================================================================
1                      up to here P_ω is non-negative whatever the self-loops of S; P_1 = S is the GCN
1 + 1/d_max            up to here it is non-negative with self-loops: the diagonal 1 − ω(1 − S_ii) is the first to fall
ω₀ = 2/ρ(L̃)           up to here the leading eigenvector is D̃^½ 1 (smoothing); beyond, it is the top one of L̃
=====================  ===============================================================================================

The paper's remark puts the mixed signs at ω > 1; that holds for an S with a zero diagonal only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from omegagnn.graph import Graph
from omegagnn.nn.omega import OmegaWeight

if TYPE_CHECKING:
    import scipy.sparse as sp

Method = Literal["auto", "dense", "lanczos"]
OperatorKind = Literal["identity", "smoothing", "mixed-sign", "sharpening"]
SignPattern = Literal["non-negative", "mixed", "non-positive"]

DENSE_LIMIT = 1024  # nodes up to which "auto" takes all eigenvalues (0.1 s) instead of iterating for one
MATRIX_LIMIT = 8192  # nodes up to which a whole spectrum is given (the matrix then takes 0.5 GiB)
ROUNDING = 1e-12  # of an eigenvalue or an entry in [-2, 2], in float64


class Thresholds(NamedTuple):
    """The values of ω at which the operator of a graph changes its character."""

    one: float
    signs: float
    critical: float


def thresholds(graph: Graph, add_self_loops: bool = True, method: Method = "auto") -> Thresholds:
    """Return 1, 1 + 1/d_max and ω₀ of a graph (see the module for their meaning)."""
    return Thresholds(1.0, sign_threshold(graph, add_self_loops), critical_omega(graph, add_self_loops, method))


def critical_omega(graph: Graph, add_self_loops: bool = True, method: Method = "auto") -> float:
    r"""Return :math:`ω_0 = 2 / ρ(\tilde L)`, up to which :math:`P_ω` smooths; infinity where there are no edges.

    With self-loops ω₀ > 1; it is 1 for a bipartite graph without them.

    Args:
        graph: an undirected graph, or its operator S.
        add_self_loops: as in the ``gcn_norm`` of the layers.
        method: all eigenvalues of the dense matrix, Lanczos for the largest, or what suits the number of nodes.

    >>> critical_omega(Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
    2.0
    """
    laplacian = normalised_laplacian(graph, add_self_loops)
    n = graph.num_nodes
    if laplacian.nnz == 0 or float(abs(laplacian).max()) <= ROUNDING:
        return float("inf")
    # Lanczos wants at least one dimension that it does not look at.
    if method == "dense" or n < 3 or (method == "auto" and n <= DENSE_LIMIT):
        largest = float(np.linalg.eigvalsh(_dense(laplacian))[-1])
    else:
        largest = float(_lanczos(laplacian, "LA", 1e-8)[0][0])
    return 2.0 / largest


def sign_threshold(graph: Graph, add_self_loops: bool = True) -> float:
    r"""Return the largest ω for which :math:`P_ω` has no negative entry: :math:`\min_i 1 / (1 - S_{ii})`.

    That is 1 + 1/d_max for unweighted graphs with added self-loops, 1 without loops, infinity without edges.
    """
    diagonal = _operator(graph, add_self_loops).diagonal()
    slack = float((1 - diagonal).max()) if diagonal.size else 0.0
    return 1.0 / slack if slack > ROUNDING else float("inf")


def sign_pattern(graph: Graph, omega: float, add_self_loops: bool = True) -> SignPattern:
    """Return which signs the entries of P_ω have, read off the entries themselves (zeros count with either)."""
    import scipy.sparse as sp

    matrix = (sp.eye_array(graph.num_nodes) - omega * normalised_laplacian(graph, add_self_loops)).tocsr()
    entries = matrix.data[np.abs(matrix.data) > ROUNDING * max(1.0, abs(omega))]
    if not (entries < 0).any():
        return "non-negative"
    return "mixed" if (entries > 0).any() else "non-positive"


def operator_kind(graph: Graph, omega: float, add_self_loops: bool = True) -> OperatorKind:
    """Name what P_ω does.

    ``identity`` (ω = 0) · ``smoothing`` (non-negative weights, leading eigenvector D̃^½1) · ``mixed-sign`` (the same
    eigenvector, but weights of both signs, for 1 + 1/d_max < ω ≤ ω₀) · ``sharpening`` (ω < 0 or ω > ω₀: another
    eigenvector leads). A graph without edges has only the identity.
    """
    _, signs, critical = thresholds(graph, add_self_loops)
    if omega == 0 or critical == float("inf"):
        return "identity"
    if omega < 0 or omega > critical * (1 + ROUNDING):
        return "sharpening"
    return "smoothing" if omega <= signs * (1 + ROUNDING) else "mixed-sign"


def laplacian_spectrum(graph: Graph, add_self_loops: bool = True) -> Tensor:
    """Return all eigenvalues of L̃ in rising order, ``[n]`` (up to 8,192 nodes)."""
    return torch.from_numpy(np.linalg.eigvalsh(_dense(normalised_laplacian(graph, add_self_loops))))


def propagation_spectrum(graph: Graph, omega: float, add_self_loops: bool = True) -> Tensor:
    r"""Return all eigenvalues :math:`1 - ω λ` of :math:`P_ω` in rising order, ``[n]`` (up to 8,192 nodes)."""
    return (1 - omega * laplacian_spectrum(graph, add_self_loops)).sort().values


def leading_eigenvector(graph: Graph, omega: float, add_self_loops: bool = True, method: Method = "auto") -> Tensor:
    r"""Return the unit eigenvector of :math:`P_ω` whose eigenvalue is the largest in magnitude, ``[n]``.

    It is :math:`\tilde D^{1/2} 1` for :math:`0 < ω < ω_0` on a connected graph. With several components the
    eigenvalue 1 belongs to a whole space, from which one vector is returned. Its entries sum to at least 0.
    """
    if omega == 0:
        raise ValueError("At omega = 0 the operator is the identity and no eigenvector leads: choose another omega.")
    laplacian = normalised_laplacian(graph, add_self_loops)
    n = graph.num_nodes
    if n == 0:
        raise ValueError("A graph without nodes has no eigenvector: pass one with nodes.")
    if method == "dense" or n < 3 or (method == "auto" and n <= DENSE_LIMIT):
        eigenvalues, eigenvectors = np.linalg.eigh(_dense(laplacian))
        vector = eigenvectors[:, np.abs(1 - omega * eigenvalues).argmax()]
    else:
        import scipy.sparse as sp

        vector = _lanczos((sp.eye_array(n) - omega * laplacian).tocsr(), "LM", ROUNDING)[1][:, 0]
    return torch.from_numpy(vector * (1.0 if vector.sum() >= 0 else -1.0))


def filter_response(omega: nn.Module | Iterable[Tensor | float], frequencies: Tensor) -> Tensor:
    r"""Return the filter :math:`h(λ) = \prod_l (1 - ω^{(l)} λ)` that the propagations of a network are together.

    It shows which frequencies λ of the graph (0 smooth, 2 rough) the learnt ω keep, damp, flip or amplify; the 1×1
    maps and activations between the propagations are left out.

    Args:
        omega: a model with ω layers, or the ω of each layer: numbers, ``[c]`` or ``[R, c]``.
        frequencies: values of λ, ``[k]``; `laplacian_spectrum` gives those of a graph.

    Returns:
        ``[k]`` for scalar ω, ``[k, c]`` for one per channel, ``[k, R, c]`` with runs.
    """
    # A number becomes float64 first: torch's default would round ω before the frequencies say what is wanted.
    layers = (
        learnt_omegas(omega)
        if isinstance(omega, nn.Module)
        else [each if isinstance(each, Tensor) else torch.tensor(each, dtype=torch.float64) for each in omega]
    )
    response = torch.ones_like(frequencies)
    for each in layers:
        factor = 1 - each.detach().to(frequencies) * frequencies.reshape(-1, *[1] * each.dim())
        wide, narrow = (response, factor) if response.dim() >= factor.dim() else (factor, response)
        response = wide * narrow.reshape(-1, *[1] * (wide.dim() - narrow.dim()), *narrow.shape[1:])
    return response


def learnt_omegas(model: nn.Module) -> list[Tensor]:
    """Return the ω of each ω layer of a model, in the order in which the layers are registered."""
    layers = [module for module in model.modules() if isinstance(getattr(module, "omega_weight", None), OmegaWeight)]
    if not layers:
        raise ValueError("The model has no layer with an omega: pass the values of omega themselves.")
    return [cast("OmegaWeight", layer.omega_weight).value.detach() for layer in layers]


def normalised_laplacian(graph: Graph, add_self_loops: bool = True) -> sp.csr_array:
    r"""Return :math:`\tilde L = I - S` of an undirected graph (or of its operator S) as a float64 SciPy matrix."""
    import scipy.sparse as sp

    matrix = _operator(graph, add_self_loops)
    asymmetry = abs(matrix - matrix.T)
    if asymmetry.nnz and float(asymmetry.max()) > 1e-6:
        raise ValueError(
            "The spectrum needs an undirected graph, but some edges run one way: use graph.to_undirected()."
        )
    laplacian = sp.csr_array(sp.eye_array(graph.num_nodes) - matrix)
    laplacian.eliminate_zeros()
    return laplacian


def float64_graph(graph: Graph) -> Graph:
    """Return the graph on the CPU with float64 weights (of 1 where there were none), outside of autograd."""
    weight = torch.ones(graph.num_edges, dtype=torch.float64) if graph.weight is None else graph.weight.detach()
    arrays = graph.rowptr.cpu(), graph.col.cpu(), weight.to("cpu", torch.float64)
    return Graph(*arrays, is_operator=graph.is_operator)


def _operator(graph: Graph, add_self_loops: bool) -> sp.csr_array:
    return float64_graph(graph).gcn_norm(add_self_loops).to_scipy()


def _dense(laplacian: sp.csr_array) -> np.ndarray:
    n = laplacian.shape[0]
    if n > MATRIX_LIMIT:
        raise ValueError(
            f"All eigenvalues of {n} nodes need a dense matrix, which is given up to {MATRIX_LIMIT} nodes: use "
            "critical_omega and leading_eigenvector, which iterate, or a part of the graph."
        )
    return laplacian.toarray()


def _lanczos(matrix: sp.csr_array, which: Literal["LA", "LM"], residual: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the wanted eigenpair; the error of a symmetric matrix's eigenvalue is of the order of residual squared."""
    from scipy.sparse.linalg import eigsh

    n = matrix.shape[0]
    # A fixed start, so that the same graph gives the same bits; a wider basis than the default converges sooner.
    start = np.random.default_rng(0).standard_normal(n)
    return eigsh(matrix, k=1, which=which, v0=start, ncv=min(n, 64), tol=residual, maxiter=max(1000, n))


__all__ = [
    "Thresholds",
    "critical_omega",
    "filter_response",
    "laplacian_spectrum",
    "leading_eigenvector",
    "learnt_omegas",
    "normalised_laplacian",
    "operator_kind",
    "propagation_spectrum",
    "sign_pattern",
    "sign_threshold",
    "thresholds",
]

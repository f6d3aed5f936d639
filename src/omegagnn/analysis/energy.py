r"""How much node features still differ: energies, distances, ranks and gradient norms.

All take features ``[n, c]`` and return a number as a tensor of no dimension; with a run axis, ``[n, R, c]`` gives
``[R]``. All are differentiable and keep the dtype of the features (half precision is lifted to float32).

The energies are summed over pairs and not as :math:`\mathrm{tr}(f^T (f - S f))`, which is the same number for an
undirected graph: a difference of two neighbours keeps its digits where features have nearly collapsed, whereas
:math:`f - S f` loses all of them below :math:`ε \|f\|^2`. The sum runs over chunks of edges, whose intermediate
results are computed again in the backward pass, so that memory grows with nodes × channels and not edges × channels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from omegagnn.graph import Graph
from omegagnn.ops import omega_propagate

# Numbers in one chunk of pairwise differences: 32 MiB in float64.
CHUNK_ELEMENTS = 2**22


def dirichlet_energy(x: Tensor, graph: Graph, add_self_loops: bool = True) -> Tensor:
    r"""Return the Dirichlet energy of ωGNN's equation for :math:`E(f)`, in the metric of ``graph.gcn_norm()``.

    .. math::
        E(f) = \frac12 \sum_i \sum_{j \in N_i} w_{ij} \left\| \frac{f_i}{\sqrt{\tilde d_i}} -
        \frac{f_j}{\sqrt{\tilde d_j}} \right\|^2 = \mathrm{tr}(f^T \tilde L f), \qquad \tilde L = I - S

    with :math:`\tilde d_i = 1 + d_i`, the row sum of :math:`\tilde A`, so that :math:`d_i` counts no self-loop and an
    existing loop keeps its weight, as in `Graph.gcn_norm`. The sum runs over both directions of an edge; the paper's
    appendix writes half of this. On a directed graph the sum over the pairs is meant, not the trace. A node with
    :math:`\tilde d_i = 0` (only without added loops) contributes 0. E = 0 means that f is a multiple of
    :math:`\tilde D^{1/2} 1` on each connected component.

    Args:
        x: features ``[n, c]`` or ``[n, R, c]``.
        graph: the graph before normalisation. Of a finished operator S the degrees are unknown: its energy is
            computed as :math:`\mathrm{tr}(f^T (f - S f))`, with fewer digits near 0.
        add_self_loops: as it is in the ``gcn_norm`` of the layers.

    >>> edge = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    >>> dirichlet_energy(torch.tensor([[1.0], [0.0]]), edge)
    tensor(0.5000)
    """
    features = _checked_features(x, graph)
    if graph.is_operator:
        difference = features - omega_propagate(features, graph, 1.0)
        return (features * difference).sum(dim=(0, -1))
    scale = inverse_sqrt_degree(graph, features.dtype, add_self_loops)
    weight = None if graph.weight is None else graph.weight.to(features.dtype)
    return _pair_energy(features * _column(scale, features), graph, weight)


def gat_energy(x: Tensor, graph: Graph) -> Tensor:
    r"""Return the energy of ωGNN for attention, :math:`\frac12 \sum_i \sum_{j \in N_i} \|f_i - f_j\|^2`.

    Attention has the constant vector as its leading eigenvector, so no degree enters; weights are ignored, as
    attention ignores them. Zero means that f is constant on each connected component.
    """
    return _pair_energy(_checked_features(x, graph), graph, None)


def relative_energy(x: Tensor, graph: Graph, add_self_loops: bool = True) -> Tensor:
    r"""Return :math:`E(f) / \|f\|^2`, the Rayleigh quotient of :math:`\tilde L` (in ``[0, 2]``); NaN where f = 0.

    The energy alone also falls when all features shrink; this one falls only when they become alike.
    """
    features = _checked_features(x, graph)
    return dirichlet_energy(features, graph, add_self_loops) / features.square().sum(dim=(0, -1))


def mean_average_distance(x: Tensor, graph: Graph | None = None) -> Tensor:
    r"""Return the mean average cosine distance (MAD, https://arxiv.org/abs/1909.03211) of the nodes.

    .. math::
        \mathrm{MAD} = \frac1{|V'|} \sum_{i \in V'} \frac1{|N_i|} \sum_{j \in N_i} \left(1 - \cos(f_i, f_j)\right)

    where :math:`V'` are the nodes with a neighbour. Without a graph every other node is a neighbour (still in time
    linear in n). Two zero vectors are at distance 0, a zero and a non-zero one at distance 1; NaN where there is no
    pair. The source leaves out distances that are exactly 0, so its value jumps when two nodes coincide; all pairs
    count here.
    """
    directions = _directions(_checked_features(x, graph))
    if graph is None:
        n = directions.size(0)
        spread = (directions - directions.mean(0, keepdim=True)).square().sum(dim=(0, -1))
        return spread / (n - 1) if n > 1 else torch.full_like(spread, torch.nan)
    others = graph.without_self_loops()
    count = others.rowptr.diff().to(directions.dtype)
    weight = count.clamp(min=1).reciprocal()[others.row]
    # Unit vectors: 1 − cos = ½‖u − v‖², which keeps its digits for nearly parallel ones.
    return _pair_energy(directions, others, weight) / (count > 0).sum()


def distance_within(x: Tensor, component: Tensor) -> Tensor:
    r"""Return the mean average cosine distance of the pairs of nodes that share a component.

    .. math::
        \frac1{|V'|} \sum_{i \in V'} \frac1{|C_i| - 1} \sum_{j \in C_i \setminus i} \left(1 - \cos(f_i, f_j)\right)

    with :math:`C_i` the component of node i and :math:`V'` the nodes that are not alone in theirs (NaN where there are
    none). Smoothing makes nodes alike within a component only, so this is 0 where it has run its course, on any graph;
    on a connected one it is `mean_average_distance`.

    Args:
        x: features ``[n, c]`` or ``[n, R, c]``.
        component: the number of each node's component, ``[n]`` int64, from 0.
    """
    directions = _directions(_checked_features(x, None))
    size = torch.bincount(component)
    # A component of k unit vectors with sum s: the distances of its pairs add up to k² − |s|². Taken from the mean, the
    # sum keeps its digits where all are nearly parallel.
    mean = directions.new_zeros(size.numel(), *directions.shape[1:]).index_add(0, component, directions)
    mean = mean / _column(size.to(directions), mean)
    spread = (directions - mean[component]).square().sum(-1)
    others = size[component] - 1
    weighed = spread * _column((size[component] / others.clamp(min=1)).to(spread), spread) * _column(others > 0, spread)
    count = int((others > 0).sum())
    return weighed.sum(0) / count if count else torch.full_like(weighed.sum(0), torch.nan)


def effective_rank(x: Tensor) -> Tensor:
    r"""Return the effective rank :math:`\exp(-\sum_k p_k \log p_k)`, :math:`p_k = σ_k / \sum_j σ_j`, of the features.

    It is 1 where all rows are multiples of one vector, the rank where all non-zero singular values σ are equal, and 0
    for features that are all zero (Roy and Vetterli, 2007).
    """
    features = _checked_features(x, None)
    stacked = features.movedim(0, -2)
    sigma = torch.linalg.svdvals(stacked)
    total = sigma.sum(-1, keepdim=True)
    share = sigma / torch.where(total > 0, total, 1)
    # log(1) = 0 in place of log(0): the entropy and its gradient stay finite at singular values of zero.
    entropy = -(share * torch.where(share > 0, share, 1).log()).sum(-1)
    return torch.where(total.squeeze(-1) > 0, entropy.exp(), 0)


def gradient_norms(module: nn.Module) -> dict[str, float]:
    """Return the Euclidean norm of the gradient of each parameter that has one, by the parameter's name."""
    return {
        name: float(torch.linalg.vector_norm(parameter.grad))
        for name, parameter in module.named_parameters()
        if parameter.grad is not None
    }


def inverse_sqrt_degree(graph: Graph, dtype: torch.dtype, add_self_loops: bool = True) -> Tensor:
    r"""Return :math:`\tilde d_i^{-1/2}` as ``gcn_norm`` uses it (0 where the degree is 0), ``[n]``."""
    if graph.weight is not None and bool((graph.weight < 0).any()):
        raise ValueError(
            f"The energy needs weights of at least 0, but the smallest is {float(graph.weight.min()):g}: take their "
            "absolute value or shift them."
        )
    graph = graph.to(dtype=dtype)
    degree = (graph.with_self_loops() if add_self_loops else graph).degree().to(dtype)
    return torch.where(degree > 0, degree, 1).rsqrt() * (degree > 0)


def _checked_features(x: Tensor, graph: Graph | None) -> Tensor:
    if x.layout != torch.strided:
        raise TypeError("Sparse features have no pairwise differences to speak of: pass x.to_dense().")
    if x.dim() not in (2, 3):
        raise ValueError(f"Features must be [n, c] or [n, R, c], but their shape is {tuple(x.shape)}.")
    if not x.is_floating_point():
        raise TypeError(f"Features must be floating point, but their dtype is {x.dtype}: convert them with .float().")
    if graph is not None and graph.num_nodes != x.size(0):
        raise ValueError(f"The graph has {graph.num_nodes} nodes but x has {x.size(0)} rows: they must agree.")
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _column(vector: Tensor, features: Tensor) -> Tensor:
    return vector.reshape(-1, *[1] * (features.dim() - 1))


def _directions(features: Tensor) -> Tensor:
    """Return rows of length 1; a zero row points along an axis of its own, so that all zero rows are alike."""
    length = torch.linalg.vector_norm(features, dim=-1, keepdim=True)
    is_zero = length == 0
    return torch.cat([features / torch.where(is_zero, 1, length), is_zero.to(features.dtype)], dim=-1)


def _pair_energy(features: Tensor, graph: Graph, weight: Tensor | None) -> Tensor:
    r"""Return :math:`\frac12 \sum_{j → i} w_{ij} \|f_i - f_j\|^2` over the stored entries."""
    step = max(1, CHUNK_ELEMENTS // max(1, features[:1].numel()))
    total = features.new_zeros(features.shape[1:-1])
    # At least one chunk, so that autograd finds its way to the features of a graph without edges, too.
    for start in range(0, max(1, graph.num_edges), step):
        entries = slice(start, start + step)
        arguments = (features, graph.row[entries], graph.col[entries], None if weight is None else weight[entries])
        if graph.num_edges > step and torch.is_grad_enabled():
            total = total + checkpoint(_chunk_energy, *arguments, use_reentrant=False, preserve_rng_state=False)
        else:
            total = total + _chunk_energy(*arguments)
    return total / 2


def _chunk_energy(features: Tensor, row: Tensor, col: Tensor, weight: Tensor | None) -> Tensor:
    squared = (features[row] - features[col]).square().sum(-1)
    return squared.sum(0) if weight is None else (squared * _column(weight, squared)).sum(0)


__all__ = [
    "dirichlet_energy",
    "distance_within",
    "effective_rank",
    "gat_energy",
    "gradient_norms",
    "inverse_sqrt_degree",
    "mean_average_distance",
    "relative_energy",
]

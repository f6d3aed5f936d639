"""The ops as the rest of the package calls them: features, a `Graph`, ω in; features out, differentiable.

Features are ``[n, c]`` or, with a run axis, ``[n, R, c]``: R independent runs that share the graph. Inside, runs come
first in memory (``[R, n, c]``), so a batched matrix product needs no copy; both layouts are taken as they come.
"""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.graph import Graph
from omegagnn.ops.autograd import Attention, Dropout, Propagate
from omegagnn.ops.autograd_maps import Layer, SparseLinear
from omegagnn.ops.draws import Draws
from omegagnn.ops.reference import receivers, wide
from omegagnn.ops.registry import fused_twin, use_backend

KEPT_FROM = (
    2**20
)  # numbers of one run's features, which no near cache holds: from there on a propagation is not repeated


def omega_propagate(x: Tensor, graph: Graph, omega: Tensor | float, *, relu: bool = False) -> Tensor:
    r"""Mix each node with its neighbourhood: :math:`z = x - ω ⊙ (x - S x)`, i.e. :math:`(1 - ω) x + ω S x`.

    Node-wise, for channel ``c``: :math:`z_{ic} = (1 - ω_c) x_{ic} + ω_c \sum_{j → i} S_{ij} x_{jc}`. ω = 0 leaves x as
    it is, ω = 1 is the plain propagation, in between it smooths less, beyond 1 or below 0 it sharpens.

    Args:
        x: features ``[n, c]`` or ``[n, R, c]``.
        graph: S as a `Graph`, usually ``graph.gcn_norm()``; its matrix is used as it is (1 for each unweighted edge).
        omega: a number, or a tensor that broadcasts to ``[c]`` or ``[R, c]``.
        relu: whether ReLU(x) stands for x: as part of the propagation it costs no pass over the features of its own.

    >>> import torch
    >>> edge = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    >>> omega_propagate(torch.tensor([[1.0], [0.0]]), edge.gcn_norm(), 0.5)
    tensor([[0.7500],
            [0.2500]])
    """
    runs_first, had_runs = _runs_first(x, graph)
    y = Propagate.apply(runs_first, _omega_vector(omega, x, had_runs), *_structure(graph, x.dtype), relu)
    return _runs_second(y, had_runs)


def omega_layer(x: Tensor, graph: Graph, omega: Tensor | float, map_: Tensor, *, relu: bool = False) -> Tensor:
    """Return ``z K`` where z is what `omega_propagate` makes of x and K is ``[c, d]`` or, where x has runs, ``[R, c, d]``.

    One kernel does both, on CPUs alone. z is kept for the backward pass only where to make it again would cost more.
    """
    runs_first, had_runs = _runs_first(x, graph)
    vector, keep = _omega_vector(omega, x, had_runs), x.size(0) * x.size(-1) >= KEPT_FROM
    check_map(x, map_)
    maps = map_ if map_.dim() == 3 else map_.expand(runs_first.size(0), *map_.shape)
    y, _ = Layer.apply(runs_first, vector, *_structure(graph, x.dtype), maps, relu, keep)
    return _runs_second(y, had_runs)


def spmm(graph: Graph, x: Tensor) -> Tensor:
    """Return ``S x`` for features ``[n, c]`` or ``[n, R, c]``."""
    return omega_propagate(x, graph, 1.0)


def attention_propagate(
    x: Tensor,
    maps: Tensor,
    graph: Graph,
    omega: Tensor | float,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    key: Tensor | None = None,
    *,
    relu: bool = False,
) -> Tensor:
    r"""Propagate with attention: :math:`z = x - ω ⊙ (x - Ŝ x)`.

    Here :math:`Ŝ_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(d_i + s_j)`, a softmax over the senders of ``i``, with the
    scores :math:`[d, s] = x \, \mathrm{maps}`.

    Args:
        x: features ``[n, c]`` or ``[n, R, c]``; head ``h`` weighs the ``h``-th block of ``c / heads`` channels.
        maps: what makes scores of features, ``[c, 2 · heads]`` or ``[R, c, 2 · heads]``: a column for each head of a node as
            receiver, then one for each head of it as sender.
        graph: the structure; the softmax runs over the entries of a row, so self-loops must be there if they are meant.
        omega: a number, or a tensor that broadcasts to ``[c]`` or ``[R, c]``.
        negative_slope: slope of LeakyReLU for negative scores.
        dropout: probability of dropping an entry of Ŝ, with `key` (``[R, 2]``, from `Draws.key`).
        key: the randomness of the dropout.
        relu: whether ReLU(x) stands for x, in the scores too.
    """
    runs_first, had_runs = _runs_first(x, graph)
    (runs, _, channels), all_maps = (
        runs_first.shape,
        maps if maps.dim() == 3 else maps.expand(runs_first.size(0), *maps.shape),
    )
    if maps.dim() not in (2, 3) or all_maps.shape[:2] != (runs, channels) or maps.size(-1) % 2:
        raise ValueError(
            f"maps must be [{channels}, 2 · heads], with {runs} runs in front or without, but their shape is "
            f"{tuple(maps.shape)}."
        )
    heads = maps.size(-1) // 2
    if heads == 0 or channels % heads:
        raise ValueError(f"{channels} channels cannot be split evenly over {heads} heads: change one of them.")
    vector = _omega_vector(omega, x, had_runs)
    key, transposed = _checked_key(dropout, key, runs_first), graph.transposed
    structure = (graph.rowptr, graph.col, transposed.rowptr, transposed.col, graph.transpose_order)
    wide_maps = all_maps.to(vector.dtype).contiguous()
    y, _, _ = Attention.apply(runs_first, wide_maps, vector, key, negative_slope, dropout, relu, *structure)
    return _runs_second(y, had_runs)


def dropout(x: Tensor, p: float, key: Tensor) -> Tensor:
    """Zero elements of ``[n, c]`` or ``[n, R, c]`` with probability p, scale the rest by 1/(1 − p); `key` is ``[R, 2]``."""
    if p == 0:
        return x
    _check_features(x)
    had_runs = x.dim() == 3
    runs_first = x.transpose(0, 1) if had_runs else x.unsqueeze(0)
    return _runs_second(Dropout.apply(runs_first, _checked_key(p, key, runs_first), p), had_runs)


class SparseFeatures:
    """A feature matrix of mostly zeros, in compressed rows with its transpose, ready to be multiplied many times."""

    def __init__(self, matrix: Tensor) -> None:
        """Take a torch sparse CSR or COO matrix ``[n, f]``."""
        matrix = matrix if matrix.layout == torch.sparse_csr else matrix.to_sparse_csr()
        self.shape = matrix.shape
        fits = max(*matrix.shape, matrix.values().numel()) < 2**31
        index = torch.int32 if fits else torch.int64
        self.rowptr, self.col = matrix.crow_indices().to(index), matrix.col_indices().to(index)
        self.value = matrix.values().clone()  # not a view of a sparse matrix, which compile and fake tensors refuse
        order = torch.sort(self.col, stable=True).indices
        self.order_t = order.to(index)
        self.col_t = receivers(self.rowptr, self.col.numel())[order]
        self.rowptr_t = torch.zeros(matrix.size(1) + 1, dtype=index, device=self.col.device)
        self.rowptr_t[1:] = torch.bincount(self.col, minlength=matrix.size(1)).cumsum(0)

    @classmethod
    def membership(cls, group: Tensor, groups: int) -> SparseFeatures:
        """Return the matrix ``[groups, items]`` with a one where an item belongs to a group; times features it sums them."""
        order, items = torch.sort(group, stable=True).indices, torch.arange(group.numel() + 1, device=group.device)
        made = object.__new__(cls)
        made.shape = torch.Size((groups, group.numel()))
        made.rowptr = torch.searchsorted(group[order], torch.arange(groups + 1, device=group.device))
        made.col, made.value = order, torch.ones(group.numel(), device=group.device)
        made.rowptr_t, made.col_t = items, group
        made.order_t = torch.empty_like(order).index_put((order,), items[:-1])
        return made

    def to(self, device: torch.device | str) -> SparseFeatures:
        """Return the matrix on another device."""
        moved = object.__new__(SparseFeatures)
        moved.shape = self.shape
        for name in ("rowptr", "col", "value", "rowptr_t", "col_t", "order_t"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved

    def to_dense(self) -> Tensor:
        """Return the dense matrix."""
        rows = receivers(self.rowptr, self.col.numel()).long()
        dense = torch.zeros(self.shape, dtype=self.value.dtype, device=self.value.device)
        return dense.index_put((rows, self.col.long()), self.value, accumulate=True)

    @property
    def structure(self) -> tuple[Tensor, ...]:
        """The index arrays in the order the kernels take them."""
        return self.rowptr, self.col, self.rowptr_t, self.col_t, self.order_t


def sparse_linear(features: SparseFeatures, weight: Tensor, p: float = 0.0, key: Tensor | None = None) -> Tensor:
    """Return ``dropout(X) W``: ``[n, c]`` for W ``[f, c]``, ``[n, R, c]`` for W ``[R, f, c]``; only stored values are dropped."""
    had_runs = weight.dim() == 3
    weights = weight if had_runs else weight.unsqueeze(0)
    if weights.size(1) != features.shape[1]:
        raise ValueError(f"The features have {features.shape[1]} columns but the weight has {weights.size(1)} rows.")
    key = _checked_key(p, key, weights)
    y = SparseLinear.apply(features.value.to(weight.dtype), weights.contiguous(), key, p, *features.structure)
    return _runs_second(y, had_runs)


def check_map(x: Tensor, weight: Tensor) -> None:
    """Refuse features ``[n, c]`` or ``[n, R, c]`` that do not fit a map ``[c, d]`` or ``[R, c, d]``."""
    if x.size(-1) != weight.size(-2):
        raise ValueError(f"x has {x.size(-1)} channels but the layer takes {weight.size(-2)}: they must agree.")
    if x.dim() == 3 and weight.dim() == 3 and x.size(1) != weight.size(0):
        raise ValueError(f"x has {x.size(1)} runs but the layer has {weight.size(0)}: they must agree.")


def _check_features(x: Tensor) -> None:
    if x.dim() not in (2, 3):
        raise ValueError(f"Features must be [n, c] or [n, R, c], but their shape is {tuple(x.shape)}.")
    if not x.is_floating_point():
        raise TypeError(f"Features must be real floating-point numbers, but their dtype is {x.dtype}: convert them.")


def _runs_first(x: Tensor, graph: Graph) -> tuple[Tensor, bool]:
    _check_features(x)
    if x.size(0) != graph.num_nodes:
        raise ValueError(f"The graph has {graph.num_nodes} nodes but x has {x.size(0)} rows: they must agree.")
    had_runs = x.dim() == 3
    return (x.transpose(0, 1) if had_runs else x.unsqueeze(0)).contiguous(), had_runs


def _runs_second(y: Tensor, had_runs: bool) -> Tensor:
    return y.transpose(0, 1) if had_runs else y.squeeze(0)


def _omega_vector(omega: Tensor | float, x: Tensor, had_runs: bool) -> Tensor:
    dtype, shape = wide(x.dtype), x.shape[1:]
    # A number is filled in on the device: a copy to it could not be captured in a CUDA graph.
    full = omega if isinstance(omega, Tensor) else torch.full((), omega, dtype=dtype, device=x.device)
    vector = full.to(x.device, dtype)
    try:
        vector = vector.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"omega of shape {tuple(vector.shape)} does not fit features of shape {tuple(x.shape)}: it must broadcast to "
            f"{list(shape)}."
        ) from None
    return (vector if had_runs else vector.unsqueeze(0)).contiguous()


def _structure(graph: Graph, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Return S as the propagation of features of a dtype takes it: entries and structure, each with its transpose's."""
    transposed = graph.transposed
    weights = (_matrix_weight(each, wide(dtype)) for each in (graph, transposed))
    return *weights, graph.rowptr, graph.col, transposed.rowptr, transposed.col


def _matrix_weight(graph: Graph, dtype: torch.dtype) -> Tensor:
    weight = graph.weight
    if weight is None:
        return graph._once(("ones", dtype), lambda: torch.ones(graph.num_edges, dtype=dtype, device=graph.device))
    return weight if weight.dtype == dtype else graph._once(("weight", dtype), lambda: weight.to(dtype))


def _checked_key(p: float, key: Tensor | None, runs_first: Tensor) -> Tensor:
    if not 0 <= p < 1:
        raise ValueError(f"A dropout probability must be at least 0 and below 1, but it is {p}.")
    if p == 0:
        return torch.zeros(runs_first.size(0), 2, dtype=torch.int64, device=runs_first.device)
    if key is None:
        raise ValueError("Dropout needs a key: take one from Draws(...).key(place).")
    if key.shape != (runs_first.size(0), 2):
        raise ValueError(
            f"The key has shape {tuple(key.shape)}, but {runs_first.size(0)} runs need [{runs_first.size(0)}, 2]."
        )
    return key


__all__ = [
    "Draws",
    "SparseFeatures",
    "attention_propagate",
    "check_map",
    "dropout",
    "fused_twin",
    "omega_layer",
    "omega_propagate",
    "sparse_linear",
    "spmm",
    "use_backend",
]

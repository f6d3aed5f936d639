"""`Graph`: a sparse graph in compressed rows, checked once, never changed afterwards.

Row ``i`` lists the nodes ``j`` that send to ``i``, so row ``i``, column ``j`` of the propagation matrix ``S`` belongs to
the edge ``j → i`` (PyTorch Geometric's ``edge_index[0] = j``, ``edge_index[1] = i``).

Policies, applied where a graph is built:

================  ====================================================================================================
indices           integers in ``[0, num_nodes)``; anything else is an error. Stored as int32 where they fit
duplicate edges   kept as separate entries; a propagation sums them, attention sees each (`coalesce` merges them)
self-loops        kept; `gcn_norm` and `with_self_loops` treat existing ones as PyTorch Geometric does
direction         kept; `is_undirected` is computed, `to_undirected` adds what is missing
zero weights      kept as entries
negative weights  allowed in a graph, refused by `gcn_norm` and `row_norm`, whose degrees would lose their meaning
NaN, infinity     an error
================  ====================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from omegagnn.graph_checks import (
    as_tensor,
    check_edge_index,
    check_integer,
    checked_num_nodes,
    checked_weight,
    count_rows,
    equal,
    expand_rows,
    index_dtype,
    weight_unless_ones,
)

if TYPE_CHECKING:
    import networkx as nx
    import numpy.typing as npt
    import scipy.sparse as sp


class Graph:
    """An immutable graph in compressed rows, with its transpose and its normalisations computed once on demand.

    Build one with `from_edge_index`, `from_csr`, `from_torch_sparse`, `from_scipy`, `from_networkx` or `from_pyg`.

    >>> import torch
    >>> path = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> path
    Graph(num_nodes=3, num_edges=4)
    >>> path.gcn_norm().to_dense()[1]
    tensor([0.4082, 0.3333, 0.4082])
    """

    def __init__(self, rowptr: Tensor, col: Tensor, weight: Tensor | None, *, is_operator: bool = False) -> None:
        """Take arrays that are known to be good; the `from_...` constructors check theirs and call this."""
        self._rowptr, self._col, self._weight = rowptr, col, weight
        self._is_operator = is_operator
        self._cache: dict[object, Any] = {}

    # ------------------------------------------------------------------------------------------------ constructors

    @classmethod
    def from_edge_index(
        cls, edge_index: Tensor | npt.ArrayLike, num_nodes: int | None = None, edge_weight: Tensor | None = None
    ) -> Graph:
        """Build from pairs ``[2, E]`` of (sender, receiver); `edge_weight` ``[E]`` may require a gradient."""
        index = as_tensor(edge_index)
        check_edge_index(index)
        index = index.long()
        n = checked_num_nodes(index, num_nodes)
        weight = None if edge_weight is None else checked_weight(edge_weight, index.size(1), index.device)
        sender, receiver = index[0], index[1]
        order = torch.sort(receiver * n + sender, stable=True).indices
        dtype = index_dtype(n, index.size(1))
        rowptr = count_rows(receiver, n, dtype)
        return cls(rowptr, sender[order].to(dtype), None if weight is None else weight[order])

    @classmethod
    def from_csr(cls, rowptr: Tensor, col: Tensor, weight: Tensor | None = None) -> Graph:
        """Build from compressed rows (row ``i`` holds the senders to ``i``); columns are sorted where they are not."""
        rowptr, col = as_tensor(rowptr), as_tensor(col)
        for name, array in (("rowptr", rowptr), ("col", col)):
            if array.numel():
                check_integer(name, array)
            if array.dim() != 1:
                raise ValueError(f"{name} must have one dimension, but it has shape {tuple(array.shape)}.")
        rowptr, col = rowptr.long(), col.long()
        if (
            rowptr.numel() == 0
            or int(rowptr[0]) != 0
            or int(rowptr[-1]) != col.numel()
            or bool((rowptr.diff() < 0).any())
        ):
            raise ValueError(
                f"rowptr must start at 0, never fall and end at the number of entries ({col.numel()}): check the rows."
            )
        receiver = expand_rows(rowptr, col.numel())
        return cls.from_edge_index(torch.stack([col, receiver]), rowptr.numel() - 1, weight)

    @classmethod
    def from_torch_sparse(cls, matrix: Tensor) -> Graph:
        """Build from a square torch sparse COO, CSR or CSC matrix whose row ``i`` receives (PyG calls it ``adj_t``).

        A matrix has to store values; where all of them are 1 (and need no gradient) the graph carries no weights.
        """
        if matrix.dim() != 2 or matrix.size(0) != matrix.size(1):
            raise ValueError(f"The sparse matrix must be square, but its shape is {tuple(matrix.shape)}.")
        coo = matrix.to_sparse_coo() if matrix.layout != torch.sparse_coo else matrix
        coo = coo if coo.is_coalesced() else coo.coalesce()
        row, col = coo.indices()
        return cls.from_edge_index(torch.stack([col, row]), matrix.size(0), weight_unless_ones(coo.values()))

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array | sp.coo_array | sp.spmatrix) -> Graph:
        """Build from a square SciPy sparse matrix whose entry ``[j, i]`` is the edge ``j → i`` (SciPy's convention).

        A matrix has to store values; where all of them are 1 the graph carries no weights.
        """
        coo = cast("sp.coo_matrix", cast("Any", matrix).tocoo())
        shape = coo.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"The SciPy matrix must be square, but its shape is {shape}.")
        index = torch.stack([as_tensor(coo.row).long(), as_tensor(coo.col).long()])
        return cls.from_edge_index(index, shape[0], weight_unless_ones(as_tensor(coo.data)))

    @classmethod
    def from_networkx(cls, graph: nx.Graph, weight: str | None = "weight") -> Graph:
        """Build from a NetworkX graph; nodes are numbered in its order, an undirected edge becomes two entries.

        The edge attribute named by `weight` is used when every edge carries it and must not be on some edges only.
        """
        number = {node: i for i, node in enumerate(graph.nodes)}
        edges = [(number[u], number[v], data.get(weight) if weight else None) for u, v, data in graph.edges(data=True)]
        if not graph.is_directed():
            edges += [(v, u, w) for u, v, w in edges if u != v]
        weights = [w for _, _, w in edges]
        weighted = any(w is not None for w in weights)
        if weighted and any(w is None for w in weights):
            raise ValueError(
                f"Some edges carry {weight!r} and some do not: give it to all of them or pass weight=None."
            )
        index = torch.tensor([(u, v) for u, v, _ in edges], dtype=torch.long).reshape(-1, 2).t()
        edge_weight = torch.tensor(weights, dtype=torch.get_default_dtype()) if weighted else None
        return cls.from_edge_index(index, len(number), edge_weight)

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """Build from a PyTorch Geometric `Data` (its ``edge_index`` or ``adj_t``, ``edge_weight`` and ``num_nodes``)."""
        if getattr(data, "adj_t", None) is not None:
            return cls.from_torch_sparse(data.adj_t)
        if getattr(data, "edge_index", None) is None:
            raise ValueError("The PyG data object has neither edge_index nor adj_t: set one of them.")
        return cls.from_edge_index(data.edge_index, data.num_nodes, getattr(data, "edge_weight", None))

    # -------------------------------------------------------------------------------------------------- properties

    @property
    def rowptr(self) -> Tensor:
        """Where each row starts, ``[num_nodes + 1]``."""
        return self._rowptr

    @property
    def col(self) -> Tensor:
        """The sender of each entry, ``[num_edges]``, rising within a row."""
        return self._col

    @property
    def weight(self) -> Tensor | None:
        """The weight of each entry, ``[num_edges]``, or None where all are 1."""
        return self._weight

    @property
    def is_operator(self) -> bool:
        """Whether the weights are a finished propagation matrix ``S``, which layers then use as it is."""
        return self._is_operator

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self._rowptr.size(0) - 1

    @property
    def num_edges(self) -> int:
        """Number of stored entries: an undirected edge counts twice, a self-loop once."""
        return self._col.size(0)

    @property
    def device(self) -> torch.device:
        """Where the arrays lie."""
        return self._col.device

    @property
    def row(self) -> Tensor:
        """The receiver of each entry, ``[num_edges]``."""
        return self._once("row", lambda: expand_rows(self._rowptr, self.num_edges))

    @property
    def transpose_order(self) -> Tensor:
        """For each entry of the transpose, the place of the same edge in this graph, ``[num_edges]``."""
        return self._once("order", lambda: torch.sort(self._col, stable=True).indices)

    @property
    def transposed(self) -> Graph:
        """The graph with every edge turned round (the same object where the graph is its own transpose)."""
        return self._once("transposed", self._transpose)

    @property
    def is_undirected(self) -> bool:
        """Whether every edge has a partner of the same weight in the other direction."""
        return self._once("undirected", self._compute_is_undirected)

    @property
    def has_self_loops(self) -> bool:
        """Whether a node sends to itself."""
        return bool((self.row == self._col).any())

    @property
    def has_duplicates(self) -> bool:
        """Whether an edge is stored more than once."""
        same_row, same_col = self.row[1:] == self.row[:-1], self._col[1:] == self._col[:-1]
        return bool((same_row & same_col).any())

    def degree(self) -> Tensor:
        """Sum of the weights (or number) of the entries of each row, ``[num_nodes]``."""
        if self._weight is None:
            return self._rowptr.diff().to(torch.get_default_dtype())
        return self._weight.new_zeros(self.num_nodes).index_add(0, self.row, self._weight)

    # ------------------------------------------------------------------------------------- other graphs from this one

    def gcn_norm(self, add_self_loops: bool = True, dtype: torch.dtype | None = None) -> Graph:
        r"""Return the operator :math:`S = \tilde D^{-1/2} \tilde A \tilde D^{-1/2}`, with :math:`\tilde A = A + I`.

        As in PyTorch Geometric, an existing self-loop keeps its weight instead of getting a second one, and a node
        without neighbours and loop gets an empty row. A graph that is an operator already is returned as it is. It is
        computed in `dtype`, but never in less than the weights' own or torch's default dtype.
        """
        return self._normalised("gcn_norm", add_self_loops, dtype, _gcn_scaled)

    def row_norm(self, add_self_loops: bool = True, dtype: torch.dtype | None = None) -> Graph:
        r"""Return the row-stochastic operator :math:`S = \tilde D^{-1} \tilde A` (see `gcn_norm` for loops and dtype)."""
        return self._normalised("row_norm", add_self_loops, dtype, _row_scaled)

    def as_operator(self) -> Graph:
        """Return this graph with its weights (1 where there are none) declared a finished propagation matrix."""
        return self if self._is_operator else self._once("operator", self._as_operator)

    def with_self_loops(self) -> Graph:
        """Return the graph with exactly one self-loop a node, of its old weight (the last one's) or else of 1."""
        graph = self._once("loops", self._with_self_loops)
        graph._cache["loops"] = graph  # asking again changes nothing
        return graph

    def without_self_loops(self) -> Graph:
        """Return the graph without entries from a node to itself."""
        return self._select(self.row != self._col)

    def unweighted(self) -> Graph:
        """Return the bare structure."""
        return Graph(self._rowptr, self._col, None)

    def coalesce(self) -> Graph:
        """Return the graph with equal edges merged and their weights (1 where there are none) summed."""
        if not self.has_duplicates:
            return self
        key = self.row.long() * self.num_nodes + self._col.long()
        unique, position = torch.unique_consecutive(key, return_inverse=True)
        weight = torch.ones_like(key, dtype=torch.get_default_dtype()) if self._weight is None else self._weight
        row, col = unique // self.num_nodes, unique % self.num_nodes
        summed = weight.new_zeros(unique.numel()).index_add(0, position, weight)
        rowptr = count_rows(row, self.num_nodes, self._rowptr.dtype)
        return Graph(rowptr, col.to(self._col.dtype), summed, is_operator=self._is_operator)

    def to_undirected(self) -> Graph:
        """Return the graph in which every edge runs both ways, without duplicates (a pair takes its larger weight)."""
        edge_index, weight = self.to_edge_index()
        both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        key = both[1] * self.num_nodes + both[0]
        unique, position = torch.unique(key, return_inverse=True)
        index = torch.stack([unique % self.num_nodes, unique // self.num_nodes])
        if weight is not None:
            largest = weight.new_full((unique.numel(),), -torch.inf)
            weight = largest.scatter_reduce(0, position, torch.cat([weight, weight]), "amax")
        return Graph.from_edge_index(index, self.num_nodes, weight)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Graph:
        """Return the graph on another device, with weights of another floating dtype, or both."""
        device = self.device if device is None else torch.device(device)
        weight = None if self._weight is None else self._weight.to(device=device, dtype=dtype)
        if device == self.device and weight is self._weight:
            return self
        return Graph(self._rowptr.to(device), self._col.to(device), weight, is_operator=self._is_operator)

    # ------------------------------------------------------------------------------------------------- other forms

    def to_edge_index(self) -> tuple[Tensor, Tensor | None]:
        """Return PyG's pair ``edge_index`` (int64 ``[2, E]``), ``edge_weight``."""
        return torch.stack([self._col.long(), self.row.long()]), self._weight

    def to_dense(self) -> Tensor:
        """Return the matrix with row ``i``, column ``j`` for the edge ``j → i`` (for tests and small graphs)."""
        weight = torch.ones_like(self._col, dtype=torch.get_default_dtype()) if self._weight is None else self._weight
        dense = weight.new_zeros(self.num_nodes, self.num_nodes)
        return dense.index_put((self.row.long(), self._col.long()), weight, accumulate=True)

    def to_torch_sparse(self) -> Tensor:
        """Return a torch sparse CSR matrix whose row ``i`` receives (PyG's ``adj_t``)."""
        weight = torch.ones_like(self._col, dtype=torch.get_default_dtype()) if self._weight is None else self._weight
        return torch.sparse_csr_tensor(self._rowptr, self._col, weight, (self.num_nodes, self.num_nodes))

    def to_scipy(self) -> sp.csr_array:
        """Return a SciPy CSR array in SciPy's convention (entry ``[j, i]`` for the edge ``j → i``)."""
        import scipy.sparse as sp

        graph = self.transposed
        weight = torch.ones_like(graph.col, dtype=torch.get_default_dtype()) if graph.weight is None else graph.weight
        arrays = (weight.detach().cpu().numpy(), graph.col.cpu().numpy(), graph.rowptr.cpu().numpy())
        return sp.csr_array(arrays, shape=(self.num_nodes, self.num_nodes))

    def __repr__(self) -> str:
        extras = ", weighted" if self._weight is not None and not self._is_operator else ""
        extras += ", operator" if self._is_operator else ""
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}{extras})"

    # ---------------------------------------------------------------------------------------------------- internals

    def _once(self, key: object, compute: Callable[[], Any]) -> Any:
        """Compute once and keep, except where the weights carry a gradient (it belongs to one backward pass only)."""
        if key in self._cache:
            return self._cache[key]
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):  # what is kept must still be good for training
                result = compute()
        else:
            result = compute()
        if self._weight is None or not self._weight.requires_grad:
            self._cache[key] = result
        return result

    def _transpose(self) -> Graph:
        order = self.transpose_order
        rowptr = count_rows(self._col, self.num_nodes, self._rowptr.dtype)
        col = self.row[order]
        weight = None if self._weight is None else self._weight[order]
        if equal(rowptr, self._rowptr) and equal(col, self._col) and equal(weight, self._weight):
            return self  # symmetric: half the memory, and backward passes read what forward passes left in the cache
        transposed = Graph(rowptr, col, weight, is_operator=self._is_operator)
        if weight is None or not weight.requires_grad:
            transposed._cache["transposed"] = self
        return transposed

    def _compute_is_undirected(self) -> bool:
        if self.transposed is self:
            return True
        one, other = self.coalesce(), self.transposed.coalesce()
        return equal(one.rowptr, other.rowptr) and equal(one.col, other.col) and equal(one.weight, other.weight)

    def _with_self_loops(self) -> Graph:
        n, row, col = self.num_nodes, self.row.long(), self._col.long()
        is_loop = row == col
        kept_row, kept_col = row[~is_loop], col[~is_loop]
        rowptr = torch.zeros(n + 1, dtype=torch.long, device=self.device)
        rowptr[1:] = (torch.bincount(kept_row, minlength=n) + 1).cumsum(0)
        # Every kept entry moves by one for each loop before it; a loop goes behind the entries left of the diagonal.
        place = torch.arange(kept_row.numel(), device=self.device) + kept_row + (kept_col > kept_row)
        diagonal = rowptr[:-1] + torch.bincount(kept_row[kept_col < kept_row], minlength=n)
        dtype = index_dtype(n, int(rowptr[-1]))
        new_col = torch.empty(kept_row.numel() + n, dtype=dtype, device=self.device)
        new_col[place] = kept_col.to(dtype)
        new_col[diagonal] = torch.arange(n, dtype=dtype, device=self.device)
        if self._weight is None:
            return Graph(rowptr.to(dtype), new_col, None)
        loop_row, loop_weight = row[is_loop], self._weight[is_loop]
        last = torch.ones_like(loop_row, dtype=torch.bool)
        last[:-1] = loop_row[1:] != loop_row[:-1]
        loops = self._weight.new_ones(n).index_put((loop_row[last],), loop_weight[last])
        weight = self._weight.new_empty(new_col.numel()).index_put((place,), self._weight[~is_loop])
        return Graph(rowptr.to(dtype), new_col, weight.index_put((diagonal,), loops))

    def _as_operator(self) -> Graph:
        weight = torch.ones_like(self._col, dtype=torch.get_default_dtype()) if self._weight is None else self._weight
        return Graph(self._rowptr, self._col, weight, is_operator=True)

    def _normalised(
        self,
        name: str,
        add_self_loops: bool,
        dtype: torch.dtype | None,
        scaled: Callable[[Graph, Tensor, Tensor], Tensor],
    ) -> Graph:
        """Return the operator whose weights are `scaled` from graph, weights and degrees."""
        if self._is_operator:
            return self
        own = torch.get_default_dtype() if self._weight is None else self._weight.dtype
        dtype = own if dtype is None else torch.promote_types(dtype, own)

        def compute() -> Graph:
            graph = self.with_self_loops() if add_self_loops else self
            weight = graph.weight
            weight = torch.ones_like(graph.col, dtype=dtype) if weight is None else weight.to(dtype)
            if bool((weight < 0).any()):
                raise ValueError(
                    f"{name} needs weights of at least 0, but the smallest is {float(weight.detach().min()):g}: take their "
                    "absolute value, shift them, or declare the matrix finished with Graph.as_operator() "
                    "(normalize=False in a layer)."
                )
            degree = weight.new_zeros(graph.num_nodes).index_add(0, graph.row, weight)
            return Graph(graph.rowptr, graph.col, scaled(graph, weight, degree), is_operator=True)

        return self._once((name, add_self_loops, dtype), compute)

    def _select(self, keep: Tensor) -> Graph:
        rowptr = count_rows(self.row[keep], self.num_nodes, self._rowptr.dtype)
        return Graph(rowptr, self._col[keep], None if self._weight is None else self._weight[keep])


def as_graph(edge_index: Graph | Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Graph:
    """Turn what a layer may be given (a `Graph`, ``edge_index`` or a torch sparse matrix) into a `Graph`."""
    if isinstance(edge_index, Graph):
        if edge_weight is not None:
            raise ValueError("A Graph carries its own weights: build it with edge_weight instead of passing both.")
        graph = edge_index
    elif not isinstance(edge_index, Tensor):
        raise TypeError(
            f"edge_index must be a Graph, an integer tensor [2, E] or a torch sparse matrix, not {type(edge_index).__name__}."
        )
    elif edge_index.layout == torch.strided:
        graph = Graph.from_edge_index(edge_index, num_nodes, edge_weight)
    elif edge_weight is not None:
        raise ValueError("A sparse matrix carries its own weights: put edge_weight into its values.")
    else:
        graph = Graph.from_torch_sparse(edge_index)
    if graph.num_nodes != num_nodes:
        raise ValueError(f"The graph has {graph.num_nodes} nodes but x has {num_nodes} rows: they must agree.")
    return graph


def _gcn_scaled(graph: Graph, weight: Tensor, degree: Tensor) -> Tensor:
    scale = torch.where(degree > 0, degree, 1).rsqrt() * (degree > 0)
    # The two scales are multiplied first: their product is the same for i → j and j → i, so S is symmetric to the bit.
    return (scale[graph.row] * scale[graph.col]) * weight


def _row_scaled(graph: Graph, weight: Tensor, degree: Tensor) -> Tensor:
    scale = (degree > 0) / torch.where(degree > 0, degree, 1)
    return scale[graph.row] * weight


def _flatten(graph: Graph) -> tuple[list[Any], tuple[bool, bool, bool]]:
    """Take a graph apart with its transpose, whose computation depends on the data and so cannot be traced."""
    transposed = graph.transposed
    symmetric = transposed is graph
    parts = [graph.rowptr, graph.col, graph.weight, graph.transpose_order]
    if not symmetric:
        parts += [transposed.rowptr, transposed.col, transposed.weight]
    return parts, (graph.is_operator, symmetric, graph._cache.get("loops") is graph)


def _flatten_with_keys(graph: Graph) -> tuple[list[tuple[Any, Any]], tuple[bool, bool, bool]]:
    parts, context = _flatten(graph)
    names = ("rowptr", "col", "weight", "order", "t_rowptr", "t_col", "t_weight")
    return [(pytree.GetAttrKey(name), part) for name, part in zip(names, parts, strict=False)], context


def _unflatten(children: Iterable[Any], context: tuple[bool, bool, bool]) -> Graph:
    rowptr, col, weight, order, *other = children
    is_operator, symmetric, has_loops = context
    graph = Graph(rowptr, col, weight, is_operator=is_operator)
    transposed = graph if symmetric else Graph(*other, is_operator=is_operator)
    graph._cache.update(order=order, transposed=transposed)
    if has_loops:
        graph._cache["loops"] = graph
    return graph


# torch.export and torch.func take a Graph for the bundle of tensors that it is.
pytree.register_pytree_node(
    Graph,
    _flatten,
    _unflatten,
    serialized_type_name="omegagnn.Graph",
    to_dumpable_context=list,
    from_dumpable_context=tuple,
    flatten_with_keys_fn=_flatten_with_keys,
)
# The file of an exported program holds its example inputs; a Graph is tensors and flags, so torch may unpickle it.
torch.serialization.add_safe_globals([Graph])

__all__ = ["Graph", "as_graph"]

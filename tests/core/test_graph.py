"""`Graph` means what its dense matrix means, keeps what it was given, and never changes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from assertions import assert_close, assert_same_bits
from dense import adjacency, gcn_operator, row_operator, with_loops
from graphs import Example, fixed_graphs, graphs, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils import _pytree as pytree
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm as pyg_gcn_norm

from omegagnn import graph_checks
from omegagnn.graph import Graph, as_graph

FEW = settings(max_examples=40, deadline=None)
EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def same(one: Graph, other: Graph) -> bool:
    pairs = ((one.rowptr, other.rowptr), (one.col, other.col), (one.weight, other.weight))
    return all(a is b if a is None or b is None else torch.equal(a, b) for a, b in pairs)


# ------------------------------------------------------------------------------------------------------- what it means


@FEW
@given(example=graphs())
def test_a_graph_is_its_dense_matrix(example: Example) -> None:
    graph, n = example.graph, example.num_nodes
    dense = adjacency(example.edge_index, n, example.edge_weight)
    assert (graph.num_nodes, graph.num_edges) == (n, example.edge_index.size(1))
    assert_close(graph.to_dense().double(), dense)
    assert_close(graph.degree().double(), dense.sum(1))
    assert_close(graph.transposed.to_dense().double(), dense.t())
    assert_close(graph.coalesce().to_dense().double(), dense)
    assert not graph.coalesce().has_duplicates
    assert graph.is_undirected == torch.allclose(dense, dense.t(), rtol=0, atol=1e-12)
    pairs = [tuple(pair) for pair in example.edge_index.t().tolist()]
    assert graph.has_self_loops == any(j == i for j, i in pairs)
    assert graph.has_duplicates == (len(set(pairs)) < len(pairs))
    assert bool((graph.col.diff() >= 0)[graph.row.diff() == 0].all())
    assert_same_bits(graph.transposed.col, graph.row[graph.transpose_order])
    assert_same_bits(graph.transposed.row, graph.col[graph.transpose_order])


@FEW
@given(example=graphs(), loops=st.booleans())
def test_normalisations_are_their_formulas(example: Example, loops: bool) -> None:
    args = (example.edge_index, example.num_nodes, example.edge_weight, loops)
    gcn = example.graph.gcn_norm(loops, torch.float64)
    row = example.graph.row_norm(loops, torch.float64)
    assert_close(gcn.to_dense(), gcn_operator(*args))
    assert_close(row.to_dense(), row_operator(*args))
    assert gcn.is_operator
    assert row.is_operator
    assert gcn.gcn_norm() is gcn
    assert gcn.row_norm(False) is gcn
    assert gcn.as_operator() is gcn


@FEW
@given(example=graphs(weighted=True), loops=st.booleans())
def test_normalisation_equals_pygs(example: Example, loops: bool) -> None:
    index, weight = pyg_gcn_norm(
        example.edge_index, example.edge_weight, example.num_nodes, add_self_loops=loops, dtype=torch.float64
    )
    ours = example.graph.gcn_norm(loops)
    theirs = Graph.from_edge_index(index, example.num_nodes, weight)
    assert_same_bits(ours.rowptr, theirs.rowptr)
    assert_same_bits(ours.col, theirs.col)
    assert ours.weight is not None
    assert theirs.weight is not None
    assert_close(ours.weight, theirs.weight)


@FEW
@given(example=graphs())
def test_loops_come_and_go_as_stated(example: Example) -> None:
    graph = example.graph
    looped, bare = graph.with_self_loops(), graph.without_self_loops()
    n = example.num_nodes
    assert_close(looped.to_dense().double(), with_loops(example.edge_index, n, example.edge_weight))
    assert int((looped.row == looped.col).sum()) == n
    assert looped.with_self_loops() is looped
    assert bool((looped.col.diff() >= 0)[looped.row.diff() == 0].all())
    assert not bare.has_self_loops
    off_diagonal = adjacency(example.edge_index, n, example.edge_weight).fill_diagonal_(0)
    assert_close(bare.to_dense().double(), off_diagonal)


@FEW
@given(example=graphs())
def test_symmetry_holds_to_the_bit(example: Example) -> None:
    both = example.graph.to_undirected()
    assert both.is_undirected
    assert not both.has_duplicates
    assert both.transposed is both
    operator = both.gcn_norm()
    assert operator.transposed is operator
    dense = operator.to_dense()
    assert_same_bits(dense, dense.t())
    before = adjacency(example.edge_index, example.num_nodes, example.edge_weight)
    assert_same_bits(both.to_dense() != 0, (before + before.t()) != 0)


def test_a_pair_takes_its_larger_weight() -> None:
    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 2]])
    graph = Graph.from_edge_index(index, 3, torch.tensor([-2.0, -1.0, 4.0, 5.0])).to_undirected()
    assert_same_bits(graph.to_dense(), torch.tensor([[0.0, -1, 0], [-1, 0, 4], [0, 4, 5]]))


@pytest.mark.parametrize(
    ("index", "weight", "undirected"),
    [
        ([[0, 1], [1, 0]], [1.0, 2.0], False),
        ([[0, 1], [1, 0]], [2.0, 2.0], True),
        ([[0, 0, 1], [1, 1, 0]], None, False),
        ([[0, 0, 1, 1], [1, 1, 0, 0]], None, True),
        ([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], True),
        ([[0, 0, 1, 1], [1, 1, 0, 0]], [1.0, 2.0, 2.0, 1.0], True),
        ([[1], [1]], [3.0], True),
        ([[], []], None, True),
    ],
)
def test_undirected_counts_weights_and_duplicates(index: Any, weight: Any, undirected: bool) -> None:
    weights = None if weight is None else torch.tensor(weight)
    assert Graph.from_edge_index(torch.tensor(index, dtype=torch.long), 2, weights).is_undirected is undirected


def test_a_double_self_loop_keeps_the_last_weight_as_pyg_does() -> None:
    index = torch.tensor([[0, 1, 0, 0], [0, 0, 0, 1]])
    graph = Graph.from_edge_index(index, 2, torch.tensor([5.0, 1.0, 7.0, 2.0])).with_self_loops()
    assert_same_bits(graph.to_dense(), torch.tensor([[7.0, 1.0], [2.0, 1.0]]))


def test_unweighted_degrees_and_operators_take_the_dtype_asked_for() -> None:
    graph = Graph.from_edge_index(EDGES, 3)
    assert graph.gcn_norm().to_dense().dtype == torch.float32
    assert graph.gcn_norm(dtype=torch.float64).to_dense().dtype == torch.float64
    assert graph.gcn_norm(dtype=torch.bfloat16).to_dense().dtype == torch.float32
    weighted = Graph.from_edge_index(EDGES, 3, torch.ones(4, dtype=torch.float64))
    assert weighted.gcn_norm(dtype=torch.float32).to_dense().dtype == torch.float64


def test_gradients_reach_edge_weights_through_every_form() -> None:
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64, requires_grad=True)

    def total(weight: torch.Tensor) -> torch.Tensor:
        graph = Graph.from_edge_index(EDGES, 3, weight)
        forms = [graph.gcn_norm(), graph.row_norm(), graph.transposed, graph.coalesce(), graph.with_self_loops()]
        forms += [graph.without_self_loops(), graph.as_operator(), graph.to_undirected()]
        return torch.stack([form.to_dense().square().sum() for form in forms])

    assert torch.autograd.gradcheck(total, weight)
    graph = Graph.from_edge_index(EDGES, 3, weight)
    assert graph.gcn_norm() is not graph.gcn_norm(), "a graph with gradients belongs to one backward pass"


# --------------------------------------------------------------------------------------------------- round trips


@FEW
@given(example=graphs())
def test_round_trips_keep_the_graph(example: Example) -> None:
    graph = example.graph
    index, weight = graph.to_edge_index()
    assert same(Graph.from_edge_index(index, example.num_nodes, weight), graph)
    assert same(Graph.from_csr(graph.rowptr, graph.col, graph.weight), graph)
    bare_if_empty = graph if graph.num_edges else graph.unweighted()  # an empty matrix has no values to tell
    assert same(Graph.from_scipy(graph.to_scipy()), bare_if_empty)
    assert same(Graph.from_torch_sparse(graph.to_torch_sparse()), bare_if_empty)
    data = Data(edge_index=index, edge_weight=weight, num_nodes=example.num_nodes)
    assert same(Graph.from_pyg(data), graph)
    coalesced = graph.coalesce()
    assert_close(coalesced.to_dense(), Graph.from_torch_sparse(graph.to_dense().to_sparse()).to_dense())


@FEW
@given(example=graphs())
def test_networkx_counts_each_undirected_edge_twice(example: Example) -> None:
    edges = example.edge_index.t().tolist()
    weights = None if example.edge_weight is None else example.edge_weight.tolist()
    for kind in (nx.MultiGraph, nx.MultiDiGraph):
        source = kind()
        source.add_nodes_from(range(example.num_nodes))
        for e, (j, i) in enumerate(edges):
            source.add_edge(j, i, **({} if weights is None else {"weight": weights[e]}))
        graph = Graph.from_networkx(source)
        expected = nx.to_numpy_array(source, weight="weight", multigraph_weight=sum)
        assert np.allclose(graph.to_dense().numpy(), expected.T, rtol=1e-6)
        assert graph.num_nodes == source.number_of_nodes()
    assert Graph.from_networkx(source, weight=None).weight is None


def test_scipy_rows_send_and_torch_rows_receive() -> None:
    matrix = np.array([[0, 2.0], [0, 0]])
    assert_same_bits(Graph.from_scipy(sp.coo_array(matrix)).to_dense(), torch.tensor([[0, 0], [2.0, 0]]).double())
    assert_same_bits(Graph.from_torch_sparse(torch.tensor(matrix).to_sparse()).to_dense(), torch.tensor(matrix))
    assert np.array_equal(Graph.from_scipy(sp.csr_matrix(matrix)).to_scipy().toarray(), matrix)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_sparse_layouts_agree_and_a_matrix_of_ones_carries_no_weights(layout: str) -> None:
    matrix = torch.zeros(3, 3)
    matrix[EDGES[1], EDGES[0]] = 1
    sparse = getattr(matrix, f"to_sparse_{layout}")()
    assert same(Graph.from_torch_sparse(sparse), Graph.from_edge_index(EDGES, 3))
    doubled = getattr(2 * matrix, f"to_sparse_{layout}")()
    assert_same_bits(Graph.from_torch_sparse(doubled).to_dense(), 2 * matrix)


def test_an_uncoalesced_matrix_sums_and_values_keep_their_gradient() -> None:
    values = torch.ones(3, requires_grad=True)
    graph = Graph.from_torch_sparse(torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], values, (2, 2)))
    assert graph.num_edges == 2
    assert graph.weight is not None
    graph.weight.sum().backward()
    assert_same_bits(values.grad, torch.ones(3))


def test_pyg_data_with_a_sparse_adjacency() -> None:
    matrix = torch.tensor([[0.0, 3.0], [0.0, 0.0]])
    assert_same_bits(Graph.from_pyg(Data(adj_t=matrix.to_sparse_csr(), num_nodes=2)).to_dense(), matrix)


# --------------------------------------------------------------------------------------------- what it takes and keeps


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_of_any_kind_make_the_same_graph(dtype: Any) -> None:
    graph = Graph.from_edge_index(EDGES.numpy().astype(dtype), 3)
    assert same(graph, Graph.from_edge_index(EDGES, 3))
    assert graph.col.dtype == graph.rowptr.dtype == torch.int32
    if dtype is not np.int8:
        rowptr, col = graph.rowptr.numpy().astype(dtype), graph.col.numpy().astype(dtype)
        assert same(Graph.from_csr(rowptr, col), graph)


def test_arrays_that_are_read_only_or_reversed_are_copied() -> None:
    frozen = EDGES.numpy().copy()
    frozen.flags.writeable = False
    weights = np.arange(4.0)
    weights.flags.writeable = False
    assert same(Graph.from_edge_index(frozen, 3), Graph.from_edge_index(EDGES, 3))
    reverse = Graph.from_edge_index(frozen[:, ::-1], 3, weights[::-1])
    assert same(reverse, Graph.from_edge_index(EDGES.flip(1), 3, torch.arange(4.0).double().flip(0)))
    assert same(
        Graph.from_edge_index([[0, 1], [1, 0]], 2, [1, 2]), Graph.from_edge_index([[0, 1], [1, 0]], 2, [1.0, 2.0])
    )


def test_a_graph_shares_nothing_with_its_source() -> None:
    index, weight = EDGES.clone(), torch.arange(1.0, 5.0)
    graph = Graph.from_edge_index(index, 3, weight)
    rowptr, col, values = graph.rowptr.clone(), graph.col.clone(), torch.arange(1.0, 5.0)
    other = Graph.from_csr(rowptr, col, values)
    before = graph.to_dense(), other.to_dense()
    for array in (index, weight, col, values):
        array.zero_()
    assert_same_bits(graph.to_dense(), before[0])
    assert_same_bits(other.to_dense(), before[1])


def test_columns_out_of_order_are_sorted_with_their_weights() -> None:
    graph = Graph.from_csr(torch.tensor([0, 3, 3, 4]), torch.tensor([2, 0, 1, 0]), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert graph.col.tolist() == [0, 1, 2, 0]
    assert graph.weight is not None
    assert graph.weight.tolist() == [2, 3, 1, 4]


def test_the_number_of_nodes_is_found_or_taken() -> None:
    assert Graph.from_edge_index(EDGES).num_nodes == 3
    assert Graph.from_edge_index(EDGES, 10).num_nodes == 10
    assert Graph.from_edge_index(torch.empty(2, 0), 4).num_edges == 0


def test_large_graphs_take_wide_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    def forms() -> list[Graph]:
        graph = random_graph(9, 30)
        return [graph, graph.transposed, graph.with_self_loops(), graph.gcn_norm(), graph.coalesce()]

    narrow = forms()
    monkeypatch.setattr(graph_checks, "INT32_LIMIT", 10)
    for one, other in zip(narrow, forms(), strict=True):
        assert one.col.dtype == one.rowptr.dtype == torch.int32
        assert other.col.dtype == other.rowptr.dtype == torch.int64
        assert_same_bits(one.to_dense(), other.to_dense())


@pytest.mark.parametrize(
    "name",
    [
        *("rowptr", "col", "weight", "is_operator", "num_nodes", "num_edges", "device", "row", "transpose_order"),
        *("transposed", "is_undirected", "has_self_loops", "has_duplicates"),
    ],
)
def test_nothing_can_be_set(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Graph.from_edge_index(EDGES, 3), name, None)


def test_what_is_costly_is_computed_once() -> None:
    graph = random_graph(6, 12)
    for compute in (
        lambda: graph.transposed,
        lambda: graph.row,
        graph.gcn_norm,
        lambda: graph.row_norm(False),
        graph.with_self_loops,
        graph.as_operator,
    ):
        assert compute() is compute()
    assert graph.transposed.transposed is graph
    assert graph.gcn_norm(dtype=torch.float32) is graph.gcn_norm()


def test_what_was_kept_in_inference_mode_is_good_for_training() -> None:
    weight = torch.ones(3, requires_grad=True)
    graph = Graph.from_edge_index(EDGES, 3)
    with torch.inference_mode():
        graph.gcn_norm()
        _ = graph.row, graph.transposed, graph.transpose_order
    operator = graph.gcn_norm()
    assert operator.weight is not None
    (operator.weight.sum() * weight).sum().backward()
    assert not any(t.is_inference() for t in (operator.weight, graph.row, graph.transpose_order))


def test_moving_and_converting() -> None:
    graph = Graph.from_edge_index(EDGES, 3, torch.ones(4))
    assert graph.to("cpu") is graph
    assert graph.to(dtype=torch.float32) is graph
    double = graph.gcn_norm().to(dtype=torch.float64)
    assert double.to_dense().dtype == torch.float64
    assert double.is_operator
    assert graph.to("meta").device.type == "meta"
    assert graph.unweighted().to(dtype=torch.float64).weight is None


def test_copies_and_pickles_are_the_same_graph() -> None:
    for example in fixed_graphs(weighted=True):
        operator = example.graph.gcn_norm()
        _ = operator.transposed
        for twin in (copy.deepcopy(operator), pickle.loads(pickle.dumps(operator))):
            assert same(twin, operator)
            assert twin.is_operator
            assert same(twin.transposed, operator.transposed)


def test_torch_takes_a_graph_apart_and_together() -> None:
    for example in fixed_graphs(weighted=True):
        for graph in (example.graph, example.graph.gcn_norm(), example.graph.with_self_loops()):
            leaves, spec = pytree.tree_flatten(graph)
            twin = pytree.tree_unflatten(leaves, spec)
            assert same(twin, graph)
            assert same(twin.transposed, graph.transposed)
            assert_same_bits(twin.transpose_order, graph.transpose_order)
            assert twin.is_operator == graph.is_operator
            assert (twin.with_self_loops() is twin) == (graph.with_self_loops() is graph)
            assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        (Graph.from_edge_index(EDGES, 3), "Graph(num_nodes=3, num_edges=4)"),
        (Graph.from_edge_index(EDGES, 3, torch.ones(4)), "Graph(num_nodes=3, num_edges=4, weighted)"),
        (Graph.from_edge_index(EDGES, 3).gcn_norm(), "Graph(num_nodes=3, num_edges=7, operator)"),
    ],
)
def test_a_graph_says_what_it_is(graph: Graph, text: str) -> None:
    assert repr(graph) == text


def test_layers_take_a_graph_edges_or_a_sparse_matrix() -> None:
    graph = Graph.from_edge_index(EDGES, 3)
    assert as_graph(graph, 3) is graph
    assert same(as_graph(EDGES, 3), graph)
    assert same(as_graph(graph.to_torch_sparse(), 3), graph)
    assert same(as_graph(EDGES, 3, torch.arange(4.0)), Graph.from_edge_index(EDGES, 3, torch.arange(4.0)))

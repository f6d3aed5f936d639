"""Own graphs from everything that is not a pair of tables: arrays, networks, lists of edges, folders of graphs, PyG."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from omegagnn.data.own import Recipe, from_networkx, from_pandas, from_pyg, from_scipy, import_tables, read_source
from omegagnn.data.own.structure import structural_features
from omegagnn.data.pyg import to_pyg
from omegagnn.errors import DataError, WrongUse

RING = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])


def save(path: Path, **arrays: object) -> Path:
    np.savez(path, **arrays)
    return path


# ------------------------------------------------------------------------------------------------- arrays and matrices


def test_scipy_matrices_become_data_sets() -> None:
    matrix = sp.csr_array((np.ones(3), ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    dataset = from_scipy(matrix, np.eye(3), [0, 1, -1], class_names=["no", "yes"], node_ids=["a", "b", "c"])
    assert dataset.graph.to_edge_index()[0].tolist() == [[2, 0, 1], [0, 1, 2]]
    assert dataset.graph.weight is None
    assert (dataset.class_names, dataset.node_ids) == (("no", "yes"), ("a", "b", "c"))
    weighted = from_scipy(matrix * 2.5, sp.csr_array(np.eye(3)), node_features=None)
    assert weighted.graph.weight is not None
    assert weighted.graph.weight.dtype == torch.float32
    assert weighted.labels.tolist() == [-1, -1, -1]
    assert weighted.class_names == ()


def test_large_sparse_features_stay_sparse() -> None:
    features = sp.random_array((500, 400), density=0.01, rng=np.random.default_rng(0)).tocsr()
    dataset = from_scipy(sp.csr_array((500, 500)), features)
    assert dataset.features.layout == torch.sparse_csr
    assert np.allclose(dataset.features.to_dense().numpy(), features.toarray())


@pytest.mark.parametrize(
    "edges",
    [
        {"edge_index": RING},
        {"edges": RING.T},
        {"adj_indptr": np.array([0, 1, 2, 3, 4]), "adj_indices": RING[1], "adj_data": np.ones(4)},
        {"indptr": np.array([0, 1, 2, 3, 4]), "indices": RING[1], "data": np.ones(4), "shape": np.array([4, 4])},
    ],
)
@pytest.mark.parametrize("names", [("features", "labels"), ("x", "y"), ("node_features", "node_labels")])
def test_the_layouts_of_published_npz_files(tmp_path: Path, edges: dict[str, object], names: tuple[str, str]) -> None:
    x, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 1, 0])
    masks = {f"{part}_mask": np.arange(4) == k for k, part in enumerate(("train", "val", "test"))}
    path = save(tmp_path / "g.npz", **edges, **dict(zip(names, (x, y), strict=True)), **masks)
    dataset, schema = read_source(path, Recipe(directed=True))
    assert dataset.graph.to_edge_index()[0].tolist() == [[3, 0, 1, 2], [0, 1, 2, 3]]
    assert torch.equal(dataset.features, torch.from_numpy(x).float())
    assert dataset.class_names == ("0", "1")
    (split,) = dataset.splits
    assert [part.tolist() for part in (split.train, split.val, split.test)] == [[0], [1], [2]]
    undirected, _ = read_source(path)
    assert undirected.graph.num_edges == 8
    again, _ = read_source(path, schema=schema)
    assert torch.equal(again.graph.to_dense(), dataset.graph.to_dense())


def test_npz_masks_of_many_splits_ids_names_and_weights(tmp_path: Path) -> None:
    masks = {f"{part}_masks": np.stack([np.arange(4) == (k + r) % 4 for r in range(2)]) for k, part in
             enumerate(("train", "val", "test"))}  # fmt: skip
    path = save(
        tmp_path / "g.npz", edge_index=RING, edge_weight=np.array([1, 2, 3, 4]), features=np.eye(4),
        labels=np.array([0, 1, 0, 1]), node_ids=np.array(["a", "b", "c", "d"]), class_names=np.array(["no", "yes"]), **masks,
    )  # fmt: skip
    dataset, _ = read_source(path, Recipe(directed=True))
    assert [split.name for split in dataset.splits] == ["masks-0", "masks-1"]
    assert dataset.splits[1].train.tolist() == [1]
    assert dataset.node_ids == ("a", "b", "c", "d")
    assert dataset.class_names == ("no", "yes")
    assert dataset.graph.to_dense()[1, 0] == 1.0
    assert dataset.graph.to_dense()[0, 3] == 4.0


GOOD = {"edge_index": RING, "features": np.eye(4), "labels": np.array([0, 1, 0, 1])}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"edge_index": None}, r"g\.npz has no edges \(features, labels\): add edge_index, edges or adj_indptr"),
        ({"edge_index": RING.astype(float)}, r"the edges have shape \(2, 4\) and type float64"),
        ({"edge_index": RING + 1}, r"edge 2 \(counted from 0\) joins \[3, 4\], but there are 4 nodes"),
        ({"edge_weight": np.ones(3)}, r"edge_weight has shape \(3,\)"),
        ({"edge_weight": np.array([1, -1.0, 1, 1])}, r"edge 1 \(counted from 0\) has the weight -1\.0"),
        ({"features": np.eye(3)}, r"edge 2 \(counted from 0\) joins \[2, 3\], but there are 3 nodes"),
        ({"features": np.array([["a"]] * 4)}, r"the features have shape \(4, 1\) and type <U1"),
        ({"features": np.full((4, 1), np.nan)}, "a feature of node 0 is NaN or infinite"),
        ({"labels": np.array([0.5, 1, 1, 1])}, r"the labels have shape \(4,\) and type float64"),
        ({"labels": np.array([0, -2, 1, 1])}, "or -1 where it is unknown"),
        ({"class_names": np.array(["one"])}, "a label is 1, but there are 1 classes"),
        ({"node_ids": np.array(["a"])}, "node_ids has 1 names for 4 nodes"),
        ({"node_ids": np.array(["a", "b", "a", "c"])}, "an id in node_ids is used twice"),
        ({"train_mask": np.ones(4, dtype=bool)}, "of train_mask, val_mask and test_mask some are missing"),
        ({f"{part}_mask": np.ones(3) for part in ("train", "val", "test")}, "the masks have shapes"),
        ({f"{part}_mask": np.ones(4) for part in ("train", "val", "test")}, "a node is in two of train_mask"),
        ({"edge_index": None, "adj_indptr": np.array([0, 9]), "adj_indices": np.array([0])}, "are no square matrix"),
        ({"features": np.array([{}], dtype=object)}, "g.npz"),
    ],
)
def test_malformed_npz_files(tmp_path: Path, change: dict[str, object], sentence: str) -> None:
    arrays = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(DataError, match=sentence):
        read_source(save(tmp_path / "g.npz", **arrays))


def test_npz_without_features_needs_a_choice_and_an_empty_one_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "g.npz", edge_index=RING)
    with pytest.raises(WrongUse, match="there are no features"):
        read_source(path)
    dataset, schema = read_source(path, Recipe(node_features="one-hot"))
    assert torch.equal(dataset.features.to_dense(), torch.eye(4))
    assert read_source(path, schema=schema)[0].num_features == 4
    with pytest.raises(DataError, match="cannot code a changed graph"):
        read_source(save(tmp_path / "more.npz", edge_index=np.array([[0, 4], [1, 0]])), schema=schema)
    with pytest.raises(DataError, match="there are 3 features, but the schema has 0"):
        read_source(save(tmp_path / "f.npz", edge_index=RING, features=np.ones((4, 3))), schema=schema)
    with pytest.raises(DataError, match="the graph has no nodes"):
        read_source(save(tmp_path / "e.npz", edge_index=np.empty((2, 0), dtype=int)))


def test_the_sparse_features_of_a_matrix_must_be_finite() -> None:
    with pytest.raises(DataError, match="a feature is NaN or infinite"):
        from_scipy(sp.csr_array((3, 3)), sp.csr_array(np.diag([1.0, np.inf, 1.0])))


# ------------------------------------------------------------------------------------------------------------ networks


@pytest.mark.parametrize("ending", ["graphml", "gml"])
def test_network_files_equal_the_network(tmp_path: Path, ending: str) -> None:
    graph = nx.karate_club_graph()
    for node, data in graph.nodes(data=True):
        data["half"] = node / 2
    path = tmp_path / f"club.{ending}"
    (nx.write_graphml if ending == "graphml" else nx.write_gml)(graph, path)
    expected = from_networkx(graph, label="club", features=["half"], weights="weight")
    dataset, schema = read_source(path, Recipe(label="club", features=("half",), weights="weight"))
    assert torch.equal(dataset.features, expected.features)
    assert torch.equal(dataset.labels, expected.labels)
    assert torch.equal(dataset.graph.to_dense(), expected.graph.to_dense())
    assert dataset.class_names == ("Mr. Hi", "Officer")
    assert dataset.graph.num_edges == 156
    assert torch.equal(read_source(path, schema=schema)[0].features, dataset.features)


def test_directed_networks_stay_directed_and_multigraphs_keep_their_edges() -> None:
    graph = nx.MultiDiGraph([("a", "b"), ("a", "b"), ("b", "c")])
    dataset = from_networkx(graph, node_features="degree")
    assert dataset.graph.num_edges == 3
    assert not dataset.graph.is_undirected
    assert from_networkx(graph, node_features="degree", directed=False).graph.num_edges == 4


def test_nodes_can_be_called_by_an_attribute() -> None:
    graph = nx.Graph([(0, 1), (1, 2)])
    nx.set_node_attributes(graph, {0: "ann", 1: "bob", 2: "eve"}, "name")
    nx.set_node_attributes(graph, {0: 1, 1: 2, 2: 3}, "age")
    dataset = from_networkx(graph, id="name")
    assert dataset.node_ids == ("ann", "bob", "eve")
    assert dataset.feature_names == ("age",)
    assert dataset.graph.num_edges == 4


def test_reserved_attributes_are_refused() -> None:
    graph = nx.Graph([(0, 1)])
    nx.set_node_attributes(graph, 1, "id")
    with pytest.raises(DataError, match="the graph has an attribute 'id', a name that is taken"):
        from_networkx(graph)


def test_gml_must_be_ascii(tmp_path: Path) -> None:
    (tmp_path / "g.gml").write_bytes('graph [ node [ id 0 name "é" ] ]'.encode("latin-1"))
    with pytest.raises(DataError, match="not ASCII"):
        read_source(tmp_path / "g.gml")


# ----------------------------------------------------------------------------------------------------- lists of edges


def test_a_list_of_edges_names_its_nodes_in_order_of_appearance(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("# a comment\nx 10\n\n10 9 # another\n9\tx\n")
    dataset, schema = read_source(tmp_path / "e.txt", Recipe(node_features="degree"))
    assert dataset.node_ids == ("x", "10", "9")
    assert dataset.feature_names == ("log_in_degree",)
    assert dataset.features.flatten().tolist() == pytest.approx([np.log(3)] * 3)
    (tmp_path / "f.txt").write_text("a b\n")
    changed, _ = read_source(tmp_path / "f.txt", schema=schema)
    assert changed.features.flatten().tolist() == pytest.approx([np.log(2)] * 2)


def test_a_list_of_edges_with_weights(tmp_path: Path) -> None:
    (tmp_path / "e.edgelist").write_text("a b 2.5\nb c 1\n")
    dataset, _ = read_source(tmp_path / "e.edgelist", Recipe(node_features="one-hot", weights="weight", directed=True))
    assert dataset.graph.weight is not None
    assert sorted(dataset.graph.weight.tolist()) == [1.0, 2.5]


def test_a_csv_of_edges_alone(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\nc,d\n")
    dataset, _ = read_source(tmp_path / "e.csv", Recipe(node_features="positional"))
    assert dataset.features.shape == (4, 2)


# ------------------------------------------------------------------------------------------------- structural features


@pytest.mark.parametrize("n", [30, 400])
def test_positional_features_are_eigenvectors_of_the_normalised_adjacency(n: int) -> None:
    edges = pd.DataFrame(list(nx.connected_watts_strogatz_graph(n, 4, 0.3, seed=0).edges), columns=["source", "target"])
    dataset = from_pandas(None, edges, node_features="positional")
    matrix = dataset.graph.to_dense().double()
    scale = matrix.sum(dim=0).rsqrt()
    matrix = scale[:, None] * matrix * scale[None]
    vectors = dataset.features.double()
    values = (vectors * (matrix @ vectors)).sum(dim=0) / n
    assert torch.allclose(matrix @ vectors, vectors * values, atol=1e-4)
    assert torch.allclose(values, torch.linalg.eigvalsh(matrix).flip(0)[1:9], atol=1e-5)
    assert torch.allclose(vectors.T @ vectors / n, torch.eye(8, dtype=torch.float64), atol=1e-4)
    assert torch.equal(structural_features(dataset.graph, "positional")[0], dataset.features)


def test_degrees_of_a_directed_graph_have_two_directions() -> None:
    edges = pd.DataFrame({"source": ["a", "a"], "target": ["b", "c"]})
    dataset = from_pandas(None, edges, directed=True, node_features="degree")
    assert dataset.feature_names == ("log_in_degree", "log_out_degree")
    assert dataset.features.exp().sub(1).round().tolist() == [[0, 2], [1, 0], [1, 0]]


def test_structure_is_added_to_columns() -> None:
    nodes = pd.DataFrame({"id": ["a", "b", "c"], "size": [1, 2, 3]})
    dataset = from_pandas(nodes, pd.DataFrame({"source": ["a"], "target": ["b"]}), node_features="one-hot")
    assert dataset.feature_names == ("size", "node=0", "node=1", "node=2")
    assert dataset.features.tolist() == [[1, 1, 0, 0], [2, 0, 1, 0], [3, 0, 0, 1]]


@pytest.mark.parametrize(("kind", "what"), [("one-hot", "nodes"), ("positional", "nodes and edges")])
def test_features_of_one_graph_do_not_code_another(kind: str, what: str) -> None:
    edges = pd.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "d"]})
    _, schema = import_tables(None, edges, recipe=Recipe(node_features=kind))  # type: ignore[arg-type]
    same, _ = import_tables(None, edges, schema=schema)
    assert same.num_nodes == 4
    with pytest.raises(DataError, match=f"The {kind} features belong to the {what} they were made for"):
        import_tables(None, edges.assign(target=["b", "c", "e"]), schema=schema)


# ------------------------------------------------------------------------------------------------------ many graphs


def graph_tables() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    graphs = pd.DataFrame({"id": ["g2", "g1", "g3"], "label": ["b", "a", ""], "fold": ["test", "train", "none"]})
    nodes = pd.DataFrame({"graph": ["g1", "g2", "g1", "g3"], "id": ["x", "x", "y", "z"], "atom": ["C", "N", "N", "C"]})
    edges = pd.DataFrame({"graph": ["g1"], "source": ["x"], "target": ["y"]})
    return graphs, nodes, edges


def test_tables_of_many_graphs(tmp_path: Path) -> None:
    graphs, nodes, edges = graph_tables()
    dataset, schema = import_tables(nodes, edges, graphs, Recipe(label="label", id="id"))
    assert (dataset.task, dataset.num_graphs) == ("graph", 3)
    assert dataset.ptr is not None
    assert dataset.ptr.tolist() == [0, 1, 3, 4]
    assert dataset.node_ids == ("x", "x", "y", "z")
    assert schema.graph_ids == ("g2", "g1", "g3")
    assert dataset.labels.tolist() == [1, 0, -1]
    assert dataset.features.tolist() == [[0, 1], [1, 0], [0, 1], [1, 0]]
    assert dataset.graph.to_edge_index()[0].tolist() == [[2, 1], [1, 2]]
    for name, frame in (("graphs", graphs), ("nodes", nodes), ("edges", edges)):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    again, other = read_source(tmp_path, schema=schema)
    assert torch.equal(again.features, dataset.features)
    assert other.graph_ids == schema.graph_ids
    with pytest.raises(DataError, match=r"graphs: the split column 'fold' has no row for val"):
        import_tables(nodes, edges, graphs, Recipe(label="label", id="id", split=("fold",)))


def test_sparse_features_follow_their_graphs() -> None:
    n = 1200
    graphs = pd.DataFrame({"id": [0, 1]})
    nodes = pd.DataFrame(
        {"graph": [i % 2 for i in range(n)], "id": range(n), "kind": [f"k{i % 100}" for i in range(n)]}
    )
    edges = pd.DataFrame({"graph": [0], "source": [0], "target": [2]})
    dataset = from_pandas(nodes, edges, graphs, id="id", categorical=["kind"])
    assert dataset.features.layout == torch.sparse_csr
    assert dataset.node_ids is not None
    hot = dataset.features.to_dense().argmax(dim=1)
    names = [dataset.feature_names[column].removeprefix("kind=k") for column in hot.tolist()]
    assert [int(name) for name in names] == [int(node) % 100 for node in dataset.node_ids]


# ----------------------------------------------------------------------------------------------------------------- PyG


def test_a_node_task_goes_through_pyg_unchanged() -> None:
    nodes = pd.DataFrame(
        {"id": list("abcd"), "size": [1, 2, 3, 4], "label": list("xyxy"), "s": ["train", "train", "val", "test"]}
    )
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "w": [1.5, 2.0]})
    dataset = from_pandas(nodes, edges, label="label", split=["s"], weights="w")
    data = to_pyg(dataset)
    assert isinstance(data, Data)
    assert data.validate()
    assert data.train_mask.tolist() == [True, True, False, False]
    back = from_pyg(data, "back")
    assert torch.equal(back.features, dataset.features)
    assert torch.equal(back.labels, dataset.labels)
    assert torch.equal(back.graph.to_dense(), dataset.graph.to_dense())
    assert back.splits[0].hash == dataset.splits[0].hash
    twice = to_pyg(dataset.with_splits((dataset.splits[0], dataset.splits[0])))
    assert isinstance(twice, Data)
    assert twice.val_mask.shape == (4, 2)
    assert [split.name for split in from_pyg(twice).splits] == ["masks-0", "masks-1"]


def test_sparse_features_go_through_pyg_on_request() -> None:
    dataset = from_scipy(sp.csr_array((400, 400)), sp.eye_array(400, format="csr"))
    dense, sparse = to_pyg(dataset), to_pyg(dataset, sparse=True)
    assert isinstance(dense, Data)
    assert isinstance(sparse, Data)
    assert dense.x is not None
    assert sparse.x is not None
    assert dense.x.layout == torch.strided
    assert sparse.x.layout == torch.sparse_csr
    assert torch.equal(from_pyg(sparse).features.to_dense(), dense.x)
    assert from_pyg(sparse).labels.tolist() == [-1] * 400


@pytest.mark.parametrize("sparse", [False, True])
def test_a_graph_task_becomes_a_list_and_comes_back(sparse: bool) -> None:
    graphs, nodes, edges = graph_tables()
    dataset = from_pandas(nodes, edges.assign(w=[2.0]), graphs, label="label", id="id", weights="w")
    if sparse:
        from dataclasses import replace

        dataset = replace(dataset, features=dataset.features.to_sparse_csr())
    items = to_pyg(dataset, sparse=sparse)
    assert isinstance(items, list)
    assert [item.num_nodes for item in items] == [1, 2, 1]
    assert all(item.validate() for item in items)
    assert items[1].edge_index is not None
    assert items[1].edge_index.tolist() == [[1, 0], [0, 1]]
    back = from_pyg(items)
    assert torch.equal(back.features, dataset.features.to_dense())
    assert torch.equal(back.labels, dataset.labels)
    assert torch.equal(back.graph.to_dense(), dataset.graph.to_dense())
    assert back.ptr is not None
    assert dataset.ptr is not None
    assert torch.equal(back.ptr, dataset.ptr)


def test_pyg_objects_that_lack_something_are_refused() -> None:
    index = torch.tensor([[0], [1]])
    whole = Data(x=torch.ones(2, 1), edge_index=index)
    assert from_pyg(whole).labels.tolist() == [-1, -1]
    assert from_pyg(Data(x=torch.eye(2).to_sparse_coo(), edge_index=index)).features.layout == torch.sparse_csr
    assert from_pyg(Data(x=torch.ones(2, 1), edge_index=index, y=torch.ones(2, 3))).is_multilabel
    for broken, sentence in (
        (Data(edge_index=index, num_nodes=2), "no features x"),
        (
            Data(x=torch.ones(2, 1), edge_index=index, y=torch.ones(2)),
            r"labels y of shape \[2\] and type torch.float32",
        ),
        ([], "The list of PyG data objects is empty"),
        ([whole, Data(x=torch.ones(2, 2), edge_index=index)], r"The graphs have \[1, 2\] features"),
        (
            [whole, Data(x=torch.ones(2, 1), edge_index=index, edge_weight=torch.ones(1))],
            "Some of the graphs have edge weights",
        ),
    ):
        with pytest.raises(DataError, match=sentence):
            from_pyg(broken)

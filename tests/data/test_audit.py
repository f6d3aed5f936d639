"""The audit: what it finds in benchmarks, and that it finds what was planted."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.utils import homophily as pyg_homophily

from omegagnn.data import synthetic
from omegagnn.data.audit import audit, fingerprint, reachable
from omegagnn.data.audit_page import MOST_BARS, page, write_page
from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.homophily import adjusted_homophily, edge_homophily, node_homophily
from omegagnn.data.leakage import best_single_feature
from omegagnn.data.loading import load
from omegagnn.data.own import from_pandas, store
from omegagnn.data.own.schema import Schema
from omegagnn.data.twins import percent_in_training, row_groups, twin_groups
from omegagnn.graph import Graph


def dataset(
    pairs: list[tuple[int, int]], labels: list[int], features: torch.Tensor | None = None, **more: object
) -> Dataset:
    n = len(labels)
    edges = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
    features = torch.eye(n) if features is None else features
    return Dataset(
        "planted", "node", Graph.from_edge_index(edges, n), features, torch.tensor(labels, dtype=torch.long), **more
    )  # type: ignore[arg-type]


def both(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return pairs + [(v, u) for u, v in pairs]


# ---------------------------------------------------------------------------------------------------------- benchmarks


@pytest.mark.parametrize(("name", "expected"), [("chameleon", 49.7), ("squirrel", 39.8)])
def test_twins_of_the_wikipedia_graphs(shared_data: Path, name: str, expected: float) -> None:
    found = audit(load(name, root=shared_data))
    assert found.twins_percent == pytest.approx(expected, abs=0.1)
    assert f"{expected} % of the test nodes have a twin in training" in " ".join(found.warnings)
    assert len(found.splits) == 10


def test_cornell_is_found_to_be_texas(shared_data: Path) -> None:
    cornell = load("cornell", root=shared_data)
    found = audit(cornell, reachable(cornell, shared_data))
    assert [(other.name, other.features, other.labels, other.edges) for other in found.identical] == [
        ("texas", True, True, False)
    ]
    assert found.warnings[0].startswith("The features and labels are those of the data set 'texas', item for item")
    assert found.edge_homophily_percent == pytest.approx(30.5, abs=0.05)
    assert any("The class '1' has 1 node, too few" in line for line in found.warnings)
    corrected = load("cornell-corrected", root=shared_data)
    assert audit(corrected, reachable(corrected, shared_data)).identical == ()


def test_the_audit_method_of_a_data_set_is_this_audit(shared_data: Path) -> None:
    texas = load("texas", root=shared_data)
    assert texas.audit(shared_data) == audit(texas, reachable(texas, shared_data))


def test_duplicate_molecules_are_twins(shared_data: Path) -> None:
    mutag = load("mutag", root=shared_data)
    found = audit(mutag)
    assert found.twins_percent is not None
    assert 5 < found.twins_percent < 30
    groups = twin_groups(mutag)
    import networkx as nx

    ptr, member = mutag.ptr, groups.tolist()
    assert ptr is not None

    def molecule(k: int) -> nx.Graph:
        start, end = int(ptr[k]), int(ptr[k + 1])
        graph = nx.Graph()
        for node in range(start, end):
            graph.add_node(node, atom=int(mutag.features[node].argmax()))
        index, _ = mutag.graph.to_edge_index()
        graph.add_edges_from(pair for pair in index.T.tolist() if start <= pair[0] < end)
        return graph

    pairs = [(member.index(group), k) for k, group in enumerate(member) if member.index(group) != k]
    assert len(pairs) >= 10
    for one, other in pairs[:10]:
        assert nx.is_isomorphic(molecule(one), molecule(other), node_match=lambda a, b: a["atom"] == b["atom"])


# --------------------------------------------------------------------------------------------------------------- twins


def test_twins_have_the_same_neighbours_and_label_in_either_direction() -> None:
    pairs = [(0, 4), (4, 1), (2, 4), (3, 5), (3, 3), (1, 1)]
    data = dataset(pairs, [0, 0, 1, 0, 0, 0, 0, 0])
    groups = twin_groups(data)
    assert groups[0] == groups[1]  # 4 is the neighbour of both; the direction and the self-loop of 1 do not count
    assert groups[0] != groups[2]  # another label
    assert groups[0] != groups[3]  # another neighbour
    assert groups[6] == groups[7] == -1  # nodes without neighbours


def test_twins_agree_with_sets_of_neighbours() -> None:
    random = np.random.default_rng(3)
    pairs = [tuple(pair) for pair in random.integers(0, 60, (70, 2)).tolist()]
    labels = random.integers(0, 2, 60).tolist()
    data = dataset(pairs, labels)
    around: list[set[int]] = [set() for _ in labels]
    for u, v in pairs:
        if u != v:
            around[u].add(v)
            around[v].add(u)
    groups = twin_groups(data)
    for i in range(60):
        for j in range(60):
            expected = bool(around[i]) and around[i] == around[j] and labels[i] == labels[j]
            assert (groups[i] == groups[j] and groups[i] >= 0) == expected


def test_percent_in_training() -> None:
    split = Split("s", torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3, 4, 5, 6]))
    groups = np.array([7, -1, 8, 7, 8, -1, 7])
    assert percent_in_training(groups, split) == 50.0
    assert percent_in_training(groups, Split("s", split.train, split.val, torch.tensor([], dtype=torch.long))) == 0.0


def test_equal_rows_are_equal_however_they_are_stored() -> None:
    features = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
    groups = row_groups(features)
    assert groups.tolist() == row_groups(features.to_sparse_csr()).tolist()
    assert groups[0] == groups[2]
    assert len(set(groups.tolist())) == 4
    stored_zero = torch.sparse_csr_tensor(torch.tensor([0, 2]), torch.tensor([0, 1]), torch.tensor([0.0, 1.0]), (1, 2))
    assert len(set(row_groups(torch.cat([stored_zero.to_dense(), features[:1]])).tolist())) == 1


# ----------------------------------------------------------------------------------------------------------- homophily


def test_homophily_of_a_graph_that_is_counted_by_hand() -> None:
    data = dataset([*both([(0, 1), (1, 2), (2, 3)]), (4, 4)], [0, 0, 1, -1, 1])
    assert edge_homophily(data) == pytest.approx(3 / 5)  # 0-1 twice and the loop, of those with two labels
    assert node_homophily(data) == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    # Undirected without the loop: 0-1 and 1-2; the ends are three times class 0, once class 1.
    by_chance = (3 / 4) ** 2 + (1 / 4) ** 2
    assert adjusted_homophily(data) == pytest.approx((0.5 - by_chance) / (1 - by_chance))


def test_homophily_agrees_with_pyg() -> None:
    data = synthetic.csbm(nodes=300, homophily=0.7)
    index, _ = data.graph.to_edge_index()
    assert edge_homophily(data) == pytest.approx(pyg_homophily(index, data.labels, method="edge"))
    degree = data.graph.rowptr.diff() > 0
    pyg_node = pyg_homophily(index, data.labels, method="node") * data.num_nodes / int(degree.sum())
    assert node_homophily(data) == pytest.approx(pyg_node, abs=1e-6)


def test_no_labelled_edges_have_no_homophily() -> None:
    data = dataset([], [0, 1])
    assert (edge_homophily(data), node_homophily(data), adjusted_homophily(data)) == (None, None, None)
    assert adjusted_homophily(dataset([(0, 1)], [0, 0])) is None


# -------------------------------------------------------------------------------------------------------------- leakage


def noise(n: int, width: int) -> torch.Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_column_that_is_the_label_is_found(is_sparse: bool) -> None:
    labels = torch.arange(400) % 3
    features = torch.cat([noise(400, 4), (labels * 10.0)[:, None]], dim=1)
    features = features.to_sparse_csr() if is_sparse else features
    data = dataset([(0, 1)], labels.tolist(), features, feature_names=("a", "b", "c", "d", "answer"))
    best, leaks = best_single_feature(data)
    assert best == 100.0
    assert [(leak.name, leak.accuracy_percent, leak.marks_class) for leak in leaks] == [("answer", 100.0, None)]
    assert any(
        "The feature 'answer' determines the label (100.0 % right by itself)" in line for line in audit(data).warnings
    )


def test_a_number_whose_ranges_are_the_classes_is_found() -> None:
    labels = torch.arange(1000) % 2
    features = torch.cat([noise(1000, 2), (labels + 0.3 * noise(1000, 1)[:, 0].clamp(-1, 1))[:, None]], dim=1)
    _, leaks = best_single_feature(dataset([], labels.tolist(), features))
    assert [leak.column for leak in leaks] == [2]
    assert leaks[0].name == "number 2"


def test_a_column_that_marks_a_class_is_found() -> None:
    labels = torch.arange(60) % 6
    features = torch.cat([(noise(60, 5) > 0).float(), (labels == 4).float()[:, None]], dim=1)
    data = dataset([], labels.tolist(), features, class_names=tuple("abcdef"))
    _, leaks = best_single_feature(data)
    assert [(leak.column, leak.marks_class) for leak in leaks] == [(5, "e")]
    many = dataset([], labels.tolist(), torch.nn.functional.one_hot(labels).float())
    assert any(line == "1 more features determine the label or mark a class." for line in audit(many).warnings)


def test_noise_is_no_leak_and_no_labels_have_none() -> None:
    labels = torch.randint(0, 3, (500,), generator=torch.Generator().manual_seed(0))
    best, leaks = best_single_feature(dataset([], labels.tolist(), noise(500, 20)))
    assert leaks == ()
    assert best < 60
    assert best_single_feature(dataset([], [-1, -1])) == (0.0, ())
    assert best_single_feature(dataset([], [0, 1], torch.zeros(2, 0))) == (0.0, ())


def test_an_unbalanced_label_alone_is_no_leak() -> None:
    """Guessing the frequent class is right in 98 of 100 cases; no column is to blame."""
    labels = torch.zeros(1000, dtype=torch.long)
    labels[::50] = 1
    assert best_single_feature(dataset([], labels.tolist(), (noise(1000, 10) > 0).float()))[1] == ()


# ---------------------------------------------------------------------------------------------------- the whole audit


def test_planted_faults_are_all_reported() -> None:
    pairs = [(0, 1), (0, 1), (1, 0), (2, 2), (2, 3)]
    split = Split("bad", torch.tensor([0, 1]), torch.tensor([1, 2]), torch.tensor([3, 4]))
    data = dataset(pairs, [0, 0, 1, 1, -1, 1], splits=(split,), warnings=("From the importer.",))
    found = audit(data)
    assert (found.directed, found.self_loops, found.duplicate_edges, found.isolated_nodes) == (True, 1, 1, 2)
    assert found.components == 4
    assert found.largest_component_percent == pytest.approx(100 * 2 / 6)
    assert found.reciprocal_percent == pytest.approx(100 * 2 / 3)
    assert found.degree == {"min": 0.0, "mean": pytest.approx(4 / 6), "median": 1.0, "max": 1.0}
    assert found.degree_counts == {0: 2, 1: 4}
    assert found.unlabelled == 1
    assert found.classes == {"0": 2, "1": 3}
    assert found.splits[0].in_two_parts == 1
    assert found.splits[0].classes_without_training == ("1",)
    told = " ".join(found.warnings)
    for sentence in (
        "The split 'bad' has 1 nodes in two of train, val and test.",
        "The split 'bad' has 1 nodes without a label.",
        "In 1 of 1 splits a class to be told in validation or test is never in training: 1.",
        "One test item is worth 50.0 points of accuracy",
        "The class '0' has 2 nodes, too few",
        "1 edges are stored more than once",
        "2 of 6 nodes have no neighbours",
        "The graph is directed (66.7 % of the edges run both ways)",
        "From the importer.",
    ):
        assert sentence in told


def test_a_healthy_data_set_has_no_warnings() -> None:
    n = 600
    labels = (torch.arange(n) % 2).tolist()
    pairs = both([(i, (i + step) % n) for i in range(n) for step in (2, 6)])
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    split = Split("s", *(part.sort().values for part in order.split([200, 200, 200])))
    found = audit(dataset(pairs, labels, noise(n, 3), splits=(split,)))
    assert found.warnings == ()
    assert "Nothing was found" in page(found)


def test_other_data_sets_are_compared_by_features_labels_and_edges() -> None:
    one = dataset([(0, 1)], [0, 1, 0])
    other = dataset([(0, 2)], [0, 1, 0], torch.eye(3).to_sparse_csr())
    assert fingerprint(one)[:2] == fingerprint(other)[:2]
    assert fingerprint(one)[2] != fingerprint(other)[2]
    found = audit(
        one, [other, dataset([(0, 1)], [1, 1, 0]), dataset([], [0, 1]), dataset([], [0] * 3, torch.ones(3, 3))]
    )
    assert [(item.features, item.labels, item.edges) for item in found.identical] == [
        (True, True, False),
        (True, False, True),
    ]
    assert found.warnings[1] == "The features and edges are those of the data set 'planted', item for item."


def test_a_copy_among_imported_data_sets_is_found(tmp_path: Path) -> None:
    nodes = pd.DataFrame({"id": ["a", "b"], "v": [1, 2]})
    data = from_pandas(nodes, pd.DataFrame({"source": ["a"], "target": ["b"]}), name="first")
    for name in ("first", "copy"):
        store(from_pandas(nodes, pd.DataFrame({"source": ["a"], "target": ["b"]}), name=name), Schema(), tmp_path)
    (tmp_path / "own" / "broken").mkdir()
    (tmp_path / "own" / "broken" / "dataset.npz").write_bytes(b"nothing")
    found = audit(data, reachable(data, tmp_path))
    assert [item.name for item in found.identical] == ["copy"]


def test_tasks_without_an_answer_say_so() -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 4)
    data = Dataset(
        "many", "inductive", graph, torch.ones(4, 2), torch.tensor([[1.0, 0], [1, 1], [0, 0], [0, 1]]),
        (Split("s", torch.tensor([0]), torch.tensor([1]), torch.tensor([1])),), ptr=torch.tensor([0, 2, 4]),
    )  # fmt: skip
    found = audit(data)
    assert (found.twins_percent, found.edge_homophily_percent, found.best_single_feature_percent) == (None, None, None)
    assert found.classes == {"0": 2, "1": 2}
    assert dict(found.lines())["edge homophily"] == "unknown"
    empty = audit(dataset([], []))
    assert (empty.components, empty.degree["max"], empty.reciprocal_percent) == (0, 0.0, 100.0)


def test_json_is_plain_and_in_per_cent() -> None:
    result = audit(synthetic.csbm(nodes=200, homophily=0.9)).to_json()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["edge_homophily_percent"] > 50
    assert {"twins_percent", "warnings"} <= set(result)


def test_a_large_graph_is_audited_in_seconds() -> None:
    data = synthetic.scale_free(nodes=50_000)
    start = time.process_time()
    audit(data)
    assert time.process_time() - start < 15


# ---------------------------------------------------------------------------------------------------------------- page


class Checked(HTMLParser):
    """Every tag closed in order, nothing fetched, no scripts."""

    void = frozenset({"meta", "line", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.bars: list[tuple[float, float]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        assert tag not in {"script", "link", "img", "iframe"}
        assert not {"src", "href"} & set(values)
        if tag == "rect":
            self.bars.append((float(values["width"] or "nan"), float(values["height"] or "nan")))
        if tag not in self.void or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag == "line"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_escaped_and_needs_no_network(tmp_path: Path) -> None:
    labels = (torch.arange(40) % 2).tolist()
    split = Split("<s>", torch.arange(10), torch.arange(10, 20), torch.arange(20, 40))
    data = dataset(
        both([(i, i + 1) for i in range(39)]), labels, splits=(split,), class_names=("<b>bold</b>", "x" * 50)
    )
    write_page(audit(data), tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    checked = Checked()
    checked.feed(text)
    assert checked.open == []
    assert all(width >= 0 and height >= 0 for width, height in checked.bars)
    assert "<b>bold" not in text
    assert "&lt;s&gt;" in text
    assert re.search(r"https?://", text) is None
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]


def test_many_classes_are_cut_to_the_largest() -> None:
    labels = [k for k in range(50) for _ in range(k + 1)]
    text = page(audit(dataset([], labels, noise(len(labels), 1))))
    assert f"(the {MOST_BARS} largest of 50)" in text
    assert "<title>49: 50</title>" in text
    assert "<title>5: 6</title>" not in text


def test_the_page_of_many_graphs(shared_data: Path) -> None:
    text = page(audit(load("mutag", root=shared_data)))
    assert "188 graphs" in text
    assert "graphs of each class" in text

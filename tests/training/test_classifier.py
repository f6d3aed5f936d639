"""`OmegaClassifier`: scikit-learn's manners, every kind of input, the user's labels, and no look at other labels."""

from __future__ import annotations

import copy
import doctest
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from tiny import graph_dataset, inductive_dataset, node_dataset

from omegagnn import Graph, OmegaClassifier
from omegagnn.errors import WrongUse
from omegagnn.training import classifier
from omegagnn.training.classifier import NotFittedError
from omegagnn.training.journal import Journal

N = 90
RNG = np.random.default_rng(5)
KIND = np.arange(N) % 3
X = (RNG.normal(0, 1, (N, 4)) + 2.5 * np.eye(4)[KIND]).astype(np.float32)
EDGES = np.stack([np.arange(N - 3), np.arange(3, N)])  # neighbours are of the same kind
NAMES = np.array(["ant", "bee", "cow"])[KIND]
QUICK = {"epochs": 15, "channels": 8, "settings": {"training.lr_oc": 0.05}}


def quick(**params: Any) -> OmegaClassifier:
    return OmegaClassifier(**{**QUICK, **params})


def test_it_learns_and_answers_with_the_users_labels() -> None:
    model = quick(seeds=2).fit(X, EDGES, NAMES)
    assert model.classes_.tolist() == ["ant", "bee", "cow"]
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    assert model.validation_scores_.shape == (2,)
    probabilities = model.predict_proba(X, EDGES)
    assert isinstance(probabilities, np.ndarray)
    assert probabilities.shape == (N, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    predicted = model.predict(X, EDGES)
    np.testing.assert_array_equal(predicted, model.classes_[probabilities.argmax(1)])
    assert model.score(X, EDGES, NAMES) > 0.9
    assert model.score(X, EDGES, NAMES, mask=[0, 1]) in (0.0, 0.5, 1.0)


def test_the_mean_is_over_the_seeds() -> None:
    both = quick(seeds=2, random_state=3).fit(X, EDGES, NAMES, train_mask=np.arange(60), val_mask=np.arange(60, 75))
    alone = [
        quick(random_state=seed).fit(X, EDGES, NAMES, train_mask=np.arange(60), val_mask=np.arange(60, 75))
        for seed in (3, 4)
    ]
    mean = sum(model.predict_proba(X, EDGES) for model in alone) / 2
    np.testing.assert_array_equal(both.predict_proba(X, EDGES), mean)


def test_a_changed_graph_is_predicted() -> None:
    model = quick().fit(X, EDGES, NAMES)
    more = np.concatenate([X, X[:10]])
    edges = np.concatenate([EDGES, np.stack([np.arange(10), np.arange(N, N + 10)])], axis=1)
    assert (model.predict(more, edges)[N:] == NAMES[:10]).mean() > 0.8


SAME = {
    "lists": lambda: (X.tolist(), EDGES.tolist()),
    "torch": lambda: (torch.from_numpy(X), torch.from_numpy(EDGES)),
    "float64": lambda: (X.astype(np.float64), EDGES.astype(np.int32)),
    "scipy adjacency": lambda: (X, sp.coo_array((np.ones(N - 3), tuple(EDGES)), shape=(N, N))),
    "torch adjacency": lambda: (X, torch.sparse_coo_tensor(EDGES[::-1].copy(), torch.ones(N - 3), (N, N))),
    "graph": lambda: (X, Graph.from_edge_index(torch.from_numpy(EDGES), N)),
    "frame of edges": lambda: (X, pd.DataFrame({"source": EDGES[0], "target": EDGES[1]})),
}


@pytest.mark.parametrize("kind", SAME)
def test_every_kind_of_input_means_the_same(kind: str) -> None:
    features, edges = SAME[kind]()
    expected = quick().fit(X, EDGES, KIND).predict_proba(X, EDGES)
    np.testing.assert_array_equal(quick().fit(features, edges, KIND).predict_proba(features, edges), expected)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.coo_array, lambda x: torch.from_numpy(x).to_sparse()])
def test_sparse_features_are_taken(make: Any) -> None:
    sparse = np.where(X > 0.5, X, 0)
    expected = quick().fit(sparse, EDGES, KIND).predict(sparse, EDGES)
    given = make(sparse)
    np.testing.assert_array_equal(quick().fit(given, EDGES, KIND).predict(given, EDGES), expected)


UNKNOWN = {
    "minus one": np.where(np.arange(N) < 60, KIND, -1),
    "NaN": np.where(np.arange(N) < 60, KIND, np.nan),
    "None": [int(k) if i < 60 else None for i, k in enumerate(KIND)],
    "NA": pd.array([int(k) if i < 60 else pd.NA for i, k in enumerate(KIND)], dtype="Int64"),
    "minus one in a tensor": torch.from_numpy(np.where(np.arange(N) < 60, KIND, -1)),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_unknown_labels_are_those_of_the_rule(kind: str) -> None:
    model = quick().fit(X, EDGES, UNKNOWN[kind])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.classes_.dtype.kind == "i"
    expected = quick().fit(X, EDGES, KIND, train_mask=np.arange(N) < 60).predict_proba(X, EDGES)
    np.testing.assert_array_equal(model.predict_proba(X, EDGES), expected)


def test_minus_one_as_a_text_is_a_label_and_none_beside_texts_is_not() -> None:
    names = NAMES.astype(object)
    names[names == "ant"], names[50:] = "-1", None
    assert quick().fit(X, EDGES, names).classes_.tolist() == ["-1", "bee", "cow"]


def test_labels_outside_training_and_validation_change_nothing() -> None:
    train, val = np.arange(40), np.arange(40, 55)
    lies = NAMES.copy()
    lies[55:] = "cow"
    one, other = (quick().fit(X, EDGES, y, train_mask=train, val_mask=val) for y in (NAMES, lies))
    np.testing.assert_array_equal(one.predict_proba(X, EDGES), other.predict_proba(X, EDGES))
    few = NAMES.copy()
    few[55:] = "dog"
    assert "dog" not in quick().fit(X, EDGES, few, train_mask=train, val_mask=val).classes_


def test_validation_is_a_share_of_each_class_of_the_training_nodes(tmp_path: Path) -> None:
    train = np.flatnonzero(np.arange(N) < 60)
    model = quick(runs_dir=tmp_path, validation_fraction=0.25).fit(X, EDGES, NAMES, train_mask=train)
    journal = Journal(tmp_path)
    (run,) = journal.runs()
    assert run["status"] == "done"
    rows = journal.epochs(run["run"])
    assert {row["test_score"] for row in rows} == {None}  # there is no test part
    from omegagnn.data.splits import held_out

    kept, held = held_out(train, KIND[train], 0.25, 0)
    assert np.bincount(KIND[held]).tolist() == [5, 5, 5]
    assert sorted([*kept, *held]) == train.tolist()
    scores = np.array([row["val_score"] * 15 for row in rows])
    np.testing.assert_allclose(scores, scores.round(), atol=1e-5)
    assert model.validation_scores_[0] in {row["val_score"] for row in rows}
    other = quick(random_state=1, validation_fraction=0.25)._parts(
        node_dataset().with_splits(()),
        KIND,
        None,
        None,
        None,  # type: ignore[arg-type]
    )[1]
    assert set(other) != set(held)


def test_frames_come_and_frames_go() -> None:
    index = pd.Index([f"n{k}" for k in range(N)], name="node")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"], index=index)
    edges = pd.DataFrame({"weight": 1.0, "from": index[EDGES[0]], "to": index[EDGES[1]]})
    labels = pd.Series(NAMES, index=index)
    model = quick().fit(frame, edges, labels)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    predicted = model.predict(frame, edges)
    assert isinstance(predicted, pd.Series)
    assert predicted.index.equals(index)
    probabilities = model.predict_proba(frame, edges)
    assert probabilities.columns.tolist() == ["ant", "bee", "cow"]
    assert probabilities.index.equals(index)
    np.testing.assert_array_equal(probabilities, quick().fit(X, EDGES, NAMES).predict_proba(X, EDGES))
    np.testing.assert_array_equal(model.predict(frame[["d", "c", "a", "b"]], edges), predicted)
    weighted = quick().fit(frame, edges, labels, edge_weight="weight")
    np.testing.assert_allclose(weighted.predict_proba(frame, edges, edge_weight="weight"), probabilities, atol=1e-5)
    shuffled = labels.sample(frac=1, random_state=0)
    np.testing.assert_array_equal(quick().fit(frame, edges, shuffled).predict_proba(frame, edges), probabilities)
    part = labels.iloc[:60]  # rows that y lacks are unlabelled
    mask = pd.Series(True, index=part.index)
    a = quick().fit(frame, edges, part).predict_proba(frame, edges)
    b = quick().fit(frame, edges, labels, train_mask=mask).predict_proba(frame, edges)
    np.testing.assert_array_equal(a, b)
    assert model.score(frame, edges, part) == (predicted[part.index] == part).mean()


def test_data_sets_and_pyg_data_are_taken_whole() -> None:
    dataset = node_dataset()
    one = dataset.with_splits(dataset.splits[:1])
    model = quick().fit(one)
    assert model.classes_.tolist() == [0, 1, 2]
    data = one.to_pyg()
    np.testing.assert_array_equal(quick().fit(data).predict_proba(data), model.predict_proba(one))
    with pytest.raises(WrongUse, match="has 3 splits: choose one with"):
        quick().fit(dataset)
    graphs = graph_dataset()
    half = np.arange(24) < 16
    model = quick().fit(graphs, train_mask=half)
    assert model.predict(graphs).shape == (24,)
    assert 0 <= model.score(graphs, mask=~half) <= 1
    pieces = graphs.to_pyg()
    np.testing.assert_array_equal(quick().fit(pieces, train_mask=half).predict(pieces), model.predict(graphs))
    with pytest.raises(WrongUse, match="one class a node or a graph, which tiny-inductive does not have"):
        quick().fit(inductive_dataset())


def test_parameters_follow_the_convention() -> None:
    sklearn_base = pytest.importorskip("sklearn.base", reason="scikit-learn is in the extra dev")
    model = OmegaClassifier("gcn", layers=3, settings={"training.clip": 1.0})
    assert model.get_params()["layers"] == 3
    twin = sklearn_base.clone(model)
    assert twin is not model
    assert twin.get_params() == model.get_params()
    assert model.set_params(layers=4, dropout=0.1) is model
    assert (model.layers, model.dropout) == (4, 0.1)
    assert repr(model) == "OmegaClassifier(model='gcn', layers=4, dropout=0.1, settings={'training.clip': 1.0})"
    with pytest.raises(WrongUse, match="OmegaClassifier has no parameter 'depth': it has model, layers"):
        model.set_params(depth=3)
    from sklearn.utils.validation import check_is_fitted

    fitted = quick().fit(X, EDGES, NAMES)
    check_is_fitted(fitted)
    assert not hasattr(sklearn_base.clone(fitted), "predictor_")


def test_a_fitted_classifier_can_be_copied_and_sent_elsewhere() -> None:
    model = quick(model="gcn").fit(X, EDGES, NAMES)
    expected = model.predict_proba(X, EDGES)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X, EDGES), expected)


def test_before_fit_there_is_a_sentence() -> None:
    with pytest.raises(NotFittedError, match=r"not fitted yet: call fit\(X, edge_index, y\) first"):
        quick().predict(X, EDGES)


FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"])
ONES = np.zeros(N, dtype=int)
WRONG: dict[str, tuple[Any, str]] = {
    "no edges": (lambda: quick().fit(X, None, NAMES), "There are no edges"),
    "no labels": (lambda: quick().fit(X, EDGES), "There are no labels"),
    "one row": (lambda: quick().fit(X[0], EDGES, NAMES), r"X has the shape \(4,\)"),
    "texts": (lambda: quick().fit(X.astype(str), EDGES, NAMES), "give numbers, one row a node"),
    "nan": (lambda: quick().fit(np.where(X > 3, np.nan, X), EDGES, NAMES), r"X is NaN or infinite in row \d+"),
    "nan in a frame": (lambda: quick().fit(FRAME.where(FRAME < 3), EDGES, NAMES), r"in row \d+, column '[abcd]': fill it"),
    "texts in a frame": (lambda: quick().fit(FRAME.assign(c="x"), EDGES, NAMES), "The column 'c' of X holds"),
    "twice": (lambda: quick().fit(FRAME.set_axis(list("abca"), axis=1), EDGES, NAMES), "the column 'a' twice"),
    "lacking": (lambda: quick().fit(FRAME, EDGES, NAMES).predict(FRAME[["a", "b", "d"]], EDGES), "X lacks the column 'c'"),
    "extra": (lambda: quick().fit(FRAME, EDGES, NAMES).predict(FRAME.assign(z=1), EDGES), "X has the column 'z'"),
    "width": (lambda: quick().fit(X, EDGES, NAMES).predict(X[:, :3], EDGES), "X has 3 features, but fit saw 4"),
    "few labels": (lambda: quick().fit(X, EDGES, NAMES[:9]), r"y has the shape \(9,\), but X has 90 rows"),
    "mixed": (lambda: quick().fit(X, EDGES, ["a", 1] * 45), "both texts and numbers"),
    "real": (lambda: quick().fit(X, EDGES, X[:, 0]), "which is no class"),
    "nothing known": (lambda: quick().fit(X, EDGES, [None] * N), "y has no label that could be learnt"),
    "one class": (lambda: quick().fit(X, EDGES, ONES), "All training nodes are of the class"),
    "mask": (lambda: quick().fit(X, EDGES, NAMES, train_mask=[True]), "train_mask has the shape"),
    "unlabelled": (lambda: quick().fit(X, EDGES, np.where(KIND, KIND, -1), train_mask=[0, 1]), "Item 0 of train_mask has no"),
    "both": (lambda: quick().fit(X, EDGES, NAMES, train_mask=[0, 1], val_mask=[1]), "Item 1 is in both train_mask and"),
    "nothing to hold out": (lambda: quick().fit(X, EDGES, NAMES, train_mask=[0, 1]), "a class with two labelled items"),
    "fraction": (lambda: quick(validation_fraction=2).fit(X, EDGES, NAMES), "validation_fraction must be between"),
    "seeds": (lambda: quick(seeds=0).fit(X, EDGES, NAMES), "seeds must be a whole number of at least 1"),
    "model": (lambda: quick(model="gnc").fit(X, EDGES, NAMES), "There is no model 'gnc'"),
    "setting": (lambda: quick(settings={"training.lr_gn": 1}).fit(X, EDGES, NAMES), "did you mean 'training.lr_gnn'"),
    "graph size": (lambda: quick().fit(X, sp.eye_array(7), NAMES), "The graph has 7 nodes, but X has 90 rows"),
    "weights twice": (lambda: quick().fit(X, sp.eye_array(N), NAMES, edge_weight=ONES), "edge_weight goes with edge_index"),
    "lost end": (lambda: quick().fit(X, pd.DataFrame({"source": [0], "target": [N]}), NAMES), "has the target 90"),
    "weight column": (
        lambda: quick().fit(X, pd.DataFrame({"source": [0], "target": [1]}), NAMES, edge_weight="w"),
        "no column 'w' for edge_weight",
    ),
    "foreign row": (lambda: quick().fit(FRAME, EDGES, pd.Series(["a", "b"], index=[0, 999])), "index label 999"),
    "beside a data set": (lambda: quick().fit(node_dataset(), EDGES), "brings its own edges and labels"),
    "nothing to score": (lambda: quick().fit(X, EDGES, KIND).score(X, EDGES, KIND * 0 + np.where(KIND, 1, -1), [0]), "no label"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence(case: str) -> None:
    call, sentence = WRONG[case]
    with pytest.raises(WrongUse, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_the_example_of_the_docstring_runs() -> None:
    outcome = doctest.testmod(classifier)
    assert outcome.attempted > 0
    assert outcome.failed == 0

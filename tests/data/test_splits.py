"""Splits: what the texts ask for, sizes, stratification, and the same draw on every machine."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from omegagnn import Graph
from omegagnn.data import Dataset, Split, choose_splits, load
from omegagnn.data.splits import by_year, from_column, from_masks, held_out, largest_component
from omegagnn.data.synthetic import csbm
from omegagnn.errors import DataError, WrongUse


def parts(split: Split) -> tuple[list[int], list[int], list[int]]:
    return split.train.tolist(), split.val.tolist(), split.test.tolist()


def graphs(count: int = 60, classes: int = 3) -> Dataset:
    none = Graph.from_edge_index(torch.zeros(2, 0, dtype=torch.long), count)
    labels = torch.arange(count) % classes * (torch.arange(count) % 4 > 0)
    return Dataset("many", "graph", none, torch.ones(count, 1), labels, ptr=torch.arange(count + 1))


@pytest.fixture(scope="module")
def big() -> Dataset:
    return csbm(nodes=4000, classes=4)


def test_draws_are_the_same_everywhere(big: Dataset) -> None:
    """The hashes were taken once; they change only where the draws do, which no version of anything may cause."""
    hashes = {text: [split.hash[:12] for split in choose_splits(big, text)] for text in RECORDED}
    assert hashes == RECORDED


RECORDED = {
    "random-20:2": ["fddf263cb2de", "fe4fe5d1c1e5"],
    "random-20@7": ["95f2690f97ca"],
    "diffusion:2": ["1f96c36d95a1", "d4027e755754"],
    "ratio:0.6,0.2:2": ["17de1ece8bd5", "29503a492b17"],
    "kfold:3": ["7c8c383b9d5e", "8fc1e3395539", "9f3676e527d4"],
}


@pytest.mark.parametrize(
    "text", ["random-20:5", "random-20:3@9", "diffusion:4", "ratio:0.5,0.25:3", "kfold:4", "kfold:3@2"]
)
def test_each_split_is_named_by_the_text_that_gives_it_alone(big: Dataset, text: str) -> None:
    splits = choose_splits(big, text)
    assert len({split.hash for split in splits}) == len(splits)
    for split in splits:
        (alone,) = choose_splits(big, split.name)
        assert alone.name == split.name
        assert alone.hash == split.hash


def test_counts_do_not_change_the_draws(big: Dataset) -> None:
    for few, many in (
        ("random-20:2", "random-20:6"),
        ("diffusion", "diffusion:3"),
        ("ratio:0.6,0.2", "ratio:0.6,0.2:4"),
    ):
        shorter, longer = choose_splits(big, few), choose_splits(big, many)
        assert [s.hash for s in shorter] == [s.hash for s in longer[: len(shorter)]]


def test_seeds_change_the_draws(big: Dataset) -> None:
    assert choose_splits(big, "random-20")[0].hash != choose_splits(big, "random-20@1")[0].hash
    assert choose_splits(big, "random-20@1")[0].name == "random-20@1#0"


def assert_disjoint(split: Split) -> None:
    every = torch.cat([split.train, split.val, split.test])
    assert len(every.unique()) == len(every)
    for part in (split.train, split.val, split.test):
        assert part.dtype == torch.int64
        assert torch.equal(part, part.sort().values)


def test_random_per_class(big: Dataset) -> None:
    for split in choose_splits(big, "random-30:5"):
        assert_disjoint(split)
        assert torch.bincount(big.labels[split.train]).tolist() == [30] * 4
        assert (len(split.val), len(split.test)) == (500, 1000)


def test_random_splits_are_uniform(big: Dataset) -> None:
    """Over 300 draws no node is taken for testing far more often than chance has it (a quarter of the time)."""
    hits = sum(torch.bincount(split.test, minlength=4000) for split in choose_splits(big, "random-20:300"))
    assert isinstance(hits, torch.Tensor)
    expected, sd = 300 * 1000 / 4000, (300 * 0.25 * 0.75) ** 0.5
    assert bool(((hits - expected).abs() < 5.5 * sd).all())
    assert abs(float(hits.double().std()) / sd - 1) < 0.1


def test_diffusion_draws_as_graph_neural_diffusion_does(shared_data: Path) -> None:
    cora = load("cora", "diffusion:100", root=shared_data)
    inside = set(largest_component(cora.graph).tolist())
    assert len(inside) == 2485
    assert len(cora.splits) == 100
    for split in cora.splits[:10]:
        assert_disjoint(split)
        assert torch.bincount(cora.labels[split.train]).tolist() == [20] * 7
        assert len(split.train) + len(split.val) == 1500
        assert {*split.train.tolist(), *split.val.tolist(), *split.test.tolist()} == inside


def test_the_largest_component_goes_by_edges_of_any_direction() -> None:
    graph = Graph.from_edge_index(torch.tensor([[1, 1, 5], [2, 3, 6]]), 7)
    assert largest_component(graph).tolist() == [1, 2, 3]
    assert largest_component(Graph.from_edge_index(torch.zeros(2, 0), 2)).tolist() == [0]


def test_ratio(big: Dataset) -> None:
    (split,) = choose_splits(big, "ratio:0.6,0.2")
    assert_disjoint(split)
    assert (len(split.train), len(split.val), len(split.test)) == (2400, 800, 800)
    (no_val,) = choose_splits(big, "ratio:0.9,0")
    assert (len(no_val.train), len(no_val.val), len(no_val.test)) == (3600, 0, 400)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 120), st.integers(2, 12), st.integers(1, 7), st.integers(0, 3))
def test_kfold_deals_evenly(count: int, folds: int, classes: int, seed: int) -> None:
    dataset = graphs(count, classes)
    folds = min(folds, count)
    splits = choose_splits(dataset, f"kfold:{folds}@{seed}")
    tested = torch.cat([split.test for split in splits])
    assert torch.equal(tested.sort().values, torch.arange(count))
    sizes = [len(split.test) for split in splits]
    assert max(sizes) - min(sizes) <= 1
    for split in splits:
        assert_disjoint(split)
        assert len(split.train) + len(split.val) + len(split.test) == count
    for number in range(classes):
        shares = [int((dataset.labels[split.test] == number).sum()) for split in splits]
        assert max(shares) - min(shares) <= 1


def test_kfold_holds_out_a_tenth_for_validation() -> None:
    dataset = graphs(400, 2)
    for split in choose_splits(dataset, "kfold:10"):
        assert (len(split.train), len(split.val), len(split.test)) == (324, 36, 40)
        whole = torch.bincount(dataset.labels).double() / 400
        for part in (split.train, split.val, split.test):
            share = torch.bincount(dataset.labels[part]).double() / len(part)
            assert bool(((share - whole).abs() < 1 / len(part)).all())


def test_unlabelled_nodes_are_in_no_random_split(big: Dataset) -> None:
    labels = big.labels.clone()
    labels[::2] = -1
    half = replace(big, labels=labels)
    for text in ("ratio:0.6,0.2", "random-20", "kfold:5#2", "diffusion"):
        (split,) = choose_splits(half, text)
        assert bool((torch.cat([split.train, split.val, split.test]) % 2 == 1).all())
    with pytest.raises(WrongUse, match="no labelled item to split"):
        choose_splits(replace(big, labels=torch.full((4000,), -1)), "ratio:0.6,0.2")


def test_numbers_and_many_labels_are_split_without_classes(big: Dataset) -> None:
    numbers = replace(big, labels=torch.linspace(0, 1, 4000))
    many = replace(big, labels=torch.ones(4000, 3))
    blocks = replace(many, task="inductive", ptr=torch.arange(0, 4001, 100))
    for dataset, items in ((numbers, 4000), (many, 4000), (blocks, 40)):
        for text in ("kfold:4", "ratio:0.5,0.25:4"):
            splits = choose_splits(dataset, text)
            assert len(splits) == 4
            for split in splits:
                assert_disjoint(split)
                assert len(split.train) + len(split.val) + len(split.test) == items
        for text in ("random-20", "diffusion"):
            with pytest.raises(WrongUse, match="needs one class an item"):
                choose_splits(dataset, text)


def test_source_splits_by_family_count_and_number(shared_data: Path) -> None:
    names = ["geom#0", "geom#1", "geom#2"]
    assert [split.name for split in load("texas", "geom:3", root=shared_data).splits] == names
    assert [split.name for split in load("texas", "geom#7", root=shared_data).splits] == ["geom#7"]
    assert [split.name for split in load("citeseer", "public", root=shared_data).splits] == ["public"]
    assert len(load("minesweeper", root=shared_data).splits) == 10
    for text in ("geom#10", "geom@1", "geom:x", "geom-3"):
        with pytest.raises(WrongUse, match=f"There is no split '{text}' for texas: choose one of geom, ratio"):
            load("texas", text, root=shared_data)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ":",
            "#3",
            "nonsense",
            "public#0",
            "public@3",
            "random",
            "random-",
            "random--20",
            "random-20:x",
        ),
        *("random-20:0", "random-20:99999", "random-20#x", "random-20@-1", "ratio", "ratio:", "ratio:0.5", "ratio:a,b"),
        *("ratio:0.5,0.2,0.1", "ratio:0.5,0.2:x", "kfold:x", "kfold:0", "diffusion:0", "PUBLIC "),
    ],
)
def test_other_texts_are_refused_with_the_choices(text: str) -> None:
    dataset = load("citeseer")
    with pytest.raises(WrongUse) as caught:
        choose_splits(dataset, text)
    message = str(caught.value)
    if text:
        with pytest.raises(WrongUse, match="choose one of public, geom, ratio"):
            load("citeseer", text)
    assert message.startswith(f"There is no split {text!r} for citeseer: choose one of public, ratio:0.6,0.2")
    assert message.count(". ") == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ratio:0.8,0.3", "leaves nothing to train or nothing to test"),
        ("ratio:0,0.3", "leaves nothing to train"),
        ("ratio:-0.5,0.3", "leaves nothing to train"),
        ("ratio:nan,0.3", "leaves nothing to train"),
        ("ratio:inf,0.3", "leaves nothing to train"),
        ("ratio:0.5,nan", "leaves nothing to train"),
        ("kfold:1", "take from 2 to 3327 folds"),
        ("kfold:9999", "take from 2 to 3327 folds"),
        ("kfold:5#5", "the folds are numbered 0 to 4"),
        ("random-400", "wants 400 items of every class, but class 0 of citeseer has 264"),
        ("random-0", "at least 1 item a class"),
    ],
)
def test_impossible_splits_say_why(text: str, sentence: str) -> None:
    with pytest.raises(WrongUse, match=re.escape(sentence)):
        choose_splits(load("citeseer"), text)


def test_small_data_sets_say_what_they_lack(shared_data: Path) -> None:
    texas = load("texas", root=shared_data)
    with pytest.raises(WrongUse, match="class 1 of texas has 1"):
        choose_splits(texas, "random-20")
    with pytest.raises(WrongUse, match=r"more than 1500 labelled nodes .* has 183 there"):
        choose_splits(texas, "diffusion")
    with pytest.raises(WrongUse, match="needs at least 1 item a class and 1502 items in all, but karate has 34"):
        choose_splits(load("karate"), "random-1")
    with pytest.raises(WrongUse, match="'diffusion' is for node classification"):
        choose_splits(graphs(), "diffusion")
    rare = csbm(nodes=4000)
    labels = rare.labels.clone()
    labels[:25] = 2
    with pytest.raises(WrongUse, match="wants 20 items of every class, but class 2"):
        choose_splits(replace(rare, labels=labels), "diffusion")


def test_columns() -> None:
    words = ["train", " Test", "", None, float("nan"), "VAL", "validation", "dev", "training", "testing", "valid"]
    split = from_column("mine", words)
    assert split.name == "mine"
    assert parts(split) == ([0, 8], [5, 6, 7, 10], [1, 9])
    with pytest.raises(DataError, match="column 'mine' says 'tset' in row 2"):
        from_column("mine", ["train", "tset"])
    assert parts(from_column("empty", [])) == ([], [], [])


def test_masks_and_years() -> None:
    assert parts(from_masks("m", [1, 0, 0], [0, 1, 0], [0, 0, 1])) == ([0], [1], [2])
    split = by_year(np.array([2019, 2017, 1971, 2018, 2020]))
    assert split.name == "time"
    assert parts(split) == ([1, 2], [3], [0, 4])


def test_a_split_of_a_users_own_is_found_by_its_name(big: Dataset) -> None:
    own = big.with_splits((from_column("by-hand", ["train", "val", "test"]),))
    assert [split.name for split in choose_splits(own, "by-hand")] == ["by-hand"]
    with pytest.raises(WrongUse, match=r"choose one of by-hand, ratio:0\.6,0\.2"):
        choose_splits(own, "by_hand")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.floats(0.01, 0.99), st.integers(0, 5))
def test_what_is_held_out_is_a_share_of_each_class(listed: list[int], share: float, seed: int) -> None:
    classes, items = np.array(listed), 7 + 3 * np.arange(len(listed))
    train, val = held_out(items, classes, share, seed)
    assert sorted([*train, *val]) == items.tolist()
    for number in np.unique(classes):
        size, held = (classes == number).sum(), np.isin(items[classes == number], val).sum()
        assert held == min(max(1, round(share * size)), size - 1)
    again = held_out(items, classes, share, seed)
    assert all(np.array_equal(one, other) for one, other in zip((train, val), again, strict=True))

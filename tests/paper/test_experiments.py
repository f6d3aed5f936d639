"""The tables and figures as data: nothing of the paper is left out, everything can be built, names and commands are good."""

from __future__ import annotations

import shlex

import pytest
import torch

from omegagnn.cli.completion import item_names
from omegagnn.errors import WrongUse
from omegagnn.paper.experiments import ALL, ITEMS, find_items, work_of
from omegagnn.paper.figures import PICTURES
from omegagnn.paper.networks import CHOICES, NETWORKS, at_equal_budget, compared
from omegagnn.paper.published import published
from omegagnn.paper.runner import Work
from omegagnn.paper.tables import RULES_IN_WORDS
from omegagnn.paper.trainings import Training, from_preset, unique
from omegagnn.training.build import build_net
from omegagnn.training.config import parse_setting
from omegagnn.training.presets.preset import read_preset
from omegagnn.training.protocol import PROTOCOLS


@pytest.fixture(scope="module")
def everything() -> list[Work]:
    return work_of(find_items([ALL]))


def test_every_table_with_results_is_an_item_and_every_figure_has_a_picture() -> None:
    assert {item.table for item in ITEMS.values() if item.table} == {
        key for key in published() if not key.endswith("-settings")
    }
    figures = {key for key, item in ITEMS.items() if item.table is None}
    assert figures == {picture.item for picture in PICTURES.values()}
    assert set(item_names("")) == {ALL, *ITEMS}
    assert set(RULES_IN_WORDS) == set(PROTOCOLS)


@pytest.mark.parametrize("key", [key for key, item in ITEMS.items() if item.table is not None])
def test_every_printed_number_of_ours_has_a_cell(key: str) -> None:
    item = ITEMS[key]
    table = published()[str(item.table)]
    places = {(cell.row, cell.column) for cell in item.cells()}
    if key == "semi-summary":  # turned over: data sets are its rows
        assert {cell.row for cell in item.cells()} >= {"GCN", "GAT", "APPNP", "GCNII", "superGAT", "ωGCN", "ωGAT"}
    elif item.measurements and key != "runtimes":
        assert {each.tag.removeprefix("statistics-") for each in item.measurements} >= set(table.columns)
    else:
        ours = [row for row in table.rows if "ω" in row or row == "Accuracy"]
        assert ours
        missing = [(row, column) for row in ours for column in table.columns if (row, column) not in places]
        assert not missing


def test_names_and_tags_tell_trainings_apart(everything: list[Work]) -> None:
    assert len({each.name for each in everything}) == len({each.tag for each in everything}) == len(everything) > 800


def test_quick_is_less_of_everything(everything: list[Work]) -> None:
    quick = work_of(find_items([ALL]), quick=True)
    trainings = [each for each in quick if isinstance(each, Training)]
    assert len(quick) < len(everything)
    assert all(each.config.training.epochs == 2 and each.seeds <= 2 and each.splits == 2 for each in trainings)
    full = {each.tag for each in everything if isinstance(each, Training)}
    assert not full & {each.tag for each in trainings}
    for item in ITEMS.values():  # every item is present in both
        assert item.work(quick=True) or item.table == "semi-summary"
        assert item.work(quick=False)


def test_what_the_paper_claims_comes_before_what_it_is_compared_with(everything: list[Work]) -> None:
    counts = [len(each.choices) for each in everything if isinstance(each, Training)]
    assert counts == sorted(counts)


def test_every_network_gets_the_same_number_of_choices() -> None:
    assert {len(network.choices) for network in NETWORKS.values()} == {CHOICES}
    budgets = {
        tuple(
            getattr(at_equal_budget(network, "cora", "semi", 2).config.training, key) for key in ("epochs", "patience")
        )
        for network in compared("semi")
    }
    assert len(budgets) == 1


@pytest.mark.parametrize("title", NETWORKS)
def test_every_network_can_be_built(title: str) -> None:
    task = NETWORKS[title].tasks[-1]
    config = at_equal_budget(NETWORKS[title], "texas", task, NETWORKS[title].depth).config
    net = build_net(config.model, 5, 3, "node", torch.tensor([0, 1]))
    assert sum(parameter.numel() for parameter in net.parameters()) > 0


def test_a_published_cell_is_its_preset_and_says_the_command() -> None:
    cells = [cell for cell in ITEMS["semi-depth"].cells() if cell.row == "ωGCN" and cell.column == "cora-64"]
    (cell,) = cells
    assert cell.published is not None
    assert cell.published.config == read_preset("semi/cora-omega-gcn-64").config
    assert cell.published.command == "omegagnn train --preset semi/cora-omega-gcn-64"
    assert cell.published.rules == ("validation-accuracy",)
    assert cell.printed is not None
    assert cell.printed.value == 85.9


def test_commands_are_those_of_the_command_line(everything: list[Work]) -> None:
    for training in everything:
        command = training.command if isinstance(training, Training) else None
        if command is None or not isinstance(training, Training):
            continue
        words = shlex.split(command)
        assert words[:3] == ["omegagnn", "train", "--preset"]
        values = dict(parse_setting(words[k + 1]) for k, word in enumerate(words) if word == "--set")
        named = {"--layers": "model.layers", "--split": "data.split", "--epochs": "training.epochs"}
        for option, key in named.items():
            if option in words:
                text = words[words.index(option) + 1]
                values[key] = int(text) if text.isdecimal() else text
        seeds = int(words[words.index("--seeds") + 1]) if "--seeds" in words else read_preset(words[3]).runs_per_split
        assert (read_preset(words[3]).config.with_values(values), seeds) == (training.config, training.seeds), command


def test_equal_trainings_are_one_that_keeps_what_each_wants() -> None:
    first = from_preset("semi/cora-omega-gcn-64", "semi-cora", "a")
    second = from_preset("semi/cora-omega-gcn-64", "semi-cora", "b", rules=("gcnii",), also=("map",))
    (merged,) = unique([first, second, first])
    assert (merged.name, merged.rules, merged.also) == ("a", ("validation-accuracy", "gcnii"), ("map",))
    assert merged.tag == first.tag


def test_items_are_found_and_chosen_by_words() -> None:
    assert [item.key for item in find_items(["euler", "tu", "tu"])] == ["tu", "euler"]
    with pytest.raises(WrongUse, match="There is no item 'semi-dept': did you mean semi-depth"):
        find_items(["semi-dept"])
    with pytest.raises(WrongUse, match="There is no item '12': `omegagnn reproduce list`"):
        find_items(["12"])
    depth = find_items(["semi-depth"])
    found = work_of(depth, only=["cora 64 published"])
    assert [each.name for each in found] == [
        "semi cora, ωGCN, 64 layers, published",
        "semi cora, ωGAT, 64 layers, published",
    ]
    (alone,) = work_of(depth, only=["semi cora, GCN, 2 layers, chosen"])  # and not "GCN, K from I", which has its words
    assert alone.name == "semi cora, GCN, 2 layers, chosen"
    with pytest.raises(WrongUse, match="No training has all words of 'texas' in its name"):
        work_of(depth, only=["texas"])

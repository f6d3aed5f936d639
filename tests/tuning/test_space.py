"""Spaces: what is read, what is refused, what may differ within a batch."""

from __future__ import annotations

import pytest

from omegagnn.errors import WrongUse
from omegagnn.nn.baselines import BASELINES
from omegagnn.training.build import OMEGA_MODELS, build_net
from omegagnn.training.config import RunConfig
from omegagnn.tuning.space import Choice, Range, Space, default_space, parse_dimension, parse_search


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("1e-4..1e-1:log", Range(1e-4, 1e-1, log=True)),
        ("0.2 .. 0.8", Range(0.2, 0.8)),
        ("-1..1", Range(-1.0, 1.0)),
        ("[2, 4]", Choice((2, 4))),
        ("[null, layer, 1e-3, true]", Choice((None, "layer", 1e-3, True))),
    ],
)
def test_dimensions_are_read_and_written(text: str, dimension: Range | Choice) -> None:
    assert parse_dimension(text) == dimension
    assert parse_dimension(str(dimension)) == dimension


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("training.lr_oc", r"--search takes key=range"),
        ("training.lr_oc=0.01", "neither a range"),
        ("training.lr_oc=a..b", "ends must be numbers"),
        ("training.lr_oc=2..1", "the first number must be smaller"),
        ("training.lr_oc=0..1:log", "above 0 for :log"),
        ("model.layers=[]", "needs values"),
        ("model.layers=[[1]]", "among numbers, words"),
        ("model.layers=[1", "neither a range"),
    ],
)
def test_faults_are_one_sentence(word: str, sentence: str) -> None:
    with pytest.raises(WrongUse, match=sentence):
        parse_search(word)


@pytest.mark.parametrize("name", [*OMEGA_MODELS, *BASELINES])
def test_the_default_space_fits_the_network(name: str) -> None:
    import torch

    config = RunConfig().with_values({"model.name": name})
    space = default_space(config)
    assert {"training.lr_oc", "training.wd_oc"} <= set(space.own())
    assert ("training.lr_omega" in space.own()) == (name in OMEGA_MODELS)
    if name == "linkx":
        return  # it is built for a graph of one size, which a run gives it
    largest = {key: choice.values[-1] for key, choice in space.shared().items() if isinstance(choice, Choice)}
    net = build_net(config.with_values({**largest, "model.channels": 8}).model, 5, 3, "node", torch.tensor([1]))
    assert sum(parameter.numel() for parameter in net.parameters())


def test_rates_and_decays_differ_within_a_batch_and_nothing_else() -> None:
    space = Space.from_dict(
        {"training.lr_gnn": "1e-4..1e-1:log", "training.epochs": "[10, 20]", "model.dropout": "[0.1, 0.2]"}
    )
    assert set(space.own()) == {"training.lr_gnn"}
    assert set(space.shared()) == {"training.epochs", "model.dropout"}
    assert set(space.without(["model.dropout"]).dimensions) == {"training.lr_gnn", "training.epochs"}
    assert Space.from_dict(space.to_dict()) == space

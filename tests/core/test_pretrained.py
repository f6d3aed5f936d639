"""A network in a folder: the same bits come back, whatever it was made with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from assertions import assert_same_bits, perturb

from omegagnn import OmegaNet, OmegaWeight
from omegagnn.errors import OmegaError, WrongUse

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
X = torch.arange(15.0).reshape(3, 5).sin()
NETS: dict[str, dict[str, Any]] = {
    "plain": {},
    "global": {"omega": "global"},
    "fixed": {"omega": 0.5},
    "gat": {"conv": "gat", "heads": 2, "norm": "batch"},
    "graph": {"task": "graph", "omega": "global"},
    "runs": {"runs": 3, "omega": "global", "norm": "batch"},
    "authors": {"variant": "authors", "conv": "gat", "bias": True},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("in_channels", [5, -1])
@pytest.mark.parametrize("name", NETS)
def test_a_network_comes_back_with_the_same_bits(
    name: str, in_channels: int, dtype: torch.dtype, tmp_path: Path
) -> None:
    net = OmegaNet(in_channels, 4, 2, 3, **NETS[name])
    net(X, EDGES)
    perturb(net)
    net = net.to(dtype).eval()
    net.save_pretrained(tmp_path / "net")
    again = OmegaNet.from_pretrained(tmp_path / "net")
    assert not again.training
    assert_same_bits(again(X.to(dtype), EDGES), net(X.to(dtype), EDGES))
    assert repr(again) == repr(net)
    assert sorted(path.name for path in (tmp_path / "net").iterdir()) == [
        "README.md", "config.json", "model.safetensors",
    ]  # fmt: skip


def test_a_global_weight_is_stored_once_and_stays_shared(tmp_path: Path) -> None:
    OmegaNet(5, 4, 3, 2, omega="global").save_pretrained(tmp_path)
    assert sum("omega" in name for name in safetensors.torch.load_file(tmp_path / "model.safetensors")) == 1
    convs: Any = OmegaNet.from_pretrained(tmp_path).convs
    assert convs[0].omega is convs[2].omega


def test_the_card_says_what_it_is_or_what_it_is_told(tmp_path: Path) -> None:
    net = OmegaNet(-1, 4, 1, 2)
    net(X, EDGES)
    net.save_pretrained(tmp_path)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| `in_channels` | 5 |" in card
    assert 'net = OmegaNet.from_pretrained("FOLDER")' in card
    net.save_pretrained(tmp_path, card="# Mine\n")
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "# Mine\n"


def test_a_network_that_no_file_can_say_is_refused(tmp_path: Path) -> None:
    shared: Any = OmegaWeight()
    with pytest.raises(WrongUse, match=r"^The network was made with a OmegaWeight for omega, which no file can say"):
        OmegaNet(5, 4, 1, 2, omega=shared).save_pretrained(tmp_path / "net")
    assert not (tmp_path / "net").exists()
    with pytest.raises(RuntimeError, match="does not know its input size yet"):
        OmegaNet(-1, 4, 1, 2).save_pretrained(tmp_path / "net")


def test_a_folder_whose_parts_do_not_fit_is_told(tmp_path: Path) -> None:
    OmegaNet(5, 4, 2, 3).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    for change in ({"num_layers": 3}, {"hidden_channels": 8}, {"colour": "red"}, {"conv": "gta"}):
        other = {**config, "settings": {**config["settings"], **change}}
        (tmp_path / "config.json").write_text(json.dumps(other), encoding="utf-8")
        with pytest.raises(OmegaError, match=r"do not fit each other \(.+\); fetch or save it again\.$"):
            OmegaNet.from_pretrained(tmp_path)

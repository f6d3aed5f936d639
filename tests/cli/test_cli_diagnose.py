"""``omegagnn diagnose`` as a user calls it: on runs of every task and on models of one's own."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training"))
from tiny import DATASETS

from omegagnn import fit
from omegagnn.cli import main
from omegagnn.data.cache import save_dataset
from omegagnn.training.config import RunConfig, parse_setting
from omegagnn.training.diagnosing import diagnose_run, remedies

POOLED = """
import torch
from torch_geometric.nn import GCNConv


class Net(torch.nn.Module):
    def __init__(self, in_channels, num_classes):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = GCNConv(in_channels, 8), GCNConv(8, 8)
        self.out = torch.nn.Linear(8, num_classes)

    def forward(self, x, edge_index, batch=None):
        f = self.out(self.second(self.first(x, edge_index).tanh(), edge_index).tanh())
        return f if batch is None else torch.zeros(int(batch.max()) + 1, f.size(1)).index_add(0, batch, f)


make = Net
"""

Capture = pytest.CaptureFixture[str]

MODEL = """
import torch
from torch_geometric.nn import GCN

from neighbour import CHANNELS


def make(in_channels, num_classes):
    torch.manual_seed(0)
    return GCN(in_channels, CHANNELS, num_layers=3, out_channels=num_classes)


def wrong(in_channels, num_classes):
    return "a model"


def fails(in_channels, num_classes):
    raise RuntimeError("no such width")


class Blind(torch.nn.Linear):
    def forward(self, x, edge_index):
        return super().forward(x.nonsense)


def blind(in_channels, num_classes):
    return Blind(in_channels, num_classes)
"""


def call(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of each task, of ωGNN and of baselines, in one journal; its data root is beside."""
    folder = tmp_path_factory.mktemp("diagnose")
    for task, make in DATASETS.items():
        save_dataset(make(), folder / "data" / "own" / f"tiny-{task}" / "dataset.npz")
    for model in ("omega-gcn", "omega-gat", "gcn", "sgc"):
        for make in DATASETS.values():
            settings = {"model__name": model, "model__channels": 8, "training__epochs": 3, "training__batch_size": 8}
            fit(make(), seeds=2, splits="0", runs_dir=folder / "runs", data__split=None, **settings)
    fit("karate", seeds=2, runs_dir=folder / "runs", model__channels=8, training__epochs=5)
    return folder


def name_of(runs: Path, capsys: Capture, dataset: str, model: str) -> str:
    assert call("runs", "list", "--runs-dir", runs / "runs", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    return next(row["run"] for row in rows if (row["dataset"], row["model"]) == (dataset, model))


@pytest.mark.parametrize("model", ["omega-gcn", "omega-gat", "gcn", "sgc"])
@pytest.mark.parametrize("task", list(DATASETS))
def test_every_task_and_model(task: str, model: str, runs: Path, tmp_path: Path, capsys: Capture) -> None:
    dataset = DATASETS[task]()
    save_dataset(dataset, tmp_path / "own" / dataset.name / "dataset.npz")
    run = name_of(runs, capsys, dataset.name, model)
    assert call("diagnose", run, "--runs-dir", runs / "runs", "--data-root", tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["members"] == 2
    assert found["subject"].startswith(f"{model}, 2 layers on {dataset.name}")
    assert all(each["sentence"] for each in found["reading"])
    last = found["layers"][-1]
    assert last["gradient"] is not None
    assert last["within"] is not None
    assert (found["thresholds"] is None) == (not model.startswith("omega"))
    if model != "sgc":
        assert [row["layer"] for row in found["layers"]] == ["input", "convs.0", "convs.1"]


def test_a_run_as_text_with_a_picture(runs: Path, tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "depth.svg"
    assert call("diagnose", "last", "--runs-dir", runs / "runs", "--out", picture) == 0
    out = capsys.readouterr()
    assert "mean of 2 members" in out.out
    assert re.search(r"layer\tfeatures behind\tchannels\tE/E⁰", out.out)
    assert "thresholds of the graph: ω = 1 is the GCN" in out.out
    assert re.search(r"^(well|note|PROBLEM): ", out.out, re.MULTILINE)
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert str(picture) in out.err
    assert call("diagnose", "last", "--member", "1", "--runs-dir", runs / "runs", "--out", tmp_path / "depth.png") == 0
    assert "member 1 of 2" in capsys.readouterr().out
    assert (tmp_path / "depth.png").read_bytes().startswith(b"\x89PNG")


def test_every_remedy_names_options_that_exist(tmp_path: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert call("train", "--help") == 0
    known = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
    configs = [
        {"model.name": "gcn"}, {"model.name": "gat"}, {}, {"model.omega": 0.5}, {"training.lr_gnn": 0.01},
        {"model.init": "glorot"},
    ]  # fmt: skip
    for values in configs:
        config = RunConfig().with_values(values)
        for sentence in remedies(config).values():
            for setting in re.findall(r"--set ('[^']*'|\S+)", sentence):
                key, value = parse_setting(shlex.split(setting.rstrip(".,;"))[0])
                config.with_values({key: value})
            assert set(re.findall(r"--[a-z][a-z-]*", sentence)) <= known, sentence


def test_the_first_member_stands_for_all_where_all_are_costly(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("omegagnn.training.diagnosing.CHEAP", 1)
    assert call("diagnose", "last", "--runs-dir", runs / "runs") == 0
    assert "member 0 of 2" in capsys.readouterr().out


def test_a_model_of_ones_own(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("CHANNELS = 8\n")
    place = f"{tmp_path / 'mine.py'}:make"
    assert call("diagnose", place, "--data", "karate", "--json") == 0
    untrained = json.loads(capsys.readouterr().out)
    assert "untrained" in untrained["subject"]
    assert [row["layer"] for row in untrained["layers"]] == ["input", "convs.0", "convs.1", "convs.2"]
    torch.manual_seed(0)
    from torch_geometric.nn import GCN

    model = GCN(34, 8, num_layers=3, out_channels=2)
    state = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    save_file(state, tmp_path / "zeros.safetensors")
    assert call("diagnose", place, "--data", "karate", "--weights", tmp_path / "zeros.safetensors") == 0
    assert "PROBLEM: The network is dead" in capsys.readouterr().out
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize("task", ["inductive", "regression", "graph"])
def test_a_model_of_ones_own_on_other_tasks(task: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine.py").write_text(POOLED)
    name = "gradient-task" if task == "regression" else f"tiny-{task}"
    if task != "regression":
        save_dataset(DATASETS[task](), tmp_path / "own" / name / "dataset.npz")
    place = f"{tmp_path / 'mine.py'}:make"
    assert call("diagnose", place, "--data", name, "--data-root", tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["layer"] for row in found["layers"]] == ["input", "first", "second"]
    assert all(row["gradient"] is not None for row in found["layers"])
    assert (found["facts"]["score"] is None) == (task != "graph")


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        (["{}/mine.py"], "write FILE.py:FACTORY", 2),
        (["{}/none.py:make"], "There is no file", 2),
        (["{}/mine.py:nothing"], "There is no function 'nothing'", 2),
        (["{}/mine.py:wrong"], "returned str: it must return a torch module", 2),
        (["{}/mine.py:fails"], "failed with RuntimeError (no such width)", 1),
        (["{}/mine.py:blind"], "forward failed with AttributeError", 1),
        (["{}/broken.py:make"], "importing it failed with SyntaxError", 1),
        (["{}/mine.py:make", "--weights", "w.pt"], "must be a .safetensors file", 2),
        (["{}/mine.py:make", "--weights", "{}/other.safetensors"], "does not fit the model", 2),
        (["{}/mine.py:make", "--member", "0"], "--member belongs to a run", 2),
        (["last", "--data", "cora"], "--data belongs to a model of your own", 2),
        (["last", "--out", "p.pdf"], "must end in .svg or .png", 2),
        (["nobody"], "There is no run 'nobody'", 2),
        (["last", "--member", "7"], "has members 0 to 1, not 7", 2),
    ],
)
def test_wrong_use_is_one_sentence(
    arguments: list[str], sentence: str, code: int, runs: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("CHANNELS = 8\n")
    (tmp_path / "broken.py").write_text("def make(:\n")
    save_file({"a": torch.zeros(1)}, tmp_path / "other.safetensors")
    options = ["--runs-dir", str(runs / "runs"), *([] if arguments[0] in ("last", "nobody") else ["--data", "karate"])]
    assert call("diagnose", *(each.format(tmp_path) for each in arguments), *options) == code
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert sentence in error


def test_an_unfinished_run_and_other_data_are_refused(tmp_path: Path, runs: Path) -> None:
    result = fit("karate", seeds=1, runs_dir=tmp_path, training__epochs=2)
    data = DATASETS["node"]()
    with pytest.raises(ValueError, match=r"is not what .* was trained on"):
        diagnose_run(result, data)
    result.journal.update(result.run, status="interrupted")
    result.__dict__.pop("row", None)
    with pytest.raises(ValueError, match="is interrupted, not done: finish it with `omegagnn train --resume"):
        diagnose_run(result, data)

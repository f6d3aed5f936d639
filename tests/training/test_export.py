"""Exported programs give the original's outputs, on graphs of any size, in a process that knows nothing of this package."""

from __future__ import annotations

import json
import pickletools
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from tiny import DATASETS, graph_dataset, node_dataset

from omegagnn import Graph, Predictor, fit
from omegagnn.data.dataset import Dataset
from omegagnn.errors import OmegaError, WrongUse
from omegagnn.nn.baselines import BASELINES
from omegagnn.training import export
from omegagnn.training.export import export_member, program_inputs
from omegagnn.training.prediction import CPU

# The exporters touch deprecated corners of torch itself.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

MODELS: dict[str, dict[str, Any]] = {
    "gcn": {},
    "gat": {"model__name": "omega-gat", "model__heads": 2},
    "authors": {"model__variant": "authors"},
    "rich": {"model__norm": "batch", "model__bias": True, "model__residual": "initial", "model__omega": "global"},
    "double": {"training__precision": "float64"},
    "half": {"training__precision": "bfloat16"},
    "fixed": {"model__omega": 0.5},
}
QUICK = {("gcn", ".pt2"), ("gat", ".onnx")}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Predictor]:
    """A function that trains for an epoch and returns the predictor."""
    folder = tmp_path_factory.mktemp("runs")

    def train(dataset: Dataset, **values: Any) -> Predictor:
        settings = {"training__epochs": 1, "model__channels": 4, **values}
        return fit(dataset, runs_dir=folder, **settings).predictor

    return train


SLOW = pytest.mark.slow  # seconds each, as the exporters are


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        pytest.param(name, ending, marks=() if (name, ending) in QUICK else SLOW)
        for name in MODELS
        for ending in (".pt2", ".onnx")
    ],
)
def test_a_program_gives_the_outputs_of_the_network(
    name: str, ending: str, trained: Callable[..., Predictor], tmp_path: Path
) -> None:
    dataset = node_dataset(sparse=name == "gcn")
    made = export_member(trained(dataset, seeds=2, **MODELS[name]), tmp_path / f"m{ending}", 1, dataset)
    assert list(made.differences) == [
        "a made graph of 12 nodes", "a made graph of 23 nodes", "tiny-nodes",
    ]  # fmt: skip
    assert max(made.differences.values()) < (1e-12 if name == "double" else 1e-5)
    assert made.path.stat().st_size == made.bytes
    assert ("weight" in made.inputs) == (name != "gat")


@pytest.mark.parametrize(
    ("task", "ending"),
    [
        ("graph", ".onnx"),
        pytest.param("graph", ".pt2", marks=SLOW),
        pytest.param("inductive", ".pt2", marks=SLOW),
        pytest.param("inductive", ".onnx", marks=SLOW),
    ],
)
def test_whole_graphs_and_nodes_of_many_graphs(
    task: str, ending: str, trained: Callable[..., Predictor], tmp_path: Path
) -> None:
    dataset = DATASETS[task]()
    other = graph_dataset(graphs=14) if task == "graph" else dataset
    made = export_member(trained(dataset), tmp_path / f"m{ending}", 0, other)
    assert ("ptr" in made.inputs) == (task == "graph")
    assert made.differences[dataset.name] < 1e-5


@pytest.mark.parametrize(
    "name", ["gin", *(pytest.param(name, marks=SLOW) for name in sorted(set(BASELINES) - {"gin", "linkx"}))]
)
def test_baselines_are_exported_too(name: str, trained: Callable[..., Predictor], tmp_path: Path) -> None:
    dataset = node_dataset()
    made = export_member(trained(dataset, model__name=name), tmp_path / "m.pt2", 0, dataset)
    assert max(made.differences.values()) < 1e-5


def test_a_network_made_for_one_graph_says_that_it_cannot_be_exported(
    trained: Callable[..., Predictor], tmp_path: Path
) -> None:
    predictor = trained(node_dataset(), model__name="linkx", model__options={"num_nodes": 60})
    with pytest.raises(OmegaError, match=r"^LINKX cannot be exported to torch\.export \(.+\): save it as a folder"):
        export_member(predictor, tmp_path / "m.pt2", 0)
    assert not (tmp_path / "m.pt2").exists()


ALONE = """
import sys, json
sys.modules["omegagnn"] = None  # whoever asks for it fails
from safetensors.torch import load_file
inputs, logits = load_file("inputs.safetensors"), load_file("logits.safetensors")["logits"]
if sys.argv[1] == "m.pt2":
    import torch
    facts = {"omegagnn.json": ""}
    found = torch.export.load("m.pt2", extra_files=facts).module()(**inputs)
    labels = json.loads(facts["omegagnn.json"])["labels"]
else:
    import onnx, onnxruntime, torch
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    found = torch.from_numpy(session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})[0])
    labels = json.loads({p.key: p.value for p in onnx.load("m.onnx").metadata_props}["omegagnn.labels"])
assert found.shape == logits.shape and float((found - logits).abs().max()) < 1e-5
print(labels)
"""


@pytest.mark.parametrize("name", [pytest.param("m.pt2", marks=SLOW), "m.onnx"])
def test_a_program_runs_without_this_package(name: str, trained: Callable[..., Predictor], tmp_path: Path) -> None:
    dataset = node_dataset()
    predictor = trained(dataset)
    export_member(predictor, tmp_path / name, 0)
    with predictor.working(dataset, CPU) as task:
        inputs = program_inputs(predictor.single(0), task)
    safetensors.torch.save_file(inputs, tmp_path / "inputs.safetensors")
    safetensors.torch.save_file({"logits": predictor.logits(dataset)}, tmp_path / "logits.safetensors")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['0', '1', '2']"


def test_a_pt2_file_of_ours_holds_no_pickle(trained: Callable[..., Predictor], tmp_path: Path) -> None:
    export_member(trained(node_dataset()), tmp_path / "m.pt2", 0)
    with zipfile.ZipFile(tmp_path / "m.pt2") as archive:
        contents = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
    weights = json.loads(contents["data/weights/model_weights_config.json"])["config"]
    assert weights
    assert not any(entry["use_pickle"] for entry in weights.values())
    assert not json.loads(contents["data/constants/model_constants_config.json"])["config"]
    for name, content in contents.items():
        if content and not name.startswith(("data/weights/weight_", "models/")):
            with pytest.raises(ValueError, match=r".*"):
                list(pickletools.genops(content))
    assert contents["data/sample_inputs/model.pt"] == b"", "example inputs would be a pickle"


def test_a_program_that_differs_is_not_written(
    trained: Callable[..., Predictor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor = trained(node_dataset())
    monkeypatch.setattr(export, "TOLERANCE", {torch.float32: -1.0})
    with pytest.raises(
        OmegaError, match=r"^The torch\.export program differs from the network by \S+ on .+ nothing was"
    ):
        export_member(predictor, tmp_path / "m.pt2", 0)
    assert not (tmp_path / "m.pt2").exists()


def test_names_and_data_that_do_not_fit_are_refused(trained: Callable[..., Predictor], tmp_path: Path) -> None:
    dataset = node_dataset()
    with pytest.raises(WrongUse, match=r"^m\.txt is no name for a program: end it in \.pt2 or \.onnx\.$"):
        export_member(trained(dataset), tmp_path / "m.txt", 0)
    with pytest.raises(WrongUse, match="The run has members 0 to 2, not 3"):
        export_member(trained(dataset), tmp_path / "m.pt2", 3)
    pairs, _ = dataset.graph.to_edge_index()
    heavy = Graph.from_edge_index(pairs, 60, torch.full((pairs.size(1),), 2.0))
    with pytest.raises(OmegaError, match="has edge weights that the network hands on as they are"):
        export_member(trained(dataset, model__name="mixhop"), tmp_path / "m.pt2", 0, replace(dataset, graph=heavy))
    made = export_member(trained(dataset), tmp_path / "m.pt2", 0, replace(dataset, graph=heavy, name="heavy"))
    assert made.differences["heavy"] < 1e-5


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime", "onnxscript"])
def test_without_its_packages_onnx_says_what_to_install(
    missing: str, trained: Callable[..., Predictor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(OmegaError, match=rf"^ONNX needs {missing}: pip install 'omegagnn\[onnx\]', or write a \.pt2"):
        export_member(trained(node_dataset()), tmp_path / "m.onnx", 0)

"""Presets: every file of the package is whole, right and sourced; faults are one sentence; layers lie as documented."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import node_dataset
from train_presets import DIVERGE

from omegagnn import fit
from omegagnn.data import find
from omegagnn.errors import WrongUse
from omegagnn.training.config import DEFAULT_JOB, RunConfig, parse_config
from omegagnn.training.presets.names import FOLDER, TASKS, preset_names, preset_path
from omegagnn.training.presets.preset import SOURCES, name_of, parse_preset, read_preset
from omegagnn.training.presets.settle import settle
from omegagnn.training.protocol import PROTOCOLS

ROOT = Path(__file__).resolve().parents[2]
TASK_OF = {"semi": "node", "full": "node", "inductive": "inductive", "graph": "graph", "tuned": "node"}


def tree(name: str = "semi/cora-omega-gcn-2") -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def test_the_paper_s_tables_are_all_there() -> None:
    counts = {task: len(preset_names(task)) for task in TASKS}
    # Three data sets, two networks, six depths, three scopes, and the two baselines of the run times; 2 x 9; 2; 2 x 5.
    assert counts == {"semi": 3 * 2 * 6 * 3 + 2, "full": 18, "inductive": 2, "graph": 10, "tuned": 7}
    assert sorted(preset_names()) == sorted(f"{p.parent.name}/{p.stem}" for p in FOLDER.rglob("*.yaml"))


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_is_whole(name: str) -> None:
    preset = read_preset(name)
    task, stem = name.split("/")
    assert name_of(preset.config) == stem
    assert find(preset.config.data.name).name == preset.config.data.name
    assert find(preset.config.data.name).task == TASK_OF[task]
    assert {value.source for value in preset.values.values()} <= set(SOURCES)
    given = tree(name)
    assert {f"{part}.{key}" for part in ("data", "model", "training") for key in given[part]} == set(preset.values)
    assert preset.runs_per_split >= 1
    assert (preset.published is None) == (task == "tuned")
    for score in filter(None, (preset.published, preset.measured)):
        assert score.rule is None or score.rule.value in PROTOCOLS
    measured = [key for key, value in preset.values.items() if value.source == "measured"]
    assert bool(measured) == (task == "tuned")


def test_hashes_are_of_values_alone() -> None:
    hashes = [read_preset(name).hash for name in preset_names()]
    assert len(set(hashes)) == len(hashes)
    content = tree()
    content["training"]["lr_gnn"]["note"] = "mended"
    content["about"] = "other words"
    assert parse_preset(content, "semi/cora-omega-gcn-2").hash == read_preset("semi/cora-omega-gcn-2").hash
    content["training"]["lr_gnn"]["value"] = 0.02
    assert parse_preset(content, "semi/cora-omega-gcn-2").hash != read_preset("semi/cora-omega-gcn-2").hash


def test_files_are_what_the_tool_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import make_presets

    for name, text in make_presets.presets().items():
        assert (FOLDER / f"{name}.yaml").read_text(encoding="utf-8") == text, f"run tools/make_presets.py: {name}"
    sys.modules.pop("make_presets")


def test_tuned_presets_are_what_the_studies_chose() -> None:
    study = json.loads((ROOT / "results" / "depth_cora.json").read_text(encoding="utf-8"))
    for row in study["rows"]:
        if row["row"] != "ωGCN, small rate for K":
            continue
        preset = read_preset(f"tuned/cora-omega-gcn-{row['layers']}")
        assert preset.measured is not None
        assert preset.measured.score == pytest.approx(row["test"]["mean"], abs=0.005)
        assert {key: preset.values[f"training.{key}"].value for key in row["chosen"]} == row["chosen"]
    job = read_preset("tuned/citeseer-omega-gcn-2").config
    assert (
        job.model_dump()
        == settle(values={"training.epochs": 300, "data.split": "public"})
        .model_copy(update={"data": job.data})
        .model_dump()
    )


def test_the_committed_outcome_of_the_slow_test_is_of_these_presets() -> None:
    outcome = json.loads((ROOT / "results" / "presets_train.json").read_text(encoding="utf-8"))
    assert {row["preset"]: row["hash"] for row in outcome["presets"]} == {
        name: read_preset(name).hash for name in preset_names()
    }, "run python tests/training/train_presets.py results/presets_train.json"
    assert {row["preset"] for row in outcome["presets"] if row["outcome"] != "trained"} == DIVERGE
    assert all(row["epochs"] == 3 for row in outcome["presets"] if row["outcome"] == "trained")


def changed(path: str, value: Any) -> dict[str, Any]:
    content = tree()
    node = content
    *parents, last = path.split("/")
    for part in parents:
        node = node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return content


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([], "must be a mapping with about"),
        (changed("name", "x"), "must not have a key 'name'"),
        (changed("abuot", "x"), r"there is no key 'abuot', did you mean 'about'\?"),
        (changed("about", None), "about is missing"),
        (changed("training/lr_gnn/source", "papr"), r"training.lr_gnn.source cannot be 'papr', did you mean 'paper'\?"),
        (changed("training/lr_gnn/source", None), "training.lr_gnn.source is missing"),
        (changed("training/lr_gnn/sauce", "x"), r"no key 'training.lr_gnn.sauce', did you mean 'source'\?"),
        (changed("training/lr_gnn", 0.01), r"training.lr_gnn must be written \{value: ..., source: ...\}, not 0.01"),
        (changed("training/lr_gnn", None), "lacks training.lr_gnn: give it a value and a source"),
        (changed("model/omega", None), "lacks model.omega"),
        (changed("training/lr_omga", {"value": 1, "source": "paper"}), r"did you mean 'training.lr_omega'\?"),
        (changed("training/lr_gnn/value", -1), "training.lr_gnn cannot be -1"),
        (changed("training/lr_gnn/value", "fast"), "training.lr_gnn cannot be 'fast'"),
        (changed("seeds/value", 0), "cannot be 0"),
        (changed("published/score", 120), "published.score cannot be 120"),
        (changed("published/rule/value", "honset"), r"names a rule 'honset' that does not exist, did you mean 'honest'\?"),
        (changed("model/layers/value", 4), "holds the settings of cora-omega-gcn-4: rename the file"),
    ],
)  # fmt: skip
def test_faults_are_one_sentence(content: Any, sentence: str) -> None:
    with pytest.raises(WrongUse, match=sentence) as caught:
        parse_preset(content, "semi/cora-omega-gcn-2").config
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("preset semi/cora-omega-gcn-2")


def test_names_that_are_not_there() -> None:
    with pytest.raises(WrongUse, match=r"no preset 'semi/cora-omega-gnc-64': did you mean .*semi/cora-omega-gcn-64"):
        preset_path("semi/cora-omega-gnc-64")
    with pytest.raises(WrongUse, match="`omegagnn presets list` shows what there is"):
        preset_path("zzz")
    with pytest.raises(WrongUse, match=r"There is no preset file mine\.yaml"):
        preset_path("mine.yaml")
    with pytest.raises(WrongUse, match=r"There is no task 'sem': did you mean semi\?"):
        preset_names("sem")


def test_names_stand_in_the_order_of_depth() -> None:
    depths = [name for name in preset_names("tuned") if "cora" in name]
    assert depths == [f"tuned/cora-omega-gcn-{depth}" for depth in (2, 4, 8, 16, 32, 64)]


# --------------------------------------------------------------------------------------------------------------- layers


def test_the_later_layer_wins() -> None:
    preset = read_preset("semi/cora-omega-gcn-64")
    below = settle(preset=preset)
    assert below == preset.config
    assert (below.data.name, below.model.layers, below.training.lr_gnn) == ("cora", 64, 0.01)
    file = parse_config({"training": {"lr_gnn": 0.5, "epochs": 7}})
    config = settle(None, preset, file, {"training.epochs": 5})
    assert (config.model.layers, config.training.lr_gnn, config.training.epochs) == (64, 0.5, 5)
    assert config.training.lr_oc == preset.config.training.lr_oc


def test_without_anything_it_is_the_default_job() -> None:
    assert settle() == RunConfig().with_values(DEFAULT_JOB)
    assert settle("citeseer") == RunConfig()
    assert settle(config=parse_config({"data": {"name": "karate"}})).data.name == "karate"


def test_names_are_the_registry_s() -> None:
    assert settle("Cora").data.name == "cora"
    assert settle("Cora").data.normalizes_rows
    assert settle("actor").data.name == "film"
    assert settle("csbm:nodes=50").data.name == "csbm:nodes=50"
    assert settle("my-own").data.name == "my-own"


def test_a_preset_is_for_its_data_set_unless_said_twice() -> None:
    preset = read_preset("semi/cora-omega-gcn-4")
    assert settle("Cora", preset) == preset.config
    with pytest.raises(WrongUse, match="is for cora, not for citeseer: take --preset semi/citeseer-omega-gcn-4, leave"):
        settle("citeseer", preset)
    with pytest.raises(WrongUse, match="is for cora, not for texas: leave texas out, or write --set"):
        settle("texas", preset)
    with pytest.raises(WrongUse, match="not for pubmed"):
        settle(None, preset, parse_config({"data": {"name": "pubmed"}}))
    elsewhere = settle(None, preset, None, {"data.name": "Texas", "data.split": "geom"})
    assert elsewhere.data.name == "texas"
    assert elsewhere.model == preset.config.model


def test_fit_takes_a_preset_and_writes_its_hash_down(tmp_path: Path) -> None:
    preset = read_preset("tuned/citeseer-omega-gcn-2")
    result = fit(preset=preset.name, seeds=[0], training__epochs=2, runs_dir=tmp_path)
    assert result.config == preset.config.with_values({"training.epochs": 2})
    found = result.to_dict()
    assert (found["preset"], found["preset_hash"]) == (preset.name, preset.hash)
    assert found["config_hash"] == result.config.hash
    assert len(found["split_hashes"]) == 1
    assert all(len(found[key]) == 64 for key in ("preset_hash", "config_hash"))


def test_one_s_own_preset_is_a_file_and_brings_its_seeds(tmp_path: Path) -> None:
    content = tree()
    content["data"]["name"] = {"value": "karate", "source": "assumed"}
    content["data"]["split"] = {"value": "leaders", "source": "assumed"}
    content["training"]["epochs"] = {"value": "2", "source": "assumed", "note": "text that is a number"}
    content["seeds"]["value"] = 3
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    result = fit(preset=str(path), runs_dir=tmp_path / "runs")
    assert result.row["dataset"] == "karate"
    assert result.test().n == 3
    assert result.row["preset"] == str(path)
    path.write_text("a: [\n")
    with pytest.raises(WrongUse, match="is not YAML"):
        read_preset(str(path))


def test_a_data_set_in_hand_needs_to_be_named_too(tmp_path: Path) -> None:
    dataset = replace(node_dataset(), name="mine")
    with pytest.raises(WrongUse, match="is for cora, not for mine"):
        fit(dataset, preset="semi/cora-omega-gcn-2", runs_dir=tmp_path)
    settings = {"data__name": "mine", "data__split": None, "training__epochs": 2}
    result = fit(dataset, preset="semi/cora-omega-gcn-2", seeds=1, splits=[0], runs_dir=tmp_path, **settings)
    assert result.row["dataset"] == "mine"
    assert result.config.model.dropout == 0.6

"""A model's folder: it predicts what the run predicts, says what it is, and nothing in it or read from it is a pickle."""

from __future__ import annotations

import io
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tiny import graph_dataset, node_dataset

from omegagnn import OmegaClassifier, OmegaNet, Predictor, fit
from omegagnn.data.own import from_pandas
from omegagnn.errors import OmegaError, WrongUse
from omegagnn.training.checkpoint import sha256
from omegagnn.training.fit import Result

QUICK: dict[str, Any] = {"training__epochs": 6, "model__channels": 4}
ANIMALS = pd.DataFrame({
    "id": [f"a{k}" for k in range(40)],
    "weight": [k % 2 * 3.0 + k / 40 for k in range(40)],
    "kind": ["cat" if k % 2 else "owl" for k in range(40)],
})  # fmt: skip
FRIENDS = pd.DataFrame({"source": [f"a{k}" for k in range(38)], "target": [f"a{k + 2}" for k in range(38)]})


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Result:
    dataset = from_pandas(ANIMALS, FRIENDS, name="zoo", label="kind", standardize=True)
    folder = tmp_path_factory.mktemp("runs")
    values = {**QUICK, "training__patience": None, "data__split": "ratio:0.6,0.2"}
    return fit(dataset, seeds=2, protocol="validation-accuracy", runs_dir=folder, **values)


@pytest.fixture(scope="module")
def saved(zoo: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "zoo"
    zoo.save_pretrained(folder)
    return folder


def test_a_folder_predicts_what_the_run_does_wherever_it_lies(zoo: Result, saved: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(saved, tmp_path / "moved")
    expected = zoo.predict((ANIMALS, FRIENDS))
    pd.testing.assert_frame_equal(Predictor.from_pretrained(moved).table((ANIMALS, FRIENDS)), expected)


def test_the_rule_of_the_run_goes_with_its_folders(zoo: Result, saved: Path) -> None:
    assert Predictor.from_pretrained(saved).rule == "validation-accuracy"
    assert Predictor.open(zoo.folder).rule == "validation-accuracy"


def test_the_folder_holds_weights_names_and_coding(zoo: Result, saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == [
        "README.md", "config.json", "data.json", "model.safetensors", "schema.json",
    ]  # fmt: skip
    assert sha256(saved / "model.safetensors") == sha256(zoo.folder / "model.safetensors")
    config = json.loads((saved / "config.json").read_text(encoding="utf-8"))
    assert config["labels"] == ["cat", "owl"]
    assert config["format"] == "omegagnn-model"
    schema = json.loads((saved / "schema.json").read_text(encoding="utf-8"))
    assert [column["name"] for column in schema["columns"]] == ["weight"]


def test_the_card_tells_data_metrics_protocol_and_limits(zoo: Result, tmp_path: Path) -> None:
    dataset = from_pandas(ANIMALS, FRIENDS, name="zoo", label="kind", standardize=True)
    from omegagnn.data import choose_splits

    zoo.save_pretrained(tmp_path / "m", dataset.with_splits(choose_splits(dataset, "ratio:0.6,0.2")))
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlibrary_name: omegagnn\n")
    for title in ("Use", "Data", "Metrics", "Protocol", "Limits", "Files"):
        assert f"\n## {title}\n" in card
    test = zoo.test()
    assert f"| **validation-accuracy** | validation | {test.mean:.2f} | {test.sd:.2f} |" in card
    assert "Test labels chose nothing." in card
    assert "Always answering the commonest class of training" in card
    assert "One test item is worth" in card  # of the audit
    assert f"SHA-256 `{sha256(tmp_path / 'm' / 'model.safetensors')}`" in card
    assert "| weight | number | 1 |" in card


def test_a_registered_data_set_brings_its_licence_and_its_problems(tmp_path: Path) -> None:
    result = fit("citeseer", runs_dir=tmp_path / "runs", **{**QUICK, "training__epochs": 1})
    result.save_pretrained(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert "| licence of the data | MIT" in card
    assert "15 nodes have citations but no words" in card
    assert "One seed on one split: the spread over others is unknown." in card


def test_an_optimistic_rule_is_called_so_in_the_card(tmp_path: Path) -> None:
    values = {**QUICK, "training__patience": None}
    result = fit(graph_dataset(), protocol="authors-tu", runs_dir=tmp_path / "runs", **values)
    result.save_pretrained(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert "**Test labels chose the epoch: the number is optimistic.**" in card
    assert "| weights | of the epochs that rule `honest` chose |" in card


def test_a_predictor_keeps_its_card_and_says_so_where_it_has_none(saved: Path, tmp_path: Path) -> None:
    predictor = Predictor.from_pretrained(saved)
    predictor.save_pretrained(tmp_path / "again")
    assert (tmp_path / "again" / "README.md").read_bytes() == (saved / "README.md").read_bytes()
    bare = OmegaClassifier(epochs=2, channels=4).fit(node_dataset().with_splits(()))
    bare.predictor_.save_pretrained(tmp_path / "bare")
    assert "Not told by who saved it" in (tmp_path / "bare" / "README.md").read_text(encoding="utf-8")


def test_a_folder_is_written_over_a_model_and_over_nothing_else(zoo: Result, saved: Path, tmp_path: Path) -> None:
    place = shutil.copytree(saved, tmp_path / "place")
    zoo.save_pretrained(place)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    for other in (tmp_path / "full", zoo.folder):
        with pytest.raises(WrongUse, match=r"holds something else: name a new one for the model\.$"):
            zoo.save_pretrained(other)
    with pytest.raises(WrongUse, match=r"is where the model lies already"):
        Predictor.from_pretrained(place).save_pretrained(place)
    (tmp_path / "file").touch()
    with pytest.raises(WrongUse, match=r"is a file: name a folder for the model\.$"):
        zoo.save_pretrained(tmp_path / "file")


# ------------------------------------------------------------------------------------------------------ nothing unpickled


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("exploded"),))


@pytest.mark.parametrize("kind", [OmegaNet, Predictor, OmegaClassifier])
@pytest.mark.parametrize("ending", [".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pt2", ".pth", ".joblib"])
def test_a_pickle_is_refused_by_name_and_in_a_folder(
    kind: Any, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    pickled = tmp_path / "model" / f"pytorch_model{ending}"
    pickled.write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "model" / "config.json").write_text("{}", encoding="utf-8")
    for place in (pickled, tmp_path / "model"):
        with pytest.raises(OmegaError, match=r"not loaded \(a pickle can run any code when it is read, so none is\)"):
            kind.from_pretrained(place)
    assert not Path("exploded").exists()


def network_of(read: Callable[..., Any], place: Path | str) -> Any:
    model = read(place)
    model = getattr(model, "predictor_", model)
    return model.network() if isinstance(model, Predictor) else model


@pytest.mark.parametrize("kind", [OmegaNet, Predictor, OmegaClassifier])
def test_a_pickle_under_the_name_of_weights_is_not_opened_either(
    kind: Any, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    OmegaNet(5, 4, 1, 2).save_pretrained("net")
    OmegaClassifier(epochs=2, channels=4).fit(node_dataset().with_splits(())).save_pretrained("classifier")
    place = {OmegaNet: Path("net"), Predictor: shutil.copytree(saved, "zoo"), OmegaClassifier: Path("classifier")}[kind]
    saved_by_torch = io.BytesIO()
    torch.save({"weight": torch.ones(2)}, saved_by_torch)
    for content in (pickle.dumps(Bomb()), b"", saved_by_torch.getvalue()):
        (Path(place) / "model.safetensors").write_bytes(content)
        with pytest.raises(OmegaError, match="damaged"):
            network_of(kind.from_pretrained, place)
    assert not Path("exploded").exists()


def test_what_is_no_model_is_told(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"^There is no folder nowhere: give one that holds config\.json"):
        Predictor.from_pretrained("nowhere")
    with pytest.raises(OmegaError, match=r"has no model\.safetensors: give the folder of a model"):
        Predictor.from_pretrained(tmp_path)
    with pytest.raises(OmegaError, match=r"holds no OmegaNet alone"):
        OmegaNet.from_pretrained(saved)
    with pytest.raises(OmegaError, match=r"holds no classifier: open it with omegagnn\.Predictor"):
        OmegaClassifier.from_pretrained(saved)
    OmegaNet(5, 4, 1, 2).save_pretrained(tmp_path / "net")
    with pytest.raises(WrongUse, match=r"holds a network without its data: open it with OmegaNet"):
        Predictor.from_pretrained(tmp_path / "net")
    for text in ("[]", "{", '{"config": {"model": {"name": 3}}}'):
        place = shutil.copytree(saved, tmp_path / "damaged", dirs_exist_ok=True)
        (place / "config.json").write_text(text, encoding="utf-8")
        with pytest.raises(OmegaError, match=r"config\.json"):
            Predictor.from_pretrained(place)


# ---------------------------------------------------------------------------------------------------------- classifiers


@pytest.mark.parametrize(
    "labels",
    [np.array(["ant", "bee"]), np.array([3, 7]), np.array([True, False]), np.array(["ant", "bee"], dtype=object)],
    ids=["texts", "numbers", "booleans", "objects"],
)
def test_a_classifier_comes_back_with_its_labels_and_answers(labels: np.ndarray, tmp_path: Path) -> None:
    frame = pd.DataFrame({"one": np.arange(30) % 2 + 0.1, "two": np.linspace(0, 1, 30)}, index=range(100, 130))
    edges = np.stack([np.arange(28), np.arange(2, 30)])
    model = OmegaClassifier(epochs=4, channels=4, seeds=2, settings={"training.lr_oc": 0.05})
    model.fit(frame, edges, labels[np.arange(30) % 2])
    model.save_pretrained(tmp_path / "m")
    again = OmegaClassifier.from_pretrained(str(tmp_path / "m"))
    pd.testing.assert_frame_equal(again.predict_proba(frame, edges), model.predict_proba(frame, edges))
    pd.testing.assert_series_equal(again.predict(frame, edges), model.predict(frame, edges))
    assert again.classes_.dtype == model.classes_.dtype
    assert again.get_params() == model.get_params()
    assert again.feature_names_in_.tolist() == ["one", "two"]
    np.testing.assert_array_equal(again.validation_scores_, model.validation_scores_)
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert f"{100 * model.validation_scores_.mean():.2f} %, mean of 2 seeds. It is no estimate for other nodes" in card
    again.save_pretrained(tmp_path / "twice")
    assert (tmp_path / "twice" / "README.md").read_text(encoding="utf-8") == card


def test_a_classifier_that_cannot_be_kept_says_why(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="is not fitted yet"):
        OmegaClassifier().save_pretrained(tmp_path / "m")
    model = OmegaClassifier(epochs=2, channels=4).fit(node_dataset().with_splits(()))
    model.settings = {"training.clip": object()}
    with pytest.raises(WrongUse, match="A parameter of the classifier is no plain value"):
        model.save_pretrained(tmp_path / "m")
    model.classes_ = np.array([(1, 2), (3, 4), None], dtype=object)
    with pytest.raises(WrongUse, match="The labels are of tuple, which no JSON file keeps"):
        model.save_pretrained(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_damaged_classifier_is_told(tmp_path: Path) -> None:
    OmegaClassifier(epochs=2, channels=4).fit(node_dataset().with_splits(())).save_pretrained(tmp_path / "m")
    for text in ("{", "{}", '{"kind": "U", "classes": ["a"], "validation_scores": []}'):
        (tmp_path / "m" / "classifier.json").write_text(text, encoding="utf-8")
        with pytest.raises(OmegaError, match=r"classifier\.json is damaged"):
            OmegaClassifier.from_pretrained(tmp_path / "m")

"""`omegagnn export`: a folder that predicts as the run does, programs that are checked, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from omegagnn.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home") / "runs"
    line = ["train", "karate", "--seeds", "2", "--epochs", "3", "--runs-dir", str(folder)]
    assert main([*line, "--set", "model.channels=4", "--json"]) == 0
    return folder


@pytest.fixture
def export(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.chdir(tmp_path)
    return lambda *words: main(["export", *words, "--runs-dir", str(runs)])


def test_a_folder_predicts_what_the_run_predicts(
    export: object, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("last", "--out", "model") == 0  # type: ignore[operator]
    shown = capsys.readouterr().out
    assert "model: 2 members of karate-omega-gcn-2-" in shown
    assert "weights of rule honest" in shown
    assert "omegagnn predict model --graph GRAPH --out predictions.csv" in shown
    assert main(["predict", "model", "--graph", "karate", "--out", "one.csv"]) == 0
    assert main(["predict", "last", "--graph", "karate", "--out", "two.csv", "--runs-dir", str(runs)]) == 0
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    assert export("last", "--out", "model", "--json") == 0  # type: ignore[operator]
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["form"] == "folder"
    assert told["files"] == ["README.md", "config.json", "data.json", "model.safetensors"]


def test_programs_are_compared_on_made_graphs_and_on_the_data(
    export: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("last", "--out", "m.pt2", "--member", "1", "--json") == 0  # type: ignore[operator]
    told = json.loads(capsys.readouterr().out)
    assert (told["form"], told["member"], told["dtype"]) == ("torch.export", 1, "float32")
    assert told["inputs"] == {
        "x": ["nodes", 34], "rowptr": ["nodes + 1"], "col": ["entries"], "weight": ["entries"],
    }  # fmt: skip
    assert list(told["differences"]) == ["a made graph of 12 nodes", "a made graph of 23 nodes", "karate"]
    assert max(told["differences"].values()) < 1e-5
    assert export("last", "--out", "m.onnx", "--member", "0", "--graph", "karate") == 0  # type: ignore[operator]
    shown = capsys.readouterr().out
    assert "member 0 of karate-omega-gcn-2-" in shown
    assert "takes      x [nodes, 34], rowptr [nodes + 1], col [entries], weight [entries]" in shown
    assert "checked    on karate: largest difference " in shown
    assert Path("m.onnx").is_file()


def test_a_model_folder_is_exported_without_the_journal(
    export: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("last", "--out", "model") == 0  # type: ignore[operator]
    facts = json.loads(Path("model/config.json").read_text(encoding="utf-8"))
    facts["config"]["data"]["name"] = "gone"
    Path("model/config.json").write_text(json.dumps(facts), encoding="utf-8")
    capsys.readouterr()
    assert main(["export", "model", "--out", "m.pt2", "--member", "0"]) == 0
    shown = capsys.readouterr()
    assert "on karate" not in shown.out
    assert "compared on made graphs only: There is no data set 'gone'" in shown.err


def test_data_that_is_gone_is_missed_in_the_card(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nodes.csv").write_text("id,size,kind\n" + "".join(f"{k},{k},{k % 2}\n" for k in range(20)), encoding="utf-8")
    Path("edges.csv").write_text("a,b\n" + "".join(f"{k},{k + 2}\n" for k in range(18)), encoding="utf-8")
    places = ("--data-root", "data")
    assert main(["data", "import", ".", "--name", "toy", "--label", "kind", *places]) == 0
    line = ("train", "toy", "--split", "ratio:0.6,0.2", "--epochs", "2", "--runs-dir", "runs", *places)
    assert main([*line, "--set", "model.channels=4"]) == 0
    shutil.rmtree("data")
    capsys.readouterr()
    assert main(["export", "last", "--out", "model", "--runs-dir", "runs", *places]) == 0
    assert "the card tells nothing of the data's audit: The data of toy-" in capsys.readouterr().err
    assert "The data was not audited for this card." in Path("model/README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("last --out m.txt", 2, "m.txt is neither a folder nor a program: end it in .pt2 or .onnx, or in nothing."),
        ("last --out m.pt2", 2, "The run has 2 members and a program holds one: choose with --member 0 to 1."),
        ("last --out m.pt2 --member 2", 2, "The run has members 0 to 1, not 2."),
        ("last --out m --member 1", 2, "A folder holds all members and is not compared: give --member and --graph"),
        ("last --out made.onnx --member 1", 2, "made.onnx is a folder: name a file."),
        ("last --out m.pt2 --member 1 --graph citeseer", 1, "citeseer has 3703 features, but the model was trained on"),
        ("last --out m.pt2 --member 1 --protocol gin", 2, "Weights are kept for honest and validation-accuracy only"),
        ("last --out full", 2, "The folder full holds something else: name a new one for the model."),
        ("weights.pt --out m.pt2", 1, "weights.pt is not loaded (a pickle can run any code when it is read"),
        ("lost --out m.pt2", 2, "no run"),
    ],
)
def test_wrong_use_is_one_sentence(
    export: object, words: str, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("made.onnx").mkdir()
    Path("full").mkdir()
    Path("full/thesis.tex").touch()
    assert export(*words.split()) == code  # type: ignore[operator]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert sentence in shown.err
    assert len([line for line in shown.err.splitlines() if not line.startswith("tracing")]) == 1
    assert not Path("m.pt2").exists()


def test_a_folder_of_a_folder_is_refused(export: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("last", "--out", "model") == 0  # type: ignore[operator]
    capsys.readouterr()
    assert main(["export", "model", "--out", "other"]) == 2
    assert "A folder is written from a run of the journal" in capsys.readouterr().err

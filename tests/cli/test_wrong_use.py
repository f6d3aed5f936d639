"""Wrong uses of every verb: exactly one sentence on stderr, nothing on stdout, and the right exit code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omegagnn.cli import main
from omegagnn.cli.verbs import VERBS

USES: list[tuple[str, int, str]] = [
    ("trian", 2, "No such command 'trian'"),
    ("--nothing", 2, "No such option: --nothing"),
    ("train karat", 2, "There is no data set 'karat': did you mean karate"),
    ("train karate more", 2, "unexpected extra argument"),
    ("train karate --seed 3", 2, "No such option: --seed"),
    ("train karate --seeds many", 2, "Invalid value for '--seeds'"),
    ("train karate --seeds 0", 2, "Invalid value for '--seeds'"),
    ("train karate --layers -1", 2, "model.layers cannot be -1"),
    ("train karate --omega chanel", 2, "model.omega cannot be 'chanel'"),
    ("train karate --model gnc", 2, "There is no model 'gnc'"),
    ("train karate --splits 9", 2, "karate has splits 0 to 0, not 9"),
    ("train karate --splits first", 2, "Splits are 'all' or numbers such as 0,3, not 'first'"),
    ("train karate --split publik", 2, "There is no split 'publik' for karate"),
    ("train karate --protocol best", 2, "There is no protocol 'best'"),
    ("train karate --device tpu", 2, "There is no device 'tpu'"),
    ("train karate --config none.yaml", 2, "There is no configuration file none.yaml"),
    ("train karate --set training.lr_omga=1", 2, "did you mean 'training.lr_omega'?"),
    ("train karate --set epochs", 2, "--set takes key=value"),
    ("train karate --set training.epochs=[", 2, "--set training.epochs takes a value"),
    ("train karate --set training.epochs=many", 2, "training.epochs cannot be 'many'"),
    ("train --preset semi/cora-omega-gnc-64", 2, "There is no preset 'semi/cora-omega-gnc-64': did you mean"),
    ("train --preset none.yaml", 2, "There is no preset file none.yaml"),
    ("train texas --preset semi/cora-omega-gcn-2", 2, "Preset semi/cora-omega-gcn-2 is for cora, not for texas"),
    ("train karate --set training.sampler=neighbour", 2, "training.sampler cannot be 'neighbour'"),
    ("train karate --set training.fan_outs=[0]", 2, "training.fan_outs cannot be [0]: give a list of numbers"),
    ("train karate --set training.shards=2", 2, "has no shards"),
    ("train karate --set training.sampler=node --set model.norm=pair", 2, "PairNorm takes the mean over all nodes"),
    ("train --resume last", 2, "There is no journal in"),
    ("train karate --resume last", 2, "A run goes on with the settings it began with"),
    ("presets list --task sem", 2, "There is no task 'sem': did you mean semi?"),
    ("presets show", 2, "Missing argument"),
    ("presets show semi/cora-omega-gcn", 2, "There is no preset 'semi/cora-omega-gcn': did you mean"),
    ("presets create none-1", 2, "There is no study 'none-1'"),
    ("presets sohw", 2, "No such command 'sohw'"),
    ("runs show", 2, "Missing argument"),
    ("runs show last", 2, "There is no journal in"),
    ("runs list", 2, "There is no journal in"),
    ("runs delete last", 2, "There is no journal in"),
    ("runs export all.csv", 2, "There is no journal in"),
    ("runs export all --format exel", 2, "There is no format 'exel'"),
    ("data fetch corra", 2, "did you mean cora"),
    ("data audit karat", 2, "There is no data set 'karat'"),
    ("data audit karate --split nonsense", 2, "There is no split 'nonsense' for karate"),
    ("data import --name zoo", 2, "Name either a folder or file to import"),
    ("data import nowhere --name zoo", 1, "There is no file or folder nowhere"),
    ("bench --threads 0", 2, "Invalid value for '--threads'"),
    ("evaluate last", 2, "There is no journal in"),
    ("evaluate last --member -1", 2, "Invalid value for '--member'"),
    ("predict last --graph zoo", 2, "Missing option '--out'"),
    ("predict last --graph zoo --out p.csv", 2, "There is no journal in"),
    ("export last", 2, "Missing option '--out'"),
    ("export last --out model", 2, "There is no journal in"),
    ("export last --out model.zip", 2, "model.zip is neither a folder nor a program"),
    ("export model.bin --out model.onnx", 1, "model.bin is not loaded (a pickle can run any code"),
    ("predict model.pt --graph zoo --out p.csv", 1, "model.pt is not loaded (a pickle can run any code"),
    ("diagnose last --out picture.pdf", 2, "picture.pdf must end in .svg or .png"),
    ("diagnose last --data cora", 2, "--data belongs to a model of your own"),
    ("diagnose model.py", 2, "'model.py' names no function: write FILE.py:FACTORY"),
    ("diagnose model.py:make", 2, "There is no file model.py"),
    ("report last", 2, "There is no journal in"),
    ("report", 2, "Missing argument"),
    ("report mine --storage s.log", 2, "There is no study 'mine' in s.log"),
    ("report last --out page.pdf", 2, "--out page.pdf is no name for a page"),
    ("explore --out page.pdf", 2, "--out page.pdf is no name for a page"),
    ("tune karate --trials 0", 2, "Invalid value for '--trials'"),
    ("tune karat", 2, "There is no data set 'karat'"),
    ("tune karate --search training.lr_oc=fast", 2, "neither a range"),
    ("reproduce semi-dept", 2, "There is no item 'semi-dept': did you mean semi-depth?"),
    ("reproduce run", 2, "Missing argument"),
    ("reproduce tu --only cora", 2, "No training has all words of 'cora' in its name"),
    ("reproduce euler --minutes -1", 2, "Invalid value for '--minutes'"),
    ("reproduce euler --device tpu", 2, "There is no device 'tpu'"),
    ("reproduce list nothing", 2, "There is no item 'nothing'"),
    ("reproduce merge nowhere", 2, "There are no results in nowhere"),
    ("reproduce report", 2, "There are no results in results/paper"),
    ("reproduce report --html page.md", 2, "--html page.md is no name for a page"),
    ("reproduce report --out page.html", 2, "--out page.html is no name for a page"),
    ("doctor now", 2, "unexpected extra argument"),
]


@pytest.mark.parametrize(("line", "code", "words"), USES, ids=[use[0] for use in USES])
def test_wrong_use_is_one_sentence(
    line: str,
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # where nothing was trained yet
    monkeypatch.setenv("OMEGAGNN_DATA", str(tmp_path))
    assert main(line.split()) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.fullmatch(r"omegagnn: [^\n]+[.?]\n", captured.err), captured.err
    assert words in captured.err
    assert not (tmp_path / "runs").exists(), "wrong use leaves nothing behind"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("runs show nothing", "There is no run 'nothing'"),
        ("runs show last --protocol best", "There is no protocol 'best'"),
        ("runs delete karate-none", "There is no run 'karate-none'"),
        ("runs export all.xls", "all.xls must end in .parquet, .csv or .json"),
        ("runs export all.csv --format json", "all.csv must end in .json, as --format says"),
        ("runs export all.csv --run last", "--run belongs to --format tensorboard"),
        ("runs export --format tensorboard --run nothing events", "There is no run 'nothing'"),
        ("train --resume last", "is done already"),
        ("train --resume nothing", "There is no run 'nothing'"),
        ("predict last --graph nowhere/ --out p.csv", "There is no file or folder nowhere/: check the path"),
        ("predict last --graph nodes.csv --out p.csv", "There is no file or folder nodes.csv"),
        ("predict last --graph karat --out p.csv", "There is no data set 'karat': did you mean karate"),
        ("diagnose last --member 5", "has members 0 to 0, not 5"),
    ],
)
def test_wrong_use_beside_a_run(
    line: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "karate", "--seeds", "1", "--epochs", "1", "--json"]) == 0
    capsys.readouterr()
    assert main(line.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.fullmatch(r"omegagnn: [^\n]+[.?]\n", captured.err), captured.err
    assert words in captured.err


def test_every_verb_has_wrong_uses_of_its_own() -> None:
    assert len(USES) >= 20
    assert {line.split()[0] for line, _, _ in USES} >= set(VERBS)

"""``omegagnn report``: one page about runs of every kind of task, whose numbers are those of the journal."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training"))
from tiny import DATASETS

from omegagnn import fit
from omegagnn.cli import main
from omegagnn.data.cache import save_dataset
from omegagnn.training.fit import Result
from omegagnn.training.journal import Journal

Capture = pytest.CaptureFixture[str]
MODELS = ("omega-gcn", "omega-gat", "gcn", "sgc", "appnp", "jknet")


class Balance(HTMLParser):
    """Holds that elements are closed in the order they were opened."""

    VOID = frozenset({"meta", "link"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.feed(page)
        assert self.opened == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


def call(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    for data in (make() for make in DATASETS.values()):
        save_dataset(data, folder / "data" / "own" / data.name / "dataset.npz")
    fit("karate", seeds=3, runs_dir=folder / "runs", model__channels=8, training__epochs=8)
    return folder


def report(runs: Path, *names: str) -> str:
    out = runs / "page.html"
    assert call("report", *names, "--runs-dir", runs / "runs", "--data-root", runs / "data", "--out", out) == 0
    page = out.read_text(encoding="utf-8")
    Balance(page)
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<(style|script|pre)>.*?</\1>", "", page, flags=re.DOTALL))
    assert " style=" not in page
    return page


def first_run(runs: Path) -> Result:
    """Return the run of the fixture, the oldest of the journal."""
    journal = Journal(runs / "runs")
    return Result(journal, journal.runs()[-1]["run"])


def test_the_numbers_are_those_of_the_journal(runs: Path) -> None:
    result = first_run(runs)
    page = report(runs, result.run)
    test = result.test()
    assert f"<b>{test.mean:.2f} %</b>" in page
    assert f"95 % interval {test.low:.2f} to {test.high:.2f}" in page
    for rule in ("honest", "gin", "authors-tu"):
        mean = f"{result.test(rule).mean:.2f}"
        assert re.search(rf'<td class="words">{rule}</td><td class="words">[a-z ()]+</td><td>{mean}</td>', page)
    counts = [int(cell.replace(",", "")) for cell in re.findall(r'<td class="s\d"[^>]*>([\d,]+)</td>', page)]
    assert counts == result.evaluate().counts.flatten().tolist()
    omega = result.omega
    assert omega is not None
    assert f"Mean {omega['mean']:.3f}, from {omega['min']:.3f} to {omega['max']:.3f}" in page
    assert "omegagnn train karate" in page


def test_the_command_on_the_page_trains_the_same_again(runs: Path, tmp_path: Path, capsys: Capture) -> None:
    found = re.search(r"<h2>To repeat it</h2>\s*<pre><code>omegagnn (.*?)</code>", report(runs, first_run(runs).run))
    assert found is not None
    words = unescape(found[1]).split(" --runs-dir ")[0].split()
    capsys.readouterr()
    assert call(*words, "--runs-dir", tmp_path, "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["test"] == first_run(runs).test().to_dict()


@pytest.mark.parametrize("task", DATASETS)
@pytest.mark.parametrize("model", MODELS)
def test_every_task_and_model_has_a_page(task: str, model: str, runs: Path) -> None:
    settings = {"model__name": model, "model__channels": 8, "training__epochs": 3, "training__batch_size": 8}
    data = DATASETS[task]()
    result = fit(data, seeds=2, splits="0", runs_dir=runs / "runs", **settings)  # type: ignore[arg-type]
    page = report(runs, result.run)
    assert ("<h2>ω</h2>" in page) == model.startswith("omega")
    assert ("Where member 0 is wrong" in page) == (task != "inductive")
    assert ("micro-F1" in page) == (task == "inductive")


def test_several_runs_stand_beside_each_other_with_a_paired_difference(runs: Path) -> None:
    first = first_run(runs)
    second = fit("karate", seeds=3, runs_dir=runs / "runs", model__channels=8, training__epochs=2)
    page = report(runs, first.run, second.run, first.run)
    assert "2 runs compared" in page  # one named twice is one
    assert page.count("<article>") == 2
    points = 100 * (second.scores() - first.scores()).mean()
    assert f"<td>{points:+.2f}</td>" in page
    for result in (first, second):
        assert f'<a href="#{result.run}">' in page
        assert f'id="{result.run}"' in page


def test_the_page_lies_in_the_folder_of_the_run_and_json_says_where(runs: Path, capsys: Capture) -> None:
    name = first_run(runs).run
    assert call("report", name, "--runs-dir", runs / "runs", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    path = runs / "runs" / name / "report.html"
    assert found == {"runs": [name], "report": str(path), "bytes": path.stat().st_size}


def test_names_from_a_user_s_tables_cannot_leave_their_place(runs: Path) -> None:
    from dataclasses import replace

    evil = ("<script>alert(1)</script>", "a&b", "$style")
    data = replace(DATASETS["node"](), name="evil", class_names=evil)
    save_dataset(data, runs / "data" / "own" / "evil" / "dataset.npz")
    result = fit(data, runs_dir=runs / "runs", splits="0", model__channels=4, training__epochs=2)
    page = report(runs, result.run)
    assert evil[0] not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<script>") == 1


def test_what_cannot_be_reported_is_one_sentence(runs: Path, tmp_path: Path, capsys: Capture) -> None:
    journal = Journal(runs / "runs")
    gone = fit(DATASETS["node"](), runs_dir=runs / "runs", splits="0", model__channels=4, training__epochs=1).run
    unfinished = fit("karate", runs_dir=runs / "runs", model__channels=4, training__epochs=1).run
    journal.update(unfinished, status="interrupted")
    for name, root, words in (
        (gone, tmp_path, "is not here any more: say where with --data-root"),
        (unfinished, runs / "data", "is interrupted, not done: finish it with"),
    ):
        assert call("report", name, "--runs-dir", runs / "runs", "--data-root", root) != 0
        captured = capsys.readouterr()
        assert captured.out == ""
        assert words in captured.err.splitlines()[-1]


# -------------------------------------------------------------------------------------------------------------- studies


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of runs with the study ``small``, two of whose trials diverge or end early."""
    pytest.importorskip("optuna")
    folder = tmp_path_factory.mktemp("studied") / "runs"
    search = ("--search", "training.lr_oc=1e-3..1e-1:log", "--search", "model.residual=[null, initial]")
    line = ("tune", "karate", "--trials", "6", "--seeds", "2", "--epochs", "15", "--batch", "3", "--only", *search)
    assert call(*line, "--set", "model.channels=4", "--study", "small", "--runs-dir", folder) == 0
    return folder


def test_a_study_has_a_page_with_its_winner_and_every_trial(studied: Path, capsys: Capture) -> None:
    from omegagnn.tuning.study import find_study

    assert call("report", "small", "--runs-dir", studied, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["report"] == str(studied / "studies" / "small" / "report.html")
    page = Path(told["report"]).read_text(encoding="utf-8")
    Balance(page)
    study = find_study("small", studied)
    assert f"trial {study.winner.number}, largest of 6" in page
    assert f"<b>{study.winner.value:.4f}</b>" in page
    assert study.hash in page
    rows = re.findall(r"<tr><td>(\d+)</td><td[^>]*>([a-z ]+)</td><td>([\d.–]+)</td>", page)
    assert [int(row[0]) for row in rows] == list(range(6))
    for row, trial in zip(rows, study.finished, strict=True):
        assert row[2] == ("–" if trial.state.name != "COMPLETE" else f"{trial.value:.4f}")
    assert "<figcaption>training.lr_oc</figcaption>" in page
    assert "Test labels were never handed in." in page
    assert '<td class="words">null</td>' in page  # model.residual of the winner


def test_a_study_is_named_alone_and_must_be_there(studied: Path, tmp_path: Path, capsys: Capture) -> None:
    assert call("report", "small", "other", "--runs-dir", studied) == 2
    assert "small is a study, which has a page of its own: name it alone." in capsys.readouterr().err
    assert call("report", "one", "two", "--storage", tmp_path / "s.log", "--runs-dir", studied) == 2
    assert "--storage belongs to a study" in capsys.readouterr().err
    assert call("report", "one", "--storage", tmp_path / "s.log", "--runs-dir", studied) == 2
    assert "There is no study 'one' in" in capsys.readouterr().err
    assert call("report", "smal", "--runs-dir", studied) == 2
    assert capsys.readouterr().out == ""

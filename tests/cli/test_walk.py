"""The whole way of a user with CSV files: import, train, diagnose, predict on a graph with 100 added nodes.

Every command of the walk is one that the documentation shows, with options that it shows.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from omegagnn.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("quickstart.md", "own-data.md", "predict.md", "diagnosis.md")
FIRST, ADDED = 150, 100
TEAMS = np.array(["red", "green", "blue"])
WALK = (
    "omegagnn data import club/ --name club --label team --standardize",
    "omegagnn train club --split ratio:0.6,0.2 --seeds 3 --epochs 60",
    "omegagnn diagnose last --out diagnosis.svg",
    "omegagnn predict last --graph later/ --out predictions.csv",
)


def write_club(folder: Path, people: int, *, with_teams: bool) -> None:
    """Write people who know their own team mostly; a larger club holds the smaller one as it was."""
    folder.mkdir()
    draws = np.random.default_rng(11)
    team = draws.integers(0, 3, FIRST + ADDED)
    pairs = draws.integers(0, FIRST + ADDED, (6 * (FIRST + ADDED), 2))
    same = team[pairs[:, 0]] == team[pairs[:, 1]]
    pairs = pairs[(same | (draws.random(len(pairs)) < 0.15)) & (pairs[:, 0] != pairs[:, 1])]
    nodes = pd.DataFrame(
        {
            "badge": [f"B-{1000 + k}" for k in range(FIRST + ADDED)],
            "age": (25 + 12 * team + draws.normal(0, 9, FIRST + ADDED)).round(),
            "town": np.array(["Ulm", "Bonn", "Kiel"])[draws.integers(0, 3, FIRST + ADDED)],
        }
    )
    if with_teams:
        nodes["team"] = np.where(draws.random(len(nodes)) < 0.1, "", TEAMS[team])
    nodes[:people].to_csv(folder / "nodes.csv", index=False)
    known = pairs[(pairs < people).all(axis=1)]
    ends = pd.DataFrame({"source": known[:, 0], "target": known[:, 1]}).map(lambda k: f"B-{1000 + k}")
    ends.to_csv(folder / "edges.csv", index=False)


def true_teams() -> np.ndarray:
    return TEAMS[np.random.default_rng(11).integers(0, 3, FIRST + ADDED)]


def test_from_tables_to_predictions_on_a_graph_with_a_hundred_more_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMEGAGNN_DATA", str(tmp_path / "data"))
    write_club(tmp_path / "club", FIRST, with_teams=True)
    write_club(tmp_path / "later", FIRST + ADDED, with_teams=False)
    shown = []
    for line in WALK:
        assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
        shown.append(capsys.readouterr().out)
    imported, trained, diagnosed, predicted = shown
    assert "150 nodes" in imported
    assert re.search(r"test accuracy +\d+\.\d\d ± \d+\.\d\d \(95 % interval \d", trained)
    assert re.search(r"^(well|note|PROBLEM): ", diagnosed, re.MULTILINE)
    assert Path("diagnosis.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "250 nodes of later, mean of the probabilities of 3 members" in predicted

    table = pd.read_csv("predictions.csv")
    assert table.columns.tolist() == ["id", "predicted", "p(blue)", "p(green)", "p(red)"]
    assert table["id"].tolist() == [f"B-{1000 + k}" for k in range(FIRST + ADDED)]
    np.testing.assert_allclose(table.iloc[:, 2:].sum(axis=1), 1, atol=1e-5)
    right = (table["predicted"] == true_teams())[FIRST:].mean()
    assert right > 0.7, f"{right:.2f} of the added nodes, where guessing gives a third"

    assert main(["runs", "show", "last", "--protocol", "all", "--json"]) == 0
    rules = json.loads(capsys.readouterr().out)["test"]
    assert list(rules) == ["honest", "validation-accuracy", "gcnii", "gin", "authors-tu"]


def test_every_command_of_the_walk_stands_in_the_documentation() -> None:
    pages = "\n".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    documented = re.findall(r"omegagnn [^`\n]*", pages)
    for line in WALK:
        words = shlex.split(line)
        verb = " ".join(words[1 : 3 if words[1] == "data" else 2])
        same_verb = [other for other in documented if other.startswith(f"omegagnn {verb} ")]
        assert same_verb, line
        for option in (word for word in words if word.startswith("--")):
            assert any(option in other for other in same_verb), f"no page shows {verb} {option}"


def commands_of(page: Path, title: str) -> list[str]:
    """Return the commands of the first block of shell below a heading of a page."""
    section = page.read_text(encoding="utf-8").split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    block = re.search(r"```bash\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return [line for line in block[1].splitlines() if line]


def test_the_readme_alone_leads_from_tables_to_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing but the lines of the README is typed, and nothing but the files it asks for is there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMEGAGNN_DATA", str(tmp_path / "data"))
    Path("zoo").mkdir()
    kinds = ["cat" if k % 2 else "elephant" for k in range(40)]
    nodes = [f"a{k},{'' if k % 10 == 9 else kind},{4 + k % 5 if k % 2 else 4000 + k}" for k, kind in enumerate(kinds)]
    Path("zoo/nodes.csv").write_text("\n".join(["name,kind,weight", *nodes]) + "\n", encoding="utf-8")
    edges = [f"a{k},a{(k + 2) % 40}" for k in range(40)]
    Path("zoo/edges.csv").write_text("\n".join(["source,target", *edges]) + "\n", encoding="utf-8")
    steps = commands_of(DOCS.parent / "README.md", "With your own tables")
    assert [shlex.split(step)[1] for step in steps] == ["data", "train", "predict"]
    for step in steps:
        assert main(shlex.split(step)[1:]) == 0, capsys.readouterr().err
    table = pd.read_csv("predictions.csv")
    assert table.columns.tolist() == ["id", "predicted", "p(cat)", "p(elephant)"]
    assert table["id"].tolist() == [f"a{k}" for k in range(40)]
    assert (table["predicted"] == kinds).mean() > 0.9, "those without a label too"

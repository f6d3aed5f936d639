"""`omegagnn data list`, `fetch`, `check` and `audit`; `import` is tested beside the code that does it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from omegagnn.cli import main
from omegagnn.data.registry import available, find


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OMEGAGNN_OFFLINE", "1")
    monkeypatch.setenv("OMEGAGNN_DATA", str(tmp_path / "root"))


@pytest.fixture
def zoo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = tmp_path / "zoo"
    folder.mkdir()
    (folder / "nodes.csv").write_text("id,age,label\na,3,x\nb,5,y\nc,4,x\n")
    (folder / "edges.csv").write_text("source,target\na,b\nb,c\n")
    assert main(["data", "import", str(folder), "--label", "label", "--name", "zoo"]) == 0
    capsys.readouterr()
    return folder


def test_list_shows_benchmarks_and_own_data_sets(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    table = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert list(table) == [*(entry.name for entry in available()), "zoo"]
    assert table["citeseer"]["where"] == "embedded"
    assert table["texas"]["where"] == "upstream"
    assert table["cora"]["homophily"] == "0.810"
    assert table["pubmed"]["nodes"] == "19,717"
    assert table["zoo"]["licence"] == "your own"
    assert table["zoo"]["homophily"] == "0.000"
    assert main(["data", "list", "--json"]) == 0
    listed = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert listed["zoo"]["nodes"] == 3
    assert any("Texas" in problem for problem in listed["cornell"]["problems"])


def test_check_finds_right_wrong_and_missing_files(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "root" / "TUDataset" / "MUTAG"
    shutil.copytree(shared_data / "TUDataset" / "MUTAG", folder)
    folder.chmod(0o755)
    assert main(["data", "check", "mutag"]) == 0
    captured = capsys.readouterr()
    states = {line.split("\t")[1]: line.split("\t")[2] for line in captured.out.splitlines()[1:]}
    assert set(states.values()) == {"right"}
    assert captured.err == f"{len(states)} files, 0 wrong, 0 missing.\n"
    damaged = folder / "raw" / "MUTAG_A.txt"
    damaged.chmod(0o644)
    damaged.write_bytes(damaged.read_bytes() + b"1, 2\n")
    assert main(["data", "check", "mutag", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [row["file"] for row in rows if row["state"] == "wrong"] == ["TUDataset/MUTAG/raw/MUTAG_A.txt"]
    damaged.unlink()
    assert main(["data", "check", "mutag"]) == 1
    assert capsys.readouterr().err.endswith("0 wrong, 1 missing.\n")


def test_check_says_where_no_checksum_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = next(file for file, known in find("ppi").checksums.items() if known is None)
    path = tmp_path / "root" / unknown
    path.parent.mkdir(parents=True)
    path.write_text("something")
    assert main(["data", "check", "ppi", "--json"]) == 1  # its other files are missing
    states = {row["file"]: row["state"] for row in json.loads(capsys.readouterr().out)}
    assert states.pop(unknown) == "no checksum known"
    assert set(states.values()) == {"missing"}


def test_check_of_everything_passes_where_nothing_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check"]) == 0
    captured = capsys.readouterr()
    count = len(captured.out.splitlines()) - 1
    assert count > 100
    assert captured.err == f"{count} files, 0 wrong, {count} missing.\n"


def test_fetch_names_the_files_that_are_there(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(shared_data / "TUDataset" / "MUTAG", tmp_path / "root" / "TUDataset" / "MUTAG")
    assert main(["data", "fetch", "MUTAG"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert {line[0] for line in lines} == set(find("mutag").checksums)
    assert all(Path(path).is_file() for _, path in lines)


def test_fetch_of_what_cannot_be_had_says_where_it_looked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "fetch", "texas"]) == 1
    message = capsys.readouterr().err
    assert str(tmp_path / "root" / "WebKB" / "texas" / "raw") in message
    assert message.count("\n") == 1


def test_fetch_of_a_made_data_set_and_of_an_unknown_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "fetch", "karate"]) == 0
    assert capsys.readouterr().err == "karate is made on demand and has no files.\n"
    assert main(["data", "fetch", "corra"]) == 2
    assert "did you mean cora" in capsys.readouterr().err


def test_audit_takes_a_name_a_folder_of_tables_and_a_stored_folder(
    zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = []
    for line in (["zoo"], [str(zoo), "--label", "label"], [str(tmp_path / "root" / "own" / "zoo")]):
        assert main(["data", "audit", *line, "--json"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    for result in results:
        assert result["nodes"] == 3
        assert result["edge_homophily_percent"] == 0.0
        assert result["twins_percent"] is None
        assert isinstance(result["warnings"], list)
    assert results[0] == results[2]


def test_audit_prints_lines_and_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "pages" / "karate.html"
    assert main(["data", "audit", "karate", "--html", str(page)]) == 0
    lines = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert lines["edge homophily"] == "85.9 %"
    assert lines["components"] == "1, the largest with 100.0 % of the nodes"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_audit_takes_another_split(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "audit", "citeseer", "--split", "ratio:0.6,0.2:3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["splits"]) == 3
    assert 0 < result["twins_percent"] < 20

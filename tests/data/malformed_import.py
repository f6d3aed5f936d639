"""The check that a malformed import fails with one exact sentence and leaves nothing behind, for the tests beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from omegagnn.cli import main

NODES = "id,age,kind,label,fold\na,3,cat,x,train\nb,5,dog,y,train\nc,4,cat,x,val\nd,9,dog,y,test\n"
EDGES = "source,target\na,b\nb,c\nc,d\n"
GRAPHS = "id,label\ng1,0\ng2,1\n"
LABEL = ("--label", "label")
SPLIT = (*LABEL, "--split", "fold")
DEGREE = ("--node-features", "degree")

Files = dict[str, str | bytes]
Case = tuple[Files, tuple[str, ...], int, str]


def tables(nodes: str | bytes = NODES, edges: str | bytes = EDGES, **others: str | bytes) -> Files:
    """A folder to import; ``nodes__tsv`` stands for ``nodes.tsv``."""
    return {"nodes.csv": nodes, "edges.csv": edges, **{name.replace("__", "."): text for name, text in others.items()}}


def many(header: str, row: str) -> str:
    return header + "".join(row.format(number=number, seventh=number / 7) for number in range(30))


def check_refused(
    folder: Path,
    source: Path,
    files: Files,
    options: tuple[str, ...],
    code: int,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    root = folder.parent / "root"
    assert main(["data", "import", str(source), "--name", "zoo", "--data-root", str(root), *options]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"omegagnn: {sentence.replace('{folder}', str(folder))}\n"
    assert not root.exists()
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)

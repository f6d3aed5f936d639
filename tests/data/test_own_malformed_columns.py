"""Tables that can be read and make no graph: one sentence with file, line and remedy, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from malformed_import import LABEL, NODES, SPLIT, Case, Files, check_refused, many, tables

FOLDERS: dict[str, Case] = {
    "unknown label col": (
        tables(),
        (
            "--label",
            "lable",
        ),
        2,
        "nodes.csv has no column 'lable' for the label: did you mean 'label'?",
    ),
    "unknown feature col": (
        tables(),
        (
            "--features",
            "age,colour",
        ),
        2,
        "nodes.csv has no column 'colour' for a feature: choose among id, age, kind, label, fold.",
    ),
    "unknown split col": (
        tables(),
        (
            *LABEL,
            "--split",
            "part",
        ),
        2,
        "nodes.csv has no column 'part' for the split: choose among id, age, kind, label, fold.",
    ),
    "unknown id col": (
        tables(),
        (
            "--id",
            "name",
        ),
        2,
        "nodes.csv has no column 'name' for the node ids: choose among id, age, kind, label, fold.",
    ),
    "unknown weights": (
        tables(),
        (
            "--weights",
            "w",
        ),
        2,
        "edges.csv has no column 'w' for the edge weights: choose among source, target.",
    ),
    "unknown source": (
        tables(),
        (
            "--source",
            "from",
        ),
        2,
        "edges.csv has no column 'from' for an end of the edges: choose among source, target.",
    ),
    "unknown categorical": (
        tables(),
        (
            "--categorical",
            "colour",
        ),
        2,
        "nodes.csv has no column 'colour' for a category: choose among id, age, kind, label, fold.",
    ),
    "same source target": (
        tables(),
        (
            "--source",
            "target",
        ),
        2,
        "The column 'target' of edges.csv cannot be both source and target: name two with --source and --target.",
    ),
    "one col edges": (
        tables(edges="source\na\n"),
        (),
        1,
        "edges.csv has no two columns for the ends of an edge: write columns 'source' and 'target'.",
    ),
    "number slip": (
        tables(nodes="id,age,label\na,1,x\nb,2,y\nc,1O,y\nd,4,y\n"),
        LABEL,
        1,
        (
            "nodes.csv, line 4: '1O' in column 'age' is not a number as most others are: mend the cell, leave it "
            "empty, or pass --categorical age."
        ),
    ),
    "inf feature": (
        tables(nodes="id,age\na,1\nb,inf\n"),
        (),
        1,
        (
            "nodes.csv, line 3: infinity in column 'age' is too large for a number of 32 bits: mend the cell or "
            "leave it empty."
        ),
    ),
    "huge": (
        tables(nodes="id,age\na,1\nb,1e300\n"),
        (),
        1,
        (
            "nodes.csv, line 3: 1e+300 in column 'age' is too large for a number of 32 bits: mend the cell or "
            "leave it empty."
        ),
    ),
    "missing error": (
        tables(nodes="id,age\na,1\nb,NA\nc,3\n"),
        (
            "--missing",
            "error",
        ),
        1,
        "nodes.csv, line 3: the cell in column 'age' is missing: fill it, or pass --missing mean to take the mean.",
    ),
    "bad missing rule": (
        tables(),
        (
            "--missing",
            "drop",
        ),
        2,
        "There is no rule 'drop' for missing values: choose mean or error.",
    ),
    "many cats": (
        tables(many("id,name\n", "n{number},text {number}\n"), "source,target\nn1,n2\n"),
        (),
        1,
        (
            "nodes.csv: the column 'name' has 30 different texts in 30 rows, too many for a category: leave it "
            "out with --features, or pass --categorical name."
        ),
    ),
    "constant only": (
        tables(nodes="id,age\na,1\nb,1\nc,1\nd,1\n"),
        (),
        1,
        (
            "Every feature column has the same value in each row, so no features are left: add others, or pass "
            "--node-features degree."
        ),
    ),
    "no features": (
        tables(nodes="id\na\nb\nc\nd\n"),
        (),
        2,
        "nodes.csv has no feature columns: pass --node-features one-hot, degree or positional.",
    ),
    "label among features": (
        tables(),
        (
            *LABEL,
            "--features",
            "age,label",
        ),
        2,
        "The label column 'label' is among the features, which would give the answer away: remove it.",
    ),
    "label one class": (
        tables(nodes="id,age,label\na,1,x\nb,2,x\nc,3,\nd,4,x\n"),
        LABEL,
        1,
        (
            "nodes.csv: the label column 'label' has the one class 'x': there is nothing to learn; give it two "
            "classes or leave out --label."
        ),
    ),
    "label empty": (
        tables(nodes="id,age,label\na,1,\nb,2,\nc,3,\nd,4,\n"),
        LABEL,
        1,
        "nodes.csv: the label column 'label' is empty in every row: fill it or leave out --label.",
    ),
    "label regression": (
        tables(many("id,age,label\n", "n{number},{number},{seventh}\n"), "source,target\nn1,n2\n"),
        LABEL,
        1,
        (
            "nodes.csv: the label column 'label' has 30 different values in 30 rows, which are no classes: group "
            "the values into classes or name another column."
        ),
    ),
    "label only in test": (
        tables(nodes=NODES.replace("d,9,dog,y,test", "d,9,dog,z,test")),
        SPLIT,
        1,
        (
            "nodes.csv, line 5: the class 'z' is in test but never in train by the split column 'fold': put a row"
            " of this class into train."
        ),
    ),
    "label only in val": (
        tables(nodes=NODES.replace("c,4,cat,x,val", "c,4,cat,z,val")),
        SPLIT,
        1,
        (
            "nodes.csv, line 4: the class 'z' is in val but never in train by the split column 'fold': put a row "
            "of this class into train."
        ),
    ),
    "unlabelled in split": (
        tables(nodes=NODES.replace("d,9,dog,y,test", "d,9,dog,,test")),
        SPLIT,
        1,
        (
            "nodes.csv, line 5: the row is in test by the split column 'fold' but has no label: label it or leave"
            " the split cell empty."
        ),
    ),
    "odd split": (
        tables(nodes=NODES.replace("test", "holdout")),
        SPLIT,
        1,
        (
            "nodes.csv, line 5: 'holdout' in the split column 'fold' is none of train, val and test: write one of"
            " them or leave the cell empty."
        ),
    ),
    "split lacks val": (
        tables(nodes=NODES.replace("val", "test")),
        SPLIT,
        1,
        "nodes.csv: the split column 'fold' has no row for val: mark some rows 'val'.",
    ),
    "split no label": (
        tables(),
        (
            "--split",
            "fold",
        ),
        2,
        "The split column 'fold' needs labels: name their column with --label.",
    ),
    "weight text": (
        tables(edges="source,target,w\na,b,1\nb,c,heavy\n"),
        (
            "--weights",
            "w",
        ),
        1,
        (
            "edges.csv, line 3: the weight 'heavy' in column 'w' is not a number: write a number of at least 0, "
            "or leave out --weights."
        ),
    ),
    "weight missing": (
        tables(edges="source,target,w\na,b,1\nb,c,\n"),
        (
            "--weights",
            "w",
        ),
        1,
        (
            "edges.csv, line 3: the weight '' in column 'w' is missing: write a number of at least 0, or leave "
            "out --weights."
        ),
    ),
    "weight negative": (
        tables(edges="source,target,w\na,b,1\nb,c,-2\n"),
        (
            "--weights",
            "w",
        ),
        1,
        (
            "edges.csv, line 3: the weight '-2' in column 'w' is negative: write a number of at least 0, or leave"
            " out --weights."
        ),
    ),
    "weight inf": (
        tables(edges="source,target,w\na,b,1\nb,c,inf\n"),
        (
            "--weights",
            "w",
        ),
        1,
        (
            "edges.csv, line 3: the weight 'inf' in column 'w' is too large: write a number of at least 0, or "
            "leave out --weights."
        ),
    ),
    "bad node features": (
        tables(),
        (
            "--node-features",
            "pagerank",
        ),
        2,
        "There are no node features 'pagerank': choose one-hot, degree or positional.",
    ),
    "separator long": (
        tables(),
        (
            "--separator",
            "::",
        ),
        2,
        "The separator '::' must be one character, such as ',' or ';'.",
    ),
}


@pytest.mark.parametrize(("files", "options", "code", "sentence"), FOLDERS.values(), ids=FOLDERS)
def test_malformed_folder(
    files: Files, options: tuple[str, ...], code: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "zoo"
    check_refused(folder, folder, files, options, code, sentence, capsys)

"""Files that cannot be read, and tables of many graphs that do not fit: one sentence each, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from malformed_import import DEGREE, EDGES, GRAPHS, LABEL, NODES, Case, Files, check_refused, tables

FOLDERS: dict[str, Case] = {
    "empty nodes": (
        tables(nodes=""),
        (),
        1,
        "nodes.csv is empty: write into it a header line with the column names, then the rows.",
    ),
    "empty edges": (
        tables(edges=""),
        (),
        1,
        "edges.csv is empty: write into it a header line with the column names, then the rows.",
    ),
    "header only nodes": (tables(nodes="id,age\n"), (), 1, "nodes.csv has no nodes: write one row for each node."),
    "no edges table": (
        {"nodes.csv": NODES},
        (),
        1,
        "{folder} has no table of edges: put edges.csv there, with nodes.csv and perhaps graphs.csv beside it.",
    ),
    "edge to nowhere": (
        tables(edges="source,target\na,b\nb,zz\n"),
        (),
        1,
        (
            "edges.csv, line 3: the edge's target 'zz' is no node in nodes.csv, column 'id': add the node or "
            "remove the edge."
        ),
    ),
    "edge from nowhere blank lines": (
        tables(edges="source,target\n\na,b\n\n\nzz,b\n"),
        (),
        1,
        (
            "edges.csv, line 6: the edge's source 'zz' is no node in nodes.csv, column 'id': add the node or "
            "remove the edge."
        ),
    ),
    "edge endpoint empty": (
        tables(edges="source,target\na,\nb,c\n"),
        (),
        1,
        "edges.csv, line 2: the endpoint in column 'target' is missing: fill the cell or remove the row.",
    ),
    "duplicate id": (
        tables(nodes=NODES + "a,1,cat,x,\n"),
        (),
        1,
        (
            "nodes.csv, line 6: the id 'a' in column 'id' was used before (nodes.csv, line 2): give every node "
            "its own id."
        ),
    ),
    "missing id": (
        tables(nodes=NODES + ",1,cat,x,\n"),
        (),
        1,
        "nodes.csv, line 6: the id in column 'id' is missing: fill the cell or remove the row.",
    ),
    "ragged short": (
        tables(nodes="id,age,label\na,1,x\nb,2\nc,3,y\n"),
        (),
        1,
        (
            "nodes.csv, line 3: the row has 2 cells where the header has 3: add or remove cells, or quote a text "
            "that contains the separator."
        ),
    ),
    "ragged long": (
        tables(nodes="id,age,label\na,1,x\nb,2,y,7\nc,3,y\n"),
        (),
        1,
        (
            "nodes.csv, line 3: the row has 4 cells where the header has 3: add or remove cells, or quote a text "
            "that contains the separator."
        ),
    ),
    "ragged long first": (
        tables(nodes="id,age,label\na,1,x,9\nb,2,y\n"),
        (),
        1,
        (
            "nodes.csv, line 2: the row has 4 cells where the header has 3: add or remove cells, or quote a text "
            "that contains the separator."
        ),
    ),
    "ragged edge": (
        tables(edges="source,target\na,b\nb,c,d\n"),
        (),
        1,
        (
            "edges.csv, line 3: the row has 3 cells where the header has 2: add or remove cells, or quote a text "
            "that contains the separator."
        ),
    ),
    "open quote": (
        tables(nodes='id,age,label\na,1,x\nb,2,"y\nc,3,y\n'),
        (),
        1,
        'nodes.csv, line 3: a quote (") is opened and never closed: close it.',
    ),
    "twice column": (
        tables(nodes="id,age,age\na,1,2\n"),
        (),
        1,
        "nodes.csv, line 1: the column name 'age' appears twice: rename one of them.",
    ),
    "unnamed column": (
        tables(nodes=",id,age\n0,a,1\n"),
        (),
        1,
        "nodes.csv, line 1: column 1 has no name: name it, or write the table without its index.",
    ),
    "semicolons": (
        tables(nodes=NODES.replace(",", ";")),
        (),
        1,
        "nodes.csv, line 1: the columns are separated by semicolons, not by commas: pass --separator ';'.",
    ),
    "latin1": (
        tables(nodes="id,age,label\na,1,x\nb,2,caf\xe9\n".encode("latin-1")),
        (),
        1,
        "nodes.csv, line 3: a character is not in UTF-8: save the whole file in UTF-8.",
    ),
    "utf16": (
        tables(nodes=NODES.encode("utf-16")),
        (),
        1,
        "nodes.csv, line 1: the text is in UTF-16: save it in UTF-8.",
    ),
    "cut utf8": (
        tables(nodes=b"id,age\na,1\nb,2\xc3"),
        (),
        1,
        "nodes.csv, line 3: a character is not in UTF-8: save the whole file in UTF-8.",
    ),
    "nul": (
        tables(nodes="id,age\na,1\nb,\x00\n"),
        (),
        1,
        "nodes.csv, line 3: a NUL byte, so this is no text: save the table as CSV in UTF-8.",
    ),
    "xlsx": (
        tables(nodes=b"PK\x03\x04rest"),
        (),
        1,
        "nodes.csv is a spreadsheet or an archive, not text: export the table as CSV.",
    ),
    "not gz": (
        {"nodes.csv.gz": b"id,age\n", "edges.csv": EDGES},
        (),
        1,
        (
            "nodes.csv.gz is not a whole gzip file (Not a gzipped file (b'id')): compress it again or name the "
            "plain file."
        ),
    ),
    "both csv tsv": (tables(nodes__tsv=NODES), (), 1, "{folder} has both nodes.csv and nodes.tsv: leave one of them."),
    "graph no graphs": (
        tables(),
        (
            "--graph",
            "g",
        ),
        2,
        "The column 'g' names the graph of each node, but there is no table of graphs: give one.",
    ),
    "graph missing col": (
        tables(graphs__csv=GRAPHS),
        LABEL,
        2,
        "nodes.csv has no column 'graph' for the graph of each node: choose among id, age, kind, label, fold.",
    ),
    "graph unknown": (
        {
            "graphs.csv": GRAPHS,
            "nodes.csv": "graph,id,age\ng1,a,1\ng3,a,2\n",
            "edges.csv": "graph,source,target\ng1,a,a\n",
        },
        (
            *LABEL,
            "--id",
            "id",
        ),
        1,
        (
            "nodes.csv, line 3: the node's graph 'g3' is no graph in graphs.csv, column 'id': add the graph or "
            "remove the node."
        ),
    ),
    "graph empty": (
        {
            "graphs.csv": GRAPHS,
            "nodes.csv": "graph,id,age\ng1,a,1\ng1,b,2\n",
            "edges.csv": "graph,source,target\ng1,a,b\n",
        },
        (
            *LABEL,
            "--id",
            "id",
        ),
        1,
        "graphs.csv, line 3: the graph 'g2' has no nodes in nodes.csv: add them or remove the graph.",
    ),
    "edge across graphs": (
        {
            "graphs.csv": GRAPHS,
            "nodes.csv": "graph,id,age\ng1,a,1\ng2,b,2\n",
            "edges.csv": "graph,source,target\ng1,a,b\n",
        },
        (
            *LABEL,
            "--id",
            "id",
        ),
        1,
        (
            "edges.csv, line 2: the edge's target 'b' is no node of graph 'g1' in nodes.csv, column 'id': add the"
            " node or remove the edge."
        ),
    ),
    "graph dup node": (
        {
            "graphs.csv": GRAPHS,
            "nodes.csv": "graph,id,age\ng1,a,1\ng2,b,2\ng2,b,3\n",
            "edges.csv": "graph,source,target\ng1,a,a\n",
        },
        (
            *LABEL,
            "--id",
            "id",
        ),
        1,
        (
            "nodes.csv, line 4: the id 'b' in column 'id' was used before (nodes.csv, line 3): give every node "
            "its own id."
        ),
    ),
    "graph onehot": (
        {
            "graphs.csv": GRAPHS,
            "nodes.csv": "graph,id,age\ng1,a,1\ng2,b,2\n",
            "edges.csv": "graph,source,target\ng1,a,a\n",
        },
        (
            *LABEL,
            "--node-features",
            "one-hot",
        ),
        2,
        "--node-features one-hot cannot compare nodes of different graphs: choose degree, or feature columns.",
    ),
    "graphs none": (
        {
            "graphs.csv": "id,label\n",
            "nodes.csv": "graph,id,age\ng1,a,1\n",
            "edges.csv": "graph,source,target\ng1,a,a\n",
        },
        (),
        1,
        "graphs.csv has no graphs: write one row for each graph.",
    ),
}

FILES: dict[str, Case] = {
    "edge list one": (
        {"e.txt": "a b\nc\n"},
        DEGREE,
        1,
        (
            "e.txt, line 2: the row has 1 cell where the first line has 2: add or remove cells, or quote a text "
            "that contains the separator."
        ),
    ),
    "edge list one first": (
        {"e.txt": "a\nb c\n"},
        DEGREE,
        1,
        "e.txt, line 1: an edge needs two node ids, separated by white space.",
    ),
    "edge list long": (
        {"e.edgelist": "# c\na b\nb c 3\n"},
        DEGREE,
        1,
        (
            "e.edgelist, line 3: the row has 3 cells where the first line has 2: add or remove cells, or quote a "
            "text that contains the separator."
        ),
    ),
    "edge list empty": ({"e.txt": "# nothing\n"}, DEGREE, 1, "e.txt is empty: write into it lines of two node ids."),
    "edge list nofeat": (
        {"e.txt": "a b\nb c\n"},
        (),
        2,
        "e.txt has no feature columns: pass --node-features one-hot, degree or positional.",
    ),
    "graphml broken": (
        {"g.graphml": "<graphml>\n<graph>\n"},
        LABEL,
        1,
        "g.graphml, line 3: the XML is broken (no element found: line 3, column 0): export the graph again.",
    ),
    "gml broken": (
        {"g.gml": "graph [\n node [ id 0 ]\n edge [ source 0 \n"},
        LABEL,
        1,
        "g.gml is no graph that can be read (expected ']', found EOF at (4, 1)): export the graph again.",
    ),
    "npz broken": (
        {"g.npz": b"not a zip"},
        (),
        1,
        "g.npz is not a whole npz file (File is not a zip file): remove it and fetch or make it again.",
    ),
    "parquet broken": (
        {"e.parquet": b"PAR1"},
        DEGREE,
        1,
        "e.parquet is not a whole Parquet file: write it again, or save the table as CSV.",
    ),
    "suffix": (
        {"e.xlsx": b"PK"},
        (),
        2,
        (
            "{folder}/e.xlsx has an ending that is not known: give a folder of tables, or a file .npz, .graphml, "
            ".gml, .csv, .tsv, .parquet or .txt, .edgelist, .edges, .el."
        ),
    ),
    "positional small": (
        {"e.txt": "a b\n"},
        ("--node-features", "positional"),
        1,
        "Positional features need at least 3 nodes, but the graph has 2: choose --node-features degree.",
    ),
}


@pytest.mark.parametrize(("files", "options", "code", "sentence"), FOLDERS.values(), ids=FOLDERS)
def test_malformed_folder(
    files: Files, options: tuple[str, ...], code: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "zoo"
    check_refused(folder, folder, files, options, code, sentence, capsys)


@pytest.mark.parametrize(("files", "options", "code", "sentence"), FILES.values(), ids=FILES)
def test_malformed_file(
    files: Files, options: tuple[str, ...], code: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "zoo"
    check_refused(folder, folder / next(iter(files)), files, options, code, sentence, capsys)

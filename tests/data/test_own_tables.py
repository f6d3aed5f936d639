"""Own graphs from tables: what becomes of each column, id, edge, label and split."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from omegagnn.data.own import Recipe, Schema, from_pandas, import_tables, read_source
from omegagnn.data.own import tables as tables_module
from omegagnn.errors import DataError, WrongUse

EDGES = pd.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "d"]})


def people(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame({"id": ["a", "b", "c", "d"], **columns})


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


# ------------------------------------------------------------------------------------------------------------ features


def test_each_kind_of_column_becomes_the_features_that_are_documented() -> None:
    nodes = people(
        size=[1.0, np.nan, 3.0, 5.0],
        kind=["cat", "dog", None, "cat"],
        tame=["true", "false", "true", "true"],
        same=["x", "x", "x", "x"],
        count=[1, 2, 3, 4],
    )
    dataset, schema = import_tables(nodes, EDGES)
    assert dataset.feature_names == (
        "size", "size=missing", "kind=cat", "kind=dog", "kind=missing", "tame", "count",
    )  # fmt: skip
    assert dataset.features.tolist() == [
        [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0],
        [3.0, 1.0, 0.0, 1.0, 0.0, 0.0, 2.0],
        [3.0, 0.0, 0.0, 0.0, 1.0, 1.0, 3.0],
        [5.0, 0.0, 1.0, 0.0, 0.0, 1.0, 4.0],
    ]
    assert [column.kind for column in schema.columns] == ["number", "category", "boolean", "constant", "number"]
    assert dataset.warnings == (
        "Columns with one value were left out: same.",
        "Missing values were coded by an indicator feature in the columns size, kind.",
        "4 of 4 nodes have no label and are in no split.",
    )


@pytest.mark.parametrize("gap", ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None"])
def test_all_signs_of_a_missing_value_are_the_same(tmp_path: Path, gap: str) -> None:
    write(tmp_path, nodes__csv=f"id,age,label\na,1,x\nb,{gap},y\nc,3,{gap}\n", edges__csv="source,target\na,b\n")
    dataset, _ = read_source(tmp_path, Recipe(label="label"))
    assert dataset.features.tolist() == [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]
    assert dataset.labels.tolist() == [0, 1, -1]
    assert dataset.class_names == ("x", "y")


def test_numbers_declared_categorical_become_categories() -> None:
    dataset = from_pandas(people(zip=[1010, 2020, 1010, 3030]), EDGES, categorical=["zip"])
    assert dataset.feature_names == ("zip=1010", "zip=2020", "zip=3030")
    assert dataset.features.sum(dim=0).tolist() == [2.0, 1.0, 1.0]


def test_standardized_numbers_have_mean_0_and_deviation_1_and_are_coded_alike_later() -> None:
    nodes = people(income=[10.0, 20.0, np.nan, 60.0])
    dataset, schema = import_tables(nodes, EDGES, recipe=Recipe(standardize=True))
    filled = np.array([10, 20, 30, 60])
    expected = (filled - filled.mean()) / filled.std()
    assert dataset.features[:, 0].numpy() == pytest.approx(expected)
    assert schema.encode(people(income=[30.0, 10.0, 10.0, 10.0]))[0, 0].item() == pytest.approx(0.0)


def test_large_means_are_warned_of() -> None:
    assert any("means above 100" in line for line in from_pandas(people(income=[1e4, 2e4, 3e4, 4e4]), EDGES).warnings)


def test_pandas_types_are_understood() -> None:
    nodes = people(
        flag=[True, False, True, True],
        maybe=pd.array([1, None, 3, 5], dtype="Int64"),
        kind=pd.Categorical(["u", "v", "u", "u"]),
    )
    dataset = from_pandas(nodes, EDGES)
    assert dataset.feature_names == ("flag", "maybe", "maybe=missing", "kind=u", "kind=v")
    assert dataset.features[1].tolist() == [0.0, 3.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (pd.to_datetime(["2020-01-01"] * 4), "datetime64"),
        ([[1], [2], [3], [4]], "lists"),
        ([1j, 2j, 3j, 4j], "complex128"),
    ],
)
def test_a_column_without_a_coding_is_refused_by_name(column: list[object], what: str) -> None:
    with pytest.raises(
        DataError, match=rf"nodes: the column 'odd' holds {what}.*: turn it into numbers or texts first"
    ):
        from_pandas(people(odd=column), EDGES)


def test_many_categories_stay_sparse_and_equal_the_dense_coding() -> None:
    n, k = 2000, 80
    random = np.random.default_rng(0)
    names = [f"v{number}" for number in random.integers(0, k, n)]
    nodes = pd.DataFrame({"id": range(n), "size": random.normal(size=n), "kind": names})
    edges = pd.DataFrame({"source": range(n - 1), "target": range(1, n)})
    dataset = from_pandas(nodes, edges, categorical=["kind"])
    assert dataset.features.layout == torch.sparse_csr
    expected = np.column_stack([nodes["size"], pd.get_dummies(nodes["kind"])[sorted(set(names))]]).astype(np.float32)
    assert np.array_equal(dataset.features.to_dense().numpy(), expected)


# ------------------------------------------------------------------------------------------------------------- schema


def changed_graph_schema() -> Schema:
    nodes = people(size=[1.0, np.nan, 3.0, 5.0], kind=["cat", "dog", "cat", "cat"], tame=["yes", "no", "yes", "no"],
                   team=["x", "y", "x", "y"])  # fmt: skip
    return import_tables(nodes, EDGES, recipe=Recipe(label="team"))[1]


def test_a_schema_survives_json_and_a_file(tmp_path: Path) -> None:
    schema = changed_graph_schema()
    assert Schema.from_json(schema.to_json()) == schema
    schema.save(tmp_path / "schema.json")
    assert Schema.load(tmp_path / "schema.json") == schema
    assert [path.name for path in tmp_path.iterdir()] == ["schema.json"]
    assert json.loads(schema.to_json())["feature_names"] == ["size", "size=missing", "kind=cat", "kind=dog", "tame"]


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"format": "other", "version": 1}', '"text"'])
def test_a_damaged_schema_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(damage)
    with pytest.raises(DataError, match=r"is no schema of this version .*: import the data set again"):
        Schema.load(path)


def test_a_schema_with_an_unknown_kind_of_column_is_refused() -> None:
    text = changed_graph_schema().to_json().replace('"kind": "boolean"', '"kind": "colour"')
    with pytest.raises(DataError, match="unknown kind 'colour'"):
        Schema.from_json(text)


def test_a_schema_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no schema"):
        Schema.load(tmp_path / "schema.json")
    (tmp_path / "schema.json").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is not in UTF-8"):
        Schema.load(tmp_path / "schema.json")


def test_a_changed_graph_is_coded_as_the_first_one() -> None:
    schema = changed_graph_schema()
    new = pd.DataFrame(
        {"id": ["e", "a"], "size": [np.nan, 7.0], "kind": [None, "dog"], "tame": [True, False], "new": [1, 2]}
    )
    dataset, again = import_tables(new, pd.DataFrame({"source": ["e"], "target": ["a"]}), schema=schema)
    assert dataset.features.tolist() == [[3.0, 1.0, 0.0, 0.0, 1.0], [7.0, 0.0, 0.0, 1.0, 0.0]]
    assert dataset.labels.tolist() == [-1, -1]
    assert dataset.class_names == ("x", "y")
    assert dataset.node_ids == ("e", "a")
    assert again == schema


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("size", ["1", "much"], r"nodes, row 1 \(counted from 0\): 'much' in column 'size' is not a number"),
        ("kind", ["cat", "cow"], r"row 1 .*: 'cow' in column 'kind' is none of its 2 known categories"),
        ("tame", ["yes", "often"], r"row 1 .*: 'often' in column 'tame' is neither true nor false"),
        ("team", ["x", "z"], r"row 1 .*: 'z' in column 'team' is none of the classes x, y"),
    ],
)
def test_a_changed_graph_that_does_not_fit_is_refused_by_column(column: str, values: list[str], sentence: str) -> None:
    new = pd.DataFrame({"id": ["e", "f"], "size": [1, 2], "kind": ["cat", "cat"], "tame": ["yes", "no"]})
    new[column] = values
    with pytest.raises(DataError, match=sentence):
        import_tables(new, pd.DataFrame({"source": ["e"], "target": ["f"]}), schema=changed_graph_schema())


def test_a_changed_graph_without_a_column_is_refused() -> None:
    with pytest.raises(WrongUse, match="nodes has no column 'size' for a feature"):
        changed_graph_schema().encode(pd.DataFrame({"id": ["e"], "kind": ["cat"], "tame": ["yes"]}))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=2, max_size=30), st.booleans())
def test_encoding_the_imported_table_again_gives_the_same_features(
    values: list[float | None], standardize: bool
) -> None:
    nodes = pd.DataFrame({"id": range(len(values)), "v": values, "w": range(len(values))})
    edges = pd.DataFrame({"source": [0], "target": [1]})
    dataset, schema = import_tables(nodes, edges, recipe=Recipe(standardize=standardize))
    assert torch.equal(Schema.from_json(schema.to_json()).encode(nodes), dataset.features)
    assert bool(torch.isfinite(dataset.features).all())


# --------------------------------------------------------------------------------------------------- ids, edges, labels


def test_ids_are_kept_as_they_are_written(tmp_path: Path) -> None:
    write(
        tmp_path,
        nodes__csv='id,size\n007,1\n7,2\nNA,3\n"x, y",4\nµ,5\n',
        edges__csv='source,target\n007,NA\n"x, y",7\nµ,007\n',
    )
    dataset, _ = read_source(tmp_path)
    assert dataset.node_ids == ("007", "7", "NA", "x, y", "µ")
    assert dataset.graph.to_dense().nonzero().tolist() == [[0, 2], [0, 4], [1, 3], [2, 0], [3, 1], [4, 0]]


@pytest.mark.parametrize(("ids", "ends"), [(int, int), (str, str), (int, str), (float, int), (object, object)])
def test_ids_match_whatever_their_type(ids: type, ends: type) -> None:
    nodes = pd.DataFrame({"id": pd.Series([3, 1, 2]).astype(ids), "size": [1, 2, 3]})
    edges = pd.DataFrame({"source": pd.Series([1]).astype(ends), "target": pd.Series([3]).astype(ends)})
    dataset = from_pandas(nodes, edges, directed=True)
    assert dataset.node_ids == ("3", "1", "2")
    assert dataset.graph.to_edge_index()[0].tolist() == [[1], [0]]


def test_integer_ids_match_texts_that_are_python_objects() -> None:
    edges = pd.DataFrame({"source": pd.Series(["2"], dtype=object), "target": pd.Series(["1"], dtype=object)})
    dataset = from_pandas(pd.DataFrame({"id": [1, 2], "v": [1, 2]}), edges, directed=True)
    assert dataset.graph.to_edge_index()[0].tolist() == [[1], [0]]


def test_an_unknown_integer_id_is_an_edge_to_nowhere() -> None:
    with pytest.raises(DataError, match=r"edges, row 0 \(counted from 0\): the edge's target '9' is no node in nodes"):
        from_pandas(pd.DataFrame({"id": [1, 2], "v": [1, 2]}), pd.DataFrame({"source": [1], "target": [9]}))


def test_undirected_edges_run_both_ways_once_and_directed_ones_stay() -> None:
    nodes = people(size=[1, 2, 3, 4])
    edges = pd.DataFrame({"source": ["a", "b", "a", "c"], "target": ["b", "a", "b", "c"]})
    assert from_pandas(nodes, edges).graph.to_edge_index()[0].tolist() == [[1, 0, 2], [0, 1, 2]]
    assert from_pandas(nodes, edges, directed=True).graph.to_edge_index()[0].tolist() == [[1, 0, 0, 2], [0, 1, 1, 2]]


def test_weights_are_kept_and_an_undirected_pair_takes_the_larger() -> None:
    nodes = people(size=[1, 2, 3, 4])
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "a"], "w": [0.5, 2.0]})
    undirected = from_pandas(nodes, edges, weights="w").graph
    assert undirected.weight is not None
    assert undirected.weight.tolist() == [2.0, 2.0]
    directed = from_pandas(nodes, edges, weights="w", directed=True).graph
    assert directed.weight is not None
    assert directed.to_dense()[1, 0] == 0.5
    assert directed.to_dense()[0, 1] == 2.0


@pytest.mark.parametrize("names", [("src", "dst"), ("from", "to"), ("u", "v")])
def test_the_ends_of_an_edge_are_found_by_name_or_place(names: tuple[str, str]) -> None:
    edges = EDGES.set_axis(names, axis=1)
    assert from_pandas(people(size=[1, 2, 3, 4]), edges).graph.num_edges == 6


def test_named_ends_win(tmp_path: Path) -> None:
    edges = EDGES.assign(other=["d", "d", "d"])
    graph = from_pandas(people(size=[1, 2, 3, 4]), edges, source="other", target="target", directed=True).graph
    assert graph.to_edge_index()[0][0].tolist() == [3, 3, 3]


def test_edges_in_many_pieces_are_the_same_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"n{i},n{(7 * i + 1) % 50}" for i in range(50)]
    write(tmp_path, nodes__csv="id,v\n" + "".join(f"n{i},{i}\n" for i in range(50)),
          edges__csv="source,target\n" + "\n".join(rows) + "\n")  # fmt: skip
    whole, _ = read_source(tmp_path)
    monkeypatch.setattr(tables_module, "CHUNK", 7)
    pieces, _ = read_source(tmp_path)
    assert torch.equal(whole.graph.rowptr, pieces.graph.rowptr)
    assert torch.equal(whole.graph.col, pieces.graph.col)
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(rows[:30]) + "\nn1,zz\n")
    with pytest.raises(DataError, match=r"edges\.csv, line 32: the edge's target 'zz'"):
        read_source(tmp_path)


def test_no_edges_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, nodes__csv="id,v\na,1\nb,2\n", edges__csv="source,target\n")
    dataset, _ = read_source(tmp_path)
    assert dataset.graph.num_edges == 0
    assert "The graph has no edges." in dataset.warnings


def test_classes_are_ordered_as_numbers_where_they_are_numbers() -> None:
    dataset = from_pandas(people(size=[1, 2, 3, 4], label=["10", "9", "", "-1"]), EDGES, label="label")
    assert dataset.class_names == ("-1", "9", "10")
    assert dataset.labels.tolist() == [2, 1, -1, 0]
    floats = from_pandas(people(size=[1, 2, 3, 4], label=[2.0, 1.0, np.nan, 2.0]), EDGES, label="label")
    assert floats.class_names == ("1", "2")
    truths = from_pandas(people(size=[1, 2, 3, 4], label=[True, False, True, True]), EDGES, label="label")
    assert truths.class_names == ("false", "true")
    mixed = from_pandas(people(size=[1, 2, 3, 4], label=[True, False, None, 3.0]), EDGES, label="label")
    assert mixed.class_names == ("3", "false", "true")


def test_split_columns_become_splits() -> None:
    nodes = people(
        size=[1, 2, 3, 4], label=["x", "y", "x", "y"], one=["train", "Train ", "VALID", "test"],
        two=["training", "dev", "none", "testing"],
    )  # fmt: skip
    with pytest.raises(DataError, match="the class 'y' is in val but never in train by the split column 'two'"):
        from_pandas(nodes, EDGES, label="label", split=["one", "two"])
    nodes["two"] = ["dev", "training", None, "testing"]
    nodes["label"] = ["y", "y", "x", "y"]
    nodes["one"] = ["train", "test", "train", "valid"]
    first, second = from_pandas(nodes, EDGES, label="label", split=["one", "two"]).splits
    assert (first.name, first.train.tolist(), first.val.tolist(), first.test.tolist()) == ("one", [0, 2], [3], [1])
    assert (second.name, second.train.tolist(), second.val.tolist(), second.test.tolist()) == ("two", [1], [0], [3])


def test_options_that_do_not_exist_are_named() -> None:
    with pytest.raises(WrongUse, match="There is no option 'lable': choose among id, label"):
        from_pandas(people(size=[1, 2, 3, 4]), EDGES, lable="team")
    with pytest.raises(WrongUse, match=r"features must be a list of column names, not the text 'size'"):
        from_pandas(people(size=[1, 2, 3, 4]), EDGES, features="size")


# ---------------------------------------------------------------------------------------------------------- text files


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.gz", "parquet"])
def test_every_format_of_table_gives_the_same_data_set(tmp_path: Path, ending: str) -> None:
    nodes = people(size=[1.5, 2.0, 4.0, 8.0], kind=["u", "v", "u", "u"], label=["x", "y", "x", "y"])
    for name, frame in (("nodes", nodes), ("edges", EDGES)):
        path = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            frame.to_parquet(path)
        else:
            text = frame.to_csv(index=False, sep="\t" if ending.startswith("tsv") else ",")
            path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    dataset, _ = read_source(tmp_path, Recipe(label="label"))
    expected = from_pandas(nodes, EDGES, label="label")
    assert torch.equal(dataset.features, expected.features)
    assert torch.equal(dataset.labels, expected.labels)
    assert torch.equal(dataset.graph.to_dense(), expected.graph.to_dense())
    assert (dataset.node_ids, dataset.class_names) == (expected.node_ids, expected.class_names)


def test_quotes_byte_order_mark_spaces_and_crlf_are_read(tmp_path: Path) -> None:
    text = '\ufeffid, size ,kind\r\na, 1,"u, ""w"""\r\nb, 2,"two\r\nlines"\r\nc, 3,"u, ""w"""\r\n'
    (tmp_path / "nodes.csv").write_bytes(text.encode())
    (tmp_path / "edges.csv").write_bytes(b"source,target\r\na, b\r\n")
    dataset, _ = read_source(tmp_path)
    assert dataset.node_ids == ("a", "b", "c")
    assert dataset.feature_names[0] == "size"
    assert dataset.feature_names[2] == 'kind=u, "w"'
    with (tmp_path / "nodes.csv").open("ab") as stream:
        stream.write(b"a,9,q\r\n")
    with pytest.raises(DataError, match=r"nodes\.csv, line 6: the id 'a' .* was used before \(nodes\.csv, line 2\)"):
        read_source(tmp_path)


@pytest.mark.parametrize("storage", ["python", "pyarrow"])
def test_texts_are_looked_up_alike_with_and_without_pyarrow(tmp_path: Path, storage: str) -> None:
    write(tmp_path, nodes__csv="id,v\nµ,1\n007,2\nb,3\n", edges__csv="source,target\nµ,007\n007,b\n")
    with pd.option_context("mode.string_storage", storage):
        dataset, _ = read_source(tmp_path, Recipe(directed=True))
        assert dataset.graph.to_edge_index()[0].tolist() == [[0, 1], [1, 2]]
        (tmp_path / "edges.csv").write_text("source,target\nµ,7\n")
        with pytest.raises(DataError, match=r"edges\.csv, line 2: the edge's target '7' is no node"):
            read_source(tmp_path)
        (tmp_path / "edges.csv").write_text('source,target\n"",b\n')
        with pytest.raises(DataError, match=r"edges\.csv, line 2: the endpoint in column 'source' is missing"):
            read_source(tmp_path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people(size=[1, 2, 3, 4]).to_parquet(tmp_path / "nodes.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(WrongUse, match=r"Reading Parquet needs pyarrow: run pip install 'omegagnn\[parquet\]'"):
        import_tables(tmp_path / "nodes.parquet", EDGES)


def test_a_separator_can_be_named(tmp_path: Path) -> None:
    write(tmp_path, nodes__csv="id;size\na;1\nb;2\n", edges__csv="source;target\na;b\n")
    assert read_source(tmp_path, Recipe(separator=";"))[0].graph.num_edges == 2


def test_pieces_of_a_long_file_name_their_lines(tmp_path: Path) -> None:
    """The check of the encoding reads a mebibyte at a time and counts the lines of all."""
    row = "x" * 200
    body = "id,size\n" + "".join(f"{row}{number},{number}\n" for number in range(12_000))
    (tmp_path / "nodes.csv").write_bytes(body.encode() + b"b\xe9,1\n")
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(DataError, match=r"nodes\.csv, line 12002: a character is not in UTF-8"):
        read_source(tmp_path)


def test_an_open_quote_that_swallows_rows_is_named_where_it_opens(tmp_path: Path) -> None:
    rows = "".join(f"n{number},x\n" for number in range(10))
    write(tmp_path, nodes__csv=f'id,kind\n\n{rows}m,"y\n{rows}', edges__csv="source,target\n")
    with pytest.raises(DataError, match=r"nodes\.csv, line 13: a quote"):
        read_source(tmp_path)


def test_a_cell_of_unreasonable_size_is_refused(tmp_path: Path) -> None:
    write(tmp_path, nodes__csv=f"id,kind\na,{'x' * 200_000}\n", edges__csv="source,target\n")
    with pytest.raises(DataError, match=r"nodes\.csv, line 2: field larger than field limit"):
        read_source(tmp_path)


def test_a_nodes_table_needs_ids() -> None:
    graphs = pd.DataFrame({"id": [1], "label": ["x"]})
    with pytest.raises(DataError, match="nodes has no column of node ids: add one"):
        from_pandas(pd.DataFrame({"graph": [1]}), EDGES.assign(graph=1), graphs)


def test_a_missing_file_or_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no file .*n\.csv: check the path"):
        import_tables(tmp_path / "n.csv", EDGES)
    with pytest.raises(DataError, match=r"There is no file .*n\.parquet: check the path"):
        import_tables(tmp_path / "n.parquet", EDGES)
    with pytest.raises(DataError, match="is a folder: name the file inside it"):
        import_tables(tmp_path, EDGES)


def test_data_frames_with_repeated_columns_are_refused() -> None:
    frame = pd.DataFrame([["a", 1, 2]], columns=["id", "v", "v"])
    with pytest.raises(DataError, match="nodes: the column name 'v' appears twice"):
        from_pandas(frame, EDGES)

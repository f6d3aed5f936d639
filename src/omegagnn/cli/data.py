"""``omegagnn data``: list, fetch, check, audit and import data sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.completion import dataset_names
from omegagnn.cli.console import note, progress, show, show_json, show_table
from omegagnn.cli.frame import AsJson, DataRoot, verb_app

if TYPE_CHECKING:
    from omegagnn.data.audit import Audit
    from omegagnn.data.dataset import Dataset
    from omegagnn.data.own import Recipe

app = verb_app()

_COLUMNS = ("name", "task", "nodes", "edges", "features", "classes", "homophily", "where", "licence")
_NUMBERS = ("nodes", "edges", "features", "classes", "homophily")
SHOWN_BYTES = 2**24  # files of this size take seconds to read


@app.command("list")
def list_datasets(data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """Show every benchmark and every imported data set, with where it is found."""
    from omegagnn.data.loading import whereabouts
    from omegagnn.data.own import own_names
    from omegagnn.data.registry import available

    found = [
        {
            "name": entry.name,
            "task": entry.task,
            **{key: getattr(entry.statistics, key) for key in ("graphs", "nodes", "edges", "features", "classes")},
            "homophily": entry.homophily,
            "licence": entry.licence,
            "where": whereabouts(entry.name, data_root),
            "problems": list(entry.problems),
        }
        for entry in available()
    ]
    found += [_own_row(name, data_root) for name in own_names(data_root)]
    if as_json:
        show_json(found)
        return
    show_table(
        "Data sets",
        _COLUMNS,
        [[_cell(row[key]) for key in _COLUMNS] for row in found],
        right=_NUMBERS,
        cut_first=("licence",),
    )


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Name of a benchmark.", autocompletion=dataset_names)],
    data_root: DataRoot = None,
) -> None:
    """Have the raw files of a benchmark in place, downloading what is missing."""
    from omegagnn.data.loading import fetch as fetch_files

    placed = fetch_files(name, data_root)
    for file, path in placed.items():
        show(f"{file}\t{path}")
    if not placed:
        note(f"{name} is made on demand and has no files.")


@app.command()
def check(
    name: Annotated[
        str | None,
        typer.Argument(help="Name of a benchmark [default: all].", show_default=False, autocompletion=dataset_names),
    ] = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Compare the raw files that are here with their checksums; a wrong file makes the exit code 1."""
    from omegagnn.data.registry import available, find

    rows = [row for entry in ([find(name)] if name else available()) for row in _check_files(entry, data_root)]
    if as_json:
        show_json(rows)
    else:
        show_table("Raw files", ("data set", "file", "state"), [list(row.values()) for row in rows])
    wrong = sum(row["state"] == "wrong" for row in rows)
    note(f"{len(rows)} files, {wrong} wrong, {sum(row['state'] == 'missing' for row in rows)} missing.")
    if wrong or (name is not None and any(row["state"] == "missing" for row in rows)):
        raise typer.Exit(1)


@app.command()
def audit(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FOLDER|FILE", help="A data set, or files as for `data import`.", autocompletion=dataset_names
        ),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with charts as well.")
    ] = None,
    as_json: AsJson = False,
    split: Annotated[str | None, typer.Option(help="Splits to look at [default: the data set's own].")] = None,
    label: Annotated[str | None, typer.Option(help="Label column, where tables are named.")] = None,
    data_root: DataRoot = None,
) -> None:
    """Tell the truth about a data set: homophily, twins between training and test, leaks, duplicates, isolated nodes."""
    from omegagnn.data.audit import audit as examine
    from omegagnn.data.audit import reachable

    dataset = _named_dataset(name, split, label, data_root)
    result = examine(dataset, others=reachable(dataset, data_root))
    if html is not None:
        from omegagnn.data.audit_page import write_page

        write_page(result, html)
    if as_json:
        show_json(result.to_json())
    else:
        _show_audit(result)


@app.command("import")
def import_dataset(
    source: Annotated[
        Path | None,
        typer.Argument(
            help="A folder with nodes.csv, edges.csv, perhaps graphs.csv; or one file: .npz, .graphml, .gml, a list of edges.",
            show_default=False,
        ),
    ] = None,
    *,
    name: Annotated[str, typer.Option(help="What to call the data set.")],
    nodes: Annotated[Path | None, typer.Option(help="Table of nodes (CSV, TSV, Parquet; .gz allowed).")] = None,
    edges: Annotated[Path | None, typer.Option(help="Table of edges, or a list of edges.")] = None,
    graphs: Annotated[Path | None, typer.Option(help="Table of graphs, for graph classification.")] = None,
    id_column: Annotated[str | None, typer.Option("--id", help="Column of node ids [default: the first].")] = None,
    label: Annotated[str | None, typer.Option(help="Column of classes; empty cells are unlabelled.")] = None,
    features: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Feature columns [default: all others].")
    ] = None,
    categorical: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Features that are categories, not numbers.")
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="A,B,...", help="Columns holding train, val and test.")] = None,
    from_column: Annotated[str | None, typer.Option("--source", help="Column where edges begin.")] = None,
    to_column: Annotated[str | None, typer.Option("--target", help="Column where edges end.")] = None,
    weights: Annotated[str | None, typer.Option(help="Column of edge weights.")] = None,
    directed: Annotated[bool, typer.Option("--directed", help="Keep the direction of edges.")] = False,
    graph: Annotated[str | None, typer.Option(help="Column that names the graph of a node or an edge.")] = None,
    graph_id: Annotated[str | None, typer.Option(help="Column of graph ids [default: the first].")] = None,
    node_features: Annotated[
        str | None, typer.Option(metavar="KIND", help="Features from the structure: one-hot, degree or positional.")
    ] = None,
    missing: Annotated[str, typer.Option(metavar="RULE", help="What a missing cell becomes: mean or error.")] = "mean",
    standardize: Annotated[bool, typer.Option("--standardize", help="Give numbers mean 0 and deviation 1.")] = False,
    separator: Annotated[
        str | None, typer.Option(help="Character between cells [default: comma, tab for .tsv].")
    ] = None,
    replace_old: Annotated[bool, typer.Option("--replace", help="Replace an imported data set of this name.")] = False,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Store a graph of your own under a name that every command takes."""
    from omegagnn.data.own.schema import recipe_of

    recipe = recipe_of(
        {
            "id": id_column, "label": label, "features": _names(features), "categorical": _names(categorical) or (),
            "split": _names(split) or (), "source": from_column, "target": to_column, "weights": weights,
            "directed": directed or None, "graph": graph, "graph_id": graph_id, "node_features": node_features,
            "missing": missing, "standardize": standardize, "separator": separator,
        }
    )  # fmt: skip
    _import(source, (nodes, edges, graphs), recipe, name, replace_old, data_root, as_json)


def _import(
    source: Path | None,
    tables: tuple[Path | None, Path | None, Path | None],
    recipe: Recipe,
    name: str,
    replace_old: bool,
    data_root: Path | None,
    as_json: bool,
) -> None:
    from omegagnn.data.own import check_name, import_tables, read_source, store
    from omegagnn.errors import WrongUse

    nodes, edges, graphs = tables
    check_name(name)
    if (source is None) == (edges is None):
        raise WrongUse(
            "Name either a folder or file to import, or tables with --edges and, where there are any, --nodes."
        )
    if source is not None and (nodes or graphs):
        raise WrongUse(f"Both {source} and single tables are named: name one of the two.")
    with _showing_bytes(source, tables):
        if source is not None:
            dataset, schema = read_source(source, recipe, name=name)
        else:
            assert edges is not None
            dataset, schema = import_tables(nodes, edges, graphs, recipe, name=name)
    folder = store(dataset, schema, data_root, replace_old)
    for warning in dataset.warnings:
        note(f"omegagnn: {warning}")
    if as_json:
        show_json({"folder": str(folder), **_summary(dataset)})
    else:
        show(f"{dataset!r}")
        show(f"stored in {folder}")


@contextmanager
def _showing_bytes(source: Path | None, tables: tuple[Path | None, ...]) -> Iterator[None]:
    """Show how much of large files has been read."""
    from omegagnn.data.own.tables import telling

    files = [path for path in tables if path is not None]
    if source is not None:
        files = list(source.glob("*.*sv*")) if source.is_dir() else [source]
    size = sum(path.stat().st_size for path in files if path.is_file())
    if size < SHOWN_BYTES:
        yield
        return
    with progress("reading", size) as advance, telling(advance):
        yield


def _own_row(name: str, data_root: Path | None) -> dict[str, Any]:
    from omegagnn.data.homophily import edge_homophily
    from omegagnn.data.own import load_own

    dataset, _ = load_own(name, data_root)
    return {
        **_summary(dataset),
        "homophily": edge_homophily(dataset) if dataset.task == "node" and not dataset.is_multilabel else None,
        "licence": "your own",
        "where": "own",
        "problems": list(dataset.warnings),
    }


def _summary(dataset: Dataset) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "task": dataset.task,
        "graphs": dataset.num_graphs,
        "nodes": dataset.num_nodes,
        "edges": dataset.graph.num_edges,
        "features": dataset.num_features,
        "classes": dataset.num_classes,
        "splits": [split.name for split in dataset.splits],
        "warnings": list(dataset.warnings),
    }


def _check_files(entry: Any, data_root: Path | None) -> list[dict[str, str]]:
    from omegagnn.data.download import sha256_of

    rows = []
    for group in entry.groups:
        located = group.located(data_root)
        for file in group.names:
            known, path = group.known(file), located.get(file)
            if path is None:
                state = "missing"
            elif known is None:
                state = "no checksum known"
            else:
                state = "right" if sha256_of(path) == known.sha256 else "wrong"
            rows.append({"dataset": entry.name, "file": f"{group.folder}/{file}", "state": state})
    return rows


def _named_dataset(name: str, split: str | None, label: str | None, data_root: Path | None) -> Dataset:
    from omegagnn.data.loading import load
    from omegagnn.data.own import Recipe, read_source
    from omegagnn.data.own.store import DATASET_FILE

    path = Path(name)
    if (path / DATASET_FILE).is_file():
        from omegagnn.data.cache import load_dataset

        return load_dataset(path / DATASET_FILE)
    if path.exists() and (path.is_dir() or path.suffix):
        return read_source(path, Recipe(label=label, node_features=None), name=path.stem)[0]
    return load(name, split, data_root)


def _show_audit(result: Audit) -> None:
    for title, value in result.lines():
        show(f"{title}\t{value}")
    for warning in result.warnings:
        show(f"warning\t{warning}")


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)

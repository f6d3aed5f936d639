"""Where imported data sets live: ``<data root>/own/<name>/`` with ``dataset.npz`` and ``schema.json``, whole or not at all.

`read_source` takes what a user has: a folder with ``nodes``, ``edges`` and, for graph classification, ``graphs`` tables
(.csv, .tsv or .parquet, .gz allowed), or one file: npz, GraphML, GML or an edge list.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from dataclasses import replace
from pathlib import Path

from omegagnn.data.cache import load_dataset, save_dataset
from omegagnn.data.dataset import Dataset
from omegagnn.data.own.arrays import import_npz
from omegagnn.data.own.build import import_tables
from omegagnn.data.own.networks import import_network, read_network
from omegagnn.data.own.schema import Recipe, Schema
from omegagnn.data.own.tables import HEADERLESS
from omegagnn.data.places import own_path
from omegagnn.data.registry import find_or_none
from omegagnn.errors import DataError, WrongUse

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")
SCHEMA_FILE, DATASET_FILE = "schema.json", "dataset.npz"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def read_source(
    source: str | Path,
    recipe: Recipe | None = None,
    schema: Schema | None = None,
    name: str = "own",
    labels: bool = True,
) -> tuple[Dataset, Schema]:
    """Read a folder of tables or one file; with a `schema`, code it as an earlier import was coded.

    Without `labels` those that are there are not looked at, whatever they say.
    """
    path, recipe = Path(source), recipe or Recipe()
    suffix = path.suffix.lower()
    if path.is_dir():
        nodes, edges, graphs = (_table_in(path, stem) for stem in ("nodes", "edges", "graphs"))
        if edges is None:
            raise DataError(
                f"{path} has no table of edges: put edges.csv there, with nodes.csv and perhaps graphs.csv beside it."
            )
        return import_tables(nodes, edges, graphs, recipe, schema, name, labels)
    if not path.exists():
        raise DataError(f"There is no file or folder {path}: check the path.")
    if suffix == ".npz":
        return import_npz(path, recipe, schema, name, labels)
    if suffix in (".graphml", ".gml"):
        network = read_network(path)
        return import_network(network, path.name, schema.recipe if schema else recipe, schema, name, labels)
    if suffix in HEADERLESS or path.name.lower().endswith(TABLE_SUFFIXES):
        return import_tables(None, path, None, recipe, schema, name, labels)
    raise WrongUse(
        f"{path} has an ending that is not known: give a folder of tables, or a file .npz, .graphml, .gml, .csv, .tsv, "
        f".parquet or {', '.join(HEADERLESS)}."
    )


def check_name(name: str) -> None:
    """Refuse names that could not be a folder's everywhere, and those of the benchmarks."""
    if _NAME.fullmatch(name) is None:
        raise WrongUse(
            f"The name {name!r} cannot be used: take letters, digits, '.', '_' and '-', beginning with a letter or digit."
        )
    if find_or_none(name) is not None:
        raise WrongUse(f"The name {name!r} belongs to a benchmark: choose another.")


def store(dataset: Dataset, schema: Schema, root: str | Path | None = None, replace_old: bool = False) -> Path:
    """Write data set and schema below the data root and return their folder; an old one stays until the new is whole."""
    check_name(dataset.name)
    folder = own_path(dataset.name, root).parent
    if folder.exists() and not replace_old:
        raise WrongUse(
            f"There is an imported data set {dataset.name!r} in {folder}: choose another name or pass --replace."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    new, old = folder.with_name(f".{folder.name}.{mark}.new"), folder.with_name(f".{folder.name}.{mark}.old")
    try:
        new.mkdir()
        save_dataset(dataset, new / DATASET_FILE)
        schema.save(new / SCHEMA_FILE)
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return folder


def load_own(name: str, root: str | Path | None = None) -> tuple[Dataset, Schema]:
    """Return an imported data set with its schema."""
    folder = own_path(name, root).parent
    if not (folder / DATASET_FILE).is_file():
        raise WrongUse(f"There is no imported data set {name!r} in {folder.parent}: see `omegagnn data list`.")
    schema = Schema.load(folder / SCHEMA_FILE)
    return replace(load_dataset(folder / DATASET_FILE), name=name, schema=schema), schema


def load_stored(path: Path) -> Dataset:
    """Return the data set of an npz file that `store` wrote, with the schema that lies beside it."""
    dataset, schema = load_dataset(path), path.with_name(SCHEMA_FILE)
    return replace(dataset, schema=Schema.load(schema)) if schema.is_file() else dataset


def own_names(root: str | Path | None = None) -> tuple[str, ...]:
    """Return the names of the imported data sets below a data root."""
    return tuple(sorted(path.parent.name for path in own_path("x", root).parent.parent.glob(f"[!.]*/{DATASET_FILE}")))


def _table_in(folder: Path, stem: str) -> Path | None:
    found = [path for path in (folder / f"{stem}{suffix}" for suffix in TABLE_SUFFIXES) if path.exists()]
    if len(found) > 1:
        raise DataError(f"{folder} has both {found[0].name} and {found[1].name}: leave one of them.")
    return found[0] if found else None

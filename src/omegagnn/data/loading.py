"""`load`: a data set by name, with its splits, from wherever it can be had."""

from __future__ import annotations

import hashlib
import inspect
import re
from contextlib import suppress
from dataclasses import replace
from importlib.resources import as_file
from importlib.resources import files as resources
from pathlib import Path

from omegagnn.data.cache import VERSION, load_dataset, save_dataset
from omegagnn.data.dataset import Dataset
from omegagnn.data.places import cache_folder, is_plain_name, own_path
from omegagnn.data.readers.geom_gcn import read_geom_splits
from omegagnn.data.registry import Entry, find, find_or_none
from omegagnn.data.sources import Packed
from omegagnn.data.splits import choose_splits
from omegagnn.errors import DataError, WrongUse

# Part of the key of every cached file: raise it when a reader gives something else for the same raw files.
READERS = 1


def load(name: str, split: str | None = None, root: str | Path | None = None) -> Dataset:
    """Return a data set with its splits.

    `name` is one of the registry (`available`), the name of an imported data set, or a made one with arguments, such as
    ``csbm:homophily=0.2,nodes=500``. `split` is described in `omegagnn.data.splits`; None takes the registry's default, and
    all splits that an imported data set carries. `root` is the data root (`omegagnn.data.places`).
    """
    short, _, arguments = name.partition(":")
    entry = find_or_none(short)
    if entry is None:
        if arguments or not is_plain_name(short) or not own_path(short, root).is_file():
            find(name)  # says what there is instead
        from omegagnn.data.own.store import load_stored

        dataset = load_stored(own_path(short, root))
        return dataset if split is None else dataset.with_splits(choose_splits(dataset, split))
    if arguments and entry.make is None:
        raise WrongUse(f"{entry.name} takes no arguments: ask for {entry.name!r}, and give the split apart.")
    dataset = make(entry, arguments) if entry.make is not None else _read(entry, root)
    wanted = split or entry.default_split
    if entry.split_files is not None and re.match(r"geom(?=[:@#]|$)", wanted):
        found = entry.split_files.obtain(root)
        entry.split_files.verify(found)
        paths = [found[file] for file in entry.split_files.names]
        dataset = dataset.with_splits((*dataset.splits, *read_geom_splits(paths, dataset.num_nodes)))
    dataset = replace(
        dataset, warnings=(*dataset.warnings, *entry.problems, *entry.differences(dataset) * (not arguments))
    )
    return dataset.with_splits(choose_splits(dataset, wanted, also=("geom",) if entry.split_files else ()))


def make(entry: Entry, arguments: str) -> Dataset:
    """Make a data set with arguments such as ``homophily=0.2,nodes=500``; its name tells them."""
    assert entry.make is not None
    parameters = inspect.signature(entry.make).parameters
    given: dict[str, int | float] = {}
    for argument in filter(None, arguments.split(",")):
        key, _, value = argument.partition("=")
        if key not in parameters:
            raise WrongUse(f"{entry.name} has no argument {key!r}: it takes {', '.join(parameters) or 'none'}.")
        kind = type(parameters[key].default)
        try:
            given[key] = kind(value)
        except ValueError:
            raise WrongUse(
                f"{key} of {entry.name} must be {'an integer' if kind is int else 'a number'}, not {value!r}."
            ) from None
    dataset = entry.make(**given)
    return replace(dataset, name=f"{entry.name}:{arguments}") if arguments else dataset


def fetch(name: str, root: str | Path | None = None) -> dict[str, Path]:
    """Have all raw files of a data set in place, checked, and return them by their paths below a data root."""
    entry = find(name)
    placed = {}
    for group in entry.groups:
        found = group.obtain(root)
        group.verify(found)
        placed.update({f"{group.folder}/{file}": path for file, path in found.items()})
    return placed


def whereabouts(name: str, root: str | Path | None = None) -> str:
    """Say where `load` would take a data set from: made, files, cache, embedded, archive or upstream (not on this machine)."""
    entry = find(name)
    if entry.files is None:
        return "made"
    if not entry.files.missing(entry.files.located(root)):
        return "files"
    sums = _expected(entry)
    if sums is not None and _cached_path(entry, sums).is_file():
        return "cache"
    if entry.is_embedded:
        return "embedded"
    packed = any(isinstance(source, Packed) and source.located(root) for source in entry.files.sources)
    return "archive" if packed else "upstream"


def _read(entry: Entry, root: str | Path | None) -> Dataset:
    """Read from the npz cache where the raw files, or what they must be, have been parsed before; else from the files."""
    assert entry.files is not None
    assert entry.read is not None
    found = entry.files.located(root)
    if entry.files.missing(found):
        sums = _expected(entry)
        if sums is not None and (cached := _cached(entry, sums)) is not None:
            return cached
        if entry.is_embedded:
            return embedded(entry.name)
        found = entry.files.obtain(root)
    sums = entry.files.verify(found)
    if (cached := _cached(entry, sums)) is not None:
        return cached
    dataset = entry.read(found, entry.name)
    with suppress(OSError):  # a cache that cannot be written costs time, nothing else
        save_dataset(dataset, _cached_path(entry, sums))
    return dataset


def embedded(name: str) -> Dataset:
    """Return the copy of a data set that comes with the package."""
    with as_file(resources("omegagnn.data").joinpath("embedded", f"{name}.npz")) as path:
        return load_dataset(path)


def _expected(entry: Entry) -> dict[str, str] | None:
    """Return the checksums that the raw files must have, or None where one is not known."""
    assert entry.files is not None
    sums = {name: known.sha256 for name in entry.files.names if (known := entry.files.known(name)) is not None}
    return sums if len(sums) == len(entry.files.names) else None


def _cached_path(entry: Entry, sums: dict[str, str]) -> Path:
    lines = [f"{name} {digest}" for name, digest in sorted(sums.items())]
    key = hashlib.sha256("\n".join([str(VERSION), str(READERS), *lines]).encode()).hexdigest()
    return cache_folder() / "npz" / f"{entry.name}-{key[:16]}.npz"


def _cached(entry: Entry, sums: dict[str, str]) -> Dataset | None:
    path = _cached_path(entry, sums)
    if not path.is_file():
        return None
    try:
        return load_dataset(path)
    except DataError:
        path.unlink(missing_ok=True)  # damaged; it is made again
        return None

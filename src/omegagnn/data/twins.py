"""Items that a model cannot tell apart, found by hashing, and how many of the test set have such a twin in training.

* Two **nodes** are twins when they have the same set of neighbours, in either direction of an edge and themselves left out,
  and the same label. Nodes without neighbours have no twins. Averaged over the ten geom-gcn splits this is the case for
  49.7 % of the test nodes of chameleon and 39.8 % of squirrel.
* Two **graphs** are twins when five rounds of colour refinement that begins with the features leave the same colours, and
  they have the same label. Few graphs that differ agree so far; that they are isomorphic is not proved.

Sets are compared by two sums of 64-bit hashes of their members, which differ for different sets but by a chance of 2⁻¹²⁸.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.homophily import simple

Hashes = npt.NDArray[np.uint64]
Groups = npt.NDArray[np.int64]

_ROUNDS = 5
_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))


def twin_groups(dataset: Dataset) -> Groups:
    """Return a number for each item, the same for twins; -1 for an item that has no label or nothing to compare."""
    if dataset.task == "graph":
        colours = _graph_colours(dataset)
        comparable = np.ones(dataset.num_graphs, dtype=bool)
    else:
        graph = simple(dataset.graph)
        receiver, sender = graph.row.numpy(), graph.col.numpy()
        colours = [_sum_over(_mix(sender.astype(np.uint64) + seed), receiver, dataset.num_nodes) for seed in _SEEDS]
        comparable = (graph.rowptr.diff() > 0).numpy()
    labels = dataset.labels.numpy()
    keys = np.stack([*colours, labels.astype(np.uint64)], axis=1)
    groups = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.where(comparable & (labels >= 0), groups, -1)


def row_groups(features: torch.Tensor) -> Groups:
    """Return a number for each row of features, the same for equal rows."""
    keys = np.stack(_row_hashes(features), axis=1)
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def percent_in_training(groups: Groups, split: Split) -> float:
    """Return the percentage of test items whose group has a member in training."""
    test, train = groups[split.test.numpy()], groups[split.train.numpy()]
    return 100 * float((np.isin(test, train) & (test >= 0)).mean()) if test.size else 0.0


def _graph_colours(dataset: Dataset) -> list[Hashes]:
    assert dataset.batch is not None
    receiver, sender, batch = dataset.graph.row.numpy(), dataset.graph.col.numpy(), dataset.batch.numpy()
    result = []
    for start, seed in zip(_row_hashes(dataset.features), _SEEDS, strict=True):
        colour = _mix(start + seed)
        for _ in range(_ROUNDS):
            around = _sum_over(_mix(colour[sender] ^ seed), receiver, dataset.num_nodes)
            colour = _mix(colour * np.uint64(3) + around)
        result.append(_sum_over(colour, batch, dataset.num_graphs))
    return result


def _row_hashes(features: torch.Tensor) -> list[Hashes]:
    """Hash each row as the set of its (column, value) pairs; a stored zero counts as none."""
    if features.layout == torch.sparse_csr:
        rowptr, column, value = features.crow_indices(), features.col_indices(), features.values()
        row = torch.repeat_interleave(torch.arange(features.size(0)), rowptr.diff())
        kept = value != 0
        row, column, value = row[kept], column[kept], value[kept]
    else:
        row, column = features.nonzero(as_tuple=True)
        value = features[row, column]
    bits = value.to(torch.float32).numpy().view(np.uint32).astype(np.uint64)
    pairs = (column.numpy().astype(np.uint64) << np.uint64(32)) | bits
    return [_sum_over(_mix(pairs + seed), row.numpy(), features.size(0)) for seed in _SEEDS]


def _sum_over(values: Hashes, group: npt.NDArray[np.integer], count: int) -> Hashes:
    result = np.zeros(count, dtype=np.uint64)
    np.add.at(result, group, values)
    return result


def _mix(values: Hashes) -> Hashes:
    """The finisher of SplitMix64: each bit of the input changes half of the output's."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

"""Data sets: the benchmarks of the paper, a user's own graphs, their splits and an audit of both.

>>> from omegagnn.data import load
>>> load("karate")
Dataset('karate', node, 34 nodes, 156 edges, 34 features, 2 classes, 1 splits)
"""

from omegagnn.data.cache import load_dataset, save_dataset
from omegagnn.data.dataset import Dataset, Split
from omegagnn.data.loading import fetch, load, whereabouts
from omegagnn.data.places import cache_folder, data_root, own_path
from omegagnn.data.registry import Entry, Statistics, available, find
from omegagnn.data.splits import choose_splits

__all__ = [
    "Dataset",
    "Entry",
    "Split",
    "Statistics",
    "available",
    "cache_folder",
    "choose_splits",
    "data_root",
    "fetch",
    "find",
    "load",
    "load_dataset",
    "own_path",
    "save_dataset",
    "whereabouts",
]

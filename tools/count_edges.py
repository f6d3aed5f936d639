"""Count the edges of the node data sets in every way that a paper may have counted them, and their homophilies.

    python tools/count_edges.py DATA_ROOT

prints the table of docs/datasets.md.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from omegagnn.data import Dataset, fetch, load
from omegagnn.data.readers.text import read_table
from omegagnn.data.readers.unpickle import unpickle
from omegagnn.graph import Graph

# Edges and homophily as the paper's appendix prints them.
PAPER = {
    "cora": (5429, 0.81),
    "citeseer": (4732, 0.80),
    "pubmed": (44338, 0.74),
    "chameleon": (36101, 0.23),
    "film": (33544, 0.22),
    "cornell": (295, 0.30),
    "texas": (309, 0.11),
    "wisconsin": (499, 0.21),
}
COLUMNS = "data set | entries in the file | distinct | without loops | undirected | paper | edge | node, in | node, out | paper"


def entries(name: str, root: str) -> np.ndarray:
    """Return the pairs as the raw file lists them."""
    paths = fetch(name, root).values()
    for path in paths:
        if path.name.endswith(".graph"):
            graph = unpickle(path)
            return np.array([(node, other) for node, others in graph.items() for other in others])
        if path.name.endswith("edges.txt"):
            return read_table(path, 2, delimiter="\t", skip=1)
    raise AssertionError(name)


def node_homophily(graph: Graph, labels: torch.Tensor) -> float:
    """Mean over the nodes that receive something of the share of their own class in it."""
    same = (labels[graph.row] == labels[graph.col]).double()
    shares = torch.zeros(graph.num_nodes, dtype=torch.double).index_add(0, graph.row.long(), same)
    degree = graph.rowptr.diff()
    return float((shares[degree > 0] / degree[degree > 0]).mean())


def row(dataset: Dataset, listed: np.ndarray) -> str:
    graph, labels = dataset.graph, dataset.labels
    distinct = np.unique(listed, axis=0)
    plain = distinct[distinct[:, 0] != distinct[:, 1]]
    undirected = np.unique(np.sort(plain, axis=1), axis=0)
    edge = float((labels[graph.row] == labels[graph.col]).double().mean())
    nodes = [node_homophily(each, labels) for each in (graph, graph.transposed)]
    printed_edges, printed_homophily = PAPER[dataset.name]
    cells = [
        dataset.name,
        *(f"{len(table):,}" for table in (listed, distinct, plain, undirected)),
        f"{printed_edges:,}",
    ]
    return " | ".join([*cells, *(f"{value:.3f}" for value in (edge, *nodes)), f"{printed_homophily:.2f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root")
    root = parser.parse_args().root
    print(f"| {COLUMNS} |")
    print("|---" * (COLUMNS.count("|") + 1) + "|")
    for name in PAPER:
        print(f"| {row(load(name, root=root), entries(name, root))} |")


if __name__ == "__main__":
    main()

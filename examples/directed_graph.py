"""A directed graph: who follows whom. Messages run along the edges, and a weight says how much."""

import torch

from omegagnn import Graph, OmegaGATConv, OmegaGCNConv

# An edge sends from the first row to the second: 0 → 1, 1 → 2, 2 → 3 and 0 → 3.
edge_index = torch.tensor([[0, 1, 2, 0], [1, 2, 3, 3]])
weight = torch.tensor([1.0, 0.5, 2.0, 1.0])

graph = Graph.from_edge_index(edge_index, num_nodes=4, edge_weight=weight)
print(graph, "undirected:", graph.is_undirected)

x = torch.eye(4)
along = OmegaGCNConv(4, 4)(x, graph)  # receives along the edges
against = OmegaGCNConv(4, 4)(x, edge_index.flip(0), weight)  # receives against them
both = OmegaGCNConv(4, 4)(x, graph.to_undirected())  # as `omegagnn train` does unless data.symmetrize=false
print("node 1 hears", along[1].nonzero().squeeze(1).tolist(), "along the edges")
print("node 1 hears", against[1].nonzero().squeeze(1).tolist(), "against them")
print("node 1 hears", both[1].nonzero().squeeze(1).tolist(), "in both directions")

# Attention makes weights of its own; giving it some is an error that says so.
try:
    OmegaGATConv(4, 4)(x, edge_index, weight)
except (TypeError, ValueError) as error:
    print(f"OmegaGATConv: {error}")

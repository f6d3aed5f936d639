"""Parts of a graph that too large a graph is trained on: whole blocks, sampled neighbourhoods, clusters, random nodes."""

from omegagnn.data.sampling.blocks import ranges, take_blocks
from omegagnn.data.sampling.neighbours import NeighbourSampler
from omegagnn.data.sampling.parts import ClusterSampler, NodeSampler
from omegagnn.data.sampling.subgraph import Subgraph

__all__ = ["ClusterSampler", "NeighbourSampler", "NodeSampler", "Subgraph", "ranges", "take_blocks"]

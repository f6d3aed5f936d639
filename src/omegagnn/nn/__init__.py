"""Layers and networks: ω and its scopes, the two convolutions, the paper's networks, wrappers and baselines."""

from omegagnn.nn.conv import OmegaGATConv, OmegaGCNConv
from omegagnn.nn.model import OmegaNet
from omegagnn.nn.omega import OmegaWeight

__all__ = ["OmegaGATConv", "OmegaGCNConv", "OmegaNet", "OmegaWeight"]

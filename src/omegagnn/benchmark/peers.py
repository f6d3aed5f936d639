"""The nets of the peers, as their users write them: dropout → linear → ReLU → L × {conv, ReLU} → dropout → linear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.functional import dropout as torch_dropout
from torch_geometric.nn import GATConv, GCNConv

from omegagnn.nn.model import OmegaNet


class PygNet(nn.Module):
    """A GCN or GAT of PyTorch Geometric in its best setting: cached normalisation, `edge_index` or torch sparse CSR."""

    def __init__(self, in_channels: int, channels: int, layers: int, classes: int, kind: str, dropout: float) -> None:
        """Make the net; maps have no bias, as in the paper."""
        super().__init__()
        self.dropout = dropout
        self.opening = nn.Linear(in_channels, channels, bias=False)
        self.closing = nn.Linear(channels, classes, bias=False)
        conv: Callable[[], nn.Module] = (
            (lambda: GCNConv(channels, channels, bias=False, cached=True))
            if kind == "gcn"
            else (lambda: GATConv(channels, channels, bias=False))
        )
        self.convs = nn.ModuleList(conv() for _ in range(layers))

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        """Return logits."""
        x = self.opening(torch_dropout(x, self.dropout, self.training)).relu()
        for conv in self.convs:
            x = conv(x, edges).relu()
        return self.closing(torch_dropout(x, self.dropout, self.training))


@torch.no_grad()
def copy_weights(peer: PygNet, ours: OmegaNet) -> None:
    """Give run 0 of our net the weights of a peer, so that at ω = 1 both compute the same."""
    ours.opening.weight[0] = peer.opening.weight.t()
    ours.closing.weight[0] = peer.closing.weight.t()
    pairs: Any = zip(peer.convs, ours.convs, strict=True)
    for theirs, mine in pairs:
        mine.weight[0] = theirs.lin.weight.t()
        if hasattr(mine, "att_weight"):
            mine.att_weight[0] = theirs.lin.weight.t()
            mine.att_dst[0], mine.att_src[0] = theirs.att_dst[0], theirs.att_src[0]


def training_step(net: PygNet, x: Tensor, edges: Any, labels: Tensor, train: Tensor) -> Callable[[], object]:
    """Return a whole training step of a peer: forward, cross-entropy on the training nodes, backward, Adam."""
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)

    def step() -> None:
        net.train()
        optimiser.zero_grad()
        cross_entropy(net(x, edges)[train], labels[train]).backward()
        optimiser.step()

    return step


def evaluation(net: PygNet, x: Tensor, edges: Any, labels: Tensor, parts: list[Tensor]) -> Callable[[], object]:
    """Return loss and accuracy on the three parts of a split, as a peer's user measures them every epoch."""

    def measure() -> list[float]:
        net.eval()
        with torch.no_grad():
            out = net(x, edges)
            hits = [float((out[part].argmax(-1) == labels[part]).float().mean()) for part in parts]
            return hits + [float(cross_entropy(out[part], labels[part])) for part in parts]

    return measure

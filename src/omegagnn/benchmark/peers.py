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


class PeerNet(nn.Module):
    """The net around the convolutions of a peer; maps have no bias, as in the paper."""

    def __init__(
        self, in_channels: int, channels: int, classes: int, convs: list[nn.Module], dropout: float = 0.5
    ) -> None:
        """Take the peer's own convolutions."""
        super().__init__()
        self.dropout = dropout
        self.opening = nn.Linear(in_channels, channels, bias=False)
        self.closing = nn.Linear(channels, classes, bias=False)
        self.convs = nn.ModuleList(convs)
        self.drop: Callable[..., Tensor] = torch_dropout

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        """Return logits; `x` is dense or a sparse CSR matrix."""
        x = self.opening(self._drop_features(x)).relu()
        x = self.stack(x, edges)
        return self.closing(self.drop(x, self.dropout, self.training))

    def stack(self, x: Tensor, edges: Any) -> Tensor:
        """Return what the layers make of `x`."""
        for conv in self.convs:
            x = self.propagate(conv, x, edges).relu()
        return x

    def _drop_features(self, x: Tensor) -> Tensor:
        """Drop features; torch's dropout takes no sparse matrix, so its stored values are dropped: zeros stay zeros."""
        if x.layout != torch.sparse_csr:
            return self.drop(x, self.dropout, self.training)
        values = self.drop(x.values(), self.dropout, self.training)
        return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape, check_invariants=False)

    def propagate(self, conv: Any, x: Tensor, edges: Any) -> Tensor:
        """Call a convolution as the peer calls it."""
        raise NotImplementedError

    def weights(self, conv: Any) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return the map ``[c, c]`` (applied from the right) and, for attention, the vectors of receiver and sender."""
        raise NotImplementedError


class PygNet(PeerNet):
    """A GCN with cached normalisation or a GAT whose self-loops the graph has already, by PyTorch Geometric."""

    def __init__(self, in_channels: int, channels: int, layers: int, classes: int, kind: str) -> None:
        """Make the net."""
        make: Callable[[], nn.Module] = (
            (lambda: GCNConv(channels, channels, bias=False, cached=True))
            if kind == "gcn"
            else (lambda: GATConv(channels, channels, bias=False, add_self_loops=False))
        )
        super().__init__(in_channels, channels, classes, [make() for _ in range(layers)])

    def propagate(self, conv: Any, x: Tensor, edges: Any) -> Tensor:
        """Call a convolution with `edge_index` or a torch sparse CSR matrix."""
        return conv(x, edges)

    def weights(self, conv: Any) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return map and attention vectors."""
        return conv.lin.weight.t(), getattr(conv, "att_dst", None), getattr(conv, "att_src", None)


class DglNet(PeerNet):
    """A GCN (`GraphConv`, normalised on both sides) or GAT of DGL; its graph has the self-loops already."""

    def __init__(self, dgl: Any, in_channels: int, channels: int, layers: int, classes: int, kind: str) -> None:
        """Make the net with the convolutions of the module `dgl`."""
        convs = dgl.nn.pytorch
        make: Callable[[], nn.Module] = (
            (lambda: convs.GraphConv(channels, channels, norm="both", bias=False))
            if kind == "gcn"
            else (lambda: convs.GATConv(channels, channels, num_heads=1, bias=False))
        )
        super().__init__(in_channels, channels, classes, [make() for _ in range(layers)])

    def propagate(self, conv: Any, x: Tensor, edges: Any) -> Tensor:
        """Call a convolution with DGL's graph; attention returns an axis of heads."""
        return conv(edges, x).flatten(1)

    def weights(self, conv: Any) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return map and attention vectors: DGL's left one belongs to the sender, its right one to the receiver."""
        if hasattr(conv, "fc"):
            return conv.fc.weight.t(), conv.attn_r, conv.attn_l
        return conv.weight, None, None


@torch.no_grad()
def copy_weights(peer: PeerNet, ours: OmegaNet) -> None:
    """Give run 0 of our net the weights of a peer, so that at ω = 1 both compute the same."""
    ours.opening.weight[0] = peer.opening.weight.t()
    ours.closing.weight[0] = peer.closing.weight.t()
    pairs: Any = zip(peer.convs, ours.convs, strict=True)
    for theirs, mine in pairs:
        weight, receiver, sender = peer.weights(theirs)
        mine.weight[0] = weight
        if receiver is not None and sender is not None:
            mine.att_weight[0] = weight
            mine.att_dst[0], mine.att_src[0] = receiver[0], sender[0]


def training_step(net: PeerNet, x: Tensor, edges: Any, labels: Tensor, train: Tensor) -> Callable[[], object]:
    """Return a whole training step of a peer: forward, cross-entropy on the training nodes, backward, fused Adam."""
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4, fused=True)

    def step() -> None:
        net.train()
        optimiser.zero_grad()
        cross_entropy(net(x, edges)[train], labels[train]).backward()
        optimiser.step()

    return step


def evaluation(net: PeerNet, x: Tensor, edges: Any, labels: Tensor, parts: list[Tensor]) -> Callable[[], object]:
    """Return loss and accuracy on the three parts of a split, as a peer's user measures them every epoch."""

    def measure() -> list[float]:
        net.eval()
        with torch.no_grad():
            out = net(x, edges)
            hits = [float((out[part].argmax(-1) == labels[part]).float().mean()) for part in parts]
            return hits + [float(cross_entropy(out[part], labels[part])) for part in parts]

    return measure

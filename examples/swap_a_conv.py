"""Swap GCNConv for OmegaGCNConv in a model of your own, and see what 32 layers leave of it."""

import torch
from torch_geometric.nn import GCNConv

from omegagnn import OmegaGCNConv
from omegagnn.data import load


class Deep(torch.nn.Module):
    """Any stack of convolutions; only the layer differs."""

    def __init__(self, conv, features, classes, channels=32, layers=32):
        super().__init__()
        self.first = torch.nn.Linear(features, channels)
        self.convs = torch.nn.ModuleList(conv(channels, channels) for _ in range(layers))
        self.last = torch.nn.Linear(channels, classes)

    def forward(self, x, edge_index):
        x = self.first(x).relu()
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.last(x)


def accuracy_after_training(model, groups, data):
    optimizer = torch.optim.Adam(groups, lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    right = model(data.x, data.edge_index).argmax(1) == data.y
    return float(right[data.test_mask].float().mean())


data = load("karate").to_pyg()
torch.manual_seed(0)

gcn = Deep(GCNConv, data.num_features, 2)
print(f"GCNConv       {accuracy_after_training(gcn, gcn.parameters(), data):.0%} of the test nodes right")

omega = Deep(OmegaGCNConv, data.num_features, 2)
maps = [conv.weight for conv in omega.convs]  # square maps start at the identity and want a small rate
rest = [p for p in omega.parameters() if all(p is not m for m in maps)]
groups = [{"params": maps, "lr": 1e-4}, {"params": rest}]
print(f"OmegaGCNConv  {accuracy_after_training(omega, groups, data):.0%} of the test nodes right")

"""Diagnose a model of your own: does it over-smooth, where, and what to change. Any torch module will do."""

import torch
from torch_geometric.nn import GCNConv

from omegagnn import OmegaGCNConv
from omegagnn.analysis import diagnose
from omegagnn.data import load

LAYERS, CHANNELS = 24, 16


class Deep(torch.nn.Module):
    def __init__(self, conv, features, classes):
        super().__init__()
        self.first = torch.nn.Linear(features, CHANNELS)
        self.convs = torch.nn.ModuleList(conv(CHANNELS, CHANNELS) for _ in range(LAYERS))
        self.last = torch.nn.Linear(CHANNELS, classes)

    def forward(self, x, edge_index):
        x = self.first(x).relu()
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.last(x)


data = load("karate").to_pyg()
for conv in (GCNConv, OmegaGCNConv):
    torch.manual_seed(0)
    model = Deep(conv, data.num_features, 2)
    slow = [p for layer in model.convs for name, p in layer.named_parameters() if name == "weight"]
    rest = [p for p in model.parameters() if all(p is not q for q in slow)]
    optimizer = torch.optim.Adam([{"params": slow, "lr": 1e-4}, {"params": rest}], lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()

    found = diagnose(model, data, subject=f"{LAYERS} × {conv.__name__}")
    print(found)  # `found.to_svg()` draws it, `found.rows` holds the numbers of every layer
    print()

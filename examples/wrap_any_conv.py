"""Put a learnable ω around any convolution of PyTorch Geometric: x − ω ⊙ (x − conv(x))."""

import torch
from torch_geometric.nn import SAGEConv

from omegagnn import Omega
from omegagnn.data import load

CHANNELS, LAYERS = 16, 8


class Net(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.first = torch.nn.Linear(features, CHANNELS)
        self.convs = torch.nn.ModuleList(Omega(SAGEConv(CHANNELS, CHANNELS), CHANNELS) for _ in range(LAYERS))
        self.last = torch.nn.Linear(CHANNELS, classes)

    def forward(self, x, edge_index):
        x = self.first(x).relu()
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.last(x)


data = load("karate").to_pyg()
torch.manual_seed(0)
net = Net(data.num_features, 2)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(1, 61):
    loss = torch.nn.functional.cross_entropy(net(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 0:
        print(f"epoch {epoch:3}  loss {loss.detach():.4f}")
with torch.no_grad():
    print("mean ω of each layer:", [round(float(conv.omega.mean()), 2) for conv in net.convs])

"""Mini-batches: train on random parts of a graph that would not fit at once, predict on the whole of it.

`RandomNodeLoader` cuts the nodes into parts anew in every epoch and keeps the edges inside a part; it needs no compiled extras.
"""

import torch
from torch_geometric.loader import RandomNodeLoader

from omegagnn import OmegaGCNConv
from omegagnn.data import load

CHANNELS, LAYERS, PARTS, EPOCHS = 32, 4, 4, 30


class Net(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.first = torch.nn.Linear(features, CHANNELS)
        self.convs = torch.nn.ModuleList(OmegaGCNConv(CHANNELS, CHANNELS) for _ in range(LAYERS))
        self.last = torch.nn.Linear(CHANNELS, classes)

    def forward(self, x, edge_index):
        x = self.first(x).relu()
        for conv in self.convs:
            x = conv(x, edge_index).relu()  # a part is a graph of its own: its operator S is normalised anew
        return self.last(x)


torch.manual_seed(0)
dataset = load("csbm:nodes=2000,homophily=0.8")
data = dataset.to_pyg()
split = dataset.splits[0]
train = torch.zeros(data.num_nodes, dtype=torch.bool).index_fill(0, split.train, True)
data.train = train

net = Net(data.num_features, dataset.num_classes)
maps = [conv.weight for conv in net.convs]  # square maps start at the identity and want a small rate
rest = [p for p in net.parameters() if all(p is not m for m in maps)]
optimizer = torch.optim.Adam([{"params": maps, "lr": 1e-4}, {"params": rest}], lr=0.01)
for epoch in range(1, EPOCHS + 1):
    sizes = []
    for part in RandomNodeLoader(data, num_parts=PARTS, shuffle=True):
        loss = torch.nn.functional.cross_entropy(net(part.x, part.edge_index)[part.train], part.y[part.train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sizes.append(f"{part.num_nodes} nodes, {part.edge_index.size(1)} edges")
    if epoch % 10 == 0:
        print(f"epoch {epoch:2}  loss of the last of {len(sizes)} parts ({sizes[-1]})  {loss.detach():.3f}")

with torch.no_grad():
    right = net(data.x, data.edge_index).argmax(1) == data.y
print(f"test accuracy on the whole graph: {right[split.test].float().mean():.1%}")

"""Many graphs on several processes: torch's own DistributedDataParallel around an `OmegaNet`.

torchrun --standalone --nproc-per-node 2 train_with_torchrun.py
"""

import os

import networkx as nx
import torch
import torch.distributed as dist
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import degree, from_networkx

from omegagnn import OmegaNet

if "RANK" not in os.environ:
    raise SystemExit("start me with: torchrun --standalone --nproc-per-node 2 train_with_torchrun.py")


def ring_or_tree(k):
    """A ring (class 1) or a tree (class 0), told by the degrees of its nodes."""
    size, ring = 8 + k % 7, k // 2 % 2
    pairs = from_networkx(nx.cycle_graph(size) if ring else nx.random_labeled_tree(size, seed=k)).edge_index
    degrees = degree(pairs[0], size).clamp(max=3).long()
    return Data(x=torch.nn.functional.one_hot(degrees, 4).float(), edge_index=pairs, y=torch.tensor([ring]))


dist.init_process_group("gloo")  # "nccl" where every process has a GPU
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)  # all processes begin with the same weights and cut the same graphs
graphs = [ring_or_tree(k) for k in range(240)]
mine = graphs[:160][rank::world]  # each process trains on its own share
net = torch.nn.parallel.DistributedDataParallel(OmegaNet(4, 16, 2, 2, task="graph"))
optimizer = torch.optim.Adam(net.module.param_groups(lr_gnn=1e-3), lr=0.01)

for _ in range(10):
    for batch in DataLoader(mine, batch_size=20, shuffle=True):
        logits = net(batch.x, batch.edge_index, batch=batch.batch, num_graphs=batch.num_graphs)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, batch.y).backward()  # gradients are averaged over the processes
        optimizer.step()

net.eval()
test = next(iter(DataLoader(graphs[160:][rank::world], batch_size=80)))
with torch.no_grad():
    right = net.module(test.x, test.edge_index, batch=test.batch, num_graphs=test.num_graphs).argmax(1) == test.y
counts = torch.tensor([right.sum(), right.numel()])
dist.all_reduce(counts)
print(
    f"process {rank} of {world}: {len(mine)} graphs trained on, {int(right.sum())} of {right.numel()} test graphs right"
)
dist.barrier()
if rank == 0:
    print(f"together: {counts[0] / counts[1]:.1%} of {counts[1]} test graphs right")
dist.destroy_process_group()

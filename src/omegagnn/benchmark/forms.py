"""The forms of a peer: how its users may hand it features and edges, each a net of its own with what it is fed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from omegagnn.benchmark.optional import NotHere, compile_net, dgl_graph, import_dgl, one_line
from omegagnn.benchmark.peers import DglNet, PeerNet, PygNet, copy_weights
from omegagnn.data.dataset import Dataset
from omegagnn.errors import OmegaError
from omegagnn.training.batch import RunBatch

MOSTLY_ZERO = 0.5  # of the features at most are not zero where peers are offered them as a sparse matrix too
TOLERANCE = 2e-3  # of the largest logit, float32 over up to 64 layers
CONVS = {"gcn": ("GCNConv", "GraphConv"), "gat": ("GATConv", "GATConv")}

LeaveOut = Callable[[str, str], None]
Make = Callable[[], "Peer"]


@dataclass(frozen=True)
class Peer:
    """A peer's net, what it is fed, and the seconds its compilation took where it was compiled."""

    label: str
    net: PeerNet
    x: Tensor
    edges: Any
    compile_s: float | None = None

    def __call__(self) -> Tensor:
        """Return logits."""
        return self.net(self.x, self.edges)


def forms(dataset: Dataset, batch: RunBatch) -> dict[str, Make]:
    """Return every form of every peer by its label, made when called; one that cannot run here raises `NotHere`.

    Features are dense, as PyTorch Geometric's loaders give them, or, mostly zero, a sparse CSR matrix too. Edges are
    `edge_index`, a torch sparse CSR matrix or a DGL graph. Self-loops of attention are in the edges already, as adding them at
    each step costs.
    """
    kind, layers = batch.config.model.name.removeprefix("omega-"), batch.config.model.layers
    sizes = (dataset.num_features, batch.config.model.channels, layers, dataset.num_classes, kind)
    pyg, dgl = (f"{library} {conv}" for library, conv in zip(("PyG", "DGL"), CONVS[kind], strict=True))
    features, device = batch.task.features, batch.device
    dense = features if isinstance(features, Tensor) else features.to_dense()
    sparse = _csr(dense) if int((dense != 0).sum()) < MOSTLY_ZERO * dense.numel() else None
    graph = batch.task.graph.with_self_loops() if kind == "gat" else batch.task.graph
    edge_index, csr = graph.to_edge_index()[0], graph.to_torch_sparse()
    if kind == "gat":  # PyG's attention scatters by the indices of the matrix, which must be int64 for that
        csr = torch.sparse_csr_tensor(csr.crow_indices().long(), csr.col_indices().long(), csr.values(), csr.shape)

    def with_pyg(form: str, x: Tensor, edges: Tensor) -> tuple[str, Make]:
        label = f"{pyg}, {form}"
        return label, lambda: Peer(label, PygNet(*sizes).to(device), x, edges)

    def compiled() -> Peer:
        net, x = PygNet(*sizes).to(device), dense if sparse is None else sparse
        return Peer(f"{pyg}, torch.compile", net, x, edge_index, compile_net(net, x, edge_index))

    def with_dgl() -> Peer:
        module = import_dgl()
        edges = dgl_graph(module, edge_index, graph.num_nodes)
        return Peer(f"{dgl}, sparse features", DglNet(module, *sizes), dense if sparse is None else sparse, edges)

    dense_forms = [with_pyg("edge_index", dense, edge_index), with_pyg("CSR", dense, csr)]
    if sparse is not None:
        dense_forms += [
            with_pyg("edge_index, sparse features", sparse, edge_index),
            with_pyg("CSR, sparse features", sparse, csr),
        ]
    return dict([*dense_forms, (f"{pyg}, torch.compile", compiled), (f"{dgl}, sparse features", with_dgl)])


def _csr(dense: Tensor) -> Tensor:
    """Return a matrix in compressed rows with int32 indices, which torch's products take as they are."""
    matrix = dense.to_sparse_csr()
    rows, columns = matrix.crow_indices().int(), matrix.col_indices().int()
    return torch.sparse_csr_tensor(rows, columns, matrix.values(), matrix.shape)


def peers_that_run(found: Mapping[str, Make], batch: RunBatch, leave_out: LeaveOut) -> Iterator[Peer]:
    """Yield the peers that run here, each after its outputs were seen to be ours; tell of the others why not."""
    for label, make in found.items():
        name = "DGL" if label.startswith("DGL") else label
        try:
            peer = make()
            peer.net.train()
            peer().sum().backward()
            peer.net.zero_grad()
        except NotHere as reason:
            leave_out(name, str(reason))
            continue
        except Exception as error:  # a library that imports and then fails against this torch, or has too little memory
            leave_out(name, f"does not run, left out: {one_line(error)}")
            if batch.device.type == "cuda":
                torch.cuda.empty_cache()
            continue
        assert_same_outputs(batch, peer)
        yield peer


def assert_same_outputs(batch: RunBatch, peer: Peer) -> None:
    """Compare our net at ω = 1 with a peer of the same weights, both in training without dropout: what is timed later."""
    net: Any = batch.net
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    dropout, peer.net.dropout = peer.net.dropout, 0.0
    with torch.no_grad():
        copy_weights(peer.net, net)
        for conv in net.convs:
            conv.omega.fill_(1.0)
        ours = net.eval()(batch.task.features, batch.operator)[:, 0]
    peer.net.train()
    theirs = peer().detach()
    error = float((ours - theirs).abs().max() / theirs.abs().max())
    if not error < TOLERANCE:
        raise OmegaError(f"Ours and {peer.label} differ by {error:.1e}, so their times say nothing: report this.")
    peer.net.dropout = dropout
    net.load_state_dict(before)


def without_compiling(found: Mapping[str, Make]) -> dict[str, Make]:
    """Return the forms that need no compilation, of which many nets can be made in no time."""
    return {label: make for label, make in found.items() if "torch.compile" not in label}

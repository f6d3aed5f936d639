"""`OmegaNet`: the paper's two architectures, for nodes and for whole graphs, with or without a run axis."""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from omegagnn.graph import Graph, as_graph
from omegagnn.nn.conv import Init, OmegaGATConv, OmegaGCNConv
from omegagnn.nn.groups import Grouped, GroupName
from omegagnn.nn.linear import Map
from omegagnn.nn.norm import Norm, NormName
from omegagnn.nn.omega import OmegaScope, OmegaWeight
from omegagnn.nn.pretrained import Pretrained
from omegagnn.nn.runs import node_sum
from omegagnn.ops import Draws, SparseFeatures, dropout, sparse_linear

Conv = Literal["gcn", "gat"]
Task = Literal["node", "graph"]
Variant = Literal["paper", "authors"]

# Places where randomness enters, in steps of one a kind and of PLACES a layer (see `ops.random`).
PLACES = 8
INPUT, LAYER, ATTENTION, OUTPUT, START = range(5)
INITIAL_STEP = -1  # parameters are drawn at a step that training never reaches


class OmegaNet(Grouped, Pretrained):
    r"""A deep network of ωGNN layers: 1×1 opening, L layers :math:`σ((I - Ω(I - S)) f K)`, 1×1 closing.

    *Nodes* (paper, table "node classification"): dropout → 1×1 → ReLU → L × {layer, ReLU} → dropout → 1×1, no biases.

    *Graphs* (paper, table "graph classification"): 1×1 → ReLU → L × {layer, ReLU, batch norm, 1×1, ReLU} → add-pool →
    1×1 → dropout → 1×1. ``variant="authors"`` is their released script instead: S is the raw adjacency sum without
    self-loops, and a layer is {ω step, 1×1, batch norm, ReLU, 1×1, ReLU}, i.e. GIN with a learnt ε a channel. Also under it,
    for both tasks, K starts with 1e-4 of noise, and ωGAT's scores see the features themselves.

    Args:
        in_channels: input features; -1 finds them at the first forward pass.
        hidden_channels: channels of every layer.
        num_layers: L, the number of ωGNN layers.
        out_channels: classes; None takes `hidden_channels`.
        dropout: p of the two dropouts of the paper.
        conv: ``"gcn"`` or ``"gat"``.
        omega: ``"channel"``, ``"layer"``, ``"global"``, or a number (fixed).
        task: ``"node"`` or ``"graph"``.
        heads: attention heads (``conv="gat"``).
        attention_dropout: p of dropout on attention coefficients.
        runs: number of independent runs R: every parameter gets a leading R, outputs are ``[n, R, out]``.
        variant: ``"paper"`` or ``"authors"``.
        init: start of K, ``"identity"`` or ``"glorot"``.
        norm: None, ``"batch"``, ``"layer"`` or ``"pair"`` after each layer (node task; the authors' PPI script has batch norm
            *instead of* ReLU: ``norm="batch", activation=None``).
        activation: ``"relu"`` or None, the σ of the layers.
        residual: None, ``"previous"`` (adds the layer's input) or ``"initial"`` (adds a tenth of the opening's output).
        layer_dropout: p of a dropout between layers; the paper has none.
        bias: biases in every map; the paper has none.

    >>> net = OmegaNet(in_channels=5, hidden_channels=8, num_layers=2, out_channels=3)
    >>> net(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    capturable = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        conv: Conv = "gcn",
        omega: OmegaScope | float = "channel",
        task: Task = "node",
        heads: int = 1,
        attention_dropout: float = 0.0,
        runs: int | None = None,
        variant: Variant = "paper",
        init: Init = "identity",
        norm: NormName | None = None,
        activation: Literal["relu"] | None = "relu",
        residual: Literal["previous", "initial"] | None = None,
        layer_dropout: float = 0.0,
        bias: bool = False,
    ) -> None:
        """Make the network; see the class."""
        settings = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__()
        self.settings = settings
        _check("conv", conv, ("gcn", "gat"))
        _check("task", task, ("node", "graph"))
        _check("variant", variant, ("paper", "authors"))
        _check("activation", activation, ("relu", None))
        _check("residual", residual, ("previous", "initial", None))
        for name, p in (("dropout", dropout), ("layer_dropout", layer_dropout)):
            if not 0 <= p < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, not {p}.")
        if num_layers < 0:
            raise ValueError(f"num_layers must be at least 0, not {num_layers}.")
        out_channels = hidden_channels if out_channels is None else out_channels
        self.in_channels, self.hidden_channels, self.out_channels = in_channels, hidden_channels, out_channels
        self.num_layers, self.dropout, self.layer_dropout = num_layers, dropout, layer_dropout
        self.task, self.runs, self.variant = task, runs, variant
        self.activation, self.residual = activation, residual
        if task == "graph" and norm is not None:
            raise ValueError("A graph task has batch normalisation in every layer already: leave norm at None.")

        self.opening = Map(in_channels, hidden_channels, bias=bias, runs=runs)
        scope: Any = OmegaWeight(runs=runs) if omega == "global" else omega
        common = {"omega": scope, "bias": bias, "init": init, "runs": runs}
        common["init_noise"] = 1e-4 if variant == "authors" else 0.0
        self.convs = nn.ModuleList(self._make_conv(conv, heads, attention_dropout, common) for _ in range(num_layers))
        norm = "batch" if task == "graph" else norm
        layers = range(num_layers) if norm is not None else ()
        self.norms = nn.ModuleList(Norm(norm, hidden_channels, runs=runs) for _ in layers if norm is not None)
        extra = range(num_layers) if task == "graph" else ()
        self.maps = nn.ModuleList(Map(hidden_channels, hidden_channels, bias=bias, runs=runs) for _ in extra)
        self.head = Map(hidden_channels, hidden_channels, bias=bias, runs=runs) if task == "graph" else None
        self.closing = Map(hidden_channels, out_channels, bias=bias, runs=runs)
        self.reset_parameters()

    def _make_conv(
        self, conv: Conv, heads: int, attention_dropout: float, common: dict[str, Any]
    ) -> OmegaGCNConv | OmegaGATConv:
        c = self.hidden_channels
        authors = self.variant == "authors"
        if conv == "gat":
            return OmegaGATConv(c, c, heads=heads, dropout=attention_dropout, transform=not authors, **common)
        return OmegaGCNConv(c, c, normalize=not (authors and self.task == "graph"), **common)

    @property
    def omega(self) -> Tensor:
        """The learnt ω of all layers, ``[L, 1 or c]`` (``[L, R, 1 or c]`` with runs)."""
        shape = (1,) if self.runs is None else (self.runs, 1)
        omegas = [cast("OmegaGCNConv | OmegaGATConv", conv).omega for conv in self.convs]
        rows = [omega if omega.dim() else omega.reshape(1) for omega in omegas]
        return torch.stack(rows) if rows else torch.empty(0, *shape)

    def reset_parameters(self, seeds: Tensor | None = None) -> None:
        """Draw all parameters anew: run r from ``seeds[r]`` alone, or from torch's generator where there are none."""
        draws = Draws.from_torch(self.runs or 1) if seeds is None else Draws(seeds)
        draws = draws.at(INITIAL_STEP)
        places = iter(range(START, 10**6, PLACES))
        for module in self.modules():
            if isinstance(module, (Map, OmegaGCNConv, OmegaGATConv)):
                module.reset_parameters(draws.key(next(places)))
            elif isinstance(module, Norm):
                module.reset_parameters()

    def operator(self, edge_index: Graph | Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> Graph:
        """Return the graph as the layers use it: S for ωGCN, the structure with self-loops for ωGAT."""
        graph = as_graph(edge_index, num_nodes, edge_weight)
        if not len(self.convs):
            return graph
        first: Any = self.convs[0]
        return first.structure(graph) if isinstance(first, OmegaGATConv) else first.operator(graph)

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Graph | Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        draws: Draws | None = None,
    ) -> Tensor:
        """Return logits of nodes ``[n, out]`` or of graphs ``[graphs, out]`` (``[·, R, out]`` with runs).

        `x` is dense ``[n, f]`` (``[n, R, f]``), a torch sparse matrix or, made once for many passes, `SparseFeatures`.
        `batch` is the graph of each node. `draws` is the randomness of dropout (else torch's generator).
        """
        if isinstance(x, Tensor) and x.layout != torch.strided:
            x = SparseFeatures(x)
        graph = self.operator(edge_index, x.shape[0], edge_weight)
        if draws is None and self.training and self._drops():
            runs = x.shape[1] if len(x.shape) == 3 else self.runs or 1
            draws = Draws.from_torch(runs, self.closing.weight.device)
        f = self.embed(x, graph, draws)
        if self.task == "graph":
            assert self.head is not None
            f = self.head(add_pool(f, batch, num_graphs))
        return self.closing(f, *self._random(self.dropout, OUTPUT, draws))

    def embed(self, x: Tensor | SparseFeatures, graph: Graph, draws: Draws | None = None) -> Tensor:
        """Return the features behind the last layer, before pooling and closing."""
        opening_p = self.dropout if self.task == "node" else 0.0
        f = self.opening(x, *self._random(opening_p, INPUT, draws))
        first = torch.relu(f) if self.residual == "initial" else f
        relu = True  # σ of what enters a layer is left to the layer, which has it for nothing
        for layer, conv in enumerate(self.convs):
            p, key = self._random(self.layer_dropout, LAYER + PLACES * layer, draws)
            if p > 0 and key is not None:
                f = dropout(f, p, key)
            if relu and (self.residual == "previous" or conv._forward_pre_hooks):  # somebody needs σ(f) itself
                f, relu = torch.relu(f), False
            f = self._layer(layer, conv, f, relu, first, graph, draws)
            relu = self.task == "graph" or self.activation == "relu"
        return torch.relu(f) if relu else f

    def _layer(
        self,
        layer: int,
        conv: nn.Module,
        f: Tensor,
        relu: bool,
        first: Tensor,
        graph: Graph,
        draws: Draws | None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Return what the layer makes of f (of σ(f) where `relu` says so), before the σ behind it, for `rows` (else all)."""
        options: dict[str, Any] = {"relu": relu} if rows is None else {"relu": relu, "rows": rows}
        if isinstance(conv, OmegaGATConv):
            _, options["key"] = self._random(conv.dropout, ATTENTION + PLACES * layer, draws)
        out = conv(f, graph, **options)
        if self.residual is not None:
            kept = f if self.residual == "previous" else 0.1 * first
            out = out + (kept if rows is None else kept[rows])
        if self.task == "graph":
            out = out if self.variant == "authors" else self._activate(out)
            out = self.norms[layer](out)
            out = self._activate(out) if self.variant == "authors" else out
            return self.maps[layer](out)
        return self.norms[layer](out) if len(self.norms) else out

    def behind_layer(self, layer: int, f: Tensor, first: Tensor, graph: Graph, rows: Tensor) -> Tensor:
        """Return the features of the nodes `rows` behind a layer of a node task, from those in front of it, as evaluated.

        `f` and `first` (what entered the first layer) are behind their σ, and so is the result. `graph` is as `operator` returns
        it and need hold the entries of `rows` only.
        """
        return self._activate(self._layer(layer, self.convs[layer], f, False, first, graph, None, rows))

    def _activate(self, f: Tensor) -> Tensor:
        return torch.relu(f) if self.activation == "relu" else f

    def _drops(self) -> bool:
        attention = (conv.dropout for conv in self.convs if isinstance(conv, OmegaGATConv))
        return max(self.dropout, self.layer_dropout, *attention) > 0

    def _random(self, p: float, place: int, draws: Draws | None) -> tuple[float, Tensor | None]:
        """Return probability and key of a dropout, or nothing to do outside training."""
        if p == 0 or not self.training or draws is None:
            return 0.0, None
        return p, draws.key(place)

    def grouped_parameters(self) -> dict[GroupName, list[Parameter]]:
        """Return the parameters by the paper's groups.

        ``gnn``: K and the attention's W and a · ``omega``: ω · ``oc``: opening, closing, head, 1×1 maps, norms.
        """
        groups: dict[GroupName, list[Parameter]] = {"gnn": [], "oc": [], "omega": []}
        for name, parameter in self.named_parameters():
            part = name.split(".", 1)[0]
            group: GroupName = "oc" if part != "convs" else "omega" if "omega_weight" in name else "gnn"
            groups[group].append(parameter)
        return groups


def add_pool(f: Tensor, batch: Tensor | None, num_graphs: int | None = None) -> Tensor:
    """Sum the nodes of each graph: ``[n, ...]`` → ``[graphs, ...]``; without `batch` all nodes are one graph."""
    if batch is None:
        return node_sum(f).unsqueeze(0)
    if batch.shape != f.shape[:1]:
        raise ValueError(
            f"batch must hold the graph of each of {f.size(0)} nodes, but its shape is {tuple(batch.shape)}."
        )
    if num_graphs is None:
        num_graphs = int(batch.max()) + 1 if batch.numel() else 0
    if torch.compiler.is_exporting():  # other runtimes have no stable sort, and need no gradient
        return f.new_zeros(num_graphs, *f.shape[1:]).index_add(0, batch, f)
    members = SparseFeatures.membership(batch, num_graphs)  # no atomics: the same bits every time, on a GPU too
    return sparse_linear(members, f.transpose(0, 1) if f.dim() == 3 else f)


def _check(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}.")

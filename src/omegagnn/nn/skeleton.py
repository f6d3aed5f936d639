"""`Baseline`: the skeleton all baselines share, so that they differ from `OmegaNet` in their layers only."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, NamedTuple, TypedDict

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from omegagnn.graph import Graph, as_graph
from omegagnn.nn.conv import Init
from omegagnn.nn.groups import Grouped, GroupName
from omegagnn.nn.linear import Map
from omegagnn.nn.model import ATTENTION, INITIAL_STEP, INPUT, LAYER, OUTPUT, PLACES, START, Task, add_pool
from omegagnn.nn.norm import Norm, NormName
from omegagnn.ops import Draws, SparseFeatures, dropout
from omegagnn.ops.random import draw_bits, drop_threshold

Activation = Literal["relu", "elu"]

# Places of randomness that `OmegaNet` does not have.
EDGES, NEGATIVES = START + 1, START + 2


class Edges(NamedTuple):
    """What a PyG conv is handed: pairs ``[2, E]``, finished weights ``[E]`` or None, and the graph they are from."""

    pairs: Tensor
    weight: Tensor | None
    graph: Graph


class Options(TypedDict, total=False):
    """The options every baseline takes; see `Baseline`."""

    task: Task
    norm: NormName | None
    activation: Activation | None
    layer_dropout: float
    drop_edge: float
    bias: bool


class Baseline(Grouped):
    """What all baselines share: constructor, forward pass, randomness, groups; the places of everything are `OmegaNet`'s.

    *Nodes*: dropout → 1×1 → ReLU → L × {layer, norm, σ} → dropout → 1×1. *Graphs*: 1×1 → ReLU → L × {layer, σ, batch norm,
    1×1, ReLU} → add-pool → 1×1 → dropout → 1×1. A model whose published form differs says so.

    Features may be dense or sparse: the opening map multiplies sparse features as they are.

    Args:
        in_channels: input features; -1 finds them at the first forward pass.
        hidden_channels: channels of every layer.
        num_layers: number of layers.
        out_channels: classes; None takes `hidden_channels`.
        dropout: p of the dropouts before the opening and the closing map.
        task: ``"node"`` or ``"graph"``.
        norm: None, ``"batch"``, ``"layer"`` or ``"pair"`` (PairNorm, https://arxiv.org/abs/1909.12223) behind each layer of a
            node task.
        activation: σ of the layers, ``"relu"``, ``"elu"`` or None.
        layer_dropout: p of a dropout before each layer.
        drop_edge: p of DropEdge (https://arxiv.org/abs/1907.10903): in training each edge is left out with probability p,
            the same ones in all layers of a step, and S is normalised anew. In an undirected graph both directions of an
            edge go together, copies of an edge always do.
        bias: whether the maps and convs have biases, as they usually do.
    """

    #: First parts of the names of parameters that belong to the layers.
    gnn_parts: ClassVar[tuple[str, ...]] = ("convs",)
    #: Baselines have no run axis of their own; `StackedRuns` gives them one.
    runs: ClassVar[None] = None

    opening: Map
    closing: Map | None
    head: Map | None

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None = None,
        dropout: float = 0.0,
        *,
        task: Task = "node",
        norm: NormName | None = None,
        activation: Activation | None = "relu",
        layer_dropout: float = 0.0,
        drop_edge: float = 0.0,
        bias: bool = True,
    ) -> None:
        """Check the arguments and make the opening map; a model then calls `build`."""
        super().__init__()
        if task not in ("node", "graph"):
            raise ValueError(f"task must be 'node' or 'graph', not {task!r}.")
        if activation not in ("relu", "elu", None):
            raise ValueError(f"activation must be 'relu', 'elu' or None, not {activation!r}.")
        for name, p in (("dropout", dropout), ("layer_dropout", layer_dropout), ("drop_edge", drop_edge)):
            if not 0 <= p < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, not {p}.")
        if num_layers < 0:
            raise ValueError(f"num_layers must be at least 0, not {num_layers}.")
        if task == "graph" and norm is not None:
            raise ValueError("A graph task has batch normalisation in every layer already: leave norm at None.")
        self.in_channels, self.hidden_channels = in_channels, hidden_channels
        self.out_channels = hidden_channels if out_channels is None else out_channels
        self.num_layers, self.dropout, self.layer_dropout, self.drop_edge = (
            num_layers,
            dropout,
            layer_dropout,
            drop_edge,
        )
        self.task, self.norm, self.activation, self.bias = task, norm, activation, bias

    def build(
        self,
        make_conv: Callable[[int], nn.Module] | None = None,
        *,
        width: int | None = None,
        joined: int | None = None,
        layers: int | None = None,
        norm: NormName | None = None,
        maps: bool = True,
    ) -> None:
        """Make the opening map, the layers (``make_conv(l)`` for each), their norms and maps, head and closing map.

        `width` is the number of channels behind a layer, `joined` that behind all of them, where they are not
        `hidden_channels`; `layers` is their number where it is not `num_layers`; `norm` insists on one; `maps` says whether
        the layers of a graph task have a 1×1 map.
        """
        hidden, graph_task = self.hidden_channels, self.task == "graph"
        width = hidden if width is None else width
        joined = width if joined is None else joined
        count = self.num_layers if layers is None else layers
        self.opening = Map(self.in_channels, hidden, bias=self.bias)
        self.convs = nn.ModuleList(make_conv(layer) for layer in range(count) if make_conv is not None)
        norm = norm or ("batch" if graph_task else self.norm)
        self.norms = nn.ModuleList(Norm(norm, width) for _ in self.convs if norm is not None)
        self.maps = nn.ModuleList(Map(width, width, bias=self.bias) for _ in self.convs if graph_task and maps)
        self.head = Map(joined, hidden, bias=self.bias) if graph_task else None
        self.closing = Map(hidden if graph_task else joined, self.out_channels, bias=self.bias)
        self.reset_parameters()

    def refuse_norm(self) -> None:
        """Say that this model has no place for a norm of the user's choice."""
        if self.norm is not None:
            raise ValueError(f"{type(self).__name__} has no layers to normalise: leave norm at None.")

    # ------------------------------------------------------------------------------------------------ forward pass

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Graph | Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        draws: Draws | None = None,
    ) -> Tensor:
        """Return logits of nodes ``[n, out]`` or of graphs ``[graphs, out]``; the arguments are `OmegaNet.forward`'s."""
        if isinstance(x, Tensor) and x.layout != torch.strided:
            x = SparseFeatures(x)
        if draws is None and self.training:
            draws = Draws.from_torch(1, self.opening.weight.device)
        graph = as_graph(edge_index, x.shape[0], edge_weight)
        p, key = self.random(self.drop_edge, EDGES, draws)
        if key is not None:
            graph = drop_edges(graph, p, key)
        f = self.embed(x, graph, draws)
        if self.head is not None:
            f = self.head(add_pool(f, batch, num_graphs))
        return self.classify(f, graph, draws)

    def embed(self, x: Tensor | SparseFeatures, graph: Graph, draws: Draws | None = None) -> Tensor:
        """Return the features behind the last layer, before pooling and closing."""
        for f in self.outputs(x, graph, draws):  # noqa: B007
            pass
        return f

    def outputs(self, x: Tensor | SparseFeatures, graph: Graph, draws: Draws | None) -> Iterator[Tensor]:
        """Yield the features behind the opening map and behind each layer."""
        first = f = self.open(x, draws)
        yield f
        edges = self.edges(graph, f.dtype)
        for layer, conv in enumerate(self.convs):
            f = self.drop(f, self.layer_dropout, LAYER + PLACES * layer, draws)
            f = self.finish(layer, self.convolve(layer, conv, f, first, edges, draws))
            yield f

    def open(self, x: Tensor | SparseFeatures, draws: Draws | None) -> Tensor:
        """Return ``ReLU(dropout(x) W)``; a graph task has no dropout here."""
        p = self.dropout if self.task == "node" else 0.0
        return torch.relu(self.opening(x, *self.random(p, INPUT, draws)))

    def classify(self, f: Tensor, graph: Graph, draws: Draws | None) -> Tensor:
        """Return the logits from the last features."""
        assert self.closing is not None
        return self.closing(f, *self.random(self.dropout, OUTPUT, draws))

    def structure(self, graph: Graph) -> Graph:
        """Return the graph as this model's convs use it; the GCN operator S unless a model says otherwise."""
        return graph.gcn_norm()

    def edges(self, graph: Graph, dtype: torch.dtype) -> Edges:
        """Return what the convs are handed, made once for a graph."""
        graph = self.structure(graph)

        def make() -> Edges:
            pairs, weight = graph.to_edge_index()
            return Edges(pairs, None if weight is None else weight.to(dtype), graph)

        return graph._once(("edges", dtype), make)

    def convolve(
        self, layer: int, conv: nn.Module, f: Tensor, first: Tensor, edges: Edges, draws: Draws | None
    ) -> Tensor:
        """Call a conv; `first` is the output of the opening map."""
        return conv(f, edges.pairs, edges.weight)

    def finish(self, layer: int, f: Tensor) -> Tensor:
        """Apply what stands behind a conv: σ, batch norm, 1×1, ReLU for graphs; norm, σ for nodes."""
        if len(self.maps):
            return torch.relu(self.maps[layer](self.norms[layer](self.activate(f))))
        if len(self.norms):
            f = self.norms[layer](f)
        return self.activate(f)

    def activate(self, f: Tensor) -> Tensor:
        """Apply σ."""
        if self.activation is None:
            return f
        return torch.relu(f) if self.activation == "relu" else nn.functional.elu(f)

    def random(self, p: float, place: int, draws: Draws | None) -> tuple[float, Tensor | None]:
        """Return probability and key of a dropout, or nothing to do outside training."""
        if p == 0 or not self.training or draws is None:
            return 0.0, None
        return p, draws.key(place)

    def drop(self, f: Tensor, p: float, place: int, draws: Draws | None) -> Tensor:
        """Apply dropout in training."""
        p, key = self.random(p, place, draws)
        return f if key is None else dropout(f, p, key)

    def auxiliary_loss(self) -> Tensor | None:
        """Return, once, what the last training pass adds to the loss, or None."""
        return None

    # -------------------------------------------------------------------------------------------------- parameters

    @property
    def omega(self) -> Tensor:
        """There is no ω: an empty tensor, shaped as `OmegaNet` without layers has it."""
        return torch.empty(0, 1)

    @property
    def vectorisable(self) -> bool:
        """Whether `torch.func.vmap` can run many of these at once: dropped edges have another number in every run."""
        return self.drop_edge == 0

    def grouped_parameters(self) -> dict[GroupName, list[Parameter]]:
        """Return the parameters of the layers (``gnn``), of everything else (``oc``) and none for ``omega``."""
        groups: dict[GroupName, list[Parameter]] = {"gnn": [], "oc": [], "omega": []}
        for name, parameter in self.named_parameters():
            groups["gnn" if name.split(".", 1)[0] in self.gnn_parts else "oc"].append(parameter)
        return groups

    def reset_parameters(self, seeds: Tensor | None = None) -> None:
        """Draw all parameters anew, from the one seed in `seeds` ``[1]`` or from torch's generator."""
        draws = (Draws.from_torch(1) if seeds is None else Draws(seeds.cpu())).at(INITIAL_STEP)
        places = iter(range(START, 10**6, PLACES))
        for module in self.children():
            for part in module if isinstance(module, nn.ModuleList) else (module,):
                if isinstance(part, Map):
                    part.reset_parameters(draws.key(next(places)))
                else:
                    reset_from_key(part, draws.key(next(places)))


def reset_from_key(module: nn.Module, key: Tensor) -> None:
    """Call a module's own ``reset_parameters`` with torch's generator seeded from a key ``[1, 2]``, then as it was before.

    The draws are made on the CPU, so that they are the same for a module on any device.
    """
    fresh: Any = copy.deepcopy(module).cpu()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(key[0, 0]) << 31 ^ int(key[0, 1]))
        fresh.reset_parameters()
    module.load_state_dict(fresh.state_dict())


def attention_place(layer: int) -> int:
    """Return the place of a layer's attention dropout."""
    return ATTENTION + PLACES * layer


def drop_edges(graph: Graph, p: float, key: Tensor) -> Graph:
    """Leave out each edge with probability p; both directions together where the graph is undirected, copies always."""
    if graph.is_operator:
        raise ValueError("drop_edge normalises what is left, so it needs the graph itself: pass it before gcn_norm().")
    keep = draw_bits(key[0], graph._once("edge numbers", lambda: _edge_numbers(graph))) >= drop_threshold(p)
    return graph._select(keep)


def _edge_numbers(graph: Graph) -> Tensor:
    """Return a number for each entry that its copies, and in an undirected graph its partner, share."""
    one, other = graph.row.long(), graph.col.long()
    if graph.is_undirected:
        one, other = torch.minimum(one, other), torch.maximum(one, other)
    return one * graph.num_nodes + other


def start_at_identity(init: Init, convs: nn.ModuleList) -> None:
    """Set the maps of PyG convs to the identity where `init` says so."""
    if init == "identity":
        conv: Any
        for conv in convs:
            nn.init.eye_(conv.lin.weight)
    elif init != "glorot":
        raise ValueError(f"init must be 'identity' or 'glorot', not {init!r}.")


def unweighted(graph: Graph, model: Baseline) -> Graph:
    """Return the graph for a model that has no use for weights, if it has none."""
    if graph.weight is not None:
        raise ValueError(f"{type(model).__name__} has no place for edge weights: pass graph.unweighted().")
    return graph

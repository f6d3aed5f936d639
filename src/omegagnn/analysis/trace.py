r"""`trace`: run any torch or PyG model once and see, layer by layer, what becomes of its node features.

Forward hooks look at the features ``f`` that pass each chosen layer and note the energy, :math:`E / \|f\|^2`, the mean
average distance, the effective rank and, where a loss is given, the norm of its gradient by ``f``. A network that
over-smooths shows an energy and a rank that fall with depth; one that cannot learn shows gradients that do.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from omegagnn.analysis.energy import dirichlet_energy, distance_within, effective_rank, mean_average_distance
from omegagnn.analysis.hooks import chosen_layers, hooked, unchanged
from omegagnn.graph import Graph, as_graph

Side = Literal["output", "input"]
Loss = Callable[..., Tensor]
Energy = Callable[[Tensor, Graph], Tensor]


@dataclass(frozen=True, eq=False)
class LayerTrace:
    """The features at one call of one layer: numbers of no dimension, or ``[R]`` for R runs, in float64 on the CPU."""

    name: str
    call: int  # which call of this module, from 1
    channels: int
    energy: Tensor
    relative_energy: Tensor  # E / ‖f‖²
    distance: Tensor  # mean average cosine distance of all pairs of nodes
    rank: Tensor  # NaN where features have more than `rank_limit` channels
    norm: Tensor  # ‖f‖
    within: Tensor  # the same distance among the nodes of one component
    gradient: Tensor | None = None  # ‖∂ loss / ∂ f‖, where there is a loss


@dataclass(frozen=True, eq=False)
class Trace:
    """What `trace` returns: one entry for each call of each layer, in the order of the calls."""

    layers: tuple[LayerTrace, ...]

    def __len__(self) -> int:
        return len(self.layers)

    def table(self) -> str:
        """Return a plain text table (means over the runs, where there are several)."""
        head = ["layer", "channels", "energy", "E/E first", "E/|f|^2", "MAD", "rank", "gradient"]
        first = self.layers[0].energy
        rows = [head, *(_table_row(layer, first) for layer in self.layers)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON: lists where there are runs, None for what is not finite or not asked."""
        return {"layers": [_plain(layer) for layer in self.layers]}

    __str__ = table


def trace(
    model: nn.Module,
    *args: Any,
    graph: Graph | Tensor | None = None,
    target: Tensor | None = None,
    loss: Loss | None = None,
    layers: Sequence[str | nn.Module] | None = None,
    side: Side = "output",
    energy: Energy = dirichlet_energy,
    rank_limit: int | None = None,
    **kwargs: Any,
) -> Trace:
    """Call ``model(*args, **kwargs)`` once and return what its layers did to the node features.

    The model is left as it was, also after an error: no hook, gradient, buffer, mode or random state is changed. It
    runs in the mode it is in, so call ``model.eval()`` first to trace without dropout.

    Args:
        model: any module; lazy ones are initialised by the call.
        *args: what the model takes. A lone PyG ``Data`` is unpacked for a model that takes ``(x, edge_index)``.
        graph: a `Graph`, ``edge_index`` or sparse matrix, where it is not among the arguments of the model.
        target: labels (integers, -1 for unknown; the loss is the cross-entropy) or values (mean squared error).
        loss: ``loss(output, target)``, or ``loss(output)`` where there is no target. Without loss and target no
            gradient is taken.
        layers: names (``*`` stands for part of a name: ``"convs.*"``) or modules. By default the graph convolutions
            (ours and any PyG ``MessagePassing``), or, where there are none, all modules without children.
        side: the features that leave a layer (before an activation that follows), or those that enter it. The paper's
            f⁰ … f^L of an `OmegaNet` are the inputs of ``["convs.*", "closing"]``.
        energy: the energy to show; `gat_energy` suits attention.
        rank_limit: channels up to which the rank is computed; its cost grows with their square.
        **kwargs: keyword arguments of the model.

    >>> from torch import nn
    >>> path = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> mlp = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    >>> [layer.name for layer in trace(mlp, torch.randn(3, 2), graph=path).layers]
    ['0', '1', '2']
    """
    args, kwargs, graph = resolved_arguments(model, args, kwargs, graph)
    chosen = chosen_layers(model, layers)
    return traced(model, args, kwargs, graph, [(chosen, side)], target, loss, energy, rank_limit)


def traced(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    graph: Graph,
    places: Sequence[tuple[Mapping[str, nn.Module], Side]],
    target: Tensor | None,
    loss: Loss | None,
    energy: Energy = dirichlet_energy,
    rank_limit: int | None = None,
) -> Trace:
    """Do what `trace` does, for layers of several sides in one pass."""
    watcher = _Watcher(graph, energy, rank_limit, wants_gradient=loss is not None or target is not None)
    with unchanged(model), torch.set_grad_enabled(watcher.wants_gradient):
        with ExitStack() as stack:
            for chosen, side in places:
                stack.enter_context(hooked(chosen, watcher.watch, side))
            output = model(*args, **kwargs)
        if not watcher.seen:
            count = len({name for chosen, _ in places for name in chosen})
            raise ValueError(
                f"None of the {count} chosen layers passed on features of {graph.num_nodes} nodes: name others in layers."
            )
        if not watcher.wants_gradient:
            return Trace(tuple(watcher.seen))
        gradients = watcher.gradients(loss_value(output, target, loss))
    return Trace(tuple(_with_gradient(layer, norm) for layer, norm in zip(watcher.seen, gradients, strict=True)))


class _Watcher:
    """Measures the features that the hooks show it, in the order of the calls."""

    def __init__(self, graph: Graph, energy: Energy, rank_limit: int | None, *, wants_gradient: bool) -> None:
        self.graph, self.energy, self.wants_gradient = graph, energy, wants_gradient
        self.rank_limit, self.component = rank_limit, components(graph)
        self.seen: list[LayerTrace] = []
        self._edges: list[torch.autograd.graph.GradientEdge] = []
        self._calls: dict[str, int] = {}

    def watch(self, name: str, features: Tensor) -> Tensor:
        """Measure features now, before anything changes them in place, and return those the model is to go on with."""
        n = self.graph.num_nodes
        is_strided = features.layout == torch.strided and features.is_floating_point()
        if not is_strided or features.dim() not in (2, 3) or features.size(0) != n:
            return features
        if self.wants_gradient and not features.requires_grad:
            # Nothing before this layer learns. A clone of a leaf can still be changed in place by what follows.
            features = features.detach().requires_grad_().clone()
        self._calls[name] = self._calls.get(name, 0) + 1
        with torch.no_grad():
            self.seen.append(self._measured(name, features.detach()))
        if self.wants_gradient:
            self._edges.append(torch.autograd.graph.get_gradient_edge(features))
        return features

    def gradients(self, loss: Tensor) -> list[Tensor]:
        """Return the norm of the gradient at each place seen; 0 where the loss does not depend on it."""
        if not loss.requires_grad:
            return [torch.zeros(()) for _ in self.seen]
        found = torch.autograd.grad(loss, self._edges, allow_unused=True)
        return [torch.zeros(()) if each is None else _norm(each) for each in found]

    def _measured(self, name: str, features: Tensor) -> LayerTrace:
        graph = self.graph if self.graph.device == features.device else self.graph.to(features.device)
        energy = self.energy(features, graph)
        is_wide = self.rank_limit is not None and features.size(-1) > self.rank_limit
        values = (
            energy,
            energy / _norm(features).square().to(energy),
            mean_average_distance(features),
            torch.full_like(energy, torch.nan) if is_wide else _rank(features),
            _norm(features),
            distance_within(features, self.component.to(features.device)),
        )
        numbers = (value.to("cpu", torch.float64) for value in values)
        return LayerTrace(name, self._calls[name], features.size(-1), *numbers)


def resolved_arguments(
    model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], graph: Graph | Tensor | None
) -> tuple[tuple[Any, ...], dict[str, Any], Graph]:
    """Return what the model is called with and the graph found there."""
    data = args[0] if len(args) == 1 and hasattr(args[0], "edge_index") and hasattr(args[0], "x") else None
    if data is not None and _takes_pairs(model):
        args = (data.x, data.edge_index)
        if getattr(data, "edge_weight", None) is not None:
            kwargs = {"edge_weight": data.edge_weight, **kwargs}
    if isinstance(graph, Graph):
        return args, kwargs, graph
    everything = [*kwargs.values(), *args[1:], *args[:1]]
    found = graph if graph is not None else _found_graph(everything)
    if isinstance(found, Graph):
        return args, kwargs, found
    if found is None and data is not None:
        return args, kwargs, Graph.from_pyg(data)
    if found is None:
        raise ValueError("No Graph, edge_index or sparse matrix is among the arguments of the model: pass graph=....")
    return args, kwargs, as_graph(found, _num_nodes([*args, *kwargs.values()], found), kwargs.get("edge_weight"))


def _takes_pairs(model: nn.Module) -> bool:
    parameters = inspect.signature(model.forward).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters) >= 2


def _found_graph(candidates: list[Any]) -> Graph | Tensor | None:
    graphs = [each for each in candidates if isinstance(each, Graph)]
    tensors = [each for each in candidates if isinstance(each, Tensor) and each.dim() == 2]
    pairs = [
        each
        for each in tensors
        if each.layout == torch.strided and each.size(0) == 2 and each.dtype in (torch.int64, torch.int32)
    ]
    matrices = [each for each in tensors if each.layout != torch.strided and each.size(0) == each.size(1)]
    found: list[Graph | Tensor] = [*graphs, *pairs, *matrices]
    return found[0] if found else None


def _num_nodes(candidates: list[Any], found: Tensor) -> int:
    if found.layout != torch.strided:
        return found.size(0)
    for each in candidates:
        if each is not found and len(getattr(each, "shape", ())) >= 2:
            return each.shape[0]
    raise ValueError("The number of nodes cannot be told from the arguments of the model: pass graph=Graph....")


def loss_value(output: Any, target: Tensor | None, loss: Loss | None) -> Tensor:
    if loss is not None:
        value = loss(output) if target is None else loss(output, target)
        if value.numel() != 1:
            raise ValueError(
                f"loss must return one number, but its shape is {tuple(value.shape)}: take its mean or sum."
            )
        return value
    assert target is not None
    scores = output if isinstance(output, Tensor) else output[0]
    criterion = (
        functional.mse_loss if target.is_floating_point() else partial(functional.cross_entropy, ignore_index=-1)
    )
    # The mean of each run, summed over the runs: a run's gradient is what it would be without the others.
    by_run = scores.unbind(1) if scores.dim() == 3 else (scores,)
    return torch.stack([criterion(each, target) for each in by_run]).sum()


def _rank(features: Tensor) -> Tensor:
    """Return the effective rank; NaN where a feature is not finite, of which no decomposition knows what to make."""
    if bool(torch.isfinite(features).all()):
        return effective_rank(features)
    return torch.full(features.shape[1:-1], torch.nan)


def components(graph: Graph) -> Tensor:
    """Return the number of each node's connected component, ``[n]`` int64; directions are overlooked."""

    def compute() -> Tensor:
        from scipy.sparse.csgraph import connected_components

        return torch.from_numpy(connected_components(graph.to_scipy(), directed=False)[1]).long()

    found: Tensor = graph._once("components", compute)
    return found


def _norm(features: Tensor) -> Tensor:
    return torch.linalg.vector_norm(features, dim=(0, -1))


def _with_gradient(layer: LayerTrace, norm: Tensor) -> LayerTrace:
    return replace(layer, gradient=norm.detach().to("cpu", torch.float64).expand_as(layer.energy))


def _table_row(layer: LayerTrace, first: Tensor) -> list[str]:
    name = layer.name if layer.call == 1 else f"{layer.name} (call {layer.call})"
    values = [layer.energy, layer.energy / first, layer.relative_energy, layer.distance]
    gradient = "" if layer.gradient is None else f"{float(layer.gradient.mean()):.3g}"
    return [
        name,
        str(layer.channels),
        *(f"{float(value.mean()):.3g}" for value in values),
        f"{float(layer.rank.mean()):.2f}",
        gradient,
    ]


def _plain(layer: LayerTrace) -> dict[str, Any]:
    measured = {
        key: getattr(layer, key)
        for key in ("energy", "relative_energy", "distance", "within", "rank", "norm", "gradient")
    }
    return {
        "name": layer.name,
        "call": layer.call,
        "channels": layer.channels,
        **{key: None if value is None else _finite(value.tolist()) for key, value in measured.items()},
    }


def _finite(value: float | list[float]) -> Any:
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return value if math.isfinite(value) else None


__all__ = ["LayerTrace", "Trace", "trace"]

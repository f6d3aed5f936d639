r"""`diagnose`: what depth does to the features of a network, as numbers, as a picture and in plain words.

A row of a diagnosis are the features that *enter* a layer: behind activation, norm and residual of the layer before, so
that a residual network is not judged by its branches. Row 0 is what enters the first layer; the last row is what enters the
map behind the last layer, or what leaves that layer where no map follows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from omegagnn.analysis.hooks import chosen_layers, is_graph_convolution, unchanged
from omegagnn.analysis.layer_measures import (
    OUTPUT,
    Facts,
    LayerMeasures,
    OmegaMeasures,
    layer_rows,
    mean,
    merged_row,
    omega_measures,
)
from omegagnn.analysis.reading import Finding, read
from omegagnn.analysis.spectrum import Thresholds, thresholds
from omegagnn.analysis.trace import Loss, Side, loss_value, resolved_arguments, traced
from omegagnn.errors import WrongUse
from omegagnn.graph import Graph
from omegagnn.nn.linear import Map
from omegagnn.nn.omega import OmegaWeight

if TYPE_CHECKING:
    import pandas as pd

ENOUGH_EDGES = 100
RANK_LIMIT = 1024  # channels up to which a rank is computed (half a second a row)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Numbers behind each layer, and what they mean."""

    subject: str
    rows: tuple[LayerMeasures, ...]
    findings: tuple[Finding, ...]
    thresholds: Thresholds | None
    facts: Facts
    members: int = 1

    @property
    def reading(self) -> list[str]:
        """The findings as sentences, the problems first."""
        return [str(finding) for finding in self.findings]

    @property
    def problems(self) -> list[str]:
        """The topics that are not well."""
        return [finding.topic for finding in self.findings if finding.status == "problem"]

    @property
    def is_healthy(self) -> bool:
        """Whether no rule found a problem."""
        return not self.problems

    @property
    def table(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        import pandas as pd

        plain = [self._plain_row(row) for row in self.rows]
        return pd.DataFrame([{k: v for k, v in row.items() if k != "spread"} for row in plain]).set_index("position")

    def with_remedies(self, remedies: Mapping[str, str]) -> Diagnosis:
        """Return the diagnosis with what to change, by topic, on each finding that is not well."""
        changed = [
            finding
            if finding.status == "well"
            else replace(finding, remedy=remedies.get(finding.topic, finding.remedy))
            for finding in self.findings
        ]
        return replace(self, findings=tuple(changed))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON; NaN and infinity become None."""
        return {
            "subject": self.subject,
            "members": self.members,
            "healthy": self.is_healthy,
            "reading": [finding.to_dict() for finding in self.findings],
            "thresholds": None
            if self.thresholds is None
            else {k: _finite(v) for k, v in self.thresholds._asdict().items()},
            "facts": {key: _finite(value) for key, value in asdict(self.facts).items()},
            "layers": [{key: _finite(value) for key, value in self._plain_row(row).items()} for row in self.rows],
        }

    def to_svg(self) -> str:
        """Return the picture as SVG text."""
        from omegagnn.analysis.diagnosis_picture import draw

        return draw(self)

    def _repr_html_(self) -> str:
        from omegagnn.analysis.diagnosis_picture import page

        return page(self)

    def __str__(self) -> str:
        return "\n".join([self.subject, *self.reading])

    @staticmethod
    def _plain_row(row: LayerMeasures) -> dict[str, Any]:
        flat = {each.name: getattr(row, each.name) for each in fields(row) if each.name not in ("omega", "spread")}
        omega = {} if row.omega is None else asdict(row.omega)
        flat.update({f"omega_{each.name}": omega.get(each.name) for each in fields(OmegaMeasures)})
        return {**flat, "spread": {key: list(ends) for key, ends in row.spread.items()}}


def diagnose(
    model: nn.Module,
    x: Any,
    edge_index: Graph | Tensor | None = None,
    edge_weight: Tensor | None = None,
    *,
    y: Tensor | None = None,
    loss: Loss | None = None,
    graph: Graph | Tensor | None = None,
    num_classes: int | None = None,
    facts: Facts | None = None,
    subject: str | None = None,
    **kwargs: Any,
) -> Diagnosis:
    """Run a model once, in evaluation mode, and say what depth does to its features; the model is left as it was.

    Any torch module: the layers are found by themselves (ours, any PyG ``MessagePassing``, else its linear maps).

    Args:
        model: the network, trained or not.
        x: features ``[n, f]``, or a PyG ``Data`` that holds everything (its labels count where ``train_mask`` says so).
        edge_index: a `Graph`, ``[2, E]`` or a sparse matrix.
        edge_weight: handed to the model where it is given.
        y: labels, -1 where unknown. Without them there are no gradients, and no word about rank and fit.
        loss: ``loss(output, y)``, or ``loss(output)``, where cross-entropy (numbers: squared error) is not meant.
        graph: the graph, where the model is not called with it.
        num_classes: number of classes where `y` does not tell.
        facts: what is known of the training beside.
        subject: a name for the headline.
        **kwargs: further arguments of the model.

    >>> from omegagnn.analysis import diagnose
    >>> from omegagnn.nn import OmegaNet
    >>> ring = torch.stack([torch.arange(9), (torch.arange(9) + 1) % 9])
    >>> result = diagnose(OmegaNet(4, 8, 40, 2), torch.rand(9, 4), torch.cat([ring, ring.flip(0)], dim=1))
    >>> print(result.reading[0].split(":")[0])
    It over-smooths
    """
    args = tuple(each for each in (x, edge_index, edge_weight) if each is not None)
    y = _labels_of(x) if y is None else y
    args, kwargs, found = resolved_arguments(model, args, kwargs, edge_index if graph is None else graph)
    outputs: list[Tensor] = []
    criterion = _recording(loss, y, outputs) if y is not None or loss is not None else None
    convs, layers, ends = _places(model)
    places: list[tuple[dict[str, nn.Module], Side]] = [(layers, "input"), (ends, "output")]
    with unchanged(model):
        model.eval()
        result = traced(model, args, kwargs, found, places, None, criterion, rank_limit=RANK_LIMIT)
    limits = _thresholds(model, found)
    rows = layer_rows(result, convs, _omegas(model, limits))
    known = replace(facts or Facts(), classes=num_classes)
    if y is not None and y.dim() == 1 and not y.is_floating_point() and bool((y >= 0).any()):
        known = replace(known, classes=num_classes or int(outputs[0].size(-1)), **_scores(outputs[0], y))
        if known.homophily is None:
            known = replace(known, homophily=_homophily(found, y))
    findings = tuple(_sorted(read(rows, known)))
    return Diagnosis(subject or type(model).__name__, rows, findings, limits, known).with_remedies(REMEDIES)


# What to change in a model of one's own; whoever knows the settings of a run replaces these sentences.
REMEDIES = {
    "smoothing": (
        "Put omegagnn.OmegaGCNConv in the place of the convolution, with a learning rate of about 1e-4 for its weight "
        "(it starts at the identity), or use fewer layers."
    ),
    "input": "Scale the rows of the features, or look at what stands before the first layer.",
    "rank": "Use fewer layers or more channels, or a residual connection to the first features.",
    "vanish": "Start square maps at the identity (OmegaGCNConv does), or add residual connections.",
    "explode": "Lower the learning rate of the maps (1e-4 for 32 layers and more), or clip the gradient to norm 1.",
    "broken": "Lower the learning rates and start again from fresh weights.",
    "omega": "Give ω its own weight decay (5e-4) or a lower learning rate, unless neighbours differ in class.",
    "drift": "Give ω its own weight decay (5e-4), or stop earlier.",
    "fit": "Train it first; if it is trained, mend what stands above.",
}


def merged(diagnoses: Sequence[Diagnosis], subject: str) -> Diagnosis:
    """Return the mean of several members of one network, with the ends of each number and who has which problem."""
    first = diagnoses[0]
    if len(diagnoses) == 1:
        return replace(first, subject=subject)
    rows = tuple(merged_row([each.rows[k] for each in diagnoses]) for k in range(len(first.rows)))
    averages: dict[str, Any] = {
        each.name: mean([getattr(d.facts, each.name) for d in diagnoses]) for each in fields(Facts)
    }
    facts = Facts(**{**averages, "classes": first.facts.classes})
    counts = Counter((finding.topic, finding.status) for each in diagnoses for finding in each.findings)
    findings: list[Finding] = []
    average = {(finding.topic, finding.status): finding for finding in read(rows, facts)}
    for (topic, status), count in counts.items():
        finding = average.get((topic, status)) or _first_with(diagnoses, topic, status)
        whose = "" if count == len(diagnoses) else f"In {count} of {len(diagnoses)} members: "
        findings.append(replace(finding, whose=whose))
    return Diagnosis(subject, rows, tuple(_sorted(findings)), first.thresholds, facts, len(diagnoses))


def _sorted(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: ("problem", "note", "well").index(finding.status))


def _first_with(diagnoses: Sequence[Diagnosis], topic: str, status: str) -> Finding:
    return next(f for each in diagnoses for f in each.findings if (f.topic, f.status) == (topic, status))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: [_finite(each) for each in ends] for key, ends in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _labels_of(x: Any) -> Tensor | None:
    """Return the labels that a PyG ``Data`` shows for training."""
    y, mask = getattr(x, "y", None), getattr(x, "train_mask", None)
    if not isinstance(y, Tensor):
        return None
    return y if mask is None or mask.dim() != 1 else torch.where(mask, y, -1)


def _recording(loss: Loss | None, y: Tensor | None, outputs: list[Tensor]) -> Callable[[Any], Tensor]:
    """Return the loss as a function of the output alone, which keeps the output beside."""

    def criterion(output: Any) -> Tensor:
        scores = output if isinstance(output, Tensor) else output[0]
        if y is not None and y.size(0) != scores.size(0):
            raise WrongUse(f"y has {y.size(0)} labels but the model puts out {scores.size(0)} rows: they must agree.")
        outputs.append(scores.detach())
        return loss_value(scores, y, loss)

    return criterion


def _places(model: nn.Module) -> tuple[list[str], dict[str, nn.Module], dict[str, nn.Module]]:
    """Return the names of the layers, the modules whose input is looked at, and the one whose output is."""
    layers = chosen_layers(model, None)
    if not any(is_graph_convolution(module) for module in layers.values()):
        linear = {name: module for name, module in layers.items() if _is_linear(module)}
        layers = linear or layers
    last = next(reversed(layers))
    inside = tuple(f"{name}." for name in layers)
    behind = {
        name: module
        for name, module in model.named_modules()
        if _is_linear(module) and name not in layers and not name.startswith(inside)
    }
    return list(layers), {**layers, **behind}, {OUTPUT: layers[last]}


def _is_linear(module: nn.Module) -> bool:
    return isinstance(module, (nn.Linear, Map)) or type(module).__name__ == "Linear"


def _omegas(model: nn.Module, limits: Thresholds | None) -> dict[str, OmegaMeasures]:
    found = {}
    for name, module in model.named_modules():
        weight = getattr(module, "omega_weight", None)
        if isinstance(weight, OmegaWeight):
            found[name or type(module).__name__] = omega_measures(weight.value.detach(), limits)
    return found


def _thresholds(model: nn.Module, graph: Graph) -> Thresholds | None:
    """Return the thresholds of the graph (of its undirected form), where the model has ω on a normalised operator."""
    layers = [module for module in model.modules() if isinstance(getattr(module, "omega_weight", None), OmegaWeight)]
    if not layers or any(getattr(layer, "normalize", True) is False for layer in layers):
        return None
    loops = bool(getattr(layers[0], "add_self_loops", True))
    weighted_down = graph.weight is not None and bool((graph.weight < 0).any())
    if weighted_down:
        return None
    return thresholds(graph if graph.is_undirected else graph.to_undirected(), loops)


def _scores(output: Tensor, y: Tensor) -> dict[str, float]:
    """Return the share of the known labels that the output gives, and that of the most frequent one."""
    known = y >= 0
    by_run = output.unsqueeze(1) if output.dim() == 2 else output
    right = (by_run.argmax(-1) == y.to(output.device).unsqueeze(1))[known.to(output.device)]
    return {
        "score": float(right.double().mean()),
        "chance": float(torch.bincount(y[known].long()).max() / known.sum()),
    }


def _homophily(graph: Graph, y: Tensor) -> float | None:
    """Return the share of the edges between known labels that join the same, or None where they are too few to tell."""
    if y.size(0) != graph.num_nodes:
        return None
    left, right = y[graph.row.long()], y[graph.col.long()]
    known = (left >= 0) & (right >= 0) & (graph.row != graph.col)
    return float((left == right)[known].double().mean()) if int(known.sum()) >= ENOUGH_EDGES else None


__all__ = ["Diagnosis", "diagnose", "merged"]

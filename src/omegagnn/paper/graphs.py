"""What is trained for the table on graph classification: the paper's block, the released script's, and baselines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omegagnn.paper.cells import Cell
from omegagnn.paper.published import published_table
from omegagnn.paper.trainings import Training, from_preset

OURS = {"ωGCN": "omega-gcn", "ωGAT": "omega-gat"}
RULES = ("authors-tu", "gin")
AUTHORS = "authors' script"
# Trained as ωGCN is: the same channels, rates, epochs, batches and folds. The first sees no edges, the second nothing but how
# many nodes of each label a graph has, of which its answer is a linear function.
BASELINES: dict[str, dict[str, Any]] = {
    "GIN": {"model.name": "gin"},
    "structure-blind": {"model.name": "mlp"},
    "label histogram": {"model.name": "sgc", "model.layers": 0},
}


def tu() -> Iterator[Cell]:
    """Yield five data sets: ours in two variants, and the baselines."""
    for data in published_table("tu").columns:
        for title, model in OURS.items():
            for variant, values in {"": {}, AUTHORS: {"model.variant": "authors"}}.items():
                yield Cell(title, data, "tu", _published(title, model, data, variant, values), variant=variant)
        for title, values in BASELINES.items():
            name = f"{data}, {title}"
            options = {**values, "model.variant": "paper", "model.init": "identity", "model.activation": "relu"}
            yield Cell(title, data, "tu", chosen=_baseline(name, data, options))


def _published(title: str, model: str, data: str, variant: str, values: dict[str, Any]) -> Training:
    called = f"{data}, {title}, 4 layers, {variant + ', ' if variant else ''}published"
    return from_preset(f"graph/{data}-{model}-4", f"graph-{data}", called, values, rules=RULES)


def _baseline(name: str, data: str, values: dict[str, Any]) -> Training:
    like = from_preset(f"graph/{data}-omega-gcn-4", f"graph-{data}", name, values, rules=RULES)
    return Training(name, like.group, like.config, rules=RULES)


__all__ = ["AUTHORS", "BASELINES", "RULES", "tu"]

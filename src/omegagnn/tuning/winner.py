"""The winner of a study as a preset: every value with its source, and the study's name, budget and hash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegagnn.errors import WrongUse
from omegagnn.files import write_bytes
from omegagnn.training.config import RunConfig
from omegagnn.training.metrics import Summary
from omegagnn.training.presets.preset import PARTS, differences, needed_keys, parse_preset, text_of
from omegagnn.tuning.study import OBJECTIVES, Study

SEEDS = 10


def winning_preset(study: Study, score: tuple[Summary, str] | None = None) -> dict[str, Any]:
    """Return the content of a preset file with the winner's values.

    A searched value has the source ``measured``, everything else ``assumed``, held fixed. `score` is what the winner reached
    by the rule `honest`, and the file that has it.
    """
    config, searched = study.best_config, study.plan.space.dimensions
    tree = config.model_dump(mode="json")
    keys = [*needed_keys(config), *differences(RunConfig(), config), *searched]
    budget = f"{study.plan.trials} trials × {len(study.plan.seeds)} seeds × {len(study.plan.splits)} splits"
    preset: dict[str, Any] = {
        "about": f"{config.model.name}, {_depth(config)}, on {config.data.name}: chosen on validation",
        "rows": [f"study {study.name}, {budget}, {OBJECTIVES[study.plan.objective]}", f"study hash {study.hash}"],
    }
    if score is not None:
        summary, where = score
        rule = {"value": "honest", "source": "measured"}
        preset["measured"] = {"score": round(summary.mean, 2), "sd": round(summary.sd, 2), "where": where, "rule": rule}
    preset["seeds"] = {"value": SEEDS if len(study.plan.splits) == 1 else 1, "source": "assumed"}
    options = [key for key in searched if key.startswith("model.options.")]
    for part in PARTS:
        names = dict.fromkeys(key.split(".", 1)[1] for key in keys if key.startswith(part + ".") and key not in options)
        preset[part] = {name: _leaf(tree[part][name], f"{part}.{name}" in searched) for name in names}
    if options:
        preset["model"]["options"] = _leaf(tree["model"]["options"], True)
    return preset


def write_winner(study: Study, path: Path, score: tuple[Summary, str] | None = None) -> None:
    """Write the winner's preset; what could not be read again is not written."""
    if path.suffix not in (".yaml", ".yml"):
        raise WrongUse(f"{path} must end in .yaml: a preset is taken by its path then.")
    content = winning_preset(study, score)
    parse_preset(content, str(path))
    write_bytes(path, text_of(content).encode())


def _leaf(value: Any, searched: bool) -> dict[str, Any]:
    if searched:
        return {"value": value, "source": "measured"}
    return {"value": value, "source": "assumed", "note": "held fixed in the study"}


def _depth(config: RunConfig) -> str:
    return "1 layer" if config.model.layers == 1 else f"{config.model.layers} layers"

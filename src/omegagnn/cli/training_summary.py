"""What a person wants to know after a training: the score and its rule, what to compare it with, how to repeat it, what next."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegagnn.cli.console import show
from omegagnn.cli.verbs import VERBS

if TYPE_CHECKING:
    from omegagnn.training.config import RunConfig
    from omegagnn.training.engine import Plan
    from omegagnn.training.fit import Result
    from omegagnn.training.presets.preset import Preset, Score

# What may follow; a line is shown where its verb is there.
NEXT_STEPS = {
    "runs": "omegagnn runs show {run}{runs_dir}",
    "diagnose": "omegagnn diagnose {run}{both}",
    "predict": "omegagnn predict {run} --graph {dataset} --out predictions.csv{both}",
}


def show_summary(
    result: Result,
    plan: Plan,
    preset: Preset | None,
    places: dict[str, Path | str | None],
    report: Path | None = None,
) -> None:
    """Print the summary.

    `places` are the options about folders and the device that a command must say again, `report` is the page that was written.
    """
    from omegagnn.training.repeat import place_words, repeat_command

    score = "micro-F1" if plan.dataset.task == "inductive" else "accuracy"
    lines = {f"test {score}": f"{result.test()} %", "selected by": _rule_in_words(result)}
    if preset is not None:
        lines["preset"] = _preset_in_words(preset, result.config)
        lines |= _comparison(preset, result)
    lines |= _guessing(plan)
    if result.omega is not None:
        lines["ω"] = _omega_in_words(result.omega)
    lines["model"] = str(result.folder / "model.safetensors")
    lines["run"] = result.run
    folders = place_words({option: place for option, place in places.items() if option != "--device"})
    lines["report"] = str(report) if report else f"not written yet: omegagnn report {result.run}{folders}"
    command = repeat_command(plan, preset, places)
    if command is not None:
        lines["repeat"] = command
    seeds, splits = len(set(plan.seeds)), len({split.hash for split in plan.splits})
    show(
        f"{_describe(result.config)} on {plan.dataset.name}: {_count(seeds, 'seed')} × {_count(splits, 'split')}, "
        f"{result.row['seconds']:.1f} s"
    )
    words = {
        "run": result.run,
        "dataset": shlex.quote(plan.dataset.name),
        "runs_dir": place_words({"--runs-dir": places.get("--runs-dir")}),
        "both": folders,
    }
    steps = [step.format(**words) for verb, step in NEXT_STEPS.items() if verb in VERBS]
    for title, text in [*lines.items(), *(("next" if k == 0 else "", step) for k, step in enumerate(steps))]:
        show(f"  {title:<14} {text}")


def _rule_in_words(result: Result) -> str:
    rule, optimistic = result.row["protocol"], result.outcome().optimistic
    called = f"{rule} (optimistic: looks at test labels)" if optimistic else rule
    return f"{called}; reading each run at its best test epoch would add {result.optimism_gap:.2f} points"


def _preset_in_words(preset: Preset, config: RunConfig) -> str:
    changed = [f"{key}={json.dumps(value)}" for key, value in preset.differences(config).items()]
    return f"{preset.name}, changed: {' '.join(changed)}" if changed else preset.name


def _comparison(preset: Preset, result: Result) -> dict[str, str]:
    """Return what stands somewhere for the same network on the same data, and what this run has by the rule behind that."""
    reference = preset.reference
    other = any(key.startswith(("data.", "model.")) for key in preset.differences(result.config))
    if reference is None or other:
        return {}
    return {"published" if preset.published else "measured": _score_in_words(reference, result)}


def _guessing(plan: Plan) -> dict[str, str]:
    """Return what a guess without any graph or feature has on the same splits, where items have one class."""
    from omegagnn.training.metrics import commonest_class_score

    data = plan.dataset
    if data.task == "inductive" or data.is_multilabel or data.is_regression:
        return {}
    scores = [commonest_class_score(data.labels, split.train, split.test) for split in plan.splits]
    return {"guessing": f"{100 * sum(scores) / len(scores):.2f} % by always answering the commonest class of training"}


def _score_in_words(reference: Score, result: Result) -> str:
    from omegagnn.training.protocol import PROTOCOLS, NotApplicable

    number = f"{reference.score:g}" + ("" if reference.sd is None else f" ± {reference.sd:g}")
    if reference.rule is None:
        return f"{number} ({reference.where}, rule not stated)"
    rule = reference.rule.value
    optimistic = ", optimistic" if PROTOCOLS[rule].optimistic else ""
    text = f"{number} ({reference.where}, rule {rule}{optimistic})"
    if rule == result.row["protocol"]:
        return text
    try:
        return f"{text}; by that rule this run has {result.test(rule).mean:.2f}"
    except NotApplicable:
        return text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _describe(config: RunConfig) -> str:
    model = config.model
    layers = _count(model.layers, "layer")
    text = f"{model.name}, {layers} × {model.channels} channels"
    return text if not model.name.startswith("omega") or model.omega == "channel" else f"{text}, ω: {model.omega}"


def _omega_in_words(omega: dict[str, Any]) -> str:
    return f"mean {omega['mean']:.3f}, from {omega['min']:.3f} to {omega['max']:.3f}: {_effect(omega['min'], omega['max'])}"


def _effect(lowest: float, highest: float) -> str:
    if lowest == highest == 1.0:
        return "the plain propagation"
    if lowest >= 0 and highest <= 1:
        return "it smooths, less than a plain GNN"
    if lowest > 1 or highest < 0:
        return "it sharpens"
    return "smoothing and sharpening channels"

"""The page of a study: its budget, its winner, every trial, and the value over each setting that was searched."""

from __future__ import annotations

import json
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegagnn.files import write_bytes
from omegagnn.report.charts import Axis, Mark, Series, bar_chart, line_chart
from omegagnn.report.page import report_frame
from omegagnn.report.tables import charts, facts, folded, section, table
from omegagnn.tuning.space import Range
from omegagnn.tuning.study import OBJECTIVES, Study

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

STATES = {"COMPLETE": "trained to its end", "PRUNED": "ended early", "FAIL": "failed"}


def write_study_report(study: Study, path: Path) -> None:
    """Write the page of a study to a file, whole or not at all."""
    write_bytes(path, study_page(study).encode())


def study_page(study: Study) -> str:
    """Return the page of a study that has a winner."""
    config, winner = study.plan.config, study.winner
    model = config.model
    title = f"study {study.name}: {model.name} on {config.data.name}"
    better = "largest" if study.plan.maximizes else "smallest"
    head = (
        f'<p class="score"><span>best validation value</span> <b>{_number(winner.value)}</b> '
        f"<span>trial {winner.number}, {better} of {len(study.finished)}</span></p>"
        f'<p class="rule">{escape(OBJECTIVES[study.plan.objective].capitalize())}. Test labels were never handed in. The best of '
        "many values is flattered by the choice: train the winner anew for a number to report.</p>"
    )
    body = "\n".join(
        [
            head,
            section("The winner", _settings(study)),
            section("The search", _course(study)),
            section("Value over each setting", _slices(study)),
            section("All trials", _trials(study)),
            section("The plan", _plan(study)),
        ]
    )
    return report_frame(title, f"<article>{body}</article>")


def _settings(study: Study) -> str:
    rows = [
        [key, _value(study.winner.params.get(key)), str(dimension)]
        for key, dimension in sorted(study.plan.space.dimensions.items())
    ]
    commands = f"omegagnn presets create {study.name} --out winner.yaml\nomegagnn train --preset winner.yaml --seeds 10"
    return (
        table(["setting", "winner", "searched in"], rows, "", (0, 1, 2)) + f"<pre><code>{escape(commands)}</code></pre>"
    )


def _course(study: Study) -> str:
    done = _complete(study)
    best = max if study.plan.maximizes else min
    values = [float(trial.value or 0.0) for trial in done]
    numbers = [trial.number for trial in done]
    states = {name: sum(trial.state.name == state for trial in study.finished) for state, name in STATES.items()}
    series = [
        Series("best so far", numbers, list(accumulate(values, best)), hue=1),
        Series("trial", numbers, values, joined=False),
    ]
    mark = [Mark(float(study.winner.number), "winner", vertical=True)]
    became = [(name, float(count), str(count)) for name, count in states.items() if count]
    return charts(
        line_chart(
            "Value of each trial, and the best so far",
            series,
            Axis("trial", whole=True),
            Axis(_measure(study)),
            mark,
        ),
        bar_chart("What became of the trials", became) if len(became) > 1 else "",
    )


def _slices(study: Study) -> str:
    """Return a chart for each searched number, a table for each choice."""
    figures, tables = [], []
    done = _complete(study)
    for key, dimension in sorted(study.plan.space.dimensions.items()):
        tried = [(trial.params[key], float(trial.value or 0.0)) for trial in done if key in trial.params]
        if isinstance(dimension, Range):
            points = Series("", [float(x) for x, _ in tried], [y for _, y in tried], joined=False)
            across = Axis(key, dimension.log, (dimension.low, dimension.high))
            figures.append(line_chart(key, [points], across, Axis(_measure(study))))
        else:
            tables.append(_choices(study, key, tried))
    words = (
        "<p>One point is one trial; the other settings differ from point to point, so this is a view and no proof.</p>"
    )
    return charts(*figures) + "".join(tables) + words


def _choices(study: Study, key: str, tried: list[tuple[Any, float]]) -> str:
    best = max if study.plan.maximizes else min
    rows = []
    for value in dict.fromkeys(value for value, _ in tried):
        found = [each for other, each in tried if other == value]
        rows.append([_value(value), str(len(found)), _number(sum(found) / len(found)), _number(best(found))])
    return table([key, "trials", "mean value", "best value"], rows, "")


def _trials(study: Study) -> str:
    keys = sorted(study.plan.space.dimensions)
    rows = [
        [
            str(trial.number),
            "diverged" if trial.user_attrs.get("diverged") else STATES.get(trial.state.name, trial.state.name.lower()),
            _number(trial.value) if trial.state.name == "COMPLETE" else "–",
            f"{trial.user_attrs['epochs']:,}" if "epochs" in trial.user_attrs else "–",
            *(_value(trial.params.get(key)) for key in keys),
        ]
        for trial in study.finished
    ]
    return table(["trial", "what became of it", "value", "epochs", *keys], rows, "", (1,))


def _plan(study: Study) -> str:
    found = study.to_dict()
    budget = found["budget"]
    return facts(
        {
            "budget": f"{budget['trials']} trials, seeds × splits: {budget['seeds']} × {budget['splits']}",
            "epochs": f"at most {budget['epochs']:,}",
            "spent": "all of it" if study.complete else f"{len(study.finished)} of {budget['trials']} trials",
            "trials at once": str(study.plan.batch),
            "ended early where they lag": "yes" if study.plan.prune else "no",
            "hash of plan and trials": study.hash,
        }
    ) + folded(
        "The configuration around what was searched", f"<pre><code>{escape(study.plan.config.to_yaml())}</code></pre>"
    )


def _complete(study: Study) -> list[FrozenTrial]:
    return [trial for trial in study.finished if trial.state.name == "COMPLETE" and trial.value is not None]


def _measure(study: Study) -> str:
    return "validation score" if study.plan.maximizes else "validation loss"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _value(value: Any) -> str:
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value).strip('"')
    return f"{value:.4g}"


__all__ = ["study_page", "write_study_report"]

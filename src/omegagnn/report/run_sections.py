"""The sections of a report about one run, as HTML."""

from __future__ import annotations

import math
from html import escape

from torch import Tensor

from omegagnn.analysis.diagnosis_picture import Panel, chart_panels
from omegagnn.report.charts import (
    Axis,
    Mark,
    Series,
    bar_chart,
    interval_chart,
    line_chart,
    map_chart,
    point_chart,
)
from omegagnn.report.run_findings import Embedding, RunFindings
from omegagnn.report.tables import charts, facts, folded, section, shaded_table, table
from omegagnn.training.evaluation import Evaluation
from omegagnn.training.protocol import PROTOCOLS

MOST_CLASSES = 20  # of a table of confusions
MARKS = {"well": "✓", "note": "•", "problem": "✗"}
EPOCHS = Axis("epoch", tight=True, whole=True)


def run_sections(run: RunFindings) -> str:
    """Return everything about a run."""
    return "\n".join(
        [
            _headline(run),
            section("Score", _scores(run)),
            section("Classes", _classes(run.evaluation)),
            section("Training", _training(run)),
            section("Depth", _depth(run)),
            section("ω", _omega(run)),
            section("Embedding", _embedded(run)),
            section("Time", _time(run)),
            section("Data", _data(run)),
            section("To repeat it", _repeat(run)),
        ]
    )


def title_of(run: RunFindings) -> str:
    """Return what was trained on what."""
    model = run.result.config.model
    layers = "1 layer" if model.layers == 1 else f"{model.layers} layers"
    return f"{model.name}, {layers}, on {run.dataset.name}"


def _kind(run: RunFindings) -> str:
    return "micro-F1" if run.evaluation.multilabel else "accuracy"


def _headline(run: RunFindings) -> str:
    result = run.result
    test, rule = result.test(), PROTOCOLS[result.row["protocol"]]
    mark = ' <strong class="optimistic">optimistic: looks at test labels</strong>' if rule.optimistic else ""
    spread = (
        "one run"
        if test.n == 1
        else f"± {test.sd:.2f} over {test.n} runs, 95 % interval {test.low:.2f} to {test.high:.2f}"
    )
    problems = "".join(
        f'<li class="{finding.status}"><span aria-hidden="true">{MARKS[finding.status]}</span> {escape(str(finding))}</li>'
        for finding in run.diagnosis.findings
    )
    warnings = "".join(f"<li>{escape(warning)}</li>" for warning in run.audit.warnings)
    return (
        f'<p class="score"><span>test {_kind(run)}</span> <b>{test.mean:.2f} %</b> <span>{spread}</span></p>'
        f'<p class="rule">Rule <i>{rule.name}</i>: {escape(rule.summary)}.{mark} Read at its best test epoch, each run would '
        f"stand {result.optimism_gap:.2f} points higher on average.</p>"
        f'<h2>What the network shows</h2><ul class="findings">{problems}</ul>'
        + (f'<h2>What to know about the data</h2><ul class="warnings">{warnings}</ul>' if warnings else "")
    )


def _scores(run: RunFindings) -> str:
    rows = []
    for name, test in run.rules.items():
        looks = "test (optimistic)" if PROTOCOLS[name].optimistic else "validation"
        if isinstance(test, str):
            rows.append([name, looks, "", "", "", "", test])
        else:
            rows.append(
                [name, looks, *(f"{v:.2f}" for v in (test.mean, test.sd, test.low, test.high)), PROTOCOLS[name].summary]
            )
    columns = ["rule", "selects on", "mean %", "sd", "low", "high", "what it is"]
    applied = [(name, t.mean, t.low, t.high) for name, t in run.rules.items() if not isinstance(t, str)]
    members = [
        [str(m.member), str(m.seed), m.split, str(m.epoch), f"{100 * m.score:.2f}", f"{m.loss:.4f}"]
        for m in run.evaluation.members
    ]
    return "".join(
        [
            table(columns, rows, "The same curves read by every rule", (0, 1, 6)),
            charts(
                interval_chart("Test score by rule, mean and 95 % interval", applied, f"test {_kind(run)} in %"),
                line_chart(
                    "Test score of each member",
                    [
                        Series(
                            "",
                            [m.member for m in run.evaluation.members],
                            [100 * m.score for m in run.evaluation.members],
                            joined=False,
                        )
                    ],
                    Axis("member", whole=True),
                    Axis(f"test {_kind(run)} in %"),
                )
                if len(members) > 1
                else "",
            ),
            folded(
                f"Members, measured anew with the weights of rule {run.evaluation.protocol}",
                table(["member", "seed", "split", "epoch", "score %", "loss"], members, "", (2,)),
            ),
        ]
    )


def _classes(found: Evaluation) -> str:
    rows = [
        [str(row["name"]), *(_percent(row[key]) for key in ("precision", "recall", "f1")), f"{row['items']:,}"]
        for row in found.classes
    ]
    names, parts = found.class_names, []
    if not found.multilabel and len(names) <= MOST_CLASSES:
        caption = (
            f"True class and answer, {found.part} items of all members; the darker, the larger the share of the row"
        )
        parts.append(shaded_table(names, found.counts.tolist(), caption))
    parts.append(table(["class", "precision %", "recall %", "F1 %", "items"], rows, "Over all members"))
    return "".join(parts) + charts(_calibration(found)) + _calibration_words(found)


def _calibration(found: Evaluation) -> str:
    sure = found.calibration
    full = [k for k, count in enumerate(sure.counts) if count]
    return line_chart(
        "Calibration: how often it is right where it is so sure",
        [
            Series("perfect", [0.0, 1.0], [0.0, 1.0], hue=7),
            Series("network", [float(sure.confidence[k]) for k in full], [float(sure.right[k]) for k in full]),
        ],
        Axis("confidence", reach=(0.0, 1.0)),
        Axis("share right", reach=(0.0, 1.0)),
    ) + bar_chart(
        "Answers by confidence",
        [
            (f"{sure.edges[k]:.1f}–{sure.edges[k + 1]:.1f}", float(count), f"{count:,}")
            for k, count in enumerate(sure.counts.tolist())
        ],
    )


def _calibration_words(found: Evaluation) -> str:
    sure = found.calibration
    way = "too sure" if sure.bias > 0 else "not sure enough"
    return (
        f"<p>Expected calibration error {100 * sure.error:.2f} points; on average it is {100 * abs(sure.bias):.2f} points "
        f"{way} of itself.</p>"
    )


def _training(run: RunFindings) -> str:
    curves = run.curves
    kept = sorted(member.epoch for member in run.evaluation.members)
    mark = [Mark(float(kept[len(kept) // 2]), "kept", vertical=True)]
    figures = []
    for kind, label, factor in (("loss", "loss", 1.0), ("score", f"{_kind(run)} in %", 100.0)):
        series = [
            _over_epochs(run, f"{part}_{kind}", {"train": "training", "val": "validation"}.get(part, part), hue, factor)
            for hue, part in enumerate(("train", "val", "test"))
            if f"{part}_{kind}" in curves
        ]
        figures.append(line_chart(label, series, EPOCHS, Axis(label), mark))
    middle = "the median of the members" if len(kept) > 1 else "the run"
    return charts(*figures) + (
        f"<p>Curves are means over the members that still trained, bands span them. The line marks the kept epoch of {middle}. "
        "Test curves were recorded for reading, no honest rule sees them.</p>"
    )


def _over_epochs(run: RunFindings, name: str, title: str, hue: int, factor: float = 1.0) -> Series:
    curve = run.curves[name]
    # A few hundred places are as many as a chart has room for.
    step = max(1, len(curve.mean) // 300)
    chosen = slice(None, None, step)
    mean, low, high = ((factor * values[chosen]).tolist() for values in (curve.mean, curve.low, curve.high))
    return Series(title, range(1, len(curve.mean) + 1, step), mean, low, high, hue)


def _depth(run: RunFindings) -> str:
    panels = [panel for panel in chart_panels(run.diagnosis) if not panel.title.startswith("ω")]
    rows = [
        [
            str(row.position), row.layer, str(row.channels),
            *map(_number, (row.energy_ratio, row.relative_energy, row.within, row.rank, row.gradient)),
        ]
        for row in run.diagnosis.rows
    ]  # fmt: skip
    columns = ["layer", "features behind", "channels", "E/E⁰", "E/|f|²", "distance", "rank", "gradient"]
    many = run.diagnosis.members
    words = "Means over the members, bands span them." if many > 1 else "Of member 0."
    return (
        charts(*(_panel(panel) for panel in panels))
        + f"<p>{words}</p>"
        + folded("The numbers", table(columns, rows, "", (1,)))
    )


def _panel(panel: Panel, hue: int = 0) -> str:
    mean, low, high = ([*column] for column in zip(*panel.band, strict=True))
    series = Series("", panel.positions, mean, low, high, hue)
    reach = () if panel.logarithmic else (0.0,)
    marks = [Mark(value, name) for value, name in panel.limits]
    return line_chart(
        panel.title, [series], Axis("layer", tight=True, whole=True), Axis("", panel.logarithmic, reach), marks
    )


def _omega(run: RunFindings) -> str:
    learnt = run.result.omega
    if learnt is None or run.omega_map is None:
        return ""
    figures = [_panel(panel, 4) for panel in chart_panels(run.diagnosis) if panel.title.startswith("ω")]
    if run.omega_map.size(1) > 1:
        title = "ω of each channel, member 0, channels sorted by their mean"
        figures.append(map_chart(title, run.omega_map.tolist(), "channel", "layer"))
    if "omega" in run.curves:
        series = _over_epochs(run, "omega", "", 4)
        figures.append(
            line_chart(
                "Mean ω while training",
                [series],
                EPOCHS,
                Axis("ω"),
                [Mark(1.0, "1: GCN")],
            )
        )
    rows = []
    for row in run.diagnosis.rows:
        if row.omega is not None:
            o = row.omega
            shares = ["–" if math.isnan(v) else f"{100 * v:.0f}" for v in (o.smooths, o.mixes, o.sharpens)]
            rows.append([str(row.position), f"{o.mean:.4f}", f"{o.min:.4f}", f"{o.max:.4f}", *shares])
    columns = ["layer", "mean", "lowest", "highest", "smooth %", "mixed signs %", "sharpen %"]
    words = (
        f"Mean {learnt['mean']:.3f}, from {learnt['min']:.3f} to {learnt['max']:.3f} over members, layers and channels."
    )
    return f"<p>{words}</p>" + charts(*figures) + folded("The numbers", table(columns, rows, "", ()))


def _embedded(run: RunFindings) -> str:
    found = run.embedding
    if found is None:
        return ""
    first, second = (f"{100 * share:.0f} %" for share in found.shares)
    label = f"components 1 and 2, {first} and {second} of the variance"
    names = run.evaluation.class_names
    key = "".join(f'<span class="k{k % 10}">{escape(name)}</span>' for k, name in enumerate(names))
    some = "" if found.items == len(found.labels) else f" {len(found.labels):,} of {found.items:,} are drawn."
    wrong = int((~found.right & (found.labels >= 0)).sum())
    return (
        charts(
            point_chart("By true class", _groups(found, len(names), errors=False), label),
            point_chart("Where member 0 is wrong", _groups(found, len(names), errors=True), label),
        )
        + f'<p class="key">{key}</p><p>Principal components of what enters the closing map of member 0, all labelled items, '
        f"those of training too.{some} {wrong:,} of those drawn are answered wrongly.</p>"
    )


def _groups(found: Embedding, classes: int, errors: bool) -> list[tuple[str, int, list[tuple[float, float]]]]:
    def places(chosen: Tensor) -> list[tuple[float, float]]:
        return [(a, b) for a, b in found.places[chosen].tolist()]

    if errors:
        known = found.labels >= 0
        return [("faint", 7, places(known & found.right)), ("strong", 1, places(known & ~found.right))]
    return [("", k, places(found.labels == k)) for k in range(classes)]


def _time(run: RunFindings) -> str:
    rows = [(part.name, part.milliseconds, f"{100 * part.share:.0f} %") for part in run.slowest]
    table_rows = [[p.name, str(p.calls), f"{p.milliseconds:.2f}", f"{100 * p.share:.1f}"] for p in run.slowest]
    return (
        facts(
            {
                "whole training": f"{run.result.row['seconds']:.1f} s",
                "an epoch of one member": f"{run.epoch_milliseconds:.1f} ms on this CPU, clocked op by op, the quickest of three",
                "peak memory": "–" if run.result.row["peak_mib"] is None else f"{run.result.row['peak_mib']:,.0f} MiB",
            }
        )
        + charts(bar_chart("Slowest operations of an epoch, share of its time", rows))
        + folded("The numbers", table(["operation", "calls", "ms", "%"], table_rows))
    )


def _data(run: RunFindings) -> str:
    names = ("train", "val", "test")
    splits = [[s.name, *(f"{getattr(s, part):,}" for part in names), s.hash[:12]] for s in run.audit.splits]
    return facts(dict(run.audit.lines())) + folded(
        "Splits", table(["split", *names, "hash"], splits, "", (0, 4)) if splits else ""
    )


def _repeat(run: RunFindings) -> str:
    row, environment = run.result.row, run.environment
    versions = ", ".join(f"{name} {version}" for name, version in environment.get("versions", {}).items())
    command = (
        f"<pre><code>{escape(run.repeat)}</code></pre>" if run.repeat else "<p>This run was asked for from Python.</p>"
    )
    return (
        command
        + facts(
            {
                "run": run.result.run,
                "begun": row["created"],
                "preset": f"{row['preset']} ({row['preset_hash'][:12]})" if row["preset"] else "none",
                "parameters": f"{row['parameters']:,}",
                "configuration hash": row["config_hash"],
                "made with": versions,
                "on": f"{environment.get('device')}, {environment.get('platform')}, {environment.get('threads')} thread(s)",
            }
        )
        + folded("The whole configuration", f"<pre><code>{escape(run.result.config.to_yaml())}</code></pre>")
    )


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3g}"


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


__all__ = ["run_sections", "title_of"]

"""The report: one HTML page about a run, or about several beside each other, that needs no network and no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from omegagnn.files import write_bytes
from omegagnn.report.charts import interval_chart
from omegagnn.report.page import report_frame
from omegagnn.report.run_findings import RunFindings
from omegagnn.report.run_sections import run_sections, title_of
from omegagnn.report.tables import charts, section, table
from omegagnn.training.metrics import paired_test


def report_page(runs: Sequence[RunFindings]) -> str:
    """Return the report of one or several runs as HTML."""
    title = title_of(runs[0]) if len(runs) == 1 else f"{len(runs)} runs compared"
    parts = [] if len(runs) == 1 else [_comparison(runs)]
    for run in runs:
        heading = "" if len(runs) == 1 else f'<h1 id="{escape(run.result.run)}">{escape(title_of(run))}</h1>'
        parts.append(f"<article>{heading}{run_sections(run)}</article>")
    return report_frame(title, "\n".join(parts))


def write_report(runs: Sequence[RunFindings], path: Path) -> None:
    """Write the report to a file, whole or not at all."""
    write_bytes(path, report_page(runs).encode())


def _comparison(runs: Sequence[RunFindings]) -> str:
    rows = []
    for run in runs:
        test, model = run.result.test(), run.result.config.model
        rows.append(
            [
                run.result.run, run.dataset.name, model.name, str(model.layers), run.result.row["protocol"],
                *(f"{v:.2f}" for v in (test.mean, test.sd, test.low, test.high)), str(test.n),
                f"{run.result.optimism_gap:.2f}", f"{run.result.row['parameters']:,}", f"{run.result.row['seconds']:.1f}",
            ]
        )  # fmt: skip
    columns = [
        "run", "data", "model", "layers", "rule", "mean %", "sd", "low", "high", "n", "gap", "parameters", "seconds",
    ]  # fmt: skip
    tests = [(run.result.run, run.result.test()) for run in runs]
    names = "".join(f'<li><a href="#{escape(run.result.run)}">{escape(title_of(run))}</a></li>' for run in runs)
    return section(
        "Side by side",
        table(columns, rows, "gap: how much higher the mean would be at each member's best test epoch", (0, 1, 2, 4)),
        charts(
            interval_chart(
                "Mean test score and its 95 % interval",
                [(name, test.mean, test.low, test.high) for name, test in tests],
                "test score in %",
            )
        ),
        _pairs(runs),
        f'<ul class="contents">{names}</ul>',
    )


def _pairs(runs: Sequence[RunFindings]) -> str:
    """Return a table of each run against the one before, where both have the same seeds on the same splits."""
    rows = []
    for before, run in pairwise(runs):
        if _members(before) == _members(run):
            mine, theirs = run.result.scores(), before.result.scores()
            difference = 100 * float((mine - theirs).mean())
            rows.append([run.result.run, before.result.run, f"{difference:+.2f}", f"{paired_test(mine, theirs):.4f}"])
    caption = "Paired by seed and split: difference of the means and p of a sign-flip test (not corrected for several)"
    return table(["run", "against", "points", "p"], rows, caption, (0, 1)) if rows else ""


def _members(run: RunFindings) -> list[tuple[int, str]]:
    return [(member["seed"], member["split_hash"]) for member in run.result.journal.members(run.result.run)]


__all__ = ["report_page", "write_report"]

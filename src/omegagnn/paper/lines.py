"""`Line`: a cell of a table with all that is to be said about it, computed from the records."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omegagnn.paper.cells import Cell
from omegagnn.paper.outcome import seeds_and_splits, summary, verdict
from omegagnn.paper.published import Cell as Printed
from omegagnn.paper.results import Record, Results
from omegagnn.paper.trainings import Training
from omegagnn.training.metrics import Summary
from omegagnn.training.protocol import PROTOCOLS


@dataclass(frozen=True)
class Line:
    """What came of a cell.

    Args:
        cell: the cell.
        record: what is kept of the training with the published settings, else of the one under the common budget; or None.
        rules: ours with the published settings by each rule that the paper may have used; None where the rule has no outcome.
        honest: ours with the published settings by the honest rule.
        chosen: under the common budget, by the honest rule, with the choice that validation made.
        optimism: what reading each member at its best test epoch would add to `honest`, in points.
        missing: why there is nothing, where there is nothing.
    """

    cell: Cell
    record: Record | None
    rules: dict[str, Summary | None]
    honest: Summary | None
    chosen: Summary | None
    optimism: float | None
    missing: str

    @property
    def printed(self) -> Printed | None:
        """What the paper prints."""
        return self.cell.printed

    @property
    def size(self) -> str:
        """Seeds × splits of the published settings (else of the comparison)."""
        return "" if self.record is None else seeds_and_splits(self.record)

    @property
    def by_published_rule(self) -> Summary | None:
        """Ours by the first rule, the one behind the printed number."""
        return next(iter(self.rules.values()), None)

    @property
    def verdict(self) -> str:
        """How the published settings stand to the printed value, by the published rule and by the honest one."""
        if self.cell.published is None:
            return "no settings are published" if self.cell.row.startswith("ω") else ""
        if self.honest is None:
            return self.missing
        if self.printed is None:
            return "nothing printed"
        found, honest = verdict(self.printed, self.by_published_rule), verdict(self.printed, self.honest)
        if self.by_published_rule is None or found == honest:
            return honest
        return f"{found}; honest {honest}"

    @property
    def command(self) -> str:
        """What trains it."""
        training = self.cell.published or self.cell.chosen
        assert training is not None
        quick = "" if training.splits is None else " --quick"
        return training.command or f"omegagnn reproduce {self.cell.table}{quick} --only {shlex.quote(training.name)}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""

        def plain(found: Summary | None) -> dict[str, Any] | None:
            return None if found is None else {key: round(value, 3) for key, value in found.to_dict().items()}

        return {
            "row": self.cell.row,
            "column": self.cell.column,
            "variant": self.cell.variant,
            "printed": None if self.printed is None else self.printed.value,
            "published_settings": {rule: plain(found) for rule, found in self.rules.items()},
            "honest": plain(self.honest),
            "common_budget": plain(self.chosen),
            "seeds_and_splits": self.size,
            "verdict": self.verdict,
            "command": self.command,
        }


def lines_of(cells: list[Cell], results: Results) -> Iterator[Line]:
    """Yield what came of cells."""
    for cell in cells:
        published, chosen = (_record(training, results) for training in (cell.published, cell.chosen))
        wanted = () if cell.published is None else cell.published.rules
        if cell.published is None and cell.chosen is not None:
            wanted = cell.chosen.rules
        found = published if cell.published is not None else chosen
        honest, best = summary(published), summary(found, "authors-tu")
        base = summary(found)
        missing = cell.published or cell.chosen
        assert missing is not None
        yield Line(
            cell,
            found,
            {rule: summary(found, rule) for rule in wanted if rule in PROTOCOLS},
            honest,
            summary(chosen),
            None if base is None or best is None else best.mean - base.mean,
            results.missing(missing.tag),
        )


def _record(training: Training | None, results: Results) -> Record | None:
    return None if training is None else results.find(training.tag)


__all__ = ["Line", "lines_of"]

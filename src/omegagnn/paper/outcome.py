"""From the raw rows of a record to the numbers of a table: the choice on validation, means, intervals, verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omegagnn.paper.published import Cell
from omegagnn.paper.results import Record
from omegagnn.training.metrics import Summary, summarise

SPLIT, SEED, CHOICE, STOPPED = range(4)
EPOCH, VALIDATION_LOSS, VALIDATION_SCORE, TEST = range(4)
ROUNDING = 0.05  # the paper prints one decimal or two


def chosen_members(record: Record) -> list[int]:
    """Return the members that count: on each split those of the choice with the best mean validation score.

    The score is read at the honest epoch, so no test label takes part; each split chooses by itself, since the validation items
    of one are test items of another. Ties go to the earlier choice.
    """
    members = record["members"]
    if len(record["choices"]) == 1:
        return list(range(len(members)))
    validation = [
        -np.inf if row[VALIDATION_SCORE] is None else row[VALIDATION_SCORE] for row in record["rules"]["honest"]
    ]
    kept: list[int] = []
    for split in range(len(record["splits"])):
        means = [
            np.mean([validation[k] for k, m in enumerate(members) if m[SPLIT] == split and m[CHOICE] == choice])
            for choice in range(len(record["choices"]))
        ]
        best = int(np.argmax(means))
        kept += [k for k, m in enumerate(members) if m[SPLIT] == split and m[CHOICE] == best]
    return sorted(kept)


def scores(record: Record, rule: str = "honest") -> np.ndarray | None:
    """Return the test scores in [0, 1] of the members that count by a rule; None where the rule has no outcome."""
    rows = record["rules"].get(rule)
    if rows is None or isinstance(rows, str):
        return None
    found = [rows[k][TEST] for k in chosen_members(record)]
    return None if any(score is None for score in found) else np.array(found)


def summary(record: Record | None, rule: str = "honest") -> Summary | None:
    """Return mean, deviation and 95 % interval in per cent; None where there is no outcome."""
    found = None if record is None else scores(record, rule)
    return None if found is None else summarise(found)


def validation_mean(record: Record) -> float:
    """Return the mean validation score of the members that count, by which one network is chosen among several."""
    rows = record["rules"]["honest"]
    return float(np.mean([rows[k][VALIDATION_SCORE] or 0.0 for k in chosen_members(record)]))


def best_by_validation(records: Sequence[Record]) -> Record | None:
    """Return the record with the best mean validation score, the first of equals."""
    return max(records, key=validation_mean, default=None)


def seeds_and_splits(record: Record) -> str:
    """Return how many seeds and splits a mean is over."""
    return f"{len({member[SEED] for member in record['members']})} × {len(record['splits'])}"


def verdict(printed: Cell | None, ours: Summary | None) -> str:
    """Say how ours stands to the printed value: reached where that lies within the 95 % interval, else below or above it."""
    if ours is None:
        return "not run"
    if printed is None:
        return "nothing printed"
    if ours.low - ROUNDING <= printed.value <= ours.high + ROUNDING:
        return "reached"
    difference = ours.mean - printed.value
    return f"{'below' if difference < 0 else 'above'} by {abs(difference):.1f}"


__all__ = [
    "best_by_validation",
    "chosen_members",
    "scores",
    "seeds_and_splits",
    "summary",
    "validation_mean",
    "verdict",
]

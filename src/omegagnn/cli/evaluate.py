"""``omegagnn evaluate``: measure a trained run anew."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from omegagnn.cli.completion import dataset_names, protocol_names
from omegagnn.cli.console import show, show_json, show_table
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.cli.runs import Run, RunsDir, open_journal

if TYPE_CHECKING:
    from omegagnn.training.evaluation import Evaluation

app = verb_app()

MOST_CLASSES = 20  # a wider table of confusions is read better as JSON


@app.command()
def evaluate(
    run: Run,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FOLDER|FILE",
            help="Other data that fits the model [default: the run's own].",
            autocompletion=dataset_names,
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="train, val, test or all labelled items [default: test of the run's own data, else all]."),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split of other data, such as ratio:0.6,0.2.")] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="Rule whose weights are measured: honest or validation-accuracy.", autocompletion=protocol_names
        ),
    ] = None,
    member: Annotated[int | None, typer.Option(min=0, help="One member alone, counted from 0.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda [default: a GPU where there is one].")] = None,
    runs_dir: RunsDir = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Measure the networks of a run anew: score, precision and recall of each class, what is taken for what.

    On the run's own data each member is measured on its own split and held against what the journal recorded.
    """
    from omegagnn.training.environment import choose_device
    from omegagnn.training.fit import Result

    journal = open_journal(runs_dir)
    result = Result(journal, journal.run(run)["run"])
    found = result.evaluate(
        data,
        part=part,
        split=split,
        protocol=protocol,
        member=member,
        device=choose_device(device),
        data_root=data_root,
    )
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found)


def _show(found: Evaluation) -> None:
    kind = "micro-F1" if found.multilabel else "accuracy"
    items = sorted({member.items for member in found.members})
    sizes = f"{items[0]}" if len(items) == 1 else f"{items[0]} to {items[-1]}"
    show(f"{found.run} on {found.dataset}, {found.part} ({sizes} items), weights by {found.protocol}")
    show(f"  {kind}   {found.score} %")
    show(f"  calibration error {100 * found.calibration.error:.2f} points, {_leaning(found.calibration.bias)}")
    if found.difference is not None:
        how = "to the bit" if found.difference == 0 else f"within rounding (largest difference {found.difference:.1e})"
        show(f"  journal    recorded the same for {len(found.members)} member(s), {how}")
    rows = [
        [str(m.member), str(m.seed), m.split, str(m.epoch), f"{100 * m.score:.2f}", f"{m.loss:.4f}"]
        for m in found.members
    ]
    show_table("Members", ["member", "seed", "split", "epoch", f"{kind} %", "loss"], rows, right=["epoch", "loss"])
    rates = [
        [str(row["name"]), *(_percent(row[key]) for key in ("precision", "recall", "f1")), str(row["items"])]
        for row in found.classes
    ]
    columns = ["class", "precision %", "recall %", "F1 %", "items"]
    show_table("Classes, over all members", columns, rates, right=columns[1:])
    if not found.multilabel and len(found.class_names) <= MOST_CLASSES:
        counts = [[name, *map(str, row)] for name, row in zip(found.class_names, found.counts.tolist(), strict=True)]
        names = [f"as {name}" for name in found.class_names]
        show_table("True class, and what it was taken for", ["true", *names], counts, right=names)


def _leaning(bias: float) -> str:
    """Return in words which way the confidence leans."""
    return f"{100 * abs(bias):.2f} too {'sure' if bias > 0 else 'unsure'} of itself on average"


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"

"""``omegagnn diagnose``: whether a trained network, or a model of one's own, over-smooths, where, and what to change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.completion import dataset_names, run_names
from omegagnn.cli.console import note, show, show_json, show_table
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.cli.runs import RunsDir
from omegagnn.errors import WrongUse

if TYPE_CHECKING:
    from omegagnn.analysis import Diagnosis
    from omegagnn.analysis.layer_measures import OmegaMeasures

app = verb_app()

_COLUMNS = (
    "layer", "features behind", "channels", "E/E⁰", "E/|f|²", "MAD", "in component", "rank", "gradient",
    "ω mean", "ω min", "ω max", "smooth", "mix", "sharpen",
)  # fmt: skip
_MARKS = {"well": "well", "note": "note", "problem": "PROBLEM"}


@app.command()
def diagnose(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE.py:FACTORY",
            help="A run (its name, its beginning, or 'last') or a model of your own.",
            autocompletion=run_names,
        ),
    ],
    member: Annotated[int | None, typer.Option(help="One member of a run [default: all where cheap, else 0].")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Data set for a model of your own [default: citeseer].", autocompletion=dataset_names),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split whose training labels are used.")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Weights of your model, .safetensors [default: untrained].")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the picture: .svg, or .png with the extra 'plots'.")] = None,
    runs_dir: RunsDir = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Say in plain words whether a network over-smooths, where, and what to change; exit code 0 either way.

    FILE.py:FACTORY is your own Python file, which is executed, and a function in it: it is called with the numbers of input
    features and classes and returns a torch module that is called as model(x, edge_index).
    """
    own = ".py:" in subject or subject.endswith(".py")
    _check_options(own, {"--data": data, "--split": split, "--weights": weights}, member, out)
    found = (
        _own_model(subject, data or "citeseer", split, weights, data_root)
        if own
        else _run(subject, member, runs_dir, data_root)
    )
    if out is not None:
        _write_picture(found, out)
    if as_json:
        show_json(found.to_dict())
        return
    _show(found)
    if out is not None:
        note(f"wrote {out}")


def _check_options(own: bool, for_models: Mapping[str, object], member: int | None, out: Path | None) -> None:
    if own and member is not None:
        raise WrongUse("--member belongs to a run: a model of your own has no members.")
    given = [name for name, value in for_models.items() if value is not None]
    if not own and given:
        raise WrongUse(
            f"{given[0]} belongs to a model of your own (FILE.py:FACTORY): a run knows its data and weights."
        )
    if out is not None and out.suffix not in (".svg", ".png"):
        raise WrongUse(f"{out} must end in .svg or .png to say what to draw.")


def _run(run: str, member: int | None, runs_dir: Path | None, data_root: Path | None) -> Diagnosis:
    from omegagnn.data import load
    from omegagnn.training.diagnosing import diagnose_run
    from omegagnn.training.fit import Result, runs_folder
    from omegagnn.training.journal import Journal

    journal = Journal(runs_folder(runs_dir), create=False)
    result = Result(journal, journal.run(run)["run"])
    wanted = result.config.data
    return diagnose_run(result, load(wanted.name, split=wanted.split, root=data_root), member)


def _own_model(subject: str, data: str, split: str | None, weights: Path | None, data_root: Path | None) -> Diagnosis:
    from omegagnn.data import load
    from omegagnn.training.own_model import diagnose_on, load_model

    dataset = load(data, split=split, root=data_root)
    model = load_model(subject, dataset.num_features, dataset.num_classes, weights)
    return diagnose_on(model, dataset, f"{subject} on {data}, {'untrained' if weights is None else weights.name}")


def _show(found: Diagnosis) -> None:
    show(found.subject)
    rows = [
        [
            str(row.position), row.layer, str(row.channels), *(_number(value) for value in (
                row.energy_ratio, row.relative_energy, row.distance, row.within, row.rank, row.gradient)),
            *_omega_cells(row.omega),
        ]
        for row in found.rows
    ]  # fmt: skip
    used = [k for k in range(len(_COLUMNS)) if any(row[k] != "" for row in rows)]
    columns = [_COLUMNS[k] for k in used]
    cells = [[row[k] for k in used] for row in rows]
    show_table("", columns, cells, right=[c for c in columns if c != "features behind"], cut_first=("features behind",))
    if found.thresholds is not None:
        _, signs, critical = found.thresholds
        show(
            f"thresholds of the graph: ω = 1 is the GCN; signs mix beyond {signs:.4g}, it sharpens beyond {critical:.4g}"
        )

    for finding in found.findings:
        show(f"{_MARKS[finding.status]}: {finding}")


def _omega_cells(omega: OmegaMeasures | None) -> list[str]:
    if omega is None:
        return [""] * 6
    shares = (omega.smooths, omega.mixes, omega.sharpens)
    return [f"{v:.3f}" for v in (omega.mean, omega.min, omega.max)] + [
        "" if math.isnan(share) else f"{100 * share:.0f} %" for share in shares
    ]


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3g}"


def _write_picture(found: Diagnosis, out: Path) -> None:
    from omegagnn.files import write_bytes

    if out.suffix == ".svg":
        write_bytes(out, found.to_svg().encode())
        return
    from omegagnn.analysis.diagnosis_plot import to_png

    write_bytes(out, to_png(found))


__all__: list[Any] = ["app"]

"""``omegagnn export``: give a trained run away, as a folder or as a program that runs without this package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.completion import dataset_names, protocol_names, run_names
from omegagnn.cli.console import note, show, show_json
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.cli.runs import RunsDir, open_predictor
from omegagnn.errors import OmegaError, WrongUse

if TYPE_CHECKING:
    from omegagnn.data.dataset import Dataset
    from omegagnn.training.fit import Result
    from omegagnn.training.prediction import Predictor

app = verb_app()

PROGRAMS = (".pt2", ".onnx")


@app.command()
def export(
    run: Annotated[
        str,
        typer.Argument(
            help="Name of a run, its beginning, 'last', or the folder of a run or a model.",
            autocompletion=run_names,
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER|FILE",
            help="A folder (weights, configuration, names, model card), or a program: FILE.pt2 for torch.export, FILE.onnx.",
        ),
    ],
    member: Annotated[
        int | None, typer.Option(min=0, help="The member that a program holds [default: the only one].")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FOLDER|FILE",
            help="Graph on which a program is compared with the original [default: the run's own data].",
            autocompletion=dataset_names,
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="Rule whose weights are used: honest or validation-accuracy.", autocompletion=protocol_names),
    ] = None,
    runs_dir: RunsDir = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Write a trained run as a model folder, or one member as a program checked against the original.

    A folder is read by `predict`, `Predictor.from_pretrained` and people (README.md). Nothing in it is pickled. A program is
    written only when its outputs are the original's, on made graphs of other sizes and on the data.
    """
    if out.suffix.lower() in PROGRAMS:
        _check_program(out)
    elif out.suffix and not out.is_dir():
        raise WrongUse(f"{out} is neither a folder nor a program: end it in {' or '.join(PROGRAMS)}, or in nothing.")
    predictor, result, name = open_predictor(run, protocol, runs_dir)
    if out.suffix.lower() not in PROGRAMS:
        if member is not None or graph is not None:
            raise WrongUse("A folder holds all members and is not compared: give --member and --graph with a program.")
        summary = _write_folder(out, predictor, result, data_root)
    else:
        summary = _write_program(out, predictor, _chosen(predictor, member), _data(predictor, graph, data_root))
    summary = {"run": name, "protocol": predictor.rule, **summary}
    if as_json:
        show_json(summary)
    else:
        _show(summary)


def _check_program(out: Path) -> None:
    if out.is_dir():
        raise WrongUse(f"{out} is a folder: name a file.")


def _chosen(predictor: Predictor, member: int | None) -> int:
    """Return the member a program is made of, which nobody should have to guess."""
    if member is None and predictor.members > 1:
        raise WrongUse(
            f"The run has {predictor.members} members and a program holds one: choose with --member 0 to "
            f"{predictor.members - 1}."
        )
    return member or 0


def _data(predictor: Predictor, graph: str | None, data_root: Path | None) -> Dataset | None:
    """Return the data to compare on: what was named, else the run's own where it is at hand."""
    if graph is not None:
        return predictor.read(graph, data_root)
    try:
        return predictor.read(predictor.config.data.name, data_root)
    except OmegaError as reason:
        note(f"compared on made graphs only: {reason}")
        return None


def _write_folder(out: Path, predictor: Predictor, result: Result | None, data_root: Path | None) -> dict[str, Any]:
    from omegagnn.training.evaluation import own_data
    from omegagnn.training.model_card import run_card
    from omegagnn.training.model_folder import save_model
    from omegagnn.training.prediction import Predictor as Reader

    if result is None:
        raise WrongUse("A folder is written from a run of the journal, whose scores its card tells: name the run.")
    try:
        dataset = own_data(result, data_root)
    except OmegaError as reason:
        note(f"the card tells nothing of the data's audit: {reason}")
        dataset = None
    place = save_model(predictor, out, run_card(result, dataset))
    Reader.from_pretrained(place).network()  # what was written can be read
    files = sorted(file.name for file in place.iterdir())
    return {"out": str(out), "form": "folder", "members": predictor.members, "files": files}


def _write_program(out: Path, predictor: Predictor, member: int, dataset: Dataset | None) -> dict[str, Any]:
    from omegagnn.training.export import export_member

    note(f"tracing member {member} and comparing it; a deep network takes minutes")
    made = export_member(predictor, out, member, dataset)
    return {
        "out": str(out),
        "form": made.kind,
        "member": member,
        "dtype": made.dtype,
        "inputs": made.inputs,
        "bytes": made.bytes,
        "differences": made.differences,
    }


def _show(summary: dict[str, Any]) -> None:
    if summary["form"] == "folder":
        members = "1 member" if summary["members"] == 1 else f"{summary['members']} members"
        show(f"{summary['out']}: {members} of {summary['run']}, weights of rule {summary['protocol']}")
        show("  files      " + ", ".join(summary["files"]))
        show(f"  use        omegagnn predict {summary['out']} --graph GRAPH --out predictions.csv")
        return
    show(
        f"{summary['out']}: member {summary['member']} of {summary['run']} as a program for {summary['form']}, "
        f"{summary['bytes'] / 1024:,.0f} KiB, {summary['dtype']}"
    )
    inputs = ", ".join(f"{name} [{', '.join(map(str, sizes))}]" for name, sizes in summary["inputs"].items())
    show(f"  takes      {inputs}")
    show("  returns    logits")
    for place, difference in summary["differences"].items():
        show(f"  checked    on {place}: largest difference {difference:.2g}")

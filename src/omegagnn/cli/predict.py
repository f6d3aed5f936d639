"""``omegagnn predict``: predict with a trained run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.completion import dataset_names, protocol_names, run_names
from omegagnn.cli.console import note, progress, show, show_json
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.cli.runs import RunsDir, open_predictor

if TYPE_CHECKING:
    from omegagnn.training.prediction import Predictor

app = verb_app()

SHOWN_NODES = 200_000  # times members


@app.command()
def predict(
    run: Annotated[
        str,
        typer.Argument(
            help="Name of a run, its beginning, 'last', or the folder of a run or a model.", autocompletion=run_names
        ),
    ],
    *,
    graph: Annotated[
        str,
        typer.Option(
            metavar="NAME|FOLDER|FILE",
            help="Graph to predict on: a data set, or files as for `data import`.",
            autocompletion=dataset_names,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="CSV to write: id, predicted, p(CLASS) for each class.")],
    member: Annotated[
        int | None, typer.Option(min=0, help="One member alone [default: the mean of the probabilities of all].")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="Rule whose weights are used: honest or validation-accuracy.", autocompletion=protocol_names),
    ] = None,
    score: Annotated[
        bool, typer.Option("--score", help="Also say how many of the labels that are there are met.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda [default: a GPU where there is one].")] = None,
    runs_dir: RunsDir = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Predict the classes of a changed graph, of new nodes, of graphs never seen; labels in it are not looked at.

    Files are coded as the model's own were. The data set of the run is not needed.
    """
    from omegagnn.data.own import item_ids, write_predictions
    from omegagnn.training.environment import choose_device
    from omegagnn.training.evaluation import labelled_items, score_predictions

    predictor, _, name = open_predictor(run, protocol, runs_dir)
    rule = predictor.rule
    given = predictor.read(graph, data_root, labels=score)
    if score:
        labelled_items(given)  # says that there are none before anything is computed
    dataset = predictor.signature.unlabelled(given)
    for warning in dataset.warnings:
        note(f"warning: {warning}")
    chosen = None if member is None else [member]
    with _showing(predictor.members if member is None else 1, dataset.num_nodes) as advance:
        found = predictor.probabilities(dataset, chosen, rule, choose_device(device), told=advance)
        write_predictions(dataset, found, out, item_ids(dataset), predictor.signature.multilabel)
        advance(1)
    met = score_predictions(predictor, given, found) if score else None
    summary: dict[str, Any] = {
        "run": name,
        "graph": dataset.name,
        "protocol": rule,
        "members": predictor.members if member is None else 1,
        "member": member,
        "items": len(found),
        "out": str(out),
        "predicted": _counted(predictor, found),
        "score": None if met is None else {"score": 100 * met[0], "items": met[1]},
    }
    if as_json:
        show_json(summary)
    else:
        _show(summary, predictor)


@contextmanager
def _showing(members: int, nodes: int) -> Iterator[Callable[[float], None]]:
    """Show how many members have been computed, and whether the file is written, where that takes seconds."""
    if members * nodes < SHOWN_NODES:
        yield lambda _: None
        return
    with progress("predicting", members + 1) as advance:
        yield advance


def _counted(predictor: Predictor, probabilities: Any) -> dict[str, int]:
    """Return how many items were given each class."""
    import torch

    names = predictor.signature.names_of_classes
    if predictor.signature.multilabel:
        counts = (probabilities > 0.5).sum(0)
    else:
        counts = torch.bincount(probabilities.argmax(-1), minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def _show(summary: dict[str, Any], predictor: Predictor) -> None:
    items = "graphs" if predictor.signature.task == "graph" else "nodes"
    if summary["member"] is not None:
        how = f"member {summary['member']} alone"
    elif summary["members"] == 1:
        how = "one member"
    else:
        how = f"mean of the probabilities of {summary['members']} members"
    show(f"{summary['out']}: {summary['items']} {items} of {summary['graph']}, {how} of {summary['run']}")
    show("  predicted  " + ", ".join(f"{name}: {count}" for name, count in summary["predicted"].items()))
    if summary["score"] is not None:
        kind = "micro-F1" if predictor.signature.multilabel else "accuracy"
        met = summary["score"]
        show(f"  {kind}   {met['score']:.2f} % of {met['items']} labelled {items}, those trained on included")

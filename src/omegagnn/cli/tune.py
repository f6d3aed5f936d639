"""``omegagnn tune``: search for settings on validation, with a budget that is fixed and written down before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.console import note, show, show_json
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.cli.train import Dataset, ModelName, PresetName, _number_or_name, _progress, _read_preset, _settled

if TYPE_CHECKING:
    from omegagnn.tuning.study import Study, StudyPlan

app = verb_app()


@app.command()
def tune(
    dataset: Dataset = None,
    preset: PresetName = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with the parts data, model and training.")] = None,
    model: ModelName = None,
    trials: Annotated[int, typer.Option(min=1, help="Settings to try: the budget, fixed once the study has begun.")] = 64,
    search: Annotated[
        list[str] | None,
        typer.Option(metavar="K=RANGE", help="Search this too: training.lr_oc=1e-3..1e-1:log, model.dropout=[0.3, 0.6]."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="K=V", help="Hold this value fixed: model.layers=8")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Search what --search names and nothing else.")] = False,
    omega: Annotated[str | None, typer.Option(help="Scope of ω: channel, layer, global; or a fixed number.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each trial on each split.")] = 3,
    splits: Annotated[str, typer.Option(help="Splits of the data set: all, or numbers such as 0,3.")] = "all",
    split: Annotated[str | None, typer.Option(help="Kind of split, such as public, geom, random-20:100, kfold:10.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Longest training of a trial.")] = None,
    objective: Annotated[str, typer.Option(help="What validation says of a trial: accuracy or loss.")] = "accuracy",
    batch: Annotated[int, typer.Option(min=1, help="Trials that train beside each other.")] = 16,
    prune: Annotated[bool, typer.Option(help="End trials that lag behind the median of the others.")] = True,
    study: Annotated[str | None, typer.Option(help="Name of the study [default: made of its settings].")] = None,
    storage: Annotated[
        str | None,
        typer.Option(metavar="URL|FILE", help="Database or journal file shared by many hosts [default: in the runs folder]."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda [default: a GPU where there is one].")] = None,
    runs_dir: Annotated[Path | None, typer.Option(help="Where studies are kept [default: $OMEGAGNN_RUNS, else ./runs].")] = None,
    runs_at_once: Annotated[int | None, typer.Option(min=1, help="Runs that train at once [default: what fits].")] = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Search for settings by their validation score; test labels are never read.

    The same command goes on with its study after a kill, and joins it from other processes and, with --storage, other hosts.
    The winner becomes a preset with `omegagnn presets create STUDY`.
    """
    from omegagnn.training.environment import choose_device
    from omegagnn.training.fit import runs_folder
    from omegagnn.tuning.search import Search
    from omegagnn.tuning.study import start_study

    named = {"data.split": split, "model.name": model, "training.epochs": epochs, "model.omega": _number_or_name(omega)}
    values = {key: value for key, value in named.items() if value is not None}
    settled = _settled(dataset, _read_preset(preset), config, values, settings or [])
    data, chosen, plan = _planned(
        settled,
        data_root,
        fixed=[*values, *(setting.partition("=")[0].strip() for setting in settings or [])],
        search=search or [],
        only=only,
        splits=splits,
        plan={"trials": trials, "seeds": tuple(range(seeds)), "objective": objective, "batch": batch, "prune": prune},
    )
    found = start_study(plan, runs_folder(runs_dir), storage, study)
    note(f"study {found.name}: {len(found.finished)} of {plan.trials} trials are done")
    Search(found, data, chosen, choose_device(device), runs_at_once, _progress(), note).run()
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found, runs_dir, storage)


def _planned(
    settled: Any, data_root: Path | None, *, fixed: list[str], search: list[str], only: bool, splits: str, plan: Any
) -> tuple[Any, Any, StudyPlan]:
    """Return data set, splits and plan of a study."""
    from omegagnn.data import load
    from omegagnn.training.build import check_model
    from omegagnn.training.fit import choose_splits
    from omegagnn.tuning.space import Space, default_space, parse_search
    from omegagnn.tuning.study import StudyPlan, hashes_of

    check_model(settled.model)
    space = (Space({}) if only else default_space(settled).without(fixed)).replaced(dict(map(parse_search, search)))
    data = load(settled.data.name, split=settled.data.split, root=data_root)
    chosen = choose_splits(data, splits)
    return data, chosen, StudyPlan(settled, space, splits=hashes_of(chosen), **plan)


def _show(study: Study, runs_dir: Path | None, storage: str | None) -> None:
    from omegagnn.training.repeat import place_words
    from omegagnn.tuning.study import OBJECTIVES

    found, winner = study.to_dict(), study.winner
    states = ", ".join(f"{count} {state}" for state, count in found["trials"].items() if state != "finished")
    budget = found["budget"]
    show(f"study {study.name}: {budget['trials']} trials ({states})")
    show(f"  a trial        {budget['seeds']} seeds × {budget['splits']} splits, at most {budget['epochs']} epochs")
    show(f"  objective      {OBJECTIVES[study.plan.objective]}")
    show(f"  winner         trial {winner.number}, {winner.value:.4f}")
    for key, value in winner.params.items():
        show(f"  {'':<14} {key} = {value:.6g}" if isinstance(value, float) else f"  {'':<14} {key} = {value}")
    show(f"  hash           {study.hash}")
    places = place_words({"--storage": storage, "--runs-dir": runs_dir})
    show(f"  next           omegagnn presets create {study.name}{places}")

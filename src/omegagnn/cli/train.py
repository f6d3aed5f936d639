"""``omegagnn train``: train a network and report its accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.completion import dataset_names, model_names, preset_names, protocol_names, run_names
from omegagnn.cli.console import note, show_json
from omegagnn.cli.frame import AsJson, DataRoot, verb_app
from omegagnn.errors import InterruptedRun, WrongUse

if TYPE_CHECKING:
    from omegagnn.training.config import RunConfig
    from omegagnn.training.distributed import Team
    from omegagnn.training.engine import Plan, Trainer
    from omegagnn.training.fit import Result
    from omegagnn.training.journal import Journal
    from omegagnn.training.presets.preset import Preset

app = verb_app()

DEFAULT_SEEDS = 10


Dataset = Annotated[
    str | None,
    typer.Argument(
        help="Data set [default: the preset's, else the embedded citeseer].",
        show_default=False,
        autocompletion=dataset_names,
    ),
]
PresetName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Settings of a row of the paper, such as semi/cora-omega-gcn-64, or a file of your own.",
        autocompletion=preset_names,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        help="omega-gcn, omega-gat or a baseline (gcn, gat, gcnii, appnp, mlp …).", autocompletion=model_names
    ),
]
Rule = Annotated[
    str,
    typer.Option(help="Rule that selects the epoch whose test accuracy counts.", autocompletion=protocol_names),
]
Resumed = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Go on with an interrupted run (or 'last').", autocompletion=run_names),
]


@app.command()
def train(
    dataset: Dataset = None,
    preset: PresetName = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with the parts data, model and training.")] = None,
    model: ModelName = None,
    layers: Annotated[int | None, typer.Option(help="Number of layers.")] = None,
    omega: Annotated[str | None, typer.Option(help="Scope of ω: channel, layer, global; or a fixed number.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds on each split [default: the preset's, else 10].")] = None,
    splits: Annotated[str, typer.Option(help="Splits of the data set: all, or numbers such as 0,3.")] = "all",
    split: Annotated[str | None, typer.Option(help="Kind of split, such as public, geom, random-20:100, kfold:10.")] = None,
    protocol: Rule = "honest",
    epochs: Annotated[int | None, typer.Option(min=1, help="Longest training.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="K=V", help="Any other value: training.clip=1")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda [default: a GPU where there is one].")] = None,
    runs_dir: Annotated[Path | None, typer.Option(help="Where runs are kept [default: $OMEGAGNN_RUNS, else ./runs].")] = None,
    runs_at_once: Annotated[int | None, typer.Option(min=1, help="Runs that train at once [default: what fits].")] = None,
    resume: Resumed = None,
    checkpoint_seconds: Annotated[float, typer.Option(min=0.0, help="Seconds between two checkpoints.")] = 20.0,
    report: Annotated[bool, typer.Option("--report", help="Also write the page of `omegagnn report`.")] = False,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Train a network on a data set, all seeds and splits as one batch, and report the accuracy with its interval.

    Without any argument: ωGCN with 2 layers on the embedded CiteSeer, 10 seeds, no network needed.

    Settings lie over each other, the later wins: defaults, --preset, --config, the other options, --set.

    Under torchrun (torchrun -m omegagnn train ...) the runs are dealt to the processes, or with training.shards the steps.
    """
    from omegagnn.training.distributed import joined_team
    from omegagnn.training.fit import runs_folder

    named: dict[str, Any] = {
        "data.split": split,
        "model.name": model,
        "model.layers": layers,
        "training.epochs": epochs,
    }
    named["model.omega"] = _number_or_name(omega)
    values = {key: value for key, value in named.items() if value is not None}
    if resume is not None:
        _refuse_settings_of_a_resumed_run(dataset, preset, config, seeds, settings, values)
    places = {"--device": device, "--data-root": data_root, "--runs-dir": runs_dir}
    with joined_team(device) as team:
        options: dict[str, Any] = {
            "device": team.device,
            "at_once": runs_at_once,
            "progress": _progress(team),
            "checkpoint_seconds": checkpoint_seconds,
            "team": team,
        }
        if resume is not None:
            journal = team.opened(runs_folder(runs_dir), create=False)
            trainer, chosen = _resumed(resume, journal, data_root, options)
        else:
            chosen = _read_preset(preset)
            settled = _settled(dataset, chosen, config, values, settings or [])
            seeds = seeds or (DEFAULT_SEEDS if chosen is None else chosen.runs_per_split)
            plan = _planned(settled, data_root, seeds, splits, protocol, chosen)
            trainer = _started(plan, team.opened(runs_folder(runs_dir)), options)
        _train(trainer, chosen, places, report, as_json)


def _train(
    trainer: Trainer, preset: Preset | None, places: dict[str, Path | str | None], report: bool, as_json: bool
) -> None:
    from omegagnn.cli.training_summary import show_summary
    from omegagnn.training.expected import describe_expected
    from omegagnn.training.fit import Result
    from omegagnn.training.memory import free_bytes
    from omegagnn.training.repeat import place_words
    from omegagnn.training.restarts import forget

    run = trainer.run_name
    if trainer.team.leads:
        for warning in trainer.plan.dataset.warnings:
            note(f"warning: {warning}")
        plan = trainer.plan
        at_once = min(len(plan.seeds), trainer.at_once or 1)
        told = describe_expected(plan.config, plan.dataset, at_once, trainer.device, free_bytes(trainer.device))
        if told is not None:
            note(told)
    try:
        trainer.train()
    except InterruptedRun as stop:
        # The command that goes on must name the same places.
        raise type(stop)(str(stop).replace(f"{run}`", f"{run}{place_words(places)}`")) from None
    if not trainer.team.leads:
        return
    forget(trainer.journal.folder)
    result = Result(trainer.journal, run)
    page = _write_page(result, places["--data-root"]) if report else None
    if as_json:
        show_json(result.to_dict())
    else:
        show_summary(result, trainer.plan, preset, places, page)


def _write_page(result: Result, data_root: Path | str | None) -> Path:
    from omegagnn.report import gather, write_report

    path = result.folder / "report.html"
    write_report([gather(result, data_root)], path)
    return path


def _read_preset(name: str | None) -> Preset | None:
    from omegagnn.training.presets.preset import read_preset

    return None if name is None else read_preset(name)


def _settled(
    dataset: str | None, preset: Preset | None, path: Path | None, values: dict[str, Any], settings: list[str]
) -> RunConfig:
    from omegagnn.training.config import parse_setting, read_config
    from omegagnn.training.presets.settle import settle

    config = None if path is None else read_config(path)
    return settle(dataset, preset, config, {**values, **dict(parse_setting(setting) for setting in settings)})


def _planned(
    settled: RunConfig, data_root: Path | None, seeds: int, splits: str, protocol: str, preset: Preset | None
) -> Plan:
    from omegagnn.data import load
    from omegagnn.training.fit import make_plan

    data = load(settled.data.name, split=settled.data.split, root=data_root)
    return make_plan(data, settled, seeds, splits, protocol, preset)


def _refuse_settings_of_a_resumed_run(*given: Any) -> None:
    if any(given):
        raise WrongUse(
            "A run goes on with the settings it began with: give --resume alone, or leave it out to train anew."
        )


def _resumed(
    run: str, journal: Journal, data_root: Path | None, options: dict[str, Any]
) -> tuple[Trainer, Preset | None]:
    """Return the trainer that goes on with a run, and the run's preset if that is still what it was."""
    import json

    from omegagnn.data import load
    from omegagnn.training.config import parse_config
    from omegagnn.training.engine import Trainer
    from omegagnn.training.repeat import preset_of

    row = journal.run(options["team"].told(lambda: journal.run(run)["run"]))
    config = parse_config(json.loads(row["config"]))
    data = load(config.data.name, split=config.data.split, root=data_root)
    return Trainer.resume(row["run"], journal, data, **options), preset_of(row)


def _started(plan: Plan, journal: Journal, options: dict[str, Any]) -> Trainer:
    """Return the trainer of a new run, or of the one that this job had begun before torchrun restarted it."""
    from omegagnn.training.engine import Trainer
    from omegagnn.training.restarts import begun_before, remember

    before = options["team"].told(lambda: begun_before(plan, journal))
    if before is not None:
        return Trainer.resume(before, journal, plan.dataset, **options)
    trainer = Trainer.start(plan, journal, **options)
    if trainer.team.leads:
        remember(journal.folder, trainer.run_name)
    return trainer


def _number_or_name(omega: str | None) -> str | float | None:
    if omega is None:
        return None
    try:
        return float(omega)
    except ValueError:
        return omega


def _progress(team: Team | None = None) -> Any:
    """Return a listener: a bar with loss, accuracy, ω and time left on a terminal, a line now and then elsewhere."""
    import sys

    from omegagnn.cli.training_progress import BarProgress, LineProgress

    if team is not None and not team.leads:
        return None
    return BarProgress() if sys.stderr.isatty() else LineProgress()

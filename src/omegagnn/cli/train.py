"""``omegagnn train``: train a network and report its accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.console import note, show, show_json
from omegagnn.cli.frame import AsJson, DataRoot, verb_app

if TYPE_CHECKING:
    from omegagnn.training.config import RunConfig
    from omegagnn.training.engine import Trainer
    from omegagnn.training.fit import Result
    from omegagnn.training.journal import Journal

app = verb_app()


@app.command()
def train(
    dataset: Annotated[str | None, typer.Argument(help="Data set [default: the embedded citeseer].", show_default=False)] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with the parts data, model and training.")] = None,
    model: Annotated[str | None, typer.Option(help="omega-gcn, omega-gat or a baseline (gcn, gat, gcnii, appnp, mlp …).")] = None,
    layers: Annotated[int | None, typer.Option(help="Number of layers.")] = None,
    omega: Annotated[str | None, typer.Option(help="Scope of ω: channel, layer, global; or a fixed number.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, trained as one batch.")] = 10,
    splits: Annotated[str, typer.Option(help="Splits of the data set: all, or numbers such as 0,3.")] = "all",
    split: Annotated[str | None, typer.Option(help="Kind of split, such as public, geom, random-20:100, kfold:10.")] = None,
    protocol: Annotated[str, typer.Option(help="Rule that selects the epoch whose test accuracy counts.")] = "honest",
    epochs: Annotated[int | None, typer.Option(min=1, help="Longest training.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="K=V", help="Any other value: training.clip=1")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda [default: a GPU where there is one].")] = None,
    runs_dir: Annotated[Path | None, typer.Option(help="Where runs are kept [default: $OMEGAGNN_RUNS, else ./runs].")] = None,
    runs_at_once: Annotated[int | None, typer.Option(min=1, help="Runs that train at once [default: what fits].")] = None,
    resume: Annotated[str | None, typer.Option(metavar="RUN", help="Go on with an interrupted run (or 'last').")] = None,
    checkpoint_seconds: Annotated[float, typer.Option(min=0.0, help="Seconds between two checkpoints.")] = 20.0,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Train a network on a data set, all seeds and splits as one batch, and report the accuracy with its interval.

    Without any argument: ωGCN with 2 layers on the embedded CiteSeer, 10 seeds, no network needed.
    """
    from omegagnn.training.environment import choose_device
    from omegagnn.training.fit import Result, runs_folder
    from omegagnn.training.journal import Journal

    journal = Journal(runs_folder(runs_dir), create=resume is None)
    options: dict[str, Any] = {
        "device": choose_device(device),
        "at_once": runs_at_once,
        "progress": _progress(),
        "checkpoint_seconds": checkpoint_seconds,
    }
    if resume is not None:
        trainer = _resumed(resume, journal, data_root, options)
    else:
        values: dict[str, Any] = {
            "data.name": dataset,
            "data.split": split,
            "model.name": model,
            "model.layers": layers,
            "model.omega": _number_or_name(omega),
            "training.epochs": epochs,
        }
        settled = _settled(config, {key: value for key, value in values.items() if value is not None}, settings or [])
        trainer = _started(settled, journal, data_root, options, seeds, splits, protocol)
    for warning in trainer.plan.dataset.warnings:
        note(f"warning: {warning}")
    trainer.train()
    result = Result(journal, trainer.run_name)
    if as_json:
        show_json(result.to_dict())
    else:
        _show_summary(result, trainer.plan.dataset.task)


def _settled(path: Path | None, values: dict[str, Any], settings: list[str]) -> RunConfig:
    """Return the configuration of the command line: a file or the defaults, then options, then ``--set``."""
    from omegagnn.training.config import DEFAULT_JOB, RunConfig, parse_setting, read_config

    if path is not None:
        base = read_config(path)
    else:
        base = RunConfig() if "data.name" in values else RunConfig().with_values(DEFAULT_JOB)
    values.update(parse_setting(setting) for setting in settings)
    return base.with_values(values)


def _started(
    settled: RunConfig,
    journal: Journal,
    data_root: Path | None,
    options: dict[str, Any],
    seeds: int,
    splits: str,
    protocol: str,
) -> Trainer:
    from omegagnn.data import load
    from omegagnn.training.engine import Trainer
    from omegagnn.training.fit import make_plan

    data = load(settled.data.name, split=settled.data.split, root=data_root)
    return Trainer.start(make_plan(data, settled, seeds, splits, protocol), journal, **options)


def _resumed(run: str, journal: Journal, data_root: Path | None, options: dict[str, Any]) -> Trainer:
    import json

    from omegagnn.data import load
    from omegagnn.training.config import parse_config
    from omegagnn.training.engine import Trainer

    row = journal.run(run)
    config = parse_config(json.loads(row["config"]))
    data = load(config.data.name, split=config.data.split, root=data_root)
    return Trainer.resume(row["run"], journal, data, **options)


def _number_or_name(omega: str | None) -> str | float | None:
    if omega is None:
        return None
    try:
        return float(omega)
    except ValueError:
        return omega


def _progress() -> Any:
    """Return a listener: a bar with loss, accuracy, ω and time left on a terminal, a line now and then elsewhere."""
    import sys

    from omegagnn.cli.training_progress import BarProgress, LineProgress

    return BarProgress() if sys.stderr.isatty() else LineProgress()


def _show_summary(result: Result, task: str) -> None:
    """Print what a person wants to know after a run."""
    row, config = result.row, result.config
    score = "micro-F1" if task == "inductive" else "accuracy"
    rule = row["protocol"]
    members = result.journal.members(result.run)
    seeds, splits = len({m["seed"] for m in members}), len({m["split_hash"] for m in members})
    optimistic = " (optimistic: looks at test labels)" if result.outcome().optimistic else ""
    show(f"{_describe(config)} on {row['dataset']}: {seeds} seed(s) × {splits} split(s), {row['seconds']:.1f} s")
    show(f"  test {score}   {result.test()} %")
    show(
        f"  selected by    {rule}{optimistic}; reading each run at its best test epoch would add {result.optimism_gap:.2f} points"
    )
    omega = result.omega
    if omega is not None:
        kind = _omega_in_words(omega)
        show(f"  ω              mean {omega['mean']:.3f}, from {omega['min']:.3f} to {omega['max']:.3f}: {kind}")
    show(f"  model          {result.folder / 'model.safetensors'}")
    show(f"  run            {result.run}")


def _describe(config: RunConfig) -> str:
    model = config.model
    text = f"{model.name}, {model.layers} layers × {model.channels} channels"
    return text if not model.name.startswith("omega") or model.omega == "channel" else f"{text}, ω: {model.omega}"


def _omega_in_words(omega: dict[str, Any]) -> str:
    if omega["min"] == omega["max"] == 1.0:
        return "the plain propagation"
    if omega["min"] >= 0 and omega["max"] <= 1:
        return "it smooths, less than a plain GNN"
    if omega["min"] > 1 or omega["max"] < 0:
        return "it sharpens"
    return "smoothing and sharpening channels"

"""``omegagnn presets``: list and show the settings of the paper's tables, and make presets of what studies chose."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omegagnn.cli.completion import preset_names as complete_preset
from omegagnn.cli.completion import task_names
from omegagnn.cli.console import note, show, show_json, show_table
from omegagnn.cli.frame import AsJson, verb_app

app = verb_app()


@app.command("list")
def list_presets(
    task: Annotated[
        str | None, typer.Option(help="Only semi, full, inductive, graph or tuned.", autocompletion=task_names)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show all presets, or those of one task, with the score that stands beside each."""
    from omegagnn.training.presets.names import preset_names
    from omegagnn.training.presets.preset import read_preset

    presets = [read_preset(name) for name in preset_names(task)]
    if as_json:
        show_json(
            [
                {
                    "name": preset.name,
                    "dataset": preset.config.data.name,
                    "model": preset.config.model.name,
                    "layers": preset.config.model.layers,
                    "published": preset.published.score if preset.published else None,
                    "measured": preset.measured.score if preset.measured else None,
                    "about": preset.about,
                }
                for preset in presets
            ]
        )
        return
    columns = ["preset", "published", "measured", "what"]
    rows = [
        [
            preset.name,
            "" if preset.published is None else f"{preset.published.score:.2f}",
            "" if preset.measured is None else f"{preset.measured.score:.2f}",
            preset.about,
        ]
        for preset in presets
    ]
    show_table("Presets", columns, rows, right=["published", "measured"], cut_first=["what"])


@app.command("show")
def show_preset(
    name: Annotated[str, typer.Argument(help="Name of a preset, or a file.", autocompletion=complete_preset)],
    as_json: AsJson = False,
) -> None:
    """Show every value of a preset with its source: paper, script, assumed or measured."""
    from omegagnn.training.presets.preset import SOURCES, read_preset

    preset = read_preset(name)
    values = {"seeds": preset.seeds, **preset.values}
    if as_json:
        described: dict[str, Any] = {key: value.model_dump(mode="json") for key, value in values.items()}
        head = preset.model_dump(mode="json", include={"name", "about", "rows", "published", "measured"})
        show_json({**head, "hash": preset.hash, "values": described})
        return
    show(f"{preset.name}: {preset.about}")
    show(f"  stands in  {'; '.join(preset.rows)}")
    for title, score in (("published", preset.published), ("measured", preset.measured)):
        if score is not None:
            show(f"  {title:<9}  {score}")
    show(f"  hash       {preset.hash}")
    show(f"  train it   omegagnn train --preset {preset.name}")
    rows = [[key, _text(value.value), value.source] for key, value in values.items()]
    show_table("Values", ["key", "value", "source"], rows, right=["value"])
    for source in dict.fromkeys(value.source for value in values.values()):
        show(f"{source}: {SOURCES[source]}")
    for about in dict.fromkeys(value.note for value in values.values() if value.note is not None):
        keys = [key for key, value in values.items() if value.note == about]
        show(f"note on {', '.join(keys)}: {about}")


@app.command("create")
def create_preset(
    study: Annotated[str, typer.Argument(help="Name of a study of `omegagnn tune`.")],
    out: Annotated[Path | None, typer.Option(help="File to write, ending in .yaml [default: STUDY.yaml here].")] = None,
    runs_dir: Annotated[Path | None, typer.Option(help="Where studies are kept [default: $OMEGAGNN_RUNS, else ./runs].")] = None,
    storage: Annotated[str | None, typer.Option(metavar="URL|FILE", help="The study's storage, as tune had it.")] = None,
) -> None:  # fmt: skip
    """Write the winner of a study as a preset: every value with its source, the budget and the study's hash."""
    from omegagnn.training.fit import runs_folder
    from omegagnn.tuning.study import find_study
    from omegagnn.tuning.winner import write_winner

    found = find_study(study, runs_folder(runs_dir), storage)
    if not found.complete:
        note(f"warning: {len(found.finished)} of {found.plan.trials} trials are done: the winner may change")
    path = out or Path(f"{study}.yaml")
    write_winner(found, path)
    show(f"{path}: trial {found.winner.number} of {study}, hash {found.hash}")
    show(f"  train it   omegagnn train --preset {path}")


def _text(value: Any) -> str:
    """Return a value as ``--set`` takes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)

"""What a shell offers for the names that a verb takes: data sets, presets, runs, rules.

A shell waits for these, so torch stays out: the registry and the journal are read directly. They never fail; where nothing can be
read, nothing is offered.
"""

from __future__ import annotations

import os
import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import typer

MODELS = ("omega-gcn", "omega-gat", "gcn", "gat", "gatv2", "gcnii", "appnp", "jknet", "gprgnn", "gin", "mlp", "sgc")
FIGURES = ("impulse", "gradient", "energy", "mean-omega", "euler", "omega-maps")
MOST_RUNS = 50


def dataset_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the registered and the imported data sets whose names go on from what was typed."""
    known = tomllib.loads(files("omegagnn").joinpath("data", "registry.toml").read_text(encoding="utf-8"))
    chosen = ctx.params.get("data_root") or os.environ.get("OMEGAGNN_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "omegagnn"
    imported = (Path(chosen).expanduser() if chosen else cache) / "own"
    own = sorted(path.parent.name for path in imported.glob("*/dataset.npz"))
    return [name for name in (*known, *own) if name.startswith(incomplete)]


def preset_names(incomplete: str) -> list[str]:
    """Return the presets whose names go on from what was typed."""
    from omegagnn.training.presets import preset_names as every_name

    return [name for name in every_name() if name.startswith(incomplete)]


def item_names(incomplete: str) -> list[str]:
    """Return the tables and figures of the paper that can be reproduced."""
    from omegagnn.paper.published import published

    tables = [key for key in published() if not key.endswith("-settings")]
    return [name for name in ("all", *tables, *FIGURES) if name.startswith(incomplete)]


def task_names(incomplete: str) -> list[str]:
    """Return the tasks that presets are for."""
    from omegagnn.training.presets import TASKS

    return [task for task in TASKS if task.startswith(incomplete)]


def run_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the newest runs whose names go on from what was typed."""
    folder = Path(ctx.params.get("runs_dir") or os.environ.get("OMEGAGNN_RUNS") or "runs")
    try:
        return [name for name in ("last", *_newest_runs(folder)) if name.startswith(incomplete)][:MOST_RUNS]
    except sqlite3.Error:
        return []


def run_and_study_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the newest runs and all studies whose names go on from what was typed."""
    folder = Path(ctx.params.get("runs_dir") or os.environ.get("OMEGAGNN_RUNS") or "runs")
    studies = sorted(path.name for path in folder.glob("studies/*") if path.name.startswith(incomplete))
    return [*run_names(ctx, incomplete), *studies]


def _newest_runs(folder: Path) -> Iterator[str]:
    # Read-only, so that completing a word never makes a journal.
    address = f"{(folder / 'journal.sqlite').absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        for (name,) in connection.execute("SELECT run FROM runs ORDER BY created DESC, rowid DESC"):
            yield name


def model_names(incomplete: str) -> list[str]:
    """Return the networks whose names go on from what was typed."""
    return [name for name in MODELS if name.startswith(incomplete)]


def protocol_names(incomplete: str) -> list[str]:
    """Return the selection rules whose names go on from what was typed."""
    from omegagnn.training.protocol import PROTOCOLS

    return [name for name in PROTOCOLS if name.startswith(incomplete)]

"""Which presets there are and where a name leads; quick enough for a shell that completes names."""

from __future__ import annotations

import difflib
from pathlib import Path

from omegagnn.errors import WrongUse

TASKS = ("semi", "full", "inductive", "graph", "tuned")
ENDINGS = (".yaml", ".yml")
FOLDER = Path(__file__).parent


def preset_names(task: str | None = None) -> list[str]:
    """Return the names of the presets that come with the package, those of one task or all; the shallow before the deep."""
    if task is not None and task not in TASKS:
        near = difflib.get_close_matches(task, TASKS, n=1)
        raise WrongUse(
            f"There is no task {task!r}: "
            + (f"did you mean {near[0]}?" if near else f"choose one of {', '.join(TASKS)}.")
        )
    found = [(name, path) for name in TASKS if task in (None, name) for path in (FOLDER / name).glob("*.yaml")]
    return [f"{name}/{path.stem}" for name, path in sorted(found, key=lambda pair: _order(*pair))]


def preset_path(name: str) -> Path:
    """Return the file of a preset: one of the package by its name, or one's own by its path (which ends in .yaml)."""
    if name.endswith(ENDINGS):
        path = Path(name)
        if not path.is_file():
            raise WrongUse(f"There is no preset file {name}: check the path, or see `omegagnn presets list`.")
        return path
    names = preset_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`omegagnn presets list` shows what there is."
        raise WrongUse(f"There is no preset {name!r}: {hint}")
    return FOLDER / f"{name}.yaml"


def _order(task: str, path: Path) -> tuple[int, list[tuple[bool, int, str]]]:
    """Return what presets are sorted by: numbers in a name count as numbers."""
    parts = path.stem.split("-")
    return TASKS.index(task), [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]

"""Writes the reference of all commands for the site, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from mkdocs.structure.files import File, Files

from omegagnn.cli.frame import load_verb
from omegagnn.cli.verbs import VERBS

INTRODUCTION = """# Commands

Every command prints its result to the standard output and everything else to the standard error, draws bars and
colours on a terminal only, and obeys `NO_COLOR`. `--json`, where there is one, prints one line. Exit codes: 0 done,
1 failed, 2 wrong use, 130 interrupted. `--debug` anywhere on the line shows the traceback of an error.
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the page."""
    files.append(File.generated(config, "commands.md", content=reference()))
    return files


def reference() -> str:
    """Return the page: each command with its purpose, its usage and a table of its options."""
    sections = [INTRODUCTION]
    for verb in sorted(VERBS):
        for path, command in _leaves(f"omegagnn {verb}", load_verb(verb)):
            sections.append(_section(path, command))
    return "\n".join(sections)


def _leaves(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield the command, or those of a group."""
    members = getattr(command, "commands", None)  # the framework's group is not always click's class
    if members is None:
        yield path, command
        return
    for name, each in members.items():
        yield from _leaves(f"{path} {name}", each)


def _section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [f"## {path}", "", _paragraphs(command.help or ""), "", f"```text\n{usage}\n```", ""]
    rows = [row for parameter in command.params if (row := _row(parameter, context)) is not None]
    if rows:
        lines += ["| argument or option | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _row(parameter: click.Parameter, context: click.Context) -> str | None:
    record = parameter.get_help_record(context)
    if record is None:
        return None
    names, meaning = record
    names, meaning = (" ".join(cell.split()).replace("|", "\\|") for cell in (names, meaning))
    return f"| `{names}` | {meaning.replace('<', '&lt;')} |"


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))

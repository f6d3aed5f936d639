"""Every command, argument and option says what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from omegagnn.cli import main
from omegagnn.cli.frame import _application, load_verb
from omegagnn.cli.verbs import VERBS


def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


ALL = [((), _application()), *(found for name in VERBS for found in commands(load_verb(name), (name,)))]


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(("omegagnn", *path)) for path, _ in ALL])
def test_everything_is_documented(path: tuple[str, ...], command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert (command.help or "").strip().endswith((".", ";")), path
    undocumented = [
        parameter.name for parameter in command.params if not (getattr(parameter, "help", "") or "").strip()
    ]
    assert not undocumented, f"{' '.join(path)} has no help for {undocumented}"
    assert main([*path, "--help"]) == 0
    shown = capsys.readouterr().out
    for parameter in command.params:
        if parameter.param_type_name == "option":
            assert parameter.opts[0] in shown
    # A square bracket with a default belongs to the help text where the default is a rule, to the framework elsewhere.
    assert "None]" not in shown


def test_the_precedence_of_settings_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "the later wins: defaults, --preset, --config, the other options, --set." in words

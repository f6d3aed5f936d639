"""The frame of the command line: exit codes, one-sentence errors, lazy verbs, plain output."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
import typer

import omegagnn
from omegagnn.cli import main
from omegagnn.cli.console import progress, show, show_json, show_table
from omegagnn.cli.frame import verb_app
from omegagnn.cli.verbs import VERBS
from omegagnn.errors import DataError, WrongUse

COMMAND = [sys.executable, "-m", "omegagnn"]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> object:
    """Add the verb ``probe``, which runs the function that a test hands over."""

    def install(action: object) -> None:
        app = verb_app()

        @app.command()
        def probe(number: int = 0) -> None:
            """Probe something."""
            action(number)  # type: ignore[operator]

        module = types.ModuleType("omegagnn.cli.probe")
        module.app = app  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "omegagnn.cli.probe", module)
        monkeypatch.setitem(VERBS, "probe", "Probe something.")

    return install


def raising(error: BaseException) -> object:
    def action(_: int) -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (WrongUse("There is no such thing: take another."), 2, "There is no such thing: take another."),
        (DataError("a.csv, line 3: bad: mend it."), 1, "a.csv, line 3: bad: mend it."),
        (
            OSError(errno.ENOSPC, "No space left on device", "/data/x"),
            1,
            "no space left on device: /data/x; free some space or choose another folder.",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/data/x"),
            1,
            "permission denied: /data/x; change its permissions or choose another path.",
        ),
        (OSError("odd"), 1, "odd; run again with --debug to see where."),
        (
            RuntimeError("shapes differ.\nand more"),
            1,
            "an unexpected RuntimeError stopped the command (shapes differ): run again with --debug to see where.",
        ),
        (KeyError(), 1, "an unexpected KeyError stopped the command: run again with --debug to see where."),
        (KeyboardInterrupt(), 130, "interrupted by Ctrl-C."),
    ],
)
def test_an_error_is_one_sentence(
    verb: object, error: BaseException, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(error))  # type: ignore[operator]
    assert main(["probe"]) == code
    captured = capsys.readouterr()
    assert captured.err == f"omegagnn: {sentence}\n"
    assert captured.out == ""


@pytest.mark.parametrize("line", [["--debug", "probe"], ["probe", "--debug"], ["probe", "--number", "3", "--debug"]])
def test_debug_shows_the_traceback_wherever_it_stands(
    verb: object, line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(DataError("bad: mend it.")))  # type: ignore[operator]
    assert main(line) == 1
    captured = capsys.readouterr().err
    assert "Traceback (most recent call last)" in captured
    assert captured.endswith("omegagnn: bad: mend it.\n")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (["prob"], "omegagnn --help"),
        (["--nothing"], "omegagnn --help"),
        (["probe", "--number", "many"], "omegagnn probe --help"),
        (["probe", "more"], "omegagnn probe --help"),
    ],
)
def test_wrong_use_is_exit_code_2_and_names_the_help(
    verb: object, line: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verb(lambda number: None)  # type: ignore[operator]
    assert main(line) == 2
    captured = capsys.readouterr()
    assert re.fullmatch(r"omegagnn: [^\n]+\n", captured.err)
    assert f"(see '{hint}')." in captured.err
    assert captured.out == ""


def test_a_verb_that_returns_is_exit_code_0_and_one_that_exits_keeps_its_own(verb: object) -> None:
    numbers: list[int] = []
    verb(numbers.append)  # type: ignore[operator]
    assert main(["probe", "--number", "4"]) == 0
    assert numbers == [4]
    verb(raising(typer.Exit(1)))  # type: ignore[operator]
    assert main(["probe"]) == 1
    verb(raising(SystemExit(3)))  # type: ignore[operator]
    assert main(["probe"]) == 3
    verb(raising(SystemExit("words")))  # type: ignore[operator]
    assert main(["probe"]) == 1


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"omegagnn {omegagnn.__version__}\n"
    for line in ([], ["--help"], ["-h"]):
        assert main(line) == 0
        shown = capsys.readouterr().out
        assert all(re.search(rf"^  {name} ", shown, re.MULTILINE) for name in VERBS)
    assert main(["data"]) == 0
    assert "import" in capsys.readouterr().out


def test_every_command_has_a_help_that_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from omegagnn.cli import main\nfrom omegagnn.cli.frame import load_verb\nfrom omegagnn.cli.verbs import VERBS\n"
        "for verb in VERBS:\n"
        "    for below in [[], *([name] for name in getattr(load_verb(verb), 'commands', {}))]:\n"
        "        assert main([verb, *below, '--help']) == 0, (verb, below)\n"
        "heavy = {'torch', 'numpy', 'pandas', 'scipy', 'torch_geometric', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage: omegagnn ") > len(VERBS)


def test_ctrl_c_ends_with_130_and_one_sentence(tmp_path: Path) -> None:
    script = (
        "import sys, time, types; import omegagnn.cli.frame as frame; app = frame.verb_app()\n"
        "@app.command()\ndef nap() -> None:\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "module = types.ModuleType('omegagnn.cli.nap'); module.app = app; sys.modules[module.__name__] = module\n"
        "frame.VERBS['nap'] = 'Sleep.'\nsys.exit(frame.main(['nap']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore the signal, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "omegagnn: interrupted by Ctrl-C.\n")


@pytest.mark.parametrize("line", [["data", "--help"], ["data", "list"], ["data", "audit", "karate"]])
def test_a_closed_pipe_is_no_accident(line: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    script = "import sys; from omegagnn.cli.frame import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, *line]
    with os.fdopen(writer, "wb") as stream:
        outcome = subprocess.run(command, stdout=stream, stderr=subprocess.PIPE, check=False)
    assert outcome.returncode == 1
    assert outcome.stderr == b""


def test_the_shell_completes_verbs_and_their_commands() -> None:
    for words, position, expected in (("omegagnn da", "1", "data"), ("omegagnn data imp", "2", "import")):
        environment = {**os.environ, "_OMEGAGNN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": position}
        script = "from omegagnn.cli import main; raise SystemExit(main())"
        outcome = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        assert outcome.stdout.split() == [expected]


def test_tables_are_tab_separated_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show("a result")
    show_table("Numbers", ("name", "count"), [["one", "1"], ["two", "2"]], right=("count",))
    assert capsys.readouterr().out == "a result\nname\tcount\none\t1\ntwo\t2\n"


def test_json_is_one_line_without_nan(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"mean": float("nan"), "list": [1.5, float("inf")], "nested": {"ω": None}})
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"mean": None, "list": [1.5, None], "nested": {"ω": None}}


def test_progress_without_a_terminal_is_a_line_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("counting", total=4) as advance:
        for _ in range(4):
            advance(1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == ["counting: 20 %", "counting: 50 %", "counting: 70 %", "counting: 100 %"]


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_gets_a_drawn_table_and_a_bar_in_colour_unless_forbidden(colour: bool) -> None:
    script = (
        "from omegagnn.cli.console import progress, show_table\n"
        "show_table('Numbers', ('name', 'count'), [['one', '1']], right=('count',))\n"
        "with progress('counting', total=2) as advance:\n    advance(2)\n"
    )
    out = on_terminal([sys.executable, "-c", script], {} if colour else {"NO_COLOR": "1"})
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out)
    assert re.search(r"name +count *\r\none +1", shown)
    assert "100%" in out
    coloured = re.search(r"\x1b\[[0-9;]*3[0-9]", out) is not None
    assert coloured is colour


def test_a_narrow_terminal_cuts_what_matters_least() -> None:
    script = (
        "from omegagnn.cli.console import show_table\n"
        "show_table('T', ('name', 'count', 'words'), [['one', '123,456', 'w' * 90]], right=('count',), cut_first=('words',))\n"
    )
    (row,) = [line for line in on_terminal([sys.executable, "-c", script], {}).splitlines() if "one" in line]
    assert "123,456" in row
    assert row.rstrip().endswith("w…")
    assert len(row) <= 80


def on_terminal(command: list[str], extra: dict[str, str]) -> str:
    """Run a command on a pseudo-terminal and return what it shows."""
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "80", **extra}
    parent, child = pty.openpty()
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment)
    os.close(child)
    shown, end = b"", time.monotonic() + 30
    while time.monotonic() < end:
        try:
            block = os.read(parent, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not block:
            break
        shown += block
    os.close(parent)
    assert process.wait(timeout=10) == 0
    return shown.decode()

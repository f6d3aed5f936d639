"""Training on a terminal of its own: the bar, Ctrl-C as a key, and the command that goes on."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import subprocess
import sys
import termios
import time
from pathlib import Path

from omegagnn.cli import main

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_terminal(line: list[str], until: str | None = None, key: bytes = b"") -> tuple[int, str]:
    """Run the command in front of a terminal; press `key` once `until` was seen; return exit code and what was shown."""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "omegagnn", *line],
        stdin=child,
        stdout=child,
        stderr=child,
        env=environment,
        start_new_session=True,
        # The terminal becomes the one of the session, so that its driver turns the key into a signal.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )
    os.close(child)
    shown, end = b"", time.monotonic() + 120
    while time.monotonic() < end:
        try:
            block = os.read(parent, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not block:
            break
        shown += block
        if until is not None and until in plain(shown):
            os.write(parent, key)
            until = None
    os.close(parent)
    return process.wait(timeout=30), plain(shown)


def plain(shown: bytes) -> str:
    return ESCAPES.sub("", shown.decode(errors="replace"))


def test_a_bar_shows_loss_accuracy_omega_and_the_time_left(tmp_path: Path) -> None:
    line = ["train", "karate", "--seeds", "2", "--epochs", "400", "--set", "training.patience=null"]
    code, shown = on_terminal([*line, "--runs-dir", str(tmp_path)])
    assert code == 0
    assert re.search(r"epoch \d+  loss \d+\.\d+  val \d+\.\d %  ω \d+\.\d+ .*\d:\d\d:\d\d", shown), shown
    assert "test accuracy" in shown


def test_the_key_saves_and_the_command_that_is_told_goes_on(tmp_path: Path) -> None:
    line = ["train", "karate", "--seeds", "2", "--epochs", "1500", "--set", "training.patience=null"]
    code, shown = on_terminal([*line, "--runs-dir", str(tmp_path / "my runs")], until="epoch ", key=b"\x03")
    assert code == 130, shown
    assert "Traceback" not in shown
    told = re.search(r"Interrupted and saved at epoch \d+: go on with `([^`]*)`", " ".join(shown.split()))
    assert told is not None, shown
    words = shlex.split(told.group(1))
    assert words[:3] == ["omegagnn", "train", "--resume"]
    assert words[4:] == ["--runs-dir", str(tmp_path / "my runs")]
    assert main([*words[1:], "--json"]) == 0

"""``python -m omegagnn`` is ``omegagnn``, so that launchers which take a module can start it."""

from __future__ import annotations

import atexit
import os
import sys

from omegagnn.cli import main


def leave(code: int) -> None:
    """End one of several processes at once, after everything that was registered for the end.

    While the interpreter takes itself apart, a thread of gloo that lets go of its last message can abort the process.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    outcome = main()
    if "TORCHELASTIC_RUN_ID" in os.environ or "RANK" in os.environ:
        leave(outcome)
    sys.exit(outcome)

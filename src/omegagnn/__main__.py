"""``python -m omegagnn`` is ``omegagnn``, so that launchers which take a module can start it."""

from __future__ import annotations

import sys

from omegagnn.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""The command line: ``omegagnn VERB ...``.

To add a verb, say ``grow``:

1. write ``omegagnn/cli/grow.py`` with an `app` and one command (or several, which become ``omegagnn grow NAME``)::

       from omegagnn.cli.frame import DataRoot, verb_app

       app = verb_app()

       @app.command()
       def grow(name: str, data_root: DataRoot = None) -> None:
           '''Grow a graph.'''
           from omegagnn.data import load     # torch, numpy and pandas are imported inside, never above

           show_result(load(name, root=data_root))

2. add one line, name and one-line help, to the table in ``omegagnn/cli/verbs.py``.

A verb returns None when it is done and raises when it is not: an `OmegaError` ends with its sentence on stderr and its
exit code, an `OSError` with one sentence and 1, anything else with its type, its first line and 1. Results go to stdout
through `omegagnn.cli.console`, everything else to stderr. ``--debug``, anywhere on the line, shows the traceback.
Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted.
"""

from __future__ import annotations

from omegagnn.cli.frame import main

__all__ = ["main"]

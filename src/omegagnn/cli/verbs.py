"""The table of verbs: ``omegagnn VERB`` is the ``app`` of ``omegagnn/cli/VERB.py``, imported when the verb is called."""

from __future__ import annotations

VERBS: dict[str, str] = {
    "bench": "Measure speed and memory beside the peers.",
    "train": "Train a network and report its accuracy.",
    "presets": "List and show the settings of the paper's tables, with their sources.",
    "runs": "List, show, export and delete what was trained.",
    "data": "List, fetch, check, audit and import data sets.",
}

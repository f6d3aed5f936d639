"""The table of verbs: ``omegagnn VERB`` is the ``app`` of ``omegagnn/cli/VERB.py``, imported when the verb is called."""

from __future__ import annotations

VERBS: dict[str, str] = {
    "bench": "Measure speed and memory beside the peers.",
    "train": "Train a network and report its accuracy.",
    "evaluate": "Measure a trained run anew: scores, classes, confusions.",
    "predict": "Predict with a trained run on a changed or unseen graph.",
    "runs": "List, show, export and delete what was trained.",
    "data": "List, fetch, check, audit and import data sets.",
}

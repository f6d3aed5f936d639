"""The table of verbs: ``omegagnn VERB`` is the ``app`` of ``omegagnn/cli/VERB.py``, imported when the verb is called."""

from __future__ import annotations

VERBS: dict[str, str] = {
    "bench": "Measure speed and memory beside the peers.",
    "train": "Train a network and report its accuracy.",
    "tune": "Search for settings on validation, on a fixed budget.",
    "presets": "Show the settings of the paper's tables, with their sources.",
    "reproduce": "Train and measure what the paper shows, beside its numbers.",
    "evaluate": "Measure a trained run anew: scores, classes, confusions.",
    "predict": "Predict with a trained run on a changed or unseen graph.",
    "export": "Write a trained run as a model folder, for torch.export or as ONNX.",
    "report": "Write all about a run or a study on one page.",
    "diagnose": "Say whether a network over-smooths, where, and what to change.",
    "runs": "List, show, export and delete what was trained.",
    "explore": "Open the ω explorer: draw a graph, move ω, see what it does.",
    "data": "List, fetch, check, audit and import data sets.",
    "doctor": "Say what is installed and which kernels run; try them.",
}

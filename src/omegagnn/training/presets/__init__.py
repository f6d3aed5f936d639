"""Presets: the settings of every row of the paper's tables as files, ``<task>/<dataset>-<model>-<depth>[-<scope>].yaml``.

======================  ========================================================================================
task ``semi``           semi-supervised nodes: three data sets, two networks, 2 to 64 layers, three scopes of ω
task ``full``           fully supervised nodes
task ``inductive``      PPI
task ``graph``          graph classification
task ``tuned``          not the paper's: chosen on validation by studies of this repository, see ``results/``
======================  ========================================================================================

`names` knows the files (and imports nothing heavy), `preset` reads and checks them, `settle` lays them under other settings.
"""

from omegagnn.training.presets.names import TASKS, preset_names

__all__ = ["TASKS", "preset_names"]

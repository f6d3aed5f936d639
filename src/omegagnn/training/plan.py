"""`Plan`: what is to be trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omegagnn.data.dataset import Dataset, Split
from omegagnn.errors import WrongUse
from omegagnn.training.build import sized_for
from omegagnn.training.config import RunConfig


@dataclass(frozen=True)
class Plan:
    """What is to be trained: a configuration and its members, each a seed on a split with settings of its own.

    `exploring` asks for curves only: a member that diverges ends alone, and no weights are written."""

    config: RunConfig
    dataset: Dataset
    seeds: Sequence[int]
    splits: Sequence[Split]
    settings: Sequence[dict[str, Any]] = ()
    preset: str | None = None
    protocol: str = "honest"
    preset_hash: str | None = None
    exploring: bool = False

    def __post_init__(self) -> None:
        """Check that seeds, splits and settings belong together; tell the network of the size of the graph where it asks."""
        if not self.seeds or len(self.seeds) != len(self.splits):
            raise WrongUse(f"A plan needs a split for each seed, not {len(self.splits)} for {len(self.seeds)}.")
        if self.settings and len(self.settings) != len(self.seeds):
            raise WrongUse(
                f"A plan needs settings for each seed or none, not {len(self.settings)} for {len(self.seeds)}."
            )
        object.__setattr__(self, "config", sized_for(self.config, self.dataset.num_nodes))

    def settings_of(self, member: int) -> dict[str, Any]:
        """Return the training values that replace the configuration's for one member."""
        return self.settings[member] if self.settings else {}

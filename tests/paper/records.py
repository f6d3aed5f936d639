"""Records made by hand, for tests of what is computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np


def record(
    validation: np.ndarray, test: np.ndarray, tag: str = "t", rules: tuple[str, ...] = ("honest",), **more: Any
) -> dict[str, Any]:
    """Return a record of scores ``[splits, seeds, choices]``."""
    splits, seeds, choices = validation.shape
    places = [(s, seed, c) for s in range(splits) for seed in range(seeds) for c in range(choices)]
    rows = [[7, 0.5, float(validation[place]), float(test[place])] for place in places]
    return {
        "tag": tag,
        "name": tag,
        "quick": False,
        "choices": [{"lr_gnn": 10.0**-k} for k in range(choices)],
        "splits": [[f"geom#{s}", f"{s:016x}"] for s in range(splits)],
        "members": [[*place, 9, 1] for place in places],
        "rules": dict.fromkeys(rules, rows),
        "seconds": 1.0,
        "environment": {"device": "cpu", "processor": "AVX2", "threads": 1, "versions": {}},
        **more,
    }

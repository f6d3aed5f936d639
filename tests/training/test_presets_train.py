"""Every preset trains: three epochs of one seed on its first split (minutes; PPI and arxiv on small files of their formats)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from train_presets import DIVERGE, EPOCHS, is_made, make_root, train

from omegagnn.training.batch import DivergenceError
from omegagnn.training.presets import preset_names
from omegagnn.training.presets.preset import read_preset


@pytest.fixture(scope="module")
def made_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_root(tmp_path_factory.mktemp("made"))


@pytest.mark.slow
@pytest.mark.parametrize("name", preset_names())
def test_a_preset_trains(name: str, made_root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name in DIVERGE:
        with pytest.raises(DivergenceError, match="group 'gnn' diverged"):
            train(name, request.getfixturevalue("shared_data"), tmp_path)
        return
    root = made_root if is_made(name) else request.getfixturevalue("shared_data")
    result = train(name, root, tmp_path)
    (curve,) = result.curves
    assert len(curve) == EPOCHS
    assert np.isfinite(curve.validation.loss).all()
    assert 0 <= result.test().mean <= 100
    assert result.row["preset"] == name
    assert result.row["preset_hash"] == read_preset(name).hash

"""Every preset trains: three epochs of one seed on its first split (minutes; PPI and arxiv on small files of their formats)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from omegagnn import fit
from omegagnn.training.batch import DivergenceError
from omegagnn.training.fit import Result
from omegagnn.training.presets import preset_names
from omegagnn.training.presets.preset import read_preset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "data"))
from test_ogb_reader import make_arxiv
from test_ppi_reader import make_ppi

EPOCHS = 3
# Published settings whose 64 maps K of 256 channels grow past float32 in the second step: LR_GNN is 0.005.
DIVERGE = {f"semi/{data}-omega-gat-64{scope}" for data in ("citeseer", "pubmed") for scope in ("", "-global", "-layer")}


@pytest.fixture(scope="module")
def made_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    make_ppi(root / "PPI" / "raw", graphs=(4, 2, 2))
    make_arxiv(root / "ogbn_arxiv")
    return root


def train(name: str, root: Path, folder: Path) -> Result:
    lasting = {"training__epochs": EPOCHS, "training__patience": None}
    return fit(preset=name, seeds=1, splits=[0], data_root=root, runs_dir=folder, **lasting)


@pytest.mark.slow
@pytest.mark.parametrize("name", preset_names())
def test_a_preset_trains(name: str, made_root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name in DIVERGE:
        with pytest.raises(DivergenceError, match="group 'gnn' diverged"):
            train(name, request.getfixturevalue("shared_data"), tmp_path)
        return
    made = read_preset(name).config.data.name in ("ppi", "ogbn-arxiv")
    root = made_root if made else request.getfixturevalue("shared_data")
    result = train(name, root, tmp_path)
    (curve,) = result.curves
    assert len(curve) == EPOCHS
    assert np.isfinite(curve.validation.loss).all()
    assert 0 <= result.test().mean <= 100
    assert result.row["preset"] == name
    assert result.row["preset_hash"] == read_preset(name).hash

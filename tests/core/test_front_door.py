"""The front door opens fast: torch stays outside until the first name is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import omegagnn


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, omegagnn; print(sorted({'torch', 'numpy', 'numba', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", omegagnn.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(omegagnn, name) is not None
    assert name in dir(omegagnn)


def test_names_come_from_their_home() -> None:
    from omegagnn.graph import Graph
    from omegagnn.nn import OmegaNet

    assert omegagnn.Graph is Graph
    assert omegagnn.OmegaNet is OmegaNet


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'omegagnn' has no attribute 'OmegaTransformer'$"):
        _ = omegagnn.OmegaTransformer

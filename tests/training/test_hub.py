"""The Hub's classes: folders as ever, repositories out of huggingface_hub's own cache, no pickle fetched, nothing sent here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import node_dataset

from omegagnn import OmegaClassifier, OmegaNet, Predictor
from omegagnn.errors import OmegaError, WrongUse

huggingface_hub = pytest.importorskip("huggingface_hub")

from omegagnn.training.hub import FILES, HubClassifier, HubNet, HubPredictor  # noqa: E402

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
X = torch.arange(15.0).reshape(3, 5).sin()
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def fill_cache(cache: Path, files: dict[str, bytes]) -> None:
    """Lay files down as huggingface_hub keeps what it fetched of ``owner/net``."""
    repository = cache / "models--owner--net"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    for name, content in files.items():
        (snapshot / name).write_bytes(content)


def test_a_network_goes_through_a_folder_and_a_repository(tmp_path: Path) -> None:
    net = HubNet(5, 4, 2, 3).eval()
    assert net.save_pretrained(tmp_path / "net") is None
    plain = OmegaNet.from_pretrained(tmp_path / "net")
    assert type(plain) is OmegaNet
    fill_cache(tmp_path / "cache", {path.name: path.read_bytes() for path in (tmp_path / "net").iterdir()})
    for again in (
        HubNet.from_pretrained(tmp_path / "net"),
        HubNet.from_pretrained("owner/net", cache_dir=tmp_path / "cache", local_files_only=True),
    ):
        assert type(again) is HubNet
        torch.testing.assert_close(again(X, EDGES), net(X, EDGES), rtol=0, atol=0)
    torch.testing.assert_close(plain(X, EDGES), net(X, EDGES), rtol=0, atol=0)


def test_a_classifier_and_a_predictor_too(tmp_path: Path) -> None:
    model = HubClassifier(epochs=2, channels=4)
    model.fit(node_dataset().with_splits(()))
    model.save_pretrained(tmp_path / "m")
    again: Any = HubClassifier.from_pretrained(tmp_path / "m")
    expected = model.predict(node_dataset())
    np.testing.assert_array_equal(again.predict(node_dataset()), expected)
    np.testing.assert_array_equal(OmegaClassifier.from_pretrained(tmp_path / "m").predict(node_dataset()), expected)
    predictor: Any = HubPredictor.from_pretrained(tmp_path / "m")
    predictor.save_pretrained(tmp_path / "p")
    plain = Predictor.from_pretrained(tmp_path / "p")
    torch.testing.assert_close(plain.logits(node_dataset()), predictor.logits(node_dataset()), rtol=0, atol=0)


def test_only_a_models_files_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def fetch(repo_id: str, **options: Any) -> str:
        asked.update(options, repo_id=repo_id)
        return str(tmp_path)

    monkeypatch.setattr("omegagnn.training.hub.snapshot_download", fetch)
    OmegaNet(5, 4, 1, 2).save_pretrained(tmp_path)
    HubNet.from_pretrained("owner/net", revision="v1", token="secret")
    assert asked["repo_id"] == "owner/net"
    assert (asked["revision"], asked["token"]) == ("v1", "secret")
    assert asked["allow_patterns"] == list(FILES)
    assert not any(name.endswith((".bin", ".pt", ".pkl")) for name in FILES)


def test_pickles_and_what_is_not_there_are_refused(tmp_path: Path) -> None:
    fill_cache(tmp_path / "cache", {"config.json": b"{}", "pytorch_model.bin": b"\x80\x04."})
    for place in ("weights.pt", "owner/net"):
        with pytest.raises(OmegaError, match="a pickle can run any code when it is read"):
            HubNet.from_pretrained(place, cache_dir=tmp_path / "cache", local_files_only=True)
    for name in ("nobody/nothing", "no//name"):
        with pytest.raises(
            OmegaError, match=r"is no folder here and could not be fetched from the Hub \(.+\): check the"
        ):
            HubNet.from_pretrained(name, cache_dir=tmp_path / "cache", local_files_only=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "config.json").write_text('{"mine": 1}', encoding="utf-8")
    with pytest.raises(WrongUse, match="holds something else"):
        HubNet(5, 4, 1, 2).save_pretrained(tmp_path / "full")
    assert (tmp_path / "full" / "config.json").read_text(encoding="utf-8") == '{"mine": 1}'


def test_what_would_be_sent_is_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`push_to_hub` is huggingface_hub's own; here its last step, the network, is looked at instead of taken."""
    sent: dict[str, Any] = {}

    class Server:
        def __init__(self, **_: Any) -> None: ...

        def create_repo(self, repo_id: str, **_: Any) -> Any:
            return type("Repository", (), {"repo_id": repo_id})

        def upload_folder(self, folder_path: Path, repo_id: str, **_: Any) -> str:
            sent.update(repo_id=repo_id, files=sorted(path.name for path in Path(folder_path).iterdir()))
            return "https://hub/commit"

    monkeypatch.setattr("huggingface_hub.hub_mixin.HfApi", Server)
    net = HubNet(5, 4, 1, 2)
    assert net.save_pretrained(tmp_path / "net", repo_id="owner/net", push_to_hub=True) == "https://hub/commit"
    assert sent == {"repo_id": "owner/net", "files": ["README.md", "config.json", "model.safetensors"]}


def test_without_huggingface_hub_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['huggingface_hub'] = None\nimport omegagnn.training.hub"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "The Hub needs huggingface_hub: pip install 'omegagnn[hub]'." in done.stderr

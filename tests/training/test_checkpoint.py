"""Files that are whole or absent: damage, full disks and read-only folders, with the real file system."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tiny import node_dataset

from omegagnn.errors import OmegaError
from omegagnn.files import write_bytes
from omegagnn.training.checkpoint import read_tensors, write_tensors
from omegagnn.training.config import RunConfig
from omegagnn.training.engine import Trainer
from omegagnn.training.fit import make_plan
from omegagnn.training.journal import Journal


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mounting a small file system is not allowed here ({mounted.stderr.decode().strip()})")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)  # a journal may still have it open


def test_tensors_come_back_to_the_bit(tmp_path: Path) -> None:
    tensors = {
        "a": torch.randn(3, 4),
        "b": torch.tensor([True, False]),
        "c": torch.tensor([1, 2]),
        "d": torch.randn(2).double(),
    }
    write_tensors(tmp_path / "x.safetensors", tensors, {"epoch": 3})
    again, facts = read_tensors(tmp_path / "x.safetensors")
    assert facts == {"epoch": 3}
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())
    assert os.listdir(tmp_path) == ["x.safetensors"]


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(OmegaError, match="There is no file"):
        read_tensors(path)
    write_tensors(path, {"a": torch.zeros(100)}, {})
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(OmegaError, match="is damaged or not a safetensors file"):
        read_tensors(path)
    path.write_bytes(b"\x80\x04pickle")
    with pytest.raises(OmegaError, match="is damaged or not a safetensors file"):
        read_tensors(path)


def test_a_full_disk_keeps_the_last_good_file(small_disk: Path) -> None:
    path = small_disk / "x.safetensors"
    write_tensors(path, {"a": torch.ones(1000)}, {"epoch": 1})
    with pytest.raises(OmegaError, match=r"No space left on device.*the last good one is kept"):
        write_tensors(path, {"a": torch.ones(10**6)}, {"epoch": 2})
    assert read_tensors(path)[1] == {"epoch": 1}
    assert os.listdir(small_disk) == ["x.safetensors"]


def test_training_onto_a_full_disk_is_one_sentence_and_can_go_on(small_disk: Path) -> None:
    dataset = node_dataset()
    config = RunConfig().with_values({"data.name": "tiny", "training.epochs": 40, "training.patience": None})
    journal = Journal(small_disk)
    trainer = Trainer.start(make_plan(dataset, config, 2, "0"), journal, torch.device("cpu"), checkpoint_seconds=0.0)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * (small_disk_free(small_disk) - 150_000))
    with pytest.raises(OmegaError, match=r"(No space left on device|disk is full)") as caught:
        trainer.train()
    assert "\n" not in str(caught.value)
    ballast.unlink()
    again = Trainer.resume(trainer.run_name, journal, dataset, torch.device("cpu"))
    again.train()
    epochs = journal.epochs(trainer.run_name)
    assert [(row["member"], row["epoch"]) for row in epochs] == [(m, e) for m in range(2) for e in range(1, 41)]


def small_disk_free(folder: Path) -> int:
    stats = os.statvfs(folder)
    return stats.f_bavail * stats.f_frsize


def test_a_read_only_folder_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "readonly"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        folder.chmod(0o500)
        if os.access(folder, os.W_OK):
            pytest.skip("neither mounting nor permissions make a folder read-only here")
    try:
        with pytest.raises(OmegaError, match="cannot be written: make the folder writable or pass another --runs-dir"):
            Journal(folder)
        with pytest.raises(OmegaError, match=r"could not be written .*nothing was left behind"):
            write_bytes(folder / "x", b"1")
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", folder], check=True)

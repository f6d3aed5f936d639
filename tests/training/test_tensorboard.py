"""Event files, read back with TensorBoard's own reader."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from omegagnn import fit
from omegagnn.cli import main
from omegagnn.errors import WrongUse
from omegagnn.training.journal import METRICS, Journal
from omegagnn.training.tensorboard import TAGS, export_tensorboard

pytest.importorskip("tensorboard")


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the reader's own imports
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        reader = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        reader.Reload()
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def test_event_files_hold_every_recorded_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    ours = fit("karate", seeds=2, training__epochs=4, training__patience=None, runs_dir=runs)
    theirs = fit("karate", model__name="gcn", seeds=1, training__epochs=3, training__patience=None, runs_dir=runs)
    assert set(TAGS) == set(METRICS)
    for _ in range(2):  # the second time replaces what the first wrote
        assert (
            main(["runs", "export", str(tmp_path / "events"), "--format", "tensorboard", "--runs-dir", str(runs)]) == 0
        )
    assert sorted(path.name for path in (tmp_path / "events").iterdir()) == sorted([ours.run, theirs.run])
    capsys.readouterr()
    for result, members in ((ours, 2), (theirs, 1)):
        folders = sorted((tmp_path / "events" / result.run).iterdir())
        assert [folder.name for folder in folders] == [f"{k:03d}-seed{k}-leaders" for k in range(members)]
        for number, folder in enumerate(folders):
            assert len(list(folder.iterdir())) == 1
            found = scalars(folder)
            rows = [row for row in result.journal.epochs(result.run) if row["member"] == number]
            for column, tag in TAGS.items():
                expected = [(row["epoch"], row[column]) for row in rows if row[column] is not None]
                if not expected:
                    assert tag not in found, "a network without ω has no curve of it"
                    continue
                assert [step for step, _ in found[tag]] == [step for step, _ in expected]
                np.testing.assert_allclose([v for _, v in found[tag]], [v for _, v in expected], rtol=1e-6)


def test_one_run_alone_and_a_file_in_the_way(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for _ in range(2):
        result = fit("karate", training__epochs=1, runs_dir=runs)
    line = [
        "runs",
        "export",
        str(tmp_path / "one"),
        "--format",
        "tensorboard",
        "--run",
        "last",
        "--runs-dir",
        str(runs),
    ]
    assert main(line) == 0
    assert [path.name for path in (tmp_path / "one").iterdir()] == [result.run]
    (tmp_path / "file").touch()
    with pytest.raises(WrongUse, match="is a file: event files need a folder"):
        export_tensorboard(Journal(runs), tmp_path / "file", [result.run])


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    result = fit("karate", training__epochs=1, runs_dir=tmp_path / "runs")
    result.journal.update(result.run, config=json.dumps({"model": {"layers": "many"}}))
    with pytest.raises(WrongUse):
        export_tensorboard(result.journal, tmp_path / "events", [result.run])
    assert list((tmp_path / "events").iterdir()) == []


def test_without_the_extra_it_is_one_sentence(tmp_path: Path) -> None:
    fit("karate", training__epochs=1, runs_dir=tmp_path / "runs")
    script = "import sys; sys.modules['tensorboard'] = None; from omegagnn.cli import main; raise SystemExit(main(sys.argv[1:]))"
    line = ["runs", "export", "events", "--format", "tensorboard"]
    done = subprocess.run(
        [sys.executable, "-c", script, *line], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "omegagnn: Event files need TensorBoard: pip install 'omegagnn[tensorboard]'.\n"
    assert not (tmp_path / "events").exists()

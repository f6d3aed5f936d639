"""The planner's word on memory, held against the highest resident size of a process that trains."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import graph_dataset, node_dataset

from omegagnn.data.dataset import Dataset
from omegagnn.training.config import RunConfig
from omegagnn.training.expected import MIB, PROGRAM, describe_expected, expected_peak

CPU = torch.device("cpu")


def config(**values: Any) -> RunConfig:
    return RunConfig().with_values({key.replace("__", "."): value for key, value in values.items()})


def test_the_expected_peak_grows_with_everything_it_is_made_of() -> None:
    dataset = node_dataset()
    base = expected_peak(config(), dataset, 1, CPU)
    assert base is not None
    assert base > PROGRAM
    more = [
        config(model__channels=128),
        config(model__layers=5),
        config(model__norm="batch"),
        config(training__precision="float64"),
    ]
    peaks = [expected_peak(each, dataset, 1, CPU) for each in more] + [expected_peak(config(), dataset, 7, CPU)]
    assert all(peak is not None and peak > base for peak in peaks)


@pytest.mark.parametrize(
    ("dataset", "values"),
    [(node_dataset(), {"model__name": "gcn"}), (node_dataset(), {"training__sampler": "node"}), (graph_dataset(), {})],
)
def test_nothing_is_said_about_what_was_not_measured(dataset: Dataset, values: dict[str, Any]) -> None:
    assert expected_peak(config(**values), dataset, 1, CPU) is None


def test_only_a_peak_worth_speaking_of_is_told_and_one_beyond_what_is_free_warns() -> None:
    dataset = node_dataset()
    assert describe_expected(config(), dataset, 1, CPU, free=2**40) is None
    wide = replace(dataset, features=torch.empty(60, 2**20).expand(60, 2**20))
    told = describe_expected(config(), wide, 1, CPU, free=2**40)
    assert told is not None
    assert told.startswith("expecting a peak of about 1,")
    warned = describe_expected(config(), wide, 1, CPU, free=100 * MIB)
    assert warned is not None
    assert warned.startswith("warning: ")
    assert "need less" in warned


@pytest.mark.slow
@pytest.mark.parametrize(
    "size",
    [
        {"nodes": 1_000_000},
        {"nodes": 1_000_000, "channels": 32, "layers": 4},
        {"nodes": 500_000, "degree": 40},
        {"nodes": 600_000, "features": 64, "channels": 24},
    ],
    ids=lambda size: "-".join(f"{key}={value}" for key, value in size.items()),
)
def test_the_planner_is_right_within_15_percent(size: dict[str, int], tmp_path: Path) -> None:
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import scaling, json; from pathlib import Path; scaling.EPOCHS = 2; "
        "scaling.measure({**scaling.MIDDLE, **json.loads(sys.argv[2])}, Path(sys.argv[3]))"
    )
    import json

    words = [sys.executable, "-c", script, str(benchmarks), json.dumps(size), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout.splitlines()[-1])
    assert measured["expected_mib"] == pytest.approx(measured["peak_mib"], rel=0.15)

"""The benchmark compares like with like and writes what it measured; no time is asserted."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from omegagnn.benchmark.cases import (
    TOLERANCE,
    assert_same_outputs,
    company_case,
    large_graph,
    many_runs_case,
    omega_cost_case,
    our_batch,
    peer_cases,
    peer_inputs,
    propagation_case,
    training_cases,
)
from omegagnn.benchmark.measure import Ceilings, ceilings, fitted_exponent, peak_growth_mib, time_in_turns
from omegagnn.benchmark.peers import PygNet
from omegagnn.benchmark.picture import ratio_chart
from omegagnn.benchmark.sweeps import sweeps
from omegagnn.cli import main
from omegagnn.data import load
from omegagnn.errors import OmegaError

LIMITS = Ceilings(1e10, 1e11)


def test_steps_take_turns() -> None:
    order: list[str] = []
    times = time_in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=2, seconds=0.0)
    assert set(times) == {"a", "b"}
    assert order == ["a"] * 3 + ["b"] * 3 + ["a", "b"] * 2


def test_exponents_are_fitted() -> None:
    assert fitted_exponent([1, 2, 4, 8], [3, 12, 48, 192]) == pytest.approx(2.0)


def test_memory_growth_is_seen() -> None:
    grown = peak_growth_mib(lambda: torch.ones(2**25).sum())
    assert grown is None or 100 < grown < 300  # 128 MiB, where the system tells


def test_ceilings_are_positive() -> None:
    found = ceilings()
    assert found.bytes_per_s > 0
    assert found.flops_per_s > 0


@pytest.mark.parametrize("model", ["omega-gcn", "omega-gat"])
def test_training_cases_compare_the_same_net(model: str) -> None:
    cases = list(training_cases(load("karate"), model, 3, 1, LIMITS))
    assert [case.peer for case in cases] == (
        ["PyG GCNConv, edge_index", "PyG GCNConv, CSR"] if model == "omega-gcn" else ["PyG GATConv, edge_index"]
    )
    for case in cases:
        assert case.ratio == pytest.approx(case.peer_ms / case.ours_ms)
        assert {"name", "device", "ours_ms", "peer", "peer_ms", "ratio", "ours_mib", "peer_mib"} <= set(case.to_dict())


def test_a_peer_that_computes_something_else_is_refused() -> None:
    dataset = load("karate")
    batch = our_batch(dataset, "omega-gcn", 2)
    x, edge_index, _ = peer_inputs(dataset, batch)
    peer = PygNet(dataset.num_features, 64, 2, dataset.num_classes, "gcn", 0.5)
    before = {name: tensor.clone() for name, tensor in batch.net.state_dict().items()}
    assert_same_outputs(batch, peer, x, edge_index)
    assert all(torch.equal(tensor, before[name]) for name, tensor in batch.net.state_dict().items())
    assert TOLERANCE < 0.01
    other = PygNet(dataset.num_features, 64, 2, dataset.num_classes, "gcn", 0.5)  # the first one keeps its S
    with pytest.raises(OmegaError, match="their times say nothing"):
        assert_same_outputs(batch, other, x, edge_index[:, :40])


def test_other_cases_run() -> None:
    dataset = load("karate")
    found = [
        many_runs_case(dataset, 2, 1),
        company_case(dataset, 2, 1),
        omega_cost_case(dataset, 1),
        propagation_case(500, 5000, 16, 1, LIMITS),
    ]
    chart = ratio_chart(found)
    assert chart.startswith("<svg")
    assert chart.count("<rect") == 2  # against a peer; the other two are ours against ours
    assert all(math.isfinite(case.ratio) and case.ratio > 0 for case in found)


def test_large_graphs_have_about_the_entries_asked_for() -> None:
    graph = large_graph(2000, 30_000)
    assert 0.85 * 30_000 < graph.with_self_loops().num_edges < 1.15 * 30_000


def test_the_command_writes_what_it_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(*_: object) -> object:
        yield propagation_case(300, 2000, 8, 1, LIMITS)

    monkeypatch.setattr("omegagnn.benchmark.cases.peer_cases", few)  # all of them take minutes
    monkeypatch.setattr("omegagnn.benchmark.sweeps.sweeps", lambda *_: [])
    output, picture = tmp_path / "b.json", tmp_path / "b.svg"
    assert main(["bench", "--quick", "--output", str(output), "--picture", str(picture)]) == 0
    assert "of limit" in capsys.readouterr().out
    assert json.loads(output.read_text())["cases"][0]["name"].startswith("propagation")
    assert picture.read_text().startswith("<svg")
    assert main(["bench", "--quick", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["copy_gb_per_s"] > 0


@pytest.mark.slow
def test_everything_of_the_quick_benchmark_runs() -> None:
    told: list[str] = []
    assert len(list(peer_cases(True, None, LIMITS, told.append))) == 7
    assert len(sweeps(True, told.append)) == 5

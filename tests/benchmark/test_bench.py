"""The benchmark compares like with like and writes what it measured; no time is asserted."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from omegagnn.benchmark import cases as bench_cases
from omegagnn.benchmark import sweeps as bench_sweeps
from omegagnn.benchmark.cases import (
    Bench,
    Case,
    company_case,
    many_runs_cases,
    omega_cost_case,
    our_batch,
    propagation_case,
    quickest,
    training_cases,
)
from omegagnn.benchmark.forms import without_compiling
from omegagnn.benchmark.large import LARGE, large_dataset, large_graph
from omegagnn.benchmark.measure import Ceilings, ceilings, fitted_exponent, peak_growth_mib, time_in_turns
from omegagnn.benchmark.plans import peer_cases, plans
from omegagnn.benchmark.sweeps import sweeps
from omegagnn.benchmark.work import Work, evaluation_work, training_work
from omegagnn.cli import main
from omegagnn.data import load

LIMITS = Ceilings(1e10, 1e11)
DESIGN = {"name", "device", "ours_ms", "peer", "peer_ms", "ratio", "ours_mib", "peer_mib"}


def make_bench() -> Bench:
    return Bench(True, None, LIMITS, lambda _: None)


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
def test_training_cases_compare_the_same_net(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = bench_cases.forms
    monkeypatch.setattr(bench_cases, "forms", lambda *given: without_compiling(real(*given)))  # compiling takes long
    bench = make_bench()
    found = training_cases(bench, "a name", "karate", model, 3)
    conv = {"omega-gcn": "GCNConv", "omega-gat": "GATConv"}[model]
    forms = ["edge_index", "CSR", "edge_index, sparse features", "CSR, sparse features"]
    assert [case.peer for case in found if "DGL" not in case.peer] == [f"PyG {conv}, {form}" for form in forms]
    assert any("DGL" in case.peer for case in found) != any(entry["peer"] == "DGL" for entry in bench.left_out)
    for case in found:
        assert case.name == "a name"
        assert case.ratio == pytest.approx(case.peer_ms / case.ours_ms)
        assert case.floor_ms == pytest.approx(1e3 * (case.bytes / 1e10 + case.flops / 1e11))  # type: ignore[operator]
        assert case.fraction_of_floor == pytest.approx(case.floor_ms / case.ours_ms)  # type: ignore[operator]
        assert case.peer_fraction_of_floor == pytest.approx(case.floor_ms / case.peer_ms)  # type: ignore[operator]
        assert set(case.to_dict()) >= DESIGN


def test_other_cases_run() -> None:
    bench = make_bench()
    runs = many_runs_cases(bench, "runs", "karate", 2)
    assert len(runs) >= 4
    own = [*company_case(bench, "company", "karate", 2), *omega_cost_case(bench, "omega", "karate", 4)]
    assert [case.against_ourselves for case in own] == [True, True]
    assert own[0].peer_fraction_of_floor is None  # one run has less to do than two
    torch_csr = propagation_case(bench, "propagation", 500, 5000, 16)
    for case in [*runs, *own, *torch_csr]:
        assert math.isfinite(case.ratio)
        assert case.ratio > 0
    assert [case.name for case in quickest([*runs, *own, *torch_csr])] == ["runs", "propagation"]


def test_the_quickest_peer_of_each_comparison_is_found() -> None:
    def row(name: str, peer: str, ms: float) -> Case:
        return Case(name, "cpu", 1.0, 0.0, peer, ms, 0.0, ms)

    rows = [row("a", "x", 3.0), row("a", "y", 2.0), row("b", "x", 4.0), row("b", "ours, one run", 1.0)]
    assert [(case.name, case.peer) for case in quickest(rows)] == [("a", "y"), ("b", "x")]


def test_work_counts_bytes_and_operations() -> None:
    """Counted by hand for karate: 34 nodes, identity features (34 stored), c = 64, two layers, 156 entries and 34 loops."""
    dataset = load("karate")
    one, three = (our_batch(dataset, "omega-gcn", 2, runs) for runs in (1, 3))
    stored, n, c, entries, classes = int((dataset.features.to_dense() != 0).sum()), 34, 64, 190, dataset.num_classes
    if dataset.features.layout == torch.strided:
        stored = dataset.features.numel()
    products = 2 * 3 * 2 * n * c * c + 3 * 2 * n * c * classes + 2 * 2 * stored * c
    assert training_work(one).flops == products + 2 * 2 * 2 * entries * c
    assert training_work(one).bytes == 4 * n * c * (9 * 2 + 8) + 2 * 2 * 8 * entries + 2 * 8 * stored
    assert training_work(three).flops == 3 * training_work(one).flops
    assert training_work(three).bytes < 3 * training_work(one).bytes  # edges and features are read once for all runs
    assert evaluation_work(one).flops < training_work(one).flops / 2 + 1
    assert Work(1.0, 2.0) + Work(10.0, 20.0) == Work(11.0, 22.0)
    assert Work(1e10, 2e11).floor_ms(LIMITS) == pytest.approx(3000.0)


def test_large_graphs_have_about_the_entries_asked_for() -> None:
    graph = large_graph(2000, 30_000, torch.device("cpu"))
    assert 0.85 * 30_000 < graph.with_self_loops().num_edges < 1.15 * 30_000


def test_sizes_of_well_known_graphs_are_made_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LARGE, "arxiv-sized", (2000, 30_000, 8, 5))
    made = large_dataset("arxiv-sized", torch.device("cpu"), *LARGE["arxiv-sized"])
    assert 0.85 * 30_000 < made.graph.with_self_loops().num_edges < 1.15 * 30_000
    assert made.graph.is_undirected
    assert not made.graph.has_self_loops
    assert not made.graph.has_duplicates
    assert (made.num_nodes, made.num_features, made.num_classes) == (2000, 8, 5)
    found = training_cases(make_bench(), "large", "arxiv-sized", "omega-gcn", 2, 16, "bfloat16", compiling=False)
    assert [case.peer for case in found if "PyG" in case.peer] == ["PyG GCNConv, edge_index", "PyG GCNConv, CSR"]


def test_a_gpu_has_cases_of_its_own() -> None:
    names = list(plans(False, "cuda"))
    assert [name for name in names if "products-sized" in name]
    assert not set(plans(False)) & {name for name in names if "sized" in name}


def test_names_are_listed_without_measuring(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list"]) == 0
    names = capsys.readouterr().out.splitlines()
    assert names == [*plans(False), *bench_sweeps.plans(False)]
    assert main(["bench", "--quick", "--list", "--only", "AGAINST", "--no-sweep"]) == 0
    assert all("against" in name for name in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "nonsense"], "No case or sweep has 'nonsense' in its name"),
        (["--no-sweep", "--only", "against nodes"], "No case or sweep"),
        (["--output", "no/such/folder/b.json"], "cannot be written"),
        (["--picture", "."], "cannot be written"),
    ],
)
def test_wrong_use_is_told_before_anything_is_measured(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_command_writes_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, picture = tmp_path / "b.json", tmp_path / "b.svg"
    only = ["--quick", "--no-sweep", "--only", "propagation 10000", "--only", "against 1"]
    assert main(["bench", *only, "--output", str(output), "--picture", str(picture)]) == 0
    shown = capsys.readouterr().out
    assert "of limit" in shown
    assert "as fast as the quickest peer, torch CSR" in shown
    result = json.loads(output.read_text())
    assert result["command"] == "omegagnn bench --quick --only 'propagation 10000' --only 'against 1' --no-sweep"
    assert [case["name"].split()[0] for case in result["cases"]] == ["epoch", "propagation"]
    assert [best["peer"] for best in result["quickest_peers"]] == ["torch CSR and element-wise"]
    assert result["left_out"] == []
    assert result["sweeps"] == []
    assert picture.read_text().startswith("<svg")


def test_without_a_peer_no_picture_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "b.svg"
    assert main(["bench", "--quick", "--only", "against runs", "--picture", str(picture), "--json"]) == 0
    told = capsys.readouterr()
    assert "was not drawn" in told.err
    assert not picture.exists()
    result = json.loads(told.out)
    assert result["copy_gb_per_s"] > 0
    assert result["cases"] == result["quickest_peers"] == []
    assert [found["sizes"] for found in result["sweeps"]] == [[2, 4]]


def test_a_sweep_has_times_spreads_and_an_exponent() -> None:
    (found,) = sweeps(True, lambda _: None, lambda name: "against runs" in name)
    assert found.sizes == [2, 4]
    assert len(found.ms) == len(found.spread_ms) == 2
    assert math.isfinite(found.exponent)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler warns of its own internals
def test_everything_of_the_quick_benchmark_runs() -> None:
    bench = make_bench()
    found = list(peer_cases(bench, lambda _: True))
    assert {case.name for case in found} == set(plans(True))
    left_out = {entry["peer"] for entry in bench.left_out}
    assert left_out <= {"DGL"}  # where a C++ compiler is there, everything else runs
    assert len(sweeps(True, lambda _: None, lambda _: True)) == 5

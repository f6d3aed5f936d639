"""Peers compute what ours computes at ω = 1, in every form; where one cannot run, the reason is told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from omegagnn.benchmark.cases import our_batch
from omegagnn.benchmark.forms import TOLERANCE, Peer, assert_same_outputs, forms, peers_that_run, without_compiling
from omegagnn.benchmark.optional import NotHere, compile_net, import_dgl, one_line
from omegagnn.benchmark.peers import PygNet, evaluation, training_step
from omegagnn.data import load
from omegagnn.errors import OmegaError
from omegagnn.training.batch import RunBatch

KARATE = load("karate")


def batch_of(model: str, layers: int = 2) -> RunBatch:
    return our_batch(KARATE, model, layers)


def edges_of(batch: RunBatch) -> tuple[torch.Tensor, torch.Tensor]:
    features: Any = batch.task.features
    x = features if isinstance(features, torch.Tensor) else features.to_dense()
    return x, batch.task.graph.to_edge_index()[0]


def test_a_peer_that_computes_something_else_is_refused() -> None:
    batch = batch_of("omega-gcn")
    x, edge_index = edges_of(batch)
    sizes = (KARATE.num_features, 64, 2, KARATE.num_classes, "gcn")
    before = {name: tensor.clone() for name, tensor in batch.net.state_dict().items()}
    peer = Peer("the same", PygNet(*sizes), x, edge_index)
    assert_same_outputs(batch, peer)
    assert peer.net.dropout == 0.5
    assert all(torch.equal(tensor, before[name]) for name, tensor in batch.net.state_dict().items())
    assert TOLERANCE < 0.01
    with pytest.raises(OmegaError, match=r"half a graph differ by .* their times say nothing"):
        assert_same_outputs(batch, Peer("half a graph", PygNet(*sizes), x, edge_index[:, :40]))


@pytest.mark.parametrize("model", ["omega-gcn", "omega-gat"])
def test_every_form_trains_and_measures(model: str) -> None:
    batch, told = batch_of(model), []
    found = list(peers_that_run(without_compiling(forms(KARATE, batch)), batch, lambda *entry: told.append(entry)))
    assert len(found) + len(told) == 5
    assert all(name == "DGL" for name, _ in told)
    split = KARATE.splits[0]
    for peer in found:
        before = peer.net.closing.weight.clone()
        training_step(peer.net, peer.x, peer.edges, KARATE.labels, split.train)()
        assert not torch.equal(before, peer.net.closing.weight)
        parts = [split.train, split.val, split.test]
        measured: Any = evaluation(peer.net, peer.x, peer.edges, KARATE.labels, parts)()
        assert all(0 <= hits <= 1 for hits in measured[:3])


def test_dropout_of_sparse_features_is_dropout_of_the_dense_ones() -> None:
    torch.manual_seed(0)
    net = PygNet(30, 8, 1, 2, "gcn").train()
    x = (torch.rand(400, 30) < 0.2).float()
    dropped = net._drop_features(x.to_sparse_csr()).to_dense()
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert bool((dropped[x == 0] == 0).all())
    assert float((dropped[x == 1] == 0).float().mean()) == pytest.approx(0.5, abs=0.05)
    assert torch.equal(net.eval()._drop_features(x.to_sparse_csr()).to_dense(), x)


def test_a_missing_dgl_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dgl", None)
    with pytest.raises(NotHere, match=r"^not importable, left out: ModuleNotFoundError: "):
        import_dgl()
    batch, told = batch_of("omega-gcn"), []
    dgl = {label: make for label, make in forms(KARATE, batch).items() if label.startswith("DGL")}
    assert list(peers_that_run(dgl, batch, lambda *entry: told.append(entry))) == []
    assert [name for name, _ in told] == ["DGL"]


@pytest.fixture
def broken_dgl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package `dgl` that fails at import, as one built for another torch does."""
    (tmp_path / "dgl").mkdir()
    (tmp_path / "dgl" / "__init__.py").write_text("raise OSError('libtorch.so: cannot open\\nmore')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "dgl"]:
        monkeypatch.delitem(sys.modules, name)
    yield
    sys.modules.pop("dgl", None)


@pytest.mark.usefixtures("broken_dgl")
def test_a_dgl_that_fails_at_import_is_told_in_one_line() -> None:
    with pytest.raises(NotHere) as caught:
        import_dgl()
    assert str(caught.value) == "not importable, left out: OSError: libtorch.so: cannot open"


def test_a_peer_that_imports_and_then_fails_is_told() -> None:
    def fails() -> Peer:
        raise RuntimeError

    told: list[tuple[str, str]] = []
    assert list(peers_that_run({"DGL X": fails}, batch_of("omega-gcn"), lambda *entry: told.append(entry))) == []
    assert told == [("DGL", "does not run, left out: RuntimeError")]
    assert one_line(ValueError("first\nsecond")) == "ValueError: first"


def test_without_a_compiler_compilation_is_left_out_with_the_reason() -> None:
    import torch._inductor.config as inductor

    batch = batch_of("omega-gcn", 1)
    x, edge_index = edges_of(batch)
    with (
        inductor.patch({"cpp.cxx": ("no-such-compiler",)}),
        pytest.raises(NotHere, match=r"^does not compile, left out: "),
    ):
        compile_net(PygNet(KARATE.num_features, 64, 1, KARATE.num_classes, "gcn"), x, edge_index)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler warns of its own internals
@pytest.mark.parametrize("model", ["omega-gcn", "omega-gat"])
def test_a_compiled_peer_computes_the_same(model: str) -> None:
    batch, told = batch_of(model), []
    compiled = {label: make for label, make in forms(KARATE, batch).items() if "torch.compile" in label}
    found = list(peers_that_run(compiled, batch, lambda *entry: told.append(entry)))  # outputs are compared on the way
    assert told == []
    (peer,) = found
    assert peer.compile_s is not None
    assert peer.compile_s > 0


@pytest.mark.parametrize("model", ["omega-gcn", "omega-gat"])
def test_dgl_computes_the_same_where_it_is_installed(model: str) -> None:
    try:
        import_dgl()
    except NotHere as reason:
        pytest.skip(f"DGL: {reason}")
    batch, told = batch_of(model, 5), []
    dgl = {label: make for label, make in forms(KARATE, batch).items() if label.startswith("DGL")}
    (peer,) = peers_that_run(dgl, batch, lambda *entry: told.append(entry))  # outputs are compared on the way
    assert told == []
    assert type(peer.net).__name__ == "DglNet"

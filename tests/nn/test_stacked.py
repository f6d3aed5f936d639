"""`StackedRuns`: R runs of any model as one network, each run the same to the bit in any company."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from omegagnn.graph import Graph
from omegagnn.nn.baselines import BASELINES, Baseline, baseline
from omegagnn.nn.model import OmegaNet
from omegagnn.nn.stacked import StackedRuns
from omegagnn.ops import Draws, SparseFeatures

N, F, OUT = 50, 13, 5
SEEDS = torch.tensor([3, 1, 4, 1 << 40, 5])
CASES = [(name, task) for name in BASELINES for task in ("node", "graph")]
CASES = [case for case in CASES if case not in (("linkx", "graph"), ("supergat", "graph"))]

# Bits: run one by one (the choice on a CPU), every model below gives each run the bits of a single model, forward, backward
# and in its running moments, and the test asks for that. Under vmap on a CPU most models differ from them by one or two
# units in the last place (products over R · c columns, sums in another order): compared within rounding, in float64.
vmap_falls_back = pytest.mark.filterwarnings("ignore:There is a performance drop because we have not yet implemented")


def some_graph() -> Graph:
    generator = torch.Generator().manual_seed(7)
    pairs = torch.randint(0, N, (2, 120), generator=generator)
    return Graph.from_edge_index(torch.cat([pairs, pairs.flip(0)], dim=1), N)


def maker(name: str, task: str = "node", **options: Any) -> Callable[[], Baseline]:
    options = {"dropout": 0.5, "task": task, **options}
    if name == "linkx":
        options["num_nodes"] = N
    return partial(baseline, name, F, 8, 3, OUT, **options)


def trained_pass(net: nn.Module, seeds: Tensor, task: str, x: Tensor | SparseFeatures) -> Tensor:
    batch = torch.arange(N) // 10 if task == "graph" else None
    out = net(x, some_graph(), batch=batch, draws=Draws(seeds, 7))
    loss = out.square().sum()
    extra = net.auxiliary_loss()
    (loss if extra is None else loss + extra.sum()).backward()
    return out


def compare(
    stack: StackedRuns,
    make: Callable[[], Baseline],
    task: str,
    same: Callable[[Tensor, Tensor], None],
    dtype: torch.dtype = torch.float32,
) -> None:
    stack, x = stack.to(dtype), torch.randn(N, F, dtype=dtype)
    out = trained_pass(stack, SEEDS, task, x)
    assert out.shape == (5 if task == "graph" else N, SEEDS.numel(), OUT)
    for run in range(SEEDS.numel()):
        single = make()
        single.reset_parameters(SEEDS[run : run + 1])
        single.to(dtype)
        same(trained_pass(single, SEEDS[run : run + 1], task, x), out[:, run])
        for one, many in zip(single.parameters(), stack.parameters(), strict=True):
            assert torch.equal(one, many[run])
            assert (one.grad is None) == (many.grad is None)
            if one.grad is not None:
                same(one.grad, many.grad[run])
        for one, many in zip(single.buffers(), stack.buffers(), strict=True):
            same(one, many[run])


def same_bits(one: Tensor, other: Tensor) -> None:
    assert torch.equal(one, other)


@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_run_has_the_bits_of_a_single_model(name: str, task: str) -> None:
    make = maker(name, task)
    compare(StackedRuns(make, SEEDS), make, task, same_bits)


@vmap_falls_back
@pytest.mark.parametrize(("name", "task"), [case for case in CASES if case[0] != "supergat"])
def test_vectorised_runs_agree_within_rounding(name: str, task: str) -> None:
    make = maker(name, task)
    close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-9)
    compare(StackedRuns(make, SEEDS, vectorise=True), make, task, close, torch.float64)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gcn", {"drop_edge": 0.4, "norm": "pair"}),
        ("gat", {"attention_dropout": 0.6, "heads": 4, "norm": "batch"}),
        ("gatv2", {"attention_dropout": 0.6, "heads": 2, "drop_edge": 0.2}),
        ("gcnii", {"norm": "layer", "layer_dropout": 0.3}),
        ("supergat", {"heads": 2}),
    ],
)
def test_options_keep_the_bits(name: str, options: dict[str, Any]) -> None:
    make = maker(name, **options)
    compare(StackedRuns(make, SEEDS), make, "node", same_bits)


@pytest.mark.parametrize("name", ["gat", "gatv2"])
def test_vectorised_runs_drop_attention_as_single_models_do(name: str) -> None:
    make = maker(name, attention_dropout=0.6, heads=4, norm="pair")
    close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-9)
    compare(StackedRuns(make, SEEDS, vectorise=True), make, "node", close, torch.float64)


@pytest.mark.parametrize("name", ["gcn", "gat", "gin", "linkx"])
def test_training_in_any_company_leaves_the_same_bits(name: str) -> None:
    x, graph, labels = torch.randn(N, F), some_graph(), torch.randint(0, OUT, (N,))

    def trained(seeds: Tensor) -> StackedRuns:
        net = StackedRuns(maker(name), seeds)
        optimiser = torch.optim.Adam(net.param_groups(lr_gnn=0.02, wd_gnn=1e-3))
        for step in range(5):
            optimiser.zero_grad()
            out = net(x, graph, draws=Draws(seeds, step))
            sum(nn.functional.cross_entropy(out[:, run], labels) for run in range(net.runs)).backward()
            optimiser.step()
        return net.eval()

    together = trained(SEEDS)
    outputs = together(x, graph)
    for place in (0, 3):
        alone = trained(SEEDS[place : place + 1])
        assert torch.equal(alone(x, graph)[:, 0], outputs[:, place])
        for one, many in zip(alone.state_dict().values(), together.state_dict().values(), strict=True):
            assert torch.equal(one[0], many[place])


def test_sparse_features_and_features_a_run() -> None:
    net = StackedRuns(maker("gcn"), SEEDS)
    x = torch.randn(N, F) * (torch.rand(N, F) < 0.2)
    graph = some_graph()
    sparse = [x.to_sparse_csr(), x.to_sparse_coo(), SparseFeatures(x.to_sparse_csr())]
    outputs = [net(form, graph, draws=Draws(SEEDS, 2)) for form in sparse]
    assert torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], outputs[2])
    net.eval()
    torch.testing.assert_close(net(x, graph), net(sparse[0], graph))
    each = torch.randn(N, SEEDS.numel(), F)
    out = net(each, graph)
    for run in range(net.runs):
        assert torch.equal(out[:, run], net.extract(run)(each[:, run].contiguous(), graph))
    mapped = StackedRuns(maker("gcn"), SEEDS, vectorise=True).eval()
    mapped.load_state_dict(net.state_dict())
    torch.testing.assert_close(mapped(each, graph), out, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(mapped(sparse[2], graph), net(sparse[2], graph), atol=1e-6, rtol=1e-5)


@vmap_falls_back
@pytest.mark.parametrize("vectorise", [None, True])
def test_extract_gives_a_plain_model_with_its_moments(vectorise: bool | None) -> None:
    net = StackedRuns(maker("gin"), SEEDS, vectorise=vectorise)
    x, graph = torch.randn(N, F), some_graph()
    for step in range(3):
        net(x, graph, draws=Draws(SEEDS, step))
    single = net.eval().extract(2)
    assert isinstance(single, BASELINES["gin"])
    assert not single.training
    assert not torch.equal(single.norms[0].running_mean, torch.zeros(8))
    torch.testing.assert_close(single(x, graph), net(x, graph)[:, 2])
    with torch.no_grad():
        for parameter in single.parameters():
            parameter.zero_()
    assert all(bool((parameter != 0).any()) for parameter in net.model.convs.parameters() if parameter.dim() > 2)


def test_omega_net_stacked_is_omega_net_with_runs() -> None:
    arguments = {"in_channels": F, "hidden_channels": 8, "num_layers": 3, "out_channels": OUT, "dropout": 0.5}
    stack = StackedRuns(lambda: OmegaNet(**arguments, omega="channel"), SEEDS)
    native = OmegaNet(**arguments, omega="channel", runs=SEEDS.numel())
    native.reset_parameters(SEEDS)
    x, graph = torch.randn(N, F), some_graph()
    torch.testing.assert_close(
        stack(x, graph, draws=Draws(SEEDS, 4)), native(x, graph, draws=Draws(SEEDS, 4)), atol=1e-6, rtol=1e-5
    )
    groups, native_groups = stack.grouped_parameters(), native.grouped_parameters()
    for name, parameters in groups.items():
        assert [parameter.shape for parameter in parameters] == [other.shape for other in native_groups[name]]


def test_groups_shapes_and_forward_arguments_are_omega_nets() -> None:
    net = StackedRuns(maker("gcnii"), SEEDS)
    groups = net.grouped_parameters()
    assert list(groups) == ["gnn", "oc", "omega"]
    assert [parameter.shape for parameter in groups["gnn"]] == [(5, 8, 8)] * 3
    assert [parameter.shape for parameter in groups["oc"]] == [(5, F, 8), (5, 8), (5, 8, OUT), (5, OUT)]
    assert groups["omega"] == []
    assert net.omega.shape == (0, 5, 1)
    assert [group["name"] for group in net.param_groups()] == ["gnn", "oc"]
    assert net.runs == 5
    assert repr(net).startswith("StackedRuns(\n  runs=5\n  (model): GCNII(")
    edge_index, _ = some_graph().to_edge_index()
    x, weight = torch.randn(N, F), torch.rand(edge_index.size(1))
    net.eval()
    expected = net(x, Graph.from_edge_index(edge_index, N, weight))
    assert torch.equal(net(x, edge_index, weight), expected)
    assert torch.equal(net(x, Graph.from_edge_index(edge_index, N, weight).to_torch_sparse()), expected)


def test_reset_and_torch_generator() -> None:
    net = StackedRuns(maker("gat", heads=2), SEEDS)
    before = copy.deepcopy(net.state_dict())
    torch.manual_seed(11)
    state = torch.get_rng_state()
    net.reset_parameters(SEEDS.flip(0))
    assert torch.equal(torch.get_rng_state(), state)  # seeds leave torch's generator alone
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name].flip(0))
    net.reset_parameters()
    first = net.model.opening.weight.detach().clone()
    torch.manual_seed(11)
    net.reset_parameters()
    assert torch.equal(net.model.opening.weight, first)
    x = torch.randn(N, F)
    torch.manual_seed(12)
    drawn = net(x, some_graph())
    torch.manual_seed(12)
    assert torch.equal(net(x, some_graph()), drawn)
    assert not torch.equal(net(x, some_graph()), drawn)


def test_auxiliary_loss_is_one_number_a_run_and_given_once() -> None:
    net = StackedRuns(maker("supergat", heads=2), SEEDS)
    net(torch.randn(N, F), some_graph(), draws=Draws(SEEDS, 1))
    copy.deepcopy(net)  # the loss of a pass does not stand in the way of a copy
    loss = net.auxiliary_loss()
    assert loss is not None
    assert loss.shape == (5,)
    assert bool((loss > 0).all())
    assert net.auxiliary_loss() is None
    loss.sum().backward()
    assert all(bool((conv.lin.weight.grad != 0).any(-1).any(-1).all()) for conv in net.model.convs)


def test_misuse() -> None:
    with pytest.raises(ValueError, match="give in_channels"):
        StackedRuns(partial(baseline, "gcn", -1, 8, 2, 3), SEEDS)
    with pytest.raises(ValueError, match=r"R of at least 1, but their shape is \(0,\)"):
        StackedRuns(maker("gcn"), torch.tensor([], dtype=torch.long))
    with pytest.raises(ValueError, match="GCN cannot be vectorised with these options"):
        StackedRuns(maker("gcn", drop_edge=0.1), SEEDS, vectorise=True)
    with pytest.raises(ValueError, match="SuperGAT cannot be vectorised"):
        StackedRuns(maker("supergat"), SEEDS, vectorise=True)
    with pytest.raises(ValueError, match="x has 2 runs but the network has 5"):
        StackedRuns(maker("gcn"), SEEDS)(torch.randn(N, 2, F), some_graph())

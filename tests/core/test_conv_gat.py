"""`OmegaGATConv` is the paper's formula head by head, and PyG's `GATConv` at ω = 1 and K = W."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from assertions import (
    BACKENDS,
    assert_close,
    assert_matches_dense,
    assert_permutation_equivariant,
    assert_same_bits,
    perturb,
)
from dense import attention_step
from graphs import Example, fixed_graphs, graphs, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call
from torch_geometric.nn import GATConv

from omegagnn import Graph, OmegaGATConv
from omegagnn.nn.runs import run_matmul
from omegagnn.ops import Draws
from omegagnn.ops.random import drop_threshold, uniform

FEW = settings(max_examples=25, deadline=None)
EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(
    example=graphs(weighted=False),
    heads=st.sampled_from([1, 2, 4]),
    omega=st.sampled_from(["channel", "layer", 0.4]),
    bias=st.booleans(),
    transform=st.booleans(),
    loops=st.booleans(),
    p=st.sampled_from([0.0, 0.5]),
)
def test_the_layer_is_the_papers_formula(
    backend: str, example: Example, heads: int, omega: Any, bias: bool, transform: bool, loops: bool, p: float
) -> None:
    n, channels = example.num_nodes, 4
    graph = example.graph.with_self_loops() if loops else example.graph
    conv = OmegaGATConv(
        channels, 3, heads=heads, omega=omega, bias=bias, transform=transform, add_self_loops=loops, dropout=p
    ).double()
    perturb(conv)
    names = [name for name, _ in conv.named_parameters()]
    key = Draws(torch.tensor([example.seed])).key(2)
    kept = uniform(key, graph.num_edges * heads, torch.float64)[0] >= drop_threshold(p) / 2**24
    mask = kept.view(-1, heads).double() / (1 - p)

    def dense(x: Tensor, *values: Tensor) -> Tensor:
        named = dict(zip(names, values, strict=True))
        seen = (x @ named["att_weight"] if transform else x).unflatten(1, (heads, -1))
        scores = [(seen * named[name]).sum(2) for name in ("att_dst", "att_src")]
        z = attention_step(x, *scores, graph.row, graph.col, named.get("omega_weight.value", 0.4), mask=mask)
        return z @ named["weight"] + named.get("bias", 0)

    def layer(x: Tensor, *values: Tensor) -> Tensor:
        return functional_call(conv, dict(zip(names, values, strict=True)), (x, example.edge_index), {"key": key})

    if omega == 0.4:
        conv.omega.data = torch.tensor(0.4, dtype=torch.float64)
    assert_matches_dense(layer, dense, [example.randn(n, channels), *(p.detach() for p in conv.parameters())], backend)


def blocks(weight: Tensor, heads: int) -> Tensor:
    """Return the weight with everything off its diagonal blocks, one a head, set to zero."""
    return torch.block_diag(*[b.chunk(heads, 0)[h] for h, b in enumerate(weight.chunk(heads, 1))])


@pytest.mark.parametrize("heads", [1, 8])
@FEW
@given(example=graphs(weighted=False), loops=st.booleans())
def test_at_omega_one_it_is_pygs_gatconv(heads: int, example: Example, loops: bool) -> None:
    channels = 16
    theirs = GATConv(channels, channels // heads, heads=heads, bias=False, add_self_loops=loops).double()
    block = blocks(theirs.lin.weight.detach().t(), heads)
    with torch.no_grad():
        theirs.lin.weight.copy_(block.t())
    ours = OmegaGATConv(channels, channels, heads=heads, add_self_loops=loops).double()
    state = {"weight": block, "att_weight": block, "att_dst": theirs.att_dst[0], "att_src": theirs.att_src[0]}
    ours.load_state_dict({**ours.state_dict(), **state})
    x = example.randn(example.num_nodes, channels)
    expected = theirs(x, example.edge_index)
    if not loops:  # a node without senders: PyG's sum over nothing is 0, and so is ours at ω = 1
        assert_close(ours(x, example.graph), expected)
    assert_close(ours(x, example.edge_index), expected)


@FEW
@given(example=graphs(weighted=False), heads=st.sampled_from([1, 2]))
def test_at_omega_zero_it_is_a_1x1_convolution_exactly(example: Example, heads: int) -> None:
    conv = OmegaGATConv(4, 3, heads=heads, omega=0.0)
    x = example.randn(example.num_nodes, 4).float()
    assert_same_bits(
        conv(x, example.edge_index), run_matmul(x, conv.weight)
    )  # `mm` rounds otherwise on some processors


@FEW
@given(example=graphs(weighted=False), heads=st.sampled_from([1, 2]))
def test_it_is_equivariant(example: Example, heads: int) -> None:
    conv = OmegaGATConv(4, 3, heads=heads).double()
    perturb(conv)
    assert_permutation_equivariant(
        lambda x, index, _: conv(x, index), example.randn(example.num_nodes, 4), example.edge_index
    )


def test_every_input_kind_gives_the_same_bits() -> None:
    conv, x = OmegaGATConv(3, 2), torch.randn(3, 3)
    graph = Graph.from_edge_index(EDGES, 3)
    matrix = graph.to_dense()
    expected = conv(x, EDGES)
    for form in (graph, graph.with_self_loops(), matrix.to_sparse_coo(), matrix.to_sparse_csr(), EDGES.int()):
        assert_same_bits(conv(x, form), expected)
    assert_same_bits(conv(x=x, edge_index=EDGES), expected)


@pytest.mark.parametrize("transform", [True, False])
def test_runs_stand_for_themselves(transform: bool) -> None:
    conv = OmegaGATConv(6, 3, heads=3, runs=4, bias=True, dropout=0.4, transform=transform)
    perturb(conv)
    graph, x, keys = random_graph(9, 30), torch.randn(9, 4, 6), Draws(torch.arange(4)).key(0)
    together = conv(x, graph, key=keys)
    for run in range(4):
        one = OmegaGATConv(6, 3, heads=3, bias=True, dropout=0.4, transform=transform)
        one.load_state_dict({name: value[run] for name, value in conv.state_dict().items()})
        assert_same_bits(one(x[:, run], graph, key=keys[run : run + 1]), together[:, run])
    assert_same_bits(conv(x[:, 0], graph, key=keys)[:, 0], together[:, 0], "features that all runs share")


def test_dropout_follows_torchs_seed_in_training_only() -> None:
    conv, x, graph = OmegaGATConv(4, 4, dropout=0.5), torch.randn(9, 4), random_graph(9, 30)

    def seeded(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return conv(x, graph)

    assert_same_bits(seeded(1), seeded(1))
    assert not torch.equal(seeded(1), seeded(2))
    assert OmegaGATConv(4, 4, dropout=0.5)(torch.randn(9, 3, 4), graph).shape == (9, 3, 4)
    conv.eval()
    assert_same_bits(seeded(1), seeded(2))


def test_the_start_is_the_paper_s() -> None:
    conv = OmegaGATConv(8, 8, heads=2)
    assert_same_bits(conv.weight.detach(), torch.eye(8))
    assert_same_bits(conv.omega.detach(), torch.ones(8))
    assert conv.att_dst.shape == conv.att_src.shape == (2, 4)
    assert not torch.equal(conv.att_dst, conv.att_src)
    assert not torch.equal(conv.att_weight.flatten()[:8].abs(), conv.att_dst.flatten().abs())
    assert OmegaGATConv(8, 8, transform=False).att_weight is None


def test_rows_of_attention_sum_to_one() -> None:
    for example in fixed_graphs():
        conv = OmegaGATConv(4, 4, heads=2).double()
        ones = torch.ones(example.num_nodes, 4, dtype=torch.float64)
        assert_close(conv(ones, example.edge_index), ones)


def test_it_says_what_it_is() -> None:
    omega = "  (omega_weight): OmegaWeight(8 channels, init=1)\n"
    assert repr(OmegaGATConv(8, 3, heads=4)) == f"OmegaGATConv(\n  8, 3, heads=4\n{omega})"
    bare = OmegaGATConv(8, 3, transform=False)
    assert repr(bare) == f"OmegaGATConv(\n  8, 3, heads=1, transform=False\n{omega})"


MISTAKES: list[tuple[str, Any, str]] = [
    (
        "heads",
        lambda: OmegaGATConv(7, 3, heads=2),
        "7 input channels cannot be split evenly over 2 heads: change one of them.",
    ),
    (
        "heads of a lazy layer",
        lambda: OmegaGATConv(-1, 3, heads=2)(torch.ones(3, 5), EDGES),
        "5 input channels cannot be split evenly over 2 heads: change one of them.",
    ),
    ("no heads", lambda: OmegaGATConv(7, 3, heads=0), "heads must be at least 1, not 0."),
    ("dropout", lambda: OmegaGATConv(7, 3, dropout=1.0), "dropout must be at least 0 and below 1, not 1.0."),
    (
        "edge_weight",
        lambda: OmegaGATConv(3, 3)(torch.ones(3, 3), EDGES, torch.ones(4)),
        "OmegaGATConv takes no edge_weight: attention weighs the edges; use OmegaGCNConv instead.",
    ),
    (
        "weighted graph",
        lambda: OmegaGATConv(3, 3)(torch.ones(3, 3), Graph.from_edge_index(EDGES, 3, torch.rand(4))),
        "Attention has no place for edge weights: pass graph.unweighted(), or use OmegaGCNConv to use the weights.",
    ),
    (
        "key",
        lambda: OmegaGATConv(3, 3, dropout=0.5)(torch.ones(3, 3), EDGES, key=torch.ones(2, 2, dtype=torch.long)),
        "The key has shape (2, 2), but 1 runs need [1, 2].",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the sentence is compared below
        call()
    assert str(caught.value) == sentence

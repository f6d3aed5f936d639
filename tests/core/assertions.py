"""What layers and ops of this package promise, as assertions that any test can use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from omegagnn import Graph, OmegaNet
from omegagnn.ops import Draws, use_backend

BACKENDS = ("reference", "fused")
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def assert_close(actual: Tensor, expected: Tensor, what: str = "") -> None:
    """Assert equality to 1e-12 in float64 and 1e-5 in float32, relative to the largest number (at least 1)."""
    assert actual.shape == expected.shape, (what, actual.shape, expected.shape)
    if not actual.numel():
        return
    actual, expected = actual.detach(), expected.detach()
    tolerance = TOLERANCE[actual.dtype]
    scale = max(1.0, float(expected.abs().max()))
    error = float((actual.double() - expected.double()).abs().max())
    assert error <= tolerance * scale, f"{what}: off by {error:.3e} at scale {scale:.3g} in {actual.dtype}"


def assert_same_bits(actual: Tensor, expected: Tensor, what: str = "") -> None:
    assert actual.shape == expected.shape, (what, actual.shape, expected.shape)
    assert torch.equal(actual, expected), f"{what}: off by {float((actual - expected).abs().max()):.3e}"


def assert_matches_dense(
    op: Callable[..., Tensor], dense: Callable[..., Tensor], inputs: Sequence[Tensor], backend: str = "fused"
) -> None:
    """Assert that an op on float64 and float32 inputs equals its dense float64 formula, with all gradients."""
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    expected = dense(*exact)
    pull = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected_grads = torch.autograd.grad(expected, exact, pull, materialize_grads=True)
    for dtype in TOLERANCE:
        leaves = [tensor.detach().to(dtype).requires_grad_() for tensor in inputs]
        with use_backend(backend):
            actual = op(*leaves)
            grads = torch.autograd.grad(actual, leaves, pull.to(dtype), materialize_grads=True)
        assert_close(actual, expected, "forward")
        for place, (grad, expected_grad) in enumerate(zip(grads, expected_grads, strict=True)):
            assert_close(grad, expected_grad, f"gradient of input {place}")


def assert_permutation_equivariant(
    layer: Callable[[Tensor, Tensor, Tensor | None], Tensor],
    x: Tensor,
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
) -> None:
    """Assert that renaming the nodes renames the rows of the result, whatever the order of the edges."""
    nodes = torch.randperm(x.size(0))
    edges = torch.randperm(edge_index.size(1))
    renamed = torch.empty_like(x)
    renamed[nodes] = x
    weight = None if edge_weight is None else edge_weight[edges]
    expected = layer(x, edge_index, edge_weight)
    actual = layer(renamed, nodes[edge_index][:, edges], weight)
    assert_close(actual[nodes], expected, "permutation")


def perturb(module: nn.Module) -> None:
    """Move all parameters off their start, where ω = 1 and K = I hide mistakes."""
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_((0.3 * noise).to(parameter.dtype))


def single_run(net: OmegaNet, options: dict[str, Any], run: int, runs: int | None) -> OmegaNet:
    """Return a net for run `run` of a net on the run axis, with ``runs=1`` or without the axis."""
    one = OmegaNet(**options, runs=runs)
    shapes = {name: value.shape for name, value in one.state_dict().items()}
    one.load_state_dict({name: value[run].clone().reshape(shapes[name]) for name, value in net.state_dict().items()})
    return one


def assert_runs_equal_single_runs(
    options: dict[str, Any], x: Any, graph: Graph, runs: int, batch: Tensor | None = None
) -> None:
    """Assert that R runs give bit for bit what each gives alone: outputs, all gradients, running moments."""
    num_graphs = None if batch is None else int(batch.max()) + 1
    net = OmegaNet(**options, runs=runs)
    perturb(net)
    seeds = torch.randint(2**40, (runs,))
    start = {name: value.clone() for name, value in net.state_dict().items()}
    together = net(x, graph, batch=batch, num_graphs=num_graphs, draws=Draws(seeds, step=3))
    pull = torch.randn_like(together)
    together.backward(pull)
    after = {name: value.clone() for name, value in net.state_dict().items()}
    grads = {name: parameter.grad for name, parameter in net.named_parameters()}
    net.load_state_dict(start)
    for run in range(runs):
        for kind in (1, None):
            one = single_run(net, options, run, kind)
            mine = x[:, run : run + 1] if isinstance(x, Tensor) and x.dim() == 3 else x
            mine = mine[:, 0] if kind is None and mine is not x else mine
            alone = one(mine, graph, batch=batch, num_graphs=num_graphs, draws=Draws(seeds[run : run + 1], step=3))
            alone.backward(pull[:, run].reshape(alone.shape))
            where = f"run {run} of {runs} against runs={kind}"
            assert_same_bits(alone.reshape(together[:, run].shape), together[:, run], where)
            for name, parameter in one.named_parameters():
                expected = grads[name]
                assert expected is not None, name
                assert parameter.grad is not None, name
                assert_same_bits(parameter.grad.reshape(expected[run].shape), expected[run], f"{where}: {name}")
            for name, value in one.named_buffers():
                assert_same_bits(value.reshape(after[name][run].shape), after[name][run], f"{where}: {name}")

r"""The impulse response of a propagation: where one unit of one node has gone after some steps."""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.analysis.spectrum import float64_graph
from omegagnn.graph import Graph
from omegagnn.ops import omega_propagate


def impulse_response(
    graph: Graph, node: int, omega: Tensor | float, steps: int = 1, add_self_loops: bool = True
) -> Tensor:
    r"""Return :math:`P_ω^{\mathrm{steps}} e_{\mathrm{node}}`, the column of ``node``, in float64.

    A smoothing operator spreads the unit with positive weights; beyond ω = 1 + 1/d or below 0 the node and its
    surroundings take opposite signs.

    Args:
        graph: the graph (normalised here) or its operator S.
        node: the node that starts at 1; all others start at 0.
        omega: a number, or one for each channel, ``[c]``.
        steps: how many propagations.
        add_self_loops: as in the ``gcn_norm`` of the layers.

    Returns:
        ``[n]``, or ``[n, c]`` for an ω for each channel.

    >>> impulse_response(Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), num_nodes=2), node=0, omega=1.0)
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    if not 0 <= node < graph.num_nodes:
        raise ValueError(f"node is {node}, but nodes are numbered 0 to {graph.num_nodes - 1}: choose one of them.")
    if steps < 0:
        raise ValueError(f"steps is {steps}: it must be at least 0.")
    operator = float64_graph(graph).gcn_norm(add_self_loops)
    vector = torch.as_tensor(omega, dtype=torch.float64, device="cpu").detach()
    if vector.dim() > 1:
        raise ValueError(f"omega must be a number or have shape [c], but its shape is {tuple(vector.shape)}.")
    response = torch.zeros(graph.num_nodes, max(1, vector.numel()), dtype=torch.float64)
    response[node] = 1
    for _ in range(steps):
        response = omega_propagate(response, operator, vector)
    return response if vector.dim() else response.squeeze(-1)


__all__ = ["impulse_response"]

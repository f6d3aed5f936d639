"""The formulas in dense float64 algebra, written from the paper edge by edge and without a line of the package."""

from __future__ import annotations

import torch
from torch import Tensor


def adjacency(edge_index: Tensor, n: int, weight: Tensor | None) -> Tensor:
    """Return A with row i, column j for the edge j → i; duplicates are summed."""
    values = torch.ones(edge_index.size(1), dtype=torch.float64) if weight is None else weight
    matrix = torch.zeros(n, n, dtype=torch.float64)
    return matrix.index_put((edge_index[1], edge_index[0]), values, accumulate=True)


def with_loops(edge_index: Tensor, n: int, weight: Tensor | None) -> Tensor:
    """Return Ã: the off-diagonal of A, and on the diagonal the last self-loop's weight or else 1."""
    values = torch.ones(edge_index.size(1), dtype=torch.float64) if weight is None else weight
    diagonal = [torch.tensor(1.0, dtype=torch.float64) for _ in range(n)]
    for e, (j, i) in enumerate(edge_index.t().tolist()):
        if i == j:
            diagonal[i] = values[e]
    keep = edge_index[0] != edge_index[1]
    off = adjacency(edge_index[:, keep], n, values[keep])
    return off + (torch.diag(torch.stack(diagonal)) if n else off)


def gcn_operator(edge_index: Tensor, n: int, weight: Tensor | None, loops: bool = True) -> Tensor:
    r"""Return :math:`\tilde D^{-1/2} \tilde A \tilde D^{-1/2}`."""
    matrix = with_loops(edge_index, n, weight) if loops else adjacency(edge_index, n, weight)
    degree = matrix.sum(1)
    scale = torch.where(degree > 0, degree, 1).pow(-0.5) * (degree > 0)
    return torch.diag(scale) @ matrix @ torch.diag(scale)


def row_operator(edge_index: Tensor, n: int, weight: Tensor | None, loops: bool = True) -> Tensor:
    r"""Return :math:`\tilde D^{-1} \tilde A`."""
    matrix = with_loops(edge_index, n, weight) if loops else adjacency(edge_index, n, weight)
    degree = matrix.sum(1, keepdim=True)
    return matrix / torch.where(degree > 0, degree, 1)


def omega_step(x: Tensor, operator: Tensor, omega: Tensor | float) -> Tensor:
    """Return x − ω ⊙ (x − S x) for ``[n, c]`` or run by run for ``[n, R, c]``."""
    return x - omega * (x - torch.einsum("ij,j...->i...", operator, x))


def attention_operator(
    rows: Tensor, cols: Tensor, dst: Tensor, src: Tensor, slope: float, mask: Tensor | None = None
) -> Tensor:
    """Return Ŝ of one head from scores ``[n]`` and entries (row, col), each with its dropout factor; entries add up."""
    n = dst.numel()
    operator = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        entries = (rows == i).nonzero().flatten()
        if not entries.numel():
            continue
        logits = torch.stack([dst[i] + src[j] for j in cols[entries].tolist()])
        logits = torch.where(logits > 0, logits, slope * logits)
        alpha = torch.exp(logits) / torch.exp(logits).sum()
        if mask is not None:
            alpha = alpha * mask[entries]
        place = torch.full_like(entries, i)
        operator = operator.index_put((place, cols[entries].long()), alpha, accumulate=True)
    return operator


def attention_step(
    x: Tensor,
    dst: Tensor,
    src: Tensor,
    rows: Tensor,
    cols: Tensor,
    omega: Tensor | float,
    slope: float = 0.2,
    mask: Tensor | None = None,
) -> Tensor:
    """Return x − ω ⊙ (x − Ŝ x) of one run, head by head: x ``[n, c]``, scores ``[n, heads]``, mask ``[E, heads]``."""
    heads = dst.size(1)
    blocks = []
    for h, block in enumerate(x.chunk(heads, dim=1) if x.size(1) else []):
        operator = attention_operator(rows, cols, dst[:, h], src[:, h], slope, None if mask is None else mask[:, h])
        blocks.append(operator @ block)
    return x - omega * (x - torch.cat(blocks, dim=1))

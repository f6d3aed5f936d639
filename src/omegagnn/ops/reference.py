r"""The meaning of every op, in plain torch: readable, float64-safe, the oracle of its fast twins, never optimised.

Shapes are the ops' own: features ``[R, n, c]`` with runs first, ω ``[R, c]``, scores ``[R, n, heads]``, keys ``[R, 2]``,
a graph as ``rowptr [n + 1]``, ``col [E]`` and ``weight [E]`` (row ``i`` receives), and its transpose likewise.

Exporters take `propagate` and `attention` apart, so nothing in these two changes a tensor in place.
"""

from __future__ import annotations

import torch
from torch import Tensor

from omegagnn.ops.random import GOLDEN, MASK, MULTIPLIER_A, MULTIPLIER_B, draw_bits, drop_threshold, mix


def receivers(rowptr: Tensor, num_entries: int) -> Tensor:
    """Return the row of each entry, ``[E]``."""
    rows = torch.arange(rowptr.numel() - 1, dtype=rowptr.dtype, device=rowptr.device)
    return torch.repeat_interleave(rows, rowptr.diff().long(), output_size=num_entries)


def wide(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which features of a dtype are added up and in which ω, the maps and S's entries are kept."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def activated(x: Tensor, relu: bool) -> Tensor:
    """Return σ(x) in the dtype of sums: ReLU or x itself."""
    x = x.to(wide(x.dtype))
    return x.relu() if relu else x


def propagate(rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor, omega: Tensor | None, relu: bool) -> Tensor:
    r"""Return :math:`(1 - ω) σ(x) + ω S σ(x)`; ``S σ(x)`` where ω is None. σ is ReLU, or nothing where `relu` is false.

    Node-wise: :math:`y_i = (1 - ω) σ(x_i) + ω \sum_{j → i} S_{ij} σ(x_j)`.
    """
    signal = activated(x, relu)
    messages = weight.to(signal.dtype)[:, None] * signal[:, col]
    gathered = torch.zeros_like(signal).index_add(1, receivers(rowptr, col.numel()), messages)
    if omega is None:
        return gathered.to(x.dtype)
    omega = omega.to(signal.dtype)[:, None, :]
    return ((1 - omega) * signal + omega * gathered).to(x.dtype)


def propagate_backward(
    rowptr_t: Tensor,
    col_t: Tensor,
    weight_t: Tensor,
    x: Tensor,
    omega: Tensor,
    grad: Tensor,
    relu: bool,
    need_omega: bool,
) -> tuple[Tensor, Tensor]:
    r"""Return the gradients of `propagate` for x and ω (zeros where it is not needed).

    :math:`((1 - ω) g + ω S^T g) ⊙ σ'(x)` and :math:`\sum_i σ(x) ⊙ (S^T g - g)`.
    """
    g, factor = grad.to(wide(x.dtype)), omega.to(wide(x.dtype))[:, None, :]
    gathered = propagate(rowptr_t, col_t, weight_t, g, None, False)
    grad_x = (1 - factor) * g + factor * gathered
    if relu:
        grad_x = torch.where(x > 0, grad_x, 0)
    grad_omega = (activated(x, relu) * (gathered - g)).sum(1) if need_omega else torch.zeros_like(omega)
    return grad_x.to(x.dtype), grad_omega.to(omega.dtype)


def edge_dot(rowptr: Tensor, col: Tensor, left: Tensor, right: Tensor) -> Tensor:
    r"""Return :math:`\langle \mathrm{left}_i, \mathrm{right}_j \rangle` for each entry ``j → i``, ``[R, E]``."""
    return (left[:, receivers(rowptr, col.numel())] * right[:, col]).sum(2)


def attention_coefficients(
    rowptr: Tensor, col: Tensor, dst: Tensor, src: Tensor, lse: Tensor, slope: float
) -> tuple[Tensor, Tensor]:
    """Return :math:`α_{ij}` and the slope of LeakyReLU at each entry, ``[R, E, heads]``, from the row's log-sum-exp."""
    row = receivers(rowptr, col.numel())
    score = dst[:, row] + src[:, col]
    steepness = torch.where(score > 0, torch.ones_like(score), slope)
    return torch.exp(score * steepness - lse[:, row]), steepness


def attention_log_sum(rowptr: Tensor, col: Tensor, dst: Tensor, src: Tensor, slope: float) -> Tensor:
    r"""Return :math:`\log \sum_{j → i} \exp \mathrm{LeakyReLU}(d_i + s_j)` a row, ``[R, n, heads]`` (0 for empty rows)."""
    row = receivers(rowptr, col.numel())
    logit = torch.nn.functional.leaky_relu(dst[:, row] + src[:, col], slope)
    index = row.long()[None, :, None].expand_as(logit)
    largest = torch.full_like(dst, -torch.inf).scatter_reduce(1, index, logit, "amax")
    total = torch.zeros_like(dst).index_add(1, row, torch.exp(logit - largest[:, row]))
    occupied = total > 0
    return torch.where(occupied, largest + torch.where(occupied, total, 1).log(), 0)


def attention_mask(num_entries: int, heads: int, p: float, key: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 0 or 1/(1 − p) for each entry and head, ``[R, E, heads]``; element ``e · heads + h`` of the run's key."""
    element = torch.arange(num_entries * heads, device=key.device)
    kept = draw_bits(key, element) >= drop_threshold(p)
    return kept.view(key.size(0), num_entries, heads).to(dtype) / (1 - p)


def attention(
    rowptr: Tensor,
    col: Tensor,
    x: Tensor,
    maps: Tensor,
    omega: Tensor,
    slope: float,
    p: float,
    key: Tensor,
    relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return :math:`y = (1 - ω) σ(x) + ω Ŝ σ(x)`, the scores ``[R, n, 2 · heads]`` and each row's log-sum-exp.

    The scores are σ(x) times the maps ``[R, c, 2 · heads]``: a column of :math:`d_i` for each head, then one of
    :math:`s_j` for each. :math:`Ŝ_{ij} = \mathrm{softmax}_j \mathrm{LeakyReLU}(d_i + s_j)` over the entries of row ``i``;
    each head weighs its own block of channels; with ``p > 0`` entries of Ŝ are dropped at random and the rest scaled by
    1/(1 − p).
    """
    signal = activated(x, relu)
    scores = signal @ maps.to(signal.dtype)
    dst, src = scores.chunk(2, dim=2)
    heads = dst.size(2)
    lse = attention_log_sum(rowptr, col, dst, src, slope)
    alpha, _ = attention_coefficients(rowptr, col, dst, src, lse, slope)
    if p > 0:
        alpha = alpha * attention_mask(col.numel(), heads, p, key, signal.dtype)
    blocks = signal.unflatten(2, (heads, -1))
    messages = alpha[..., None] * blocks[:, col]
    gathered = torch.zeros_like(blocks).index_add(1, receivers(rowptr, col.numel()), messages).flatten(2)
    factor = omega.to(signal.dtype)[:, None, :]
    return ((1 - factor) * signal + factor * gathered).to(x.dtype), scores, lse


def attention_backward(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    order_t: Tensor,
    x: Tensor,
    y: Tensor,
    maps: Tensor,
    scores: Tensor,
    lse: Tensor,
    omega: Tensor,
    grad: Tensor,
    slope: float,
    p: float,
    key: Tensor,
    relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return the gradients of `attention` for x, the maps and ω.

    With :math:`\bar α` the coefficients after dropout mask ``m``, :math:`q_{ij} = m_{ij} \langle ω g_i, σ(x_j) \rangle`:
    :math:`\partial \mathrm{logit}_{ij} = α_{ij} (q_{ij} - \sum_k α_{ik} q_{ik})`. Summed over receivers and senders these
    are the gradients of the scores, ``G``; then :math:`σ(x)^T G` for the maps, and for x and ω as in `propagate_backward`
    with :math:`\bar α` for ``S``, where x gets :math:`G\, \mathrm{maps}^T` besides.

    The transpose is for the twins, which gather where this scatters; so is y, from which they may take
    :math:`\sum_k α_{ik} q_{ik} = \langle g_i, y_i - (1 - ω) σ(x_i) \rangle` without a look at the entries.
    """
    heads, row, signal = lse.size(2), receivers(rowptr, col.numel()), activated(x, relu)
    dst, src = scores.chunk(2, dim=2)
    alpha, steepness = attention_coefficients(rowptr, col, dst, src, lse, slope)
    mask = attention_mask(col.numel(), heads, p, key, signal.dtype) if p > 0 else torch.ones_like(alpha)
    g, factor = grad.to(signal.dtype), omega.to(signal.dtype)[:, None, :]
    blocks, grad_blocks = signal.unflatten(2, (heads, -1)), g.unflatten(2, (heads, -1))
    messages = (alpha * mask)[..., None] * grad_blocks[:, row]
    gathered = torch.zeros_like(blocks).index_add_(1, col, messages).flatten(2)
    pull = mask * ((factor * g).unflatten(2, (heads, -1))[:, row] * blocks[:, col]).sum(-1)
    mean = torch.zeros_like(dst).index_add_(1, row, alpha * pull)
    grad_score = alpha * (pull - mean[:, row]) * steepness
    of_receivers = torch.zeros_like(dst).index_add_(1, row, grad_score)
    of_senders = torch.zeros_like(src).index_add_(1, col, grad_score)
    grad_scores = torch.cat([of_receivers, of_senders], dim=2)
    grad_x = (1 - factor) * g + factor * gathered + grad_scores @ maps.to(signal.dtype).mT
    if relu:
        grad_x = torch.where(x > 0, grad_x, 0)
    grad_omega = (signal * (gathered - g)).sum(1)
    return grad_x.to(x.dtype), (signal.mT @ grad_scores).to(maps.dtype), grad_omega.to(omega.dtype)


def draw_key(seeds: Tensor, step: Tensor, place: int) -> Tensor:
    """Return the two words of each run, ``[R, 2]``, for seeds ``[R]`` (int64), a step (int64, one number) and a place."""
    low, high = seeds & MASK, (seeds >> 32) & MASK
    words = []
    for salt in (GOLDEN, MULTIPLIER_A):
        word = mix((low + salt) & MASK)
        word = mix(((word ^ high) + salt) & MASK)
        word = mix((word + step * GOLDEN) & MASK)
        words.append(mix((word ^ ((place * MULTIPLIER_B) & MASK)) & MASK))
    return torch.stack(words, dim=-1)


def dropped_values(value: Tensor, p: float, key: Tensor) -> Tensor:
    """Return the stored values under each run's dropout, ``[R, E]``; element ``e`` of the run's key."""
    if p == 0:
        return value.expand(key.size(0), -1)
    kept = draw_bits(key, torch.arange(value.numel(), device=key.device)) >= drop_threshold(p)
    return kept.to(value.dtype) * value / (1 - p)


def sparse_linear(rowptr: Tensor, col: Tensor, value: Tensor, weight: Tensor, p: float, key: Tensor) -> Tensor:
    """Return ``dropout(X) W`` for sparse X ``[n, f]`` and W ``[R, f, c]``: ``[R, n, c]``, dropping stored values."""
    values = dropped_values(value, p, key)
    out = weight.new_zeros(weight.size(0), rowptr.numel() - 1, weight.size(2))
    return out.index_add_(1, receivers(rowptr, col.numel()), values[..., None] * weight[:, col])


def sparse_linear_backward(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    order_t: Tensor,
    value: Tensor,
    grad: Tensor,
    p: float,
    key: Tensor,
) -> Tensor:
    """Return the gradient of `sparse_linear` for W, ``dropout(X)ᵀ g``, ``[R, f, c]``."""
    values = dropped_values(value, p, key)
    out = grad.new_zeros(grad.size(0), rowptr_t.numel() - 1, grad.size(2))
    return out.index_add_(1, col, values[..., None] * grad[:, receivers(rowptr, col.numel())])


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """Return ``x W``, ``[R, n, c]`` and ``[R, c, d]`` → ``[R, n, d]``."""
    return x @ weight


def linear_backward(x: Tensor, weight: Tensor, grad: Tensor, need_x: bool) -> tuple[Tensor, Tensor]:
    """Return the gradients of `linear` for x (empty where it is not needed) and W: ``g Wᵀ`` and ``xᵀ g``."""
    return grad @ weight.mT if need_x else x.new_empty(0), x.mT @ grad


def layer(
    rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor, omega: Tensor, map_: Tensor, relu: bool, keep: bool
) -> tuple[Tensor, Tensor]:
    """Return ``z K`` with z of `propagate`, and z for the backward pass if that shall `keep` it (else nothing)."""
    z = propagate(rowptr, col, weight, x, omega, relu)
    return z @ map_, z if keep else x.new_empty(0)


def layer_backward(
    rowptr: Tensor,
    col: Tensor,
    weight: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    weight_t: Tensor,
    x: Tensor,
    omega: Tensor,
    map_: Tensor,
    z: Tensor,
    grad: Tensor,
    relu: bool,
    need_omega: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `layer` for x, ω and K: ``zᵀ g`` for K, those of `propagate` at ``g Kᵀ`` for the others."""
    z = z if z.numel() else propagate(rowptr, col, weight, x, omega, relu)
    pulled = propagate_backward(rowptr_t, col_t, weight_t, x, omega, grad @ map_.mT, relu, need_omega)
    return *pulled, z.mT @ grad


def cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    r"""Return :math:`\sum_i w_{si} \left(\log \sum_k e^{y_{ik}} - y_{i, t_i}\right)`, ``[R, S]``, over rows that weigh something.

    Logits are ``[R, n, k]``, labels ``[n]`` (those of rows without weight may be anything), weights ``[R, S, n]``.
    """
    chosen = logits.gather(2, labels.clamp(min=0)[None, :, None].expand(logits.size(0), -1, 1)).squeeze(2)
    losses = torch.logsumexp(logits, 2) - chosen
    return torch.where(weights != 0, weights * losses[:, None], 0).sum(2)


def cross_entropy_backward(logits: Tensor, labels: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of `cross_entropy` for the logits: (softmax − one-hot) times the weight that reaches a row."""
    pull = (weights * grad[:, :, None]).sum(1)[..., None]
    hot = torch.nn.functional.one_hot(labels.clamp(min=0), logits.size(2)).to(logits.dtype)
    return torch.where(pull != 0, pull * (torch.softmax(logits, 2) - hot), 0)


def dropout(x: Tensor, p: float, key: Tensor) -> Tensor:
    """Return x with elements zeroed with probability p, the rest scaled by 1/(1 − p); ``i · c + j`` of the run's key."""
    element = torch.arange(x.size(1) * x.size(2), device=x.device)
    kept = draw_bits(key, element) >= drop_threshold(p)
    return x * (kept.view_as(x).to(x.dtype) / (1 - p))


def adam_(
    param: Tensor,
    grad: Tensor,
    average: Tensor,
    square: Tensor,
    rates: Tensor,
    decays: Tensor,
    correction: Tensor,
    active: Tensor,
    blocks: Tensor,
    largest: int,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    r"""Step Adam in place on flat arrays cut into blocks, each of one run and one group; an inactive run stays to the bit.

    `blocks` ``[4, B]`` holds where a block begins and ends, its run and its group, and none is longer than `largest`;
    `rates` and `decays` are ``[G, R]``, `correction` holds a factor of all rates, :math:`c_1 = 1 - β_1^t` and
    :math:`c_2 = 1 - β_2^t`. With :math:`g' = g + λ p`: :math:`a ← β_1 a + (1 - β_1) g'`,
    :math:`s ← β_2 s + (1 - β_2) g'^2` and :math:`p ← p - η \, (a / c_1) / (\sqrt{s / c_2} + ε)`, as in `torch.optim.Adam`.
    """
    factor, correction1, correction2 = correction.to(param.dtype)
    for start, stop, run, group in blocks.t().tolist():
        if not active[run]:
            continue
        p, g, a, s = (array[start:stop] for array in (param, grad, average, square))
        rate, decay = (table[group, run].to(param.dtype) for table in (rates, decays))
        g = g + decay * p
        a += (1 - beta1) * (g - a)
        s.copy_(beta2 * s + (1 - beta2) * g * g)
        p -= factor * rate / correction1 * a / ((s / correction2).sqrt() + eps)


def keep_(kept: Tensor, source: Tensor, chosen: Tensor, blocks: Tensor, largest: int) -> None:
    """Copy the blocks of the chosen runs (bool ``[R]``) from one flat array to another; `blocks` as in `adam_`."""
    for start, stop, run, _ in blocks.t().tolist():
        if chosen[run]:
            kept[start:stop] = source[start:stop]

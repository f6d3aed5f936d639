"""`OmegaGCNConv` and `OmegaGATConv`: the two layers of the paper."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter, UninitializedParameter

from omegagnn.graph import Graph, as_graph
from omegagnn.nn.init import fresh_key, glorot_, identity_
from omegagnn.nn.linear import LazyChannels
from omegagnn.nn.omega import OmegaScope, OmegaWeight, make_omega
from omegagnn.nn.runs import add_bias, batched_matmul, has_own, num_runs, run_matmul, with_runs
from omegagnn.ops import Draws, attention_propagate, omega_layer, omega_propagate

Init = Literal["identity", "glorot"]


class OmegaConv(LazyChannels):
    """What both layers share: ω, the 1×1 convolution K with its start, a bias."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        omega: OmegaScope | float | OmegaWeight,
        bias: bool,
        init: Init,
        init_noise: float,
        runs: int | None,
    ) -> None:
        """Make ω, K and the bias; the layers call this."""
        super().__init__()
        if init not in ("identity", "glorot"):
            raise ValueError(f"init must be 'identity' or 'glorot', not {init!r}.")
        self.in_channels, self.out_channels, self.runs = in_channels, out_channels, runs
        self.init, self.init_noise = init, init_noise
        self.omega_weight = make_omega(omega, in_channels, runs)
        self.weight = self._empty(in_channels, out_channels)
        self.bias = self._empty(out_channels) if bias else None

    @property
    def omega(self) -> Tensor:
        """ω as used: a parameter, the shared one, or a fixed value."""
        return self.omega_weight.value

    def _empty(self, *shape: int) -> Parameter:
        if -1 in shape:
            return UninitializedParameter()  # type: ignore[return-value]
        return Parameter(torch.empty(shape if self.runs is None else (self.runs, *shape)))

    def _materialise(self, in_channels: int) -> None:
        self.in_channels = in_channels
        self.omega_weight.materialise(in_channels)
        for name, parameter in self.named_parameters(recurse=False):
            if isinstance(parameter, UninitializedParameter):
                lead = () if self.runs is None else (self.runs,)
                parameter.materialize((*lead, *self._shape_of(name)))
        self.reset_parameters(self._start_key)

    def _shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of an input-sized parameter without the run axis."""
        return (self.in_channels, self.out_channels)

    def reset_parameters(self, key: Tensor | None = None) -> None:
        """Set ω to its start and K to the identity (Glorot uniform unless square), from `key` or torch's generator."""
        self.omega_weight.reset_parameters()
        if self.in_channels == -1:
            self._start_key = key
        else:
            key = fresh_key(self.runs) if key is None else key
            if self.init == "identity" and self.in_channels == self.out_channels:
                identity_(self.weight, key, self.init_noise)
            else:
                glorot_(self.weight, key)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        """Describe the sizes."""
        runs = "" if self.runs is None else f", runs={self.runs}"
        return f"{self.in_channels}, {self.out_channels}{runs}"


class OmegaGCNConv(OmegaConv):
    r"""The ωGCN layer of `"Improving Graph Neural Networks with Learnable Propagation Operators" (ICML 2023)`.

    .. math::
        Z = \left(X - Ω_{ω} (X - \tilde P X)\right) K, \qquad
        \tilde P = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}

    and node by node, with weights :math:`e_{ji}` (1 by default) and degrees
    :math:`\tilde d_i = 1 + \sum_{j → i} e_{ji}`,

    .. math::
        z_i = K^\top \Big( (1 - ω) ⊙ x_i
              + ω ⊙ \sum_{j ∈ N(i) ∪ \{i\}} \frac{e_{ji}}{\sqrt{\tilde d_i \tilde d_j}} x_j \Big).

    The vector ω scales the *input* channels. ω = 1 is a `GCNConv` without bias, ω = 0 a 1×1 convolution; between 0 and 1
    the layer smooths, beyond it sharpens. The result is before σ, as PyG's layers return it.

    Args:
        in_channels: channels of the input; -1 finds it at the first forward pass.
        out_channels: channels of the output.
        omega: ``"channel"`` (one ω an input channel), ``"layer"`` (one ω), a number (fixed), or an `OmegaWeight`, which
            may be shared by several layers.
        add_self_loops: whether a self-loop is added to each node before normalising.
        normalize: whether the graph is normalised; without it the weights given are S.
        bias: whether a bias is added; the paper has none.
        init: K starts at the ``"identity"`` where it is square (else Glorot uniform), or always at ``"glorot"``.
        init_noise: uniform noise below this is added to the identity (the authors' script: 1e-4).
        runs: number of independent runs on a run axis, or None.

    Shapes: x ``[n, in]`` (``[n, R, in]``) → ``[n, out]`` (``[n, R, out]``); `edge_index` is a `Graph`, ``[2, E]`` or a torch
    sparse matrix (rows receive); `edge_weight` is ``[E]``.

    >>> conv = OmegaGCNConv(16, 32)
    >>> conv
    OmegaGCNConv(
      16, 32
      (omega_weight): OmegaWeight(16 channels, init=1)
    )
    >>> conv(torch.randn(3, 16), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([3, 32])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        omega: OmegaScope | float | OmegaWeight = "channel",
        add_self_loops: bool = True,
        normalize: bool = True,
        bias: bool = False,
        *,
        init: Init = "identity",
        init_noise: float = 0.0,
        runs: int | None = None,
    ) -> None:
        """Make the layer; see the class."""
        super().__init__(in_channels, out_channels, omega=omega, bias=bias, init=init, init_noise=init_noise, runs=runs)
        self.add_self_loops, self.normalize = add_self_loops, normalize
        self.reset_parameters()
        self._await_input()

    def operator(self, graph: Graph) -> Graph:
        """Return S for a graph as this layer uses it (a finished operator is taken as it is)."""
        return graph.gcn_norm(self.add_self_loops, self.weight.dtype) if self.normalize else graph.as_operator()

    def forward(
        self,
        x: Tensor,
        edge_index: Graph | Tensor,
        edge_weight: Tensor | None = None,
        *,
        relu: bool = False,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Return ``(x − ω (x − S x)) K``; with `relu` ReLU(x) stands for x, at no cost of its own.

        With `rows` only those nodes are multiplied with K and returned: the others were needed as their neighbours.
        """
        operator = self.operator(as_graph(edge_index, x.size(0), edge_weight))
        x = with_runs(x, self.runs)
        # (One kernel for both, but not for a compiler, which would take what is kept for the backward pass for a fixed size.)
        if rows is None and not torch.compiler.is_compiling() and has_own("layer", x):
            return add_bias(omega_layer(x, operator, self.omega, self.weight, relu=relu), self.bias)
        z = omega_propagate(x, operator, self.omega, relu=relu)
        return add_bias(run_matmul(z if rows is None else z[rows], self.weight), self.bias)


class OmegaGATConv(OmegaConv):
    r"""The ωGAT layer of `"Improving Graph Neural Networks with Learnable Propagation Operators" (ICML 2023)`.

    .. math::
        Z = \left(X - Ω_{ω} (X - Ŝ X)\right) K, \qquad
        Ŝ_{ij} = \operatorname{softmax}_{j ∈ N(i) ∪ \{i\}} \operatorname{LeakyReLU}
                 \left(a_\mathrm{dst}^\top W^\top x_i + a_\mathrm{src}^\top W^\top x_j\right)

    With several heads the input channels are split into blocks; head ``h`` has its own scores, from the ``h``-th block of
    :math:`x W`, and weighs its own block of :math:`x`. With ω = 1 and K = W (block-diagonal for several heads) it is a
    `GATConv` without bias. Scores are never computed as ``x W`` (``n × in × in``): ``W a`` is contracted first, which is
    the same number and makes ωGAT cost about what ωGCN does.

    Args:
        in_channels: channels of the input, divisible by `heads`; -1 finds it at the first forward pass.
        out_channels: channels of the output (of all heads together).
        heads: number of attention matrices.
        omega: as in `OmegaGCNConv`.
        negative_slope: slope of LeakyReLU.
        dropout: probability of dropping an entry of Ŝ in training.
        transform: whether scores see ``x W`` with a learnt W (the paper) or x itself (the authors' script).
        add_self_loops: whether each node attends to itself; existing self-loops are replaced, as PyG does.
        bias: whether a bias is added; the paper has none.
        init: start of K, as in `OmegaGCNConv`; W and a start at Glorot uniform.
        init_noise: as in `OmegaGCNConv`.
        runs: number of independent runs on a run axis, or None.

    Shapes as in `OmegaGCNConv`; edges carry no weights here, duplicate edges are attended to separately.

    >>> OmegaGATConv(16, 16, heads=4)(torch.randn(3, 16), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([3, 16])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        omega: OmegaScope | float | OmegaWeight = "channel",
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        transform: bool = True,
        add_self_loops: bool = True,
        bias: bool = False,
        *,
        init: Init = "identity",
        init_noise: float = 0.0,
        runs: int | None = None,
    ) -> None:
        """Make the layer; see the class."""
        super().__init__(in_channels, out_channels, omega=omega, bias=bias, init=init, init_noise=init_noise, runs=runs)
        if heads < 1:
            raise ValueError(f"heads must be at least 1, not {heads}.")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, not {dropout}.")
        self.heads, self.negative_slope, self.dropout = heads, negative_slope, dropout
        self.transform, self.add_self_loops = transform, add_self_loops
        self._check_heads()
        head_size = -1 if in_channels == -1 else in_channels // heads
        self.att_weight = self._empty(in_channels, in_channels) if transform else None
        self.att_dst = self._empty(heads, head_size)
        self.att_src = self._empty(heads, head_size)
        self.reset_parameters()
        self._await_input()

    def _check_heads(self) -> None:
        if self.in_channels != -1 and self.in_channels % self.heads:
            raise ValueError(
                f"{self.in_channels} input channels cannot be split evenly over {self.heads} heads: change one of them."
            )

    def _shape_of(self, name: str) -> tuple[int, ...]:
        if name == "att_weight":
            return (self.in_channels, self.in_channels)
        if name in ("att_dst", "att_src"):
            self._check_heads()
            return (self.heads, self.in_channels // self.heads)
        return super()._shape_of(name)

    def reset_parameters(self, key: Tensor | None = None) -> None:
        """Set ω and K to their start and draw W and a, from `key` or torch's generator."""
        if self.in_channels == -1:
            return super().reset_parameters(key)
        key = fresh_key(self.runs) if key is None else key
        super().reset_parameters(key)
        # The two words of a key are shifted for each tensor, so that they do not share their draws.
        for shift, tensor in enumerate((self.att_weight, self.att_dst, self.att_src), start=1):
            if tensor is not None:
                glorot_(tensor, key ^ (0x1F123BB5 * shift))

    def maps(self) -> Tensor:
        """Return what makes scores of features, ``[in, 2 · heads]``: W a of each head as receiver, then as sender."""
        if self.heads == 1:
            maps = torch.cat([self.att_dst, self.att_src], dim=-2).mT
        else:
            # Head h reads the h-th block of channels only: [heads · d, 2 · heads] with zeros off the diagonal blocks.
            both = torch.stack([self.att_dst, self.att_src], dim=-3)  # [2, heads, d], with runs in front
            maps = torch.diag_embed(both.movedim(-1, -3), dim1=-4, dim2=-1).flatten(-4, -3).flatten(-2)
        return maps if self.att_weight is None else batched_matmul(self.att_weight, maps)  # W meets a before x does

    def structure(self, graph: Graph) -> Graph:
        """Return the edges this layer attends over."""
        if graph.weight is not None:
            raise ValueError(
                "Attention has no place for edge weights: pass graph.unweighted(), or use OmegaGCNConv to use the weights."
            )
        return graph.with_self_loops() if self.add_self_loops else graph

    def forward(
        self,
        x: Tensor,
        edge_index: Graph | Tensor,
        edge_weight: Tensor | None = None,
        *,
        key: Tensor | None = None,
        relu: bool = False,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Return ``(x − ω (x − Ŝ x)) K``; with `relu` ReLU(x) stands for x, at no cost of its own.

        `key` is the randomness of attention dropout (else torch's generator). With `rows` only those nodes are multiplied with
        K and returned: the others were needed as their neighbours.
        """
        if edge_weight is not None:
            raise ValueError("OmegaGATConv takes no edge_weight: attention weighs the edges; use OmegaGCNConv instead.")
        graph = self.structure(as_graph(edge_index, x.size(0)))
        x = with_runs(x, self.runs)
        p = self.dropout if self.training else 0.0
        if p > 0 and key is None:
            key = Draws.from_torch(num_runs(x), x.device).key(0)
        z = attention_propagate(x, self.maps(), graph, self.omega, self.negative_slope, p, key, relu=relu)
        return add_bias(run_matmul(z if rows is None else z[rows], self.weight), self.bias)

    def extra_repr(self) -> str:
        """Describe the sizes."""
        return super().extra_repr() + f", heads={self.heads}" + ("" if self.transform else ", transform=False")

"""The numbers of a network with a run axis on one flat array, so that one call steps or copies all of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from omegagnn.nn.groups import Grouped

BLOCK = 1024  # numbers of one run that a kernel takes at once
LINE = 64  # bytes; where a tensor begins within a cache line decides the order of sums (`nn.runs`)


class FlatState:
    """Parameters and floating-point buffers ``[R, ...]`` of a network, moved onto one array of which they become views.

    Parameters stand first (`trained` numbers), each tensor begins on a cache line, what lies between is zero. Blocks
    ``[4, B]`` cut the tensors into pieces of one run of at most `BLOCK` numbers: begin, end, run and group, as
    `ops.reference.adam_` takes them. Buffers of whole numbers, which no optimiser moves, stay where they are (`counts`).
    """

    def __init__(self, net: Grouped) -> None:
        """Lay the network's numbers out and hand it the views."""
        self.groups = list(net.grouped_parameters())
        group_of = {p: k for k, parameters in enumerate(net.grouped_parameters().values()) for p in parameters}
        self.parameters: dict[str, Parameter] = dict(net.named_parameters())  # a shared ω once
        buffers = {name: buffer for name, buffer in net.named_buffers() if buffer.is_floating_point()}
        self.counts = {name: buffer for name, buffer in net.named_buffers() if not buffer.is_floating_point()}
        tensors: dict[str, Tensor] = {**self.parameters, **buffers}
        like = next(iter(tensors.values()))
        self.device = like.device
        self._places: dict[str, tuple[int, torch.Size]] = {}
        self._pieces: dict[str, list[tuple[int, int, int, int]]] = {}
        end = self.trained = 0
        for name, tensor in tensors.items():
            group = group_of[tensor] if isinstance(tensor, Parameter) else 0
            self._places[name] = end, tensor.shape
            self._pieces[name] = list(_pieces(end, tensor, group))
            step = LINE // tensor.element_size()
            end = (end + tensor.numel() + step - 1) // step * step
            if isinstance(tensor, Parameter):
                self.trained = end
        self.values = torch.zeros(end, dtype=like.dtype, device=self.device)
        self.gradient = torch.zeros(self.trained, dtype=like.dtype, device=self.device)
        self._adopt(net, self.views(self.values))
        gradient = self.views(self.gradient)
        self._gradients = [(parameter, gradient[name]) for name, parameter in self.parameters.items()]
        self._moving: dict[tuple[bool, ...], Tensor] = {}
        self.blocks = self._blocks(list(tensors))

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Return the tensors of an array laid out like `values` (or like its trained part) by their names."""
        return {
            name: flat[begin : begin + shape.numel()].view(shape)
            for name, (begin, shape) in self._places.items()
            if begin < flat.numel()
        }

    @torch.no_grad()
    def _adopt(self, net: nn.Module, views: dict[str, Tensor]) -> None:
        for name, parameter in self.parameters.items():
            parameter.data = views[name].copy_(parameter)
        for path, module in net.named_modules():
            for name, buffer in module.named_buffers(recurse=False):
                view = views.get(f"{path}.{name}" if path else name)
                if view is not None:
                    setattr(module, name, view.copy_(buffer))

    def _blocks(self, names: list[str]) -> Tensor:
        pieces = [piece for name in names for piece in self._pieces[name]]
        return torch.tensor(pieces, dtype=torch.int64, device=self.device).view(-1, 4).t().contiguous()

    def gradient_now(self) -> Tensor:
        """Return the gradients as one array, zero for parameters that have none."""
        gradient = torch.zeros_like(self.gradient)
        for name, view in self.views(gradient).items():
            grad = self.parameters[name].grad
            if grad is not None:
                view.copy_(grad)
        return gradient

    def collect_gradient(self) -> Tensor:
        """Gather the gradients into `gradient` and return the blocks of the parameters that have one; others do not move."""
        present = [(p.grad, place) for p, place in self._gradients if p.grad is not None]
        if present:
            grads, places = zip(*present, strict=True)
            torch._foreach_copy_(list(places), list(grads))
        having = tuple(p.grad is not None for p, _ in self._gradients)
        if having not in self._moving:
            names = [name for name, has in zip(self.parameters, having, strict=True) if has]
            self._moving[having] = self._blocks(names)
        return self._moving[having]


def _pieces(begin: int, tensor: Tensor, group: int) -> list[tuple[int, int, int, int]]:
    size = tensor[0].numel()
    return [
        (begin + run * size + k, begin + run * size + min(k + BLOCK, size), run, group)
        for run in range(tensor.size(0))
        for k in range(0, size, BLOCK)
    ]

"""Looking into a running module without changing it: which layers, by which hooks, and everything put back afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from omegagnn.nn.omega import OmegaWeight

Watch = Callable[[str, Tensor], Tensor]


def chosen_layers(model: nn.Module, wanted: Sequence[str | nn.Module] | None) -> dict[str, nn.Module]:
    """Return the layers to look at by name: those wanted, else graph convolutions, else modules without children."""
    named = dict(model.named_modules())
    if wanted is not None:
        return _wanted_layers(named, wanted)
    convolutions: dict[str, nn.Module] = {}
    for name, module in named.items():
        inside = any(name.startswith(f"{outer}.") or outer == "" for outer in convolutions)
        if not inside and is_graph_convolution(module):
            convolutions[name] = module
    leaves = {name: module for name, module in named.items() if next(module.children(), None) is None}
    return {name or type(model).__name__: module for name, module in (convolutions or leaves).items()}


def is_graph_convolution(module: nn.Module) -> bool:
    """Whether a module has an ω of its own or follows PyG's ``MessagePassing`` (which is not imported here)."""
    follows_pyg = callable(getattr(module, "propagate", None)) and callable(getattr(module, "message", None))
    return follows_pyg or isinstance(getattr(module, "omega_weight", None), OmegaWeight)


@contextmanager
def hooked(layers: Mapping[str, nn.Module], watch: Watch, side: Literal["output", "input"]) -> Iterator[None]:
    """Show every tensor that leaves (or enters) the layers to `watch`, which returns the one to go on with."""
    if side not in ("output", "input"):
        raise ValueError(f"There is no side {side!r} of a layer: choose 'output' or 'input'.")
    with ExitStack() as stack:
        for name, module in layers.items():
            if side == "output":
                handle = module.register_forward_hook(_output_hook(name, watch))
            else:
                handle = module.register_forward_pre_hook(_input_hook(name, watch), with_kwargs=True)
            stack.callback(handle.remove)
        yield


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Put buffers, training modes and torch's random state back at the end, also after an error."""
    buffers = [
        (module, name, buffer, buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None and not is_lazy(buffer)
    ]
    modes = [(module, module.training) for module in model.modules()]
    devices = {p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            with torch.no_grad():
                for module, name, buffer, value in buffers:
                    buffer.copy_(value)
                    module._buffers[name] = buffer
            for module, mode in modes:
                module.training = mode


def _wanted_layers(named: dict[str, nn.Module], wanted: Sequence[str | nn.Module]) -> dict[str, nn.Module]:
    if isinstance(wanted, (str, nn.Module)):
        raise TypeError("layers must be a list of names or modules: put the one you want into a list.")
    chosen: dict[str, nn.Module] = {}
    for each in wanted:
        if isinstance(each, nn.Module):
            found = {name: module for name, module in named.items() if module is each}
        else:
            pattern = re.compile(re.escape(each).replace(r"\*", r"[^.]*"))
            found = {name: module for name, module in named.items() if pattern.fullmatch(name)}
        if not found:
            known = ", ".join(repr(name) for name in list(named)[1:9])
            raise ValueError(f"The model has no layer {each!r}: its layers are named {known} and so on.")
        chosen |= found
    return chosen


def _output_hook(name: str, watch: Watch) -> Callable[[nn.Module, Any, Any], Any]:
    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        return _shown(name, watch, output)

    return hook


def _input_hook(name: str, watch: Watch) -> Callable[[nn.Module, Any, Any], Any]:
    def hook(module: nn.Module, args: Any, kwargs: Any) -> Any:
        if args:
            return _shown(name, watch, args), kwargs
        features = next((key for key, value in kwargs.items() if _is_floating(value)), None)
        return args, kwargs if features is None else {**kwargs, features: _shown(name, watch, kwargs[features])}

    return hook


def _is_floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _shown(name: str, watch: Watch, value: Any) -> Any:
    """Show a tensor, or the first item of a tuple or list that begins with one, and return the value to go on with."""
    if isinstance(value, Tensor):
        return watch(name, value)
    if isinstance(value, (tuple, list)) and value and isinstance(value[0], Tensor):
        first = watch(name, value[0])
        return value if first is value[0] else type(value)([first, *value[1:]])
    return value

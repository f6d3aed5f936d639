"""Registration of the ops with torch and the choice of a backend for each call.

Every op is declared once under the namespace ``omegagnn`` so that compile and export see one opaque call. Its
implementation is a module that offers the functions of `reference` under the same names; which module, `backend_for`
decides from the device: the fused twin where its library is present, the reference otherwise.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from omegagnn.ops import reference
from omegagnn.ops.reference import wide

_library = torch.library.Library("omegagnn", "DEF")
_forced: list[str] = []

# The twins and what each of them needs.
_TWINS = {"cpu": ("omegagnn.ops.cpu", "numba"), "cuda": ("omegagnn.ops.gpu", "triton")}


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Use ``"reference"`` (or ``"fused"``, the default choice) for every op called inside the block."""
    if name not in ("reference", "fused"):
        raise ValueError(f"There is no backend {name!r}: choose 'reference' or 'fused'.")
    _forced.append(name)
    try:
        yield
    finally:
        _forced.pop()


@cache
def fused_twin(device_type: str) -> ModuleType | None:
    """Return the fused twin for a kind of device, or None (said once) where it is not to be had."""
    if device_type not in _TWINS:
        return None
    module, needs = _TWINS[device_type]
    if importlib.util.find_spec(module) is None:
        return None
    if importlib.util.find_spec(needs) is None:
        warnings.warn(f"{needs} is not installed: ops on {device_type} run in plain torch, slower.", stacklevel=2)
        return None
    try:
        return importlib.import_module(module)
    except ImportError as error:
        warnings.warn(
            f"{needs} cannot be imported ({error}): ops on {device_type} run in plain torch, slower.", stacklevel=2
        )
        return None


def backend_for(x: Tensor) -> ModuleType:
    """Return the module that computes for a tensor: its device's twin if that handles its dtype, else the reference.

    Integers (seeds, for one) are handled by every twin.
    """
    if _forced and _forced[-1] == "reference":
        return reference
    twin = fused_twin(x.device.type)
    return twin if twin is not None and (x.dtype in twin.DTYPES or not x.is_floating_point()) else reference


def has_fused(name: str, x: Tensor) -> bool:
    """Return whether an op on a tensor like this is computed by a fused twin, of which CPUs alone have every op."""
    if torch.compiler.is_compiling():  # a compiler can follow no search for backends
        return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    backend = backend_for(x)
    return backend is not reference and hasattr(backend, name)


def _define(schema: str, main: int, fake: Callable[..., Any]) -> None:
    """Declare an op; `main` is the position of the argument whose device and dtype choose the backend.

    What a twin does not offer, the reference computes.
    """
    name = schema[: schema.index("(")]

    def implementation(*args: Any) -> Any:
        return getattr(backend_for(args[main]), name, getattr(reference, name))(*args)

    _library.define(schema)
    _library.impl(name, implementation, "CompositeExplicitAutograd")
    torch.library.register_fake(f"omegagnn::{name}", fake, lib=_library)


def _like_each(*shapes_of: int) -> Callable[..., tuple[Tensor, ...]]:
    return lambda *args: tuple(torch.empty_like(args[i], memory_format=torch.contiguous_format) for i in shapes_of)


def _like(position: int) -> Callable[..., Tensor]:
    return lambda *args: torch.empty_like(args[position], memory_format=torch.contiguous_format)


def _fake_edge_dot(rowptr: Tensor, col: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return left.new_empty(left.size(0), col.size(0))


def _fake_attention(rowptr: Tensor, col: Tensor, x: Tensor, maps: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    runs, rows, width = x.shape
    scores = x.new_empty(runs, rows, maps.size(2), dtype=wide(x.dtype))
    return x.new_empty(runs, rows, width), scores, scores.new_empty(runs, rows, maps.size(2) // 2)


def _fake_draw_key(seeds: Tensor, step: Tensor, place: int) -> Tensor:
    return seeds.new_empty(seeds.size(0), 2)


def _fake_linear(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(x.size(0), x.size(1), weight.size(2))


def _fake_linear_backward(x: Tensor, weight: Tensor, grad: Tensor, need_x: bool) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape if need_x else 0), torch.empty_like(weight, memory_format=torch.contiguous_format)


def _fake_layer(
    rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor, omega: Tensor, map_: Tensor, relu: bool, keep: bool
) -> tuple[Tensor, Tensor]:
    return _fake_linear(x, map_), x.new_empty(x.shape if keep else 0)


def _fake_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    return logits.new_empty(weights.shape[:2])


def _fake_sparse_linear(rowptr: Tensor, col: Tensor, value: Tensor, weight: Tensor, p: float, key: Tensor) -> Tensor:
    return weight.new_empty(weight.size(0), rowptr.size(0) - 1, weight.size(2))


def _fake_sparse_linear_backward(
    rowptr: Tensor, col: Tensor, rowptr_t: Tensor, col_t: Tensor, order_t: Tensor, value: Tensor, grad: Tensor, *_: Any
) -> Tensor:
    return grad.new_empty(grad.size(0), rowptr_t.size(0) - 1, grad.size(2))


_define(
    "propagate(Tensor rowptr, Tensor col, Tensor weight, Tensor x, Tensor? omega, bool relu) -> Tensor", 3, _like(3)
)
_define(
    "propagate_backward(Tensor rowptr_t, Tensor col_t, Tensor weight_t, Tensor x, Tensor omega, Tensor grad, bool relu,"
    " bool need_omega) -> (Tensor, Tensor)",
    3,
    _like_each(3, 4),
)
_define("edge_dot(Tensor rowptr, Tensor col, Tensor left, Tensor right) -> Tensor", 2, _fake_edge_dot)
_define(
    "attention(Tensor rowptr, Tensor col, Tensor x, Tensor maps, Tensor omega, float slope, float p, Tensor key,"
    " bool relu) -> (Tensor, Tensor, Tensor)",
    2,
    _fake_attention,
)
_define(
    "attention_backward(Tensor rowptr, Tensor col, Tensor rowptr_t, Tensor col_t, Tensor order_t, Tensor x, Tensor y,"
    " Tensor maps, Tensor scores, Tensor lse, Tensor omega, Tensor grad, float slope, float p, Tensor key, bool relu)"
    " -> (Tensor, Tensor, Tensor)",
    5,
    _like_each(5, 7, 10),
)
_define(
    "sparse_linear(Tensor rowptr, Tensor col, Tensor value, Tensor weight, float p, Tensor key) -> Tensor",
    3,
    _fake_sparse_linear,
)
_define(
    "sparse_linear_backward(Tensor rowptr, Tensor col, Tensor rowptr_t, Tensor col_t, Tensor order_t, Tensor value,"
    " Tensor grad, float p, Tensor key) -> Tensor",
    6,
    _fake_sparse_linear_backward,
)
_define("linear(Tensor x, Tensor weight) -> Tensor", 0, _fake_linear)
_define(
    "linear_backward(Tensor x, Tensor weight, Tensor grad, bool need_x) -> (Tensor, Tensor)", 0, _fake_linear_backward
)
_define(
    "layer(Tensor rowptr, Tensor col, Tensor weight, Tensor x, Tensor omega, Tensor map_, bool relu, bool keep)"
    " -> (Tensor, Tensor)",
    3,
    _fake_layer,
)
_define(
    "layer_backward(Tensor rowptr, Tensor col, Tensor weight, Tensor rowptr_t, Tensor col_t, Tensor weight_t, Tensor x,"
    " Tensor omega, Tensor map_, Tensor z, Tensor grad, bool relu, bool need_omega) -> (Tensor, Tensor, Tensor)",
    6,
    _like_each(6, 7, 8),
)
_define("cross_entropy(Tensor logits, Tensor labels, Tensor weights) -> Tensor", 0, _fake_cross_entropy)
_define("cross_entropy_backward(Tensor logits, Tensor labels, Tensor weights, Tensor grad) -> Tensor", 0, _like(0))
_define("dropout(Tensor x, float p, Tensor key) -> Tensor", 0, _like(0))
_define("draw_key(Tensor seeds, Tensor step, int place) -> Tensor", 0, _fake_draw_key)

kernels = torch.ops.omegagnn

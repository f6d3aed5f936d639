"""`positional`: spare an `autograd.Function` the inspection of its own signature at every call."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from torch.autograd import Function

FunctionType = TypeVar("FunctionType", bound=type[Function])


class _Bound:
    """Arguments that were given by position already."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.args = args
        self.kwargs: dict[str, Any] = {}

    def apply_defaults(self) -> None:
        """There are none."""


class _Positional(inspect.Signature):
    """A signature whose binding takes what it is given."""

    def bind(self, *args: Any, **_: Any) -> Any:
        """Return the arguments as they are."""
        return _Bound(args)


def positional(function: FunctionType) -> FunctionType:
    """Declare that a function is always called with all its arguments by position.

    ``Function.apply`` looks up and binds the signature of ``forward`` at every call, which took longer than the work of a
    layer on a small graph. Python lets a function state its signature; this one binds for nothing.
    """
    parameters = list(inspect.signature(function.forward).parameters.values())
    function.__dict__["forward"].__func__.__signature__ = _Positional(parameters)
    return function

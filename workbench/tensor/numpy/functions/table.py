"""The rows of numpy's functions, and the call of one: its arguments by numpy's names.

A row takes the arguments that it has a meaning for, by the names that numpy has for them. Those
that it lacks must be numpy's defaults: another value is refused with words. A function without a
row computes its Tensors, and numpy does the rest.

Source: numpy enhancement proposal 18 (`__array_function__`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from typing import Any, TypeVar

import numpy as np

from workbench.base.errors import short
from workbench.tensor.base import Base
from workbench.tensor.lazily import refuse_to_compute
from workbench.tensor.numpy.functions.reasons import REFUSED, hint_of, reason_of
from workbench.tensor.numpy.promotion import as_tensor
from workbench.tensor.operands.arguments import dtype_error

T = Any  # a Tensor; this room is below the class
Row = Callable[..., Any]
Registered = TypeVar("Registered", bound=Row)
ROWS: dict[str, Row] = {}
"""A function of Tensors for each of numpy's functions that has one, by its name in numpy."""


def row(*names: str) -> Callable[[Registered], Registered]:
    """Register a function as the row of numpy's functions of these names."""

    def register(function: Registered) -> Registered:
        for name in names:
            assert name not in ROWS, name
            ROWS[name] = function
        return function

    return register


def name_of(function: Any) -> str:
    """Return the name of a numpy function: "sum", "linalg.norm"."""
    module = str(function.__module__)
    return f"{module}.{function.__name__}".removeprefix("numpy.")


def apply_function(
    beside: T, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Return what a numpy function makes of arguments with the Tensor `beside` among them.

    Errors: DTypeError for arguments that the row has no meaning for, and for a function that
    writes to a Tensor.
    """
    name = name_of(function)
    if name in ROWS:
        return called(name, function, beside, args, keywords)
    because = reason_of(name)
    if name in REFUSED or isinstance(keywords.get("out"), Base):
        hint = "the result as a new Tensor, or t[index] = value"
        raise dtype_error(f"np.{name} does not take a Tensor", because, hint)
    refuse_to_compute(f"np.{name} needs the values of a Tensor", because, hint_of(name))
    return function(*_computed(args), **_computed(keywords))


def called(
    name: str, function: Any, beside: T, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Return what the row of a function makes of its arguments."""
    row_function = ROWS[name]
    own, theirs = _parameters(row_function), _parameters(function)
    assert own is not None
    more: dict[str, Any] = {"beside": beside} if "beside" in own else {}
    if theirs is None:  # numpy states no names for it
        return row_function(*args, **keywords, **more)
    bound = signature(function).bind(*args, **keywords).arguments
    positional: tuple[Any, ...] = ()
    for key, value in bound.items():
        kind = theirs[key].kind
        if kind is Parameter.VAR_POSITIONAL:
            positional = tuple(value)
        elif kind is Parameter.VAR_KEYWORD:
            more |= value
        elif key in own:
            more[key] = value
        elif not _is_default(key, value, theirs[key].default):
            _refuse(name, key, value)
    if "where" in more:  # it may be the one Tensor among the arguments
        more["a"] = as_tensor(more["a"], beside)
    return row_function(*positional, **more)


def _refuse(name: str, key: str, value: Any) -> None:
    because = {
        "out": "a Tensor is an expression, and is not written into",
        "where": "the elements that it leaves out are not told apart here",
        "casting": "casts are those of 'same_kind', numpy's default",
        "order": "elements are in row-major order",
    }.get(key, "the Tensor's expression of it has no such argument")
    hint = f"np.where(mask, t, ..) before np.{name}" if key == "where" else f"np.{name} without it"
    raise dtype_error(f"np.{name}: {key}={short(value)} is not computed for Tensors", because, hint)


_MEANINGLESS: dict[str, tuple[Any, ...]] = {
    "order": ("K", "C", "A", None),
    "subok": (True, False),
    "copy": (True, False, None),
    "device": ("cpu", None),
    "casting": ("same_kind", "safe", "unsafe"),
    "optimize": (True, False, "greedy", "optimal"),
    "kind": (None, "quicksort", "mergesort", "heapsort", "stable", "sort", "table"),
    "stable": (None, True, False),
    "assume_unique": (True, False),
    "like": (None,),
}
"""Arguments that change nothing in a Tensor's expression, with their values."""


def _is_default(key: str, value: Any, default: Any) -> bool:
    if value is default or isinstance(value, Base | np.ndarray):
        return value is default
    return value == default or value in _MEANINGLESS.get(key, ())


@cache
def _parameters(function: Any) -> dict[str, Parameter] | None:
    try:
        return dict(signature(function).parameters)
    except ValueError:
        return None


def _computed(value: Any) -> Any:
    """Return an argument with the values of the Tensors in it."""
    if isinstance(value, Base):
        return value.numpy()  # type: ignore[attr-defined]
    if type(value) in (list, tuple):
        return type(value)(_computed(part) for part in value)
    if type(value) is dict:
        return {key: _computed(part) for key, part in value.items()}
    return value

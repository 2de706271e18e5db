"""Reading arguments that are plain values: numbers, whole numbers, flags and lists.

A value of another kind is refused here, in words, before it can fail somewhere below.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from workbench.base.dtypes import Const
from workbench.tensor.refuse import dtype_error, shape_error

MOST_AXES = 64
"""numpy has no more."""


def plain(given: Any) -> Any:
    """Return numpy's scalars as Python's, and all else as it is."""
    return given.item() if isinstance(given, np.generic) else given


def number(given: Any, name: str) -> Const:
    """Return a bool, an int or a float. `name` says whose it is.

    Errors: DTypeError for anything else, and for an int beyond every float.
    """
    found = plain(given)
    if isinstance(found, float) or (
        isinstance(found, int) and found.bit_length() < 1024
    ):
        return found
    raise _another_kind(given, name, "a number: a Python or numpy bool, int or float")


def whole(given: Any, name: str, least: int | None = None) -> int:
    """Return an integer, which is not below `least`.

    Errors: DTypeError for what is no integer, ShapeError for one that is too small.
    """
    if isinstance(given, bool | np.bool_ | np.ndarray):
        raise _another_kind(given, name, "an integer")
    try:
        found = operator.index(given)
    except TypeError:
        raise _another_kind(given, name, "an integer") from None
    if least is not None and found < least:
        raise shape_error(f"{name} = {found} is too small", f"it is {least} or more")
    return found


def flag(given: Any, name: str) -> bool:
    """Return whether a switch is on. Errors: DTypeError unless it is a bool or an integer."""
    if isinstance(given, bool | int | np.bool_ | np.integer):
        return bool(given)
    raise _another_kind(given, name, "True or False")


def text(given: Any, name: str) -> str:
    """Return a word. Errors: DTypeError for what is none."""
    if isinstance(given, str):
        return given
    raise _another_kind(given, name, "a word in quotes")


def listed(given: Any, name: str) -> tuple[Any, ...]:
    """Return the items of a list, tuple, short range or 1-D array.

    Errors: DTypeError for anything else, which may never end or have no order.
    """
    if isinstance(given, list | tuple):
        return tuple(given)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        return tuple(given.tolist())
    if isinstance(given, range) and len(given[: MOST_AXES + 1]) <= MOST_AXES:
        return tuple(given)
    raise _another_kind(given, name, "a list or a tuple")


def short(value: object) -> str:
    """Return how a value prints, cut to 40 characters."""
    printed = repr(value)
    return printed if len(printed) <= 40 else printed[:37] + "..."


def _another_kind(given: object, name: str, kind: str) -> Exception:
    return dtype_error(
        f"{name}: {short(given)} does not fit",
        f"it is {kind}, and this is {type(given).__name__}",
    )

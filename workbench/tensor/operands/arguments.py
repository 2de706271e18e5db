"""Errors of the front end with the user's line, and checks of arguments that are plain values.

A value of another kind is refused here, before it can fail in a lower layer.

Sections: Errors of the front end; Checks of arguments that are plain values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from typing import Any, NoReturn

import numpy as np

from workbench.base.dtypes import Const
from workbench.base.errors import (
    AxisError,
    DeviceError,
    DTypeError,
    GradientError,
    ShapeError,
    type_name,
)
from workbench.base.errors import short as short
from workbench.base.source import user_line

# --------------------------------------------------------------------------------------------------
# Errors of the front end: what failed, because of what, a hint, and the user's line.


def shape_error(what: str, because: str, hint: str) -> ShapeError:
    """Return the error for shapes that do not fit, with the user's line."""
    return ShapeError(what, because, hint, where())


def axis_error(what: str, because: str, hint: str) -> AxisError:
    """Return the error for an axis or an index out of range, with the user's line."""
    return AxisError(what, because, hint, where())


def dtype_error(what: str, because: str, hint: str) -> DTypeError:
    """Return the error for a dtype or a value that does not fit, with the user's line."""
    return DTypeError(what, because, hint, where())


def device_error(what: str, because: str, hint: str) -> DeviceError:
    """Return the error for a device that cannot do an operation, with the user's line."""
    return DeviceError(what, because, hint, where())


def gradient_error(what: str, because: str, hint: str) -> GradientError:
    """Return the error for a gradient that does not exist, with the user's line."""
    return GradientError(what, because, hint, where())


_SYNONYMS = {
    "keepdims": ("keepdim",),
    "axis": ("dim",),
    "axes": ("axis", "dim"),
    "dim": ("axis",),
    "dims": ("axis", "dim"),
    "ddof": ("correction",),
    "min": ("min_",),
    "max": ("max_",),
    "a_min": ("min_",),
    "a_max": ("max_",),
}
"""What arguments of numpy, PyTorch and tinygrad are called here."""


def refuse_keywords(method: Callable[..., Any], named: Mapping[str, object]) -> NoReturn:
    """Raise DTypeError, which is a TypeError, for arguments that a method does not have."""
    own = [p.name for p in signature(method).parameters.values() if p.kind is not p.VAR_KEYWORD]
    raise keyword_error(method.__name__, next(iter(named.items())), own[1:])


def keyword_error(name: str, argument: tuple[str, object], own: Sequence[str]) -> DTypeError:
    """Return the error for an argument, a name and a value, that a method does not have. `own` are
    the names of those that it has."""
    key, value = argument
    near = [each for each in _SYNONYMS.get(key, ()) if each in own]
    near = near or get_close_matches(key, own, 1)
    if near:
        hint = f"{near[0]}={short(value)}"
    elif key != "out" and key in _arguments_of_numpy(name):
        hint = f"np.{name}(t, .., {key}={short(value)}), numpy's function of a Tensor"
    else:
        hint = f"t.{name}({', '.join(f'{each}=..' for each in own)})"
    return dtype_error(
        f"{name}() got an unexpected keyword argument {key!r}",
        f"a Tensor's {name} takes {', '.join(own) or 'none'}",
        hint,
    )


def _arguments_of_numpy(name: str) -> list[str]:
    try:
        return list(signature(getattr(np, name)).parameters)
    except (AttributeError, TypeError, ValueError):
        return []


def where() -> str:
    """Return the place of the user's line, as "In[3], line 2"; "" where there is none."""
    line = user_line()
    return "" if line is None else line.where


# --------------------------------------------------------------------------------------------------
# Checks of arguments that are plain values.

MOST_AXES = 64
"""The most axes that numpy has."""


def python_scalar(value: Any) -> Any:
    """Return a numpy scalar as a Python one, other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def number(value: Any, name: str) -> Const:
    """Return a Python or numpy bool, int or float as a Python one. `name` is for errors, as
    "elu: alpha".

    Errors: DTypeError for anything else, and for an int of 1024 bits or more.
    """
    scalar = python_scalar(value)
    if isinstance(scalar, float) or (isinstance(scalar, int) and scalar.bit_length() < 1024):
        return scalar
    raise _another_kind(value, name, "a number: a Python or numpy bool, int or float", "0.5")


def finite(value: Any, name: str, least: float | None = None) -> float:
    """Return a finite number as a float; with `least`, one from there.

    Errors: DTypeError for another value.
    """
    try:
        real = float(number(value, name))
    except OverflowError:  # an int of 1024 bits
        real = math.inf
    if not math.isfinite(real) or (least is not None and real < least):
        because = f"it must be a finite number{'' if least is None else f', {least:g} or more'}"
        hint = _as_argument(name, f"{0.5 if least is None else least:g}")
        raise dtype_error(f"{name} = {short(value)} does not fit", because, hint)
    return real


def whole(value: Any, name: str, least: int | None = None) -> int:
    """Return an integer; with `least`, one from there to 2**63 - 1.

    Errors: DTypeError for a value that is not an integer, ShapeError outside of that range.
    """
    example = str(max(1, least or 0))
    if isinstance(value, bool | np.bool_ | np.ndarray):
        raise _another_kind(value, name, "an integer", example)
    try:
        integer = operator.index(value)
    except TypeError:
        raise _another_kind(value, name, "an integer", example) from None
    if least is not None and integer < least:
        because = f"it must be {least} or more"
        hint = _as_argument(name, str(least))
        raise shape_error(f"{name} = {short(integer)} is too small", because, hint)
    if least is not None and integer >= 1 << 63:
        because = "positions are 64-bit integers"
        raise shape_error(f"{name} = {short(integer)} is too large", because, "one below 2**63")
    return integer


def flag(value: Any, name: str) -> bool:
    """Return a flag as a bool. Errors: DTypeError unless it is a bool: the 1 of x.sum(0, 1) is
    meant as an axis."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise _another_kind(value, name, "True or False", str(bool(_integer(value))))


def text(value: Any, name: str, example: str) -> str:
    """Return a string. Errors: DTypeError for a value of another type."""
    if isinstance(value, str):
        return value
    raise _another_kind(value, name, "a word in quotes", f'"{example}"')


def choice(value: Any, name: str, words: Sequence[str], hint: str = "") -> str:
    """Return a string that is one of `words`. Errors: DTypeError for another value."""
    if text(value, name, words[0]) in words:
        return str(value)
    near = get_close_matches(str(value)[:60].lower(), words, 1) or words[:1]
    method, colon, parameter = name.rpartition(": ")
    raise dtype_error(
        f"{method}{colon}there is no {parameter} {short(value)}",
        "it must be " + " or ".join(f'"{word}"' for word in words),
        hint or _as_argument(name, f'"{near[0]}"'),
    )


def listed(
    items: Any, name: str, example: str = "(1, 1)", kind: str = "a list or a tuple"
) -> tuple[Any, ...]:
    """Return the items of a list, tuple, 1-D array, or range of at most MOST_AXES items. `kind`,
    for errors, has what else the caller takes.

    Errors: DTypeError for others: an iterable may be endless or unordered.
    """
    if isinstance(items, list | tuple):
        return tuple(items)
    if isinstance(items, np.ndarray) and items.ndim == 1:
        return tuple(items.tolist())
    if isinstance(items, range) and len(items[: MOST_AXES + 1]) <= MOST_AXES:
        return tuple(items)
    raise _another_kind(items, name, kind, example)


def _another_kind(value: object, name: str, kind: str, example: str) -> Exception:
    """Return the error for a value of another type; `example` is one that fits."""
    same = _integer(value) if kind == "an integer" else None
    return dtype_error(
        f"{name}: {short(value)} does not fit",
        f"it must be {kind}, and this is {type_name(type(value))}",
        _as_argument(name, example if same is None else str(same)),
    )


def _as_argument(name: str, value: str) -> str:
    """Return "alpha=0.5" for "elu: alpha" and "0.5"."""
    parameter = name.rpartition(": ")[2]
    return f"{parameter}={value}" if parameter.isidentifier() else value


def _integer(value: object) -> int | None:
    """Return the integer that a value is in another type, as 2.0 and "2" are; None for others."""
    if not isinstance(value, bool | int | float | str | np.integer | np.floating):
        return None
    try:
        integer = int(value)
        return integer if integer == float(value) else None
    except (ValueError, OverflowError):
        return None

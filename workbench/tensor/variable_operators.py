"""Arithmetic of bound variables; nests, which are lists, tuples and dicts with tensors.

Sections: Arithmetic of a bound variable; Nests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np

from workbench.tensor.operands.broadcast import BoundVariable
from workbench.tensor.tensor import Tensor

# --------------------------------------------------------------------------------------------------
# Arithmetic of a bound variable: a Tensor, since a variable is data that a kernel reads.

OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"),
    *("and", "or", "xor", "lshift", "rshift"),
)
COMPARISONS = ("lt", "le", "gt", "ge")


def _operator(name: str) -> Callable[[BoundVariable, Any], Any]:
    def apply(self: BoundVariable, other: Any) -> Any:
        if isinstance(other, Tensor):  # which takes a variable as it takes a number
            return NotImplemented
        return getattr(Tensor(self), name)(other)

    apply.__name__ = name
    return apply


for _name in (*OPERATORS, *(f"r{name}" for name in OPERATORS), *COMPARISONS):
    setattr(BoundVariable, f"__{_name}__", _operator(f"__{_name}__"))
setattr(BoundVariable, "__neg__", lambda self: -Tensor(self))  # noqa: B010


# --------------------------------------------------------------------------------------------------
# Nests: nested lists, tuples and dicts, with tensors and other leaves.


class Hole:
    """Placeholder for a tensor in a nest whose other parts are compared."""

    def __repr__(self) -> str:
        return "a tensor"


HOLE = Hole()


def tensors(nest: Any) -> Iterator[Tensor]:
    """Yield the tensors of a nest, in order."""
    if isinstance(nest, Tensor):
        yield nest
    elif isinstance(nest, list | tuple):
        for part in nest:
            yield from tensors(part)
    elif isinstance(nest, dict):
        for part in nest.values():
            yield from tensors(part)


def changed(nest: Any, change: Callable[[Any], Any]) -> Any:
    """Return a nest of the same structure and types, with `change(leaf)` for every leaf."""
    if isinstance(nest, dict):
        parts = {key: changed(part, change) for key, part in nest.items()}
        if type(nest) is dict:
            return parts
        other = copy(nest)
        for key, part in parts.items():
            other[key] = part
        return other
    if not isinstance(nest, list | tuple):
        return change(nest)
    items = [changed(part, change) for part in nest]
    if isinstance(nest, tuple):  # a named one, too
        return tuple.__new__(type(nest), items)
    if type(nest) is list:
        return items
    twin = copy(nest)
    twin[:] = items
    return twin


def without_tensors(nest: Any) -> Any:
    """Return a nest with HOLE for each tensor."""
    return changed(nest, lambda leaf: HOLE if isinstance(leaf, Tensor) else leaf)


def with_tensors(nest: Any, replacements: Iterator[Tensor]) -> Any:
    """Return a nest with the next of `replacements` for each tensor."""
    return changed(nest, lambda leaf: next(replacements) if isinstance(leaf, Tensor) else leaf)


def equal_nests(a: Any, b: Any) -> bool:
    """Whether two nests without tensors are equal; leaves that cannot be compared are not.

    Floats are compared as constants: -0.0 is not 0.0, since 1 / -0.0 differs from 1 / 0.0; and NaN
    equals NaN.
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal_nests(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal_nests, a, b))
    if isinstance(a, complex | np.complexfloating):
        return equal_nests(a.real, b.real) and equal_nests(a.imag, b.imag)
    if isinstance(a, float | np.floating):
        if a != a or b != b:
            return bool(a != a and b != b)
        return bool(a == b and np.signbit(a) == np.signbit(b))
    try:
        return a is b or bool(a == b)
    except Exception:  # any error of a user's ==
        return False

"""Arithmetic of a bound variable: a Tensor, since a variable is data that a kernel reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.tensor.operands.broadcast import BoundVariable
from workbench.tensor.tensor import Tensor

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

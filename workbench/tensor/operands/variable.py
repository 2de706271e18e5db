"""Variables: whole numbers that a kernel reads when it runs, so that one kernel serves all values.

A variable is data, as in `x * i.bind(3)`, `x[i.bind(3)]` or `Tensor(i.bind(3))`; it is not a size.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.tensor.operands.arguments import short, text, whole
from workbench.tensor.operands.refuse import shape_error


@dataclass(frozen=True, slots=True)
class Variable:
    """A whole number from `min_val` to `max_val`, both included.

    Errors: DTypeError for a name that is not text, or ends that are not integers; ShapeError for
    ends that nothing lies between.

    >>> from workbench import Tensor, Variable
    >>> (Tensor([1, 2]) * Variable("i", 1, 10).bind(3)).tolist()
    [3, 6]
    """

    name: str
    min_val: int
    max_val: int

    def __post_init__(self) -> None:
        text(self.name, "Variable: name")
        low = whole(self.min_val, "Variable: min_val")
        high = whole(self.max_val, "Variable: max_val")
        if low > high:
            raise shape_error(
                f"Variable: min_val = {short(low)} and max_val = {short(high)}",
                "no number lies between them",
            )

    def bind(self, val: int) -> BoundVariable:
        """Return the variable with a value. Errors: ShapeError for one that is out of range."""
        value = whole(val, "bind: val")
        if not self.min_val <= value <= self.max_val:
            raise shape_error(
                f"bind: {self.name:.40} cannot be {short(value)}",
                f"it is a number from {short(self.min_val)} to {short(self.max_val)}",
            )
        return BoundVariable(self, value)


@dataclass(frozen=True, slots=True, eq=False)
class BoundVariable:
    """A variable with a value, which a Tensor, or an operand of one, can be made of. Arithmetic on
    it is a Tensor (`tensor/variable_operators.py`); it equals its value."""

    variable: Variable
    val: int

    def unbind(self) -> tuple[Variable, int]:
        """Return the variable, and the value."""
        return self.variable, self.val

    def __int__(self) -> int:
        return self.val

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BoundVariable):
            return (self.variable, self.val) == (other.variable, other.val)
        return self.val == other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.val)

"""Promotion of operands to one dtype, and broadcasting to one shape.

Arrays promote by `dtypes.promote`. Python scalars are weak, and so are tensors that were made of
them alone without a dtype: they take the dtype of the tensor beside them, unless they are of a
higher kind (bool < int < float), and then the default dtype of that kind. An int out of range of
the tensor's dtype is an error, as in numpy 2; wrapped, it would be another number.

Sections: Promotion of operands to one dtype, and broadcasting to one shape; Variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workbench.base.dtypes import Const, DType, dtypes, promote
from workbench.base.errors import DTypeError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.pickles import pickled
from workbench.tensor.operands.arguments import dtype_error, shape_error, short, text, whole

# --------------------------------------------------------------------------------------------------
# Promotion of operands to one dtype, and broadcasting to one shape.


def scalar_dtype(value: Const) -> DType:
    """Return the dtype of a Python scalar on its own, as `dtypes.of` does.

    Errors: DTypeError if an int does not fit 64 bits.
    """
    try:
        return dtypes.of(value)
    except DTypeError as error:
        raise dtype_error(error.what, error.because, error.hint) from None


def constant(dtype: DType, value: Const, what: str) -> UOp:
    """Return the Python scalar `value` as `dtype`; a float is truncated to an integer type.

    Errors: DTypeError for a number out of range of an integer type, or not finite; `what` names the
    operation.
    """
    if dtype.is_int and isinstance(value, float):
        # Compared as integers: as a float, the greatest int64 is 2**63.
        if not (math.isfinite(value) and dtype.min <= int(value) <= dtype.max):
            raise dtype_error(
                f"cannot {what}: {dtype} does not hold the number {short(value)}",
                f"it holds integers from {dtype.min} to {dtype.max}",
                "dtypes.float32, which does",
            )
    elif dtype.is_int and not dtype.min <= value <= dtype.max:
        raise dtype_error(
            f"cannot {what}: {dtype} does not hold the number {short(value)}",
            f"it holds integers from {dtype.min} to {dtype.max}",
            f"dtypes.{scalar_dtype(value)}, which does",
        )
    return UOp.const(dtype, value)


def weak_dtype(dtype: DType, alone: DType) -> DType:
    """Return the dtype that a tensor of `dtype` promotes to with a scalar. Alone the scalar has the
    dtype `alone`; it counts only where that is of a higher kind (bool < int < float)."""
    if alone.is_bool or dtype.is_float:
        return dtype
    if alone.is_float:
        return alone
    return alone if dtype.is_bool else dtype


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype that formulas and sums of `dtype` are computed in: float32 for floats below
    32 bits, else `dtype`."""
    return dtypes.float32 if dtype.is_low_precision else dtype


def cast_to(value: UOp, dtype: DType) -> UOp:
    """Return `value` as `dtype`; a constant is converted at once."""
    if value.is_const:
        return UOp.const(dtype, value.arg)
    return value.cast(dtype)


def promoted(*values: UOp) -> tuple[UOp, ...]:
    """Return `values`, all cast to the dtype that they promote to."""
    dtype = values[0].dtype
    for value in values[1:]:
        dtype = promote(dtype, value.dtype)
    return tuple(cast_to(value, dtype) for value in values)


def promoted_operands(what: str, operands: Sequence[tuple[UOp, bool]]) -> tuple[UOp, ...]:
    """Return values, each with whether it is weak, all cast to the dtype that they promote to.

    Errors: DTypeError for a weak integer that the others' dtype does not hold; `what` names the
    operation.
    """
    strong = [value for value, is_weak in operands if not is_weak]
    if len(strong) in (0, len(operands)):
        return promoted(*[value for value, _ in operands])
    dtype = promoted(*strong)[0].dtype
    for value, is_weak in operands:
        dtype = weak_dtype(dtype, value.dtype) if is_weak else dtype
    return tuple(
        constant(dtype, value.arg, what) if value.is_const else cast_to(value, dtype)
        for value, _ in operands
    )


def matched(what: str, *values: UOp) -> tuple[UOp, ...]:
    """Return `values` expanded to their common shape; constants stay as they are.

    Errors: ShapeError naming both shapes if they do not broadcast; `what` names the operation.
    """
    shape = common_shape(what, *[v.shape for v in values])
    return tuple(v if v.is_const else expanded(v, shape) for v in values)


def filled(*values: UOp) -> tuple[UOp, ...]:
    """Return `values`, constants among them expanded to the shape the others have.

    For formulas that first combine a constant with itself: the result is not a constant, and only
    constants fit any shape. If all are constants, they stay scalars.
    """
    shape = next((v.shape for v in values if not v.is_const), ())
    return tuple(expanded(v, shape) for v in values)


def common_shape(
    what: str, *shapes: Shape, refusal: Callable[..., Exception] = shape_error
) -> Shape:
    """Return the shape that `shapes` broadcast to, numpy's way: aligned at the last axis.

    Errors: ShapeError, or what `refusal` makes, if two sizes of an axis differ and neither is 1.
    """
    if len(set(shapes)) == 1:
        return shapes[0]
    ndim = max(map(len, shapes))
    sizes: list[int] = []
    for axis in range(-ndim, 0):
        wide = {s[axis] for s in shapes if len(s) >= -axis and s[axis] != 1}
        if len(wide) > 1:
            raise refusal(*_mismatch(what, shapes, axis))
        sizes.append(wide.pop() if wide else 1)
    return tuple(sizes)


def expanded(value: UOp, shape: Shape) -> UOp:
    """Return `value` broadcast to `shape`, which must fit."""
    if value.shape == shape:
        return value
    return UOp(Ops.EXPAND, value.dtype, (value,), shape)


def _mismatch(what: str, shapes: tuple[Shape, ...], axis: int) -> tuple[str, str, str]:
    """Return what / because / try of shapes that do not broadcast."""
    conflicts = dict.fromkeys(s for s in shapes if len(s) >= -axis and s[axis] != 1)
    sizes = " and ".join(str(s[axis]) for s in conflicts)
    place = max(map(len, shapes)) + axis
    return (
        f"cannot {what}: shapes {' and '.join(map(str, shapes))} do not broadcast",
        f"axis {place} has {sizes}, and only size 1 is repeated to fit",
        "reshape, unsqueeze or transpose one of them so that the sizes agree",
    )


# --------------------------------------------------------------------------------------------------
# Variables: whole numbers that a kernel reads when it runs, so that one kernel serves all values.
#
# A variable is data, as in `x * i.bind(3)`, `x[i.bind(3)]` or `Tensor(i.bind(3))`; it is not a
# size.


@pickled
@dataclass(frozen=True, slots=True)
class Variable:
    """A whole number from `min_val` to `max_val`, both included.

    Errors: DTypeError for a name that is not text, or ends that are not integers; ShapeError for a
    `min_val` above `max_val`.

    >>> from workbench import Tensor, Variable
    >>> (Tensor([1, 2]) * Variable("i", 1, 10).bind(3)).tolist()
    [3, 6]
    """

    name: str
    min_val: int
    max_val: int

    def __post_init__(self) -> None:
        text(self.name, "Variable: name", "n")
        low = whole(self.min_val, "Variable: min_val")
        high = whole(self.max_val, "Variable: max_val")
        if low > high:
            raise shape_error(
                f"Variable: min_val = {short(low)} and max_val = {short(high)}",
                "no number lies between them",
                f"min_val={short(high)}, max_val={short(low)}",
            )

    def bind(self, val: int) -> BoundVariable:
        """Return the variable with a value. Errors: ShapeError for one that is out of range."""
        value = whole(val, "bind: val")
        if not self.min_val <= value <= self.max_val:
            raise shape_error(
                f"bind: {self.name:.40} cannot be {short(value)}",
                f"it is a number from {short(self.min_val)} to {short(self.max_val)}",
                f"bind({short(self.max_val)})",
            )
        return BoundVariable(self, value)


@pickled
@dataclass(frozen=True, slots=True, eq=False)
class BoundVariable:
    """A variable with a value: data for a Tensor, or an operand of one. Arithmetic on it returns a
    Tensor (`tensor/variable_operators.py`). It equals its value as an int."""

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

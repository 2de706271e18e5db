"""Comparisons, equality but for rounding, chained functions, and casts.

Sections: Comparisons; Equality of two tensors but for rounding; Chained operands and functions;
Casts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Self

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base, Operand
from workbench.tensor.files import is_file, reinterpreted
from workbench.tensor.operands.arguments import (
    dtype_error,
    flag,
    listed,
    number,
    python_scalar,
    shape_error,
    short,
)
from workbench.tensor.operands.broadcast import cast_to, expanded
from workbench.tensor.operands.literal import as_dtype, bits_as

# --------------------------------------------------------------------------------------------------
# Comparisons: bool tensors, with IEEE's rule that NaN differs from everything.


class ComparisonMixin(Base):
    """< <= > >= == !=, by operator and by PyTorch's names.

    Dtypes: operands promote; the result is bool. A Python int out of range of the tensor's integer
    type compares as that number, without wrapping; so does a number beyond 448 beside fp8e4m3.
    """

    __slots__ = ()

    __hash__ = object.__hash__

    def lt(self, x: Operand) -> Self:
        """Return self < x."""
        return self._compare(Ops.CMPLT, x, operator.lt)

    def le(self, x: Operand) -> Self:
        """Return self <= x."""
        return self._compare(Ops.CMPLE, x, operator.le)

    def gt(self, x: Operand) -> Self:
        """Return self > x."""
        return self._compare(Ops.CMPLT, x, operator.gt, swap=True)

    def ge(self, x: Operand) -> Self:
        """Return self >= x."""
        return self._compare(Ops.CMPLE, x, operator.ge, swap=True)

    def eq(self, x: Operand) -> Self:
        """Return self == x."""
        return self._compare(Ops.CMPEQ, x, operator.eq)

    def ne(self, x: Operand) -> Self:
        """Return self != x."""
        return self._compare(Ops.CMPNE, x, operator.ne)

    def isnan(self) -> Self:
        """Return where self is not a number."""
        return self.ne(self)

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        """Return where self is infinite: nowhere in fp8e4m3. `detect_positive=False` leaves out
        inf, `detect_negative=False` -inf."""
        is_above = flag(detect_positive, "isinf: detect_positive")
        is_below = flag(detect_negative, "isinf: detect_negative")
        has_infinity = self.dtype.is_float and not self.dtype.saturates
        if not has_infinity or not (is_above or is_below):
            return self._with(expanded(UOp.const(dtypes.bool, False), self.shape))
        if is_above and is_below:
            return self.abs().eq(math.inf)
        return self.eq(math.inf if is_above else -math.inf)

    def isfinite(self) -> Self:
        """Return where self is a number and not infinite."""
        if not self.dtype.is_float:
            return self._with(expanded(UOp.const(dtypes.bool, True), self.shape))
        return self.eq(self) if self.dtype.saturates else self.abs().lt(math.inf)

    def _compare(
        self, op: Ops, x: Operand, python: Callable[[Any, Any], Any], swap: bool = False
    ) -> Self:
        x = python_scalar(x)
        if self.dtype.is_int and type(x) is int and not self._holds(x):
            # Every value of the type compares with x as 0 does, since x is out of range.
            answer = UOp.const(dtypes.bool, python(0, x))
            return self._with(expanded(answer, self.shape))
        mine = self._beside(x)
        a, b, other = mine._matched(x, "compare")
        a, b = (b, a) if swap else (a, b)
        return self._with(a.alu(op, b), other)

    def _beside(self, x: Operand) -> Self:
        """Return self, in float32 if `x` is a number that saturates in this dtype."""
        if self.dtype.saturates and isinstance(x, int | float):
            is_held = abs(x) <= self.dtype.const(math.inf)
            return self if is_held else self._with(cast_to(self.uop, dtypes.float32))
        return self

    def _holds(self, value: int) -> bool:
        return self.dtype.min <= value <= self.dtype.max

    __lt__, __le__, __gt__, __ge__ = lt, le, gt, ge
    # The elements are compared, as in numpy, where Python expects a bool.
    __eq__, __ne__ = eq, ne  # type: ignore[assignment]


# --------------------------------------------------------------------------------------------------
# Equality of two tensors but for rounding.


class Closeness(Base):
    """isclose, allclose."""

    __slots__ = ()

    def isclose(
        self, other: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> Self:
        """Return where |self - other| is at most atol + rtol * |other|.

        Infinities are close to themselves alone; NaN to NaN with `equal_nan`, else to nothing.
        Dtypes: operands promote. Errors: DTypeError for a negative tolerance.
        """
        return self._close("isclose", other, rtol, atol, equal_nan)

    def allclose(
        self, other: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> Self:
        """Return, as a tensor without axes, whether all elements are close, as in `isclose`."""
        return self._close("allclose", other, rtol, atol, equal_nan).all()

    def _close(self, what: str, other: Operand, rtol: float, atol: float, equal_nan: bool) -> Self:
        relative, absolute = (number(rtol, f"{what}: rtol"), number(atol, f"{what}: atol"))
        nan_is_close = flag(equal_nan, f"{what}: equal_nan")
        if not (relative >= 0 and absolute >= 0):
            fault = f"{what}: rtol={rtol} and atol={atol} do not fit"
            raise dtype_error(fault, "a tolerance is 0 or more", "rtol=1e-05, atol=1e-08")
        a, b, theirs = self._matched(other, "compare")
        mine, theirs = self._with(a, theirs), theirs._with(b, self)
        if a.dtype.is_bool:
            mine, theirs = mine.cast(dtypes.int32), theirs.cast(dtypes.int32)
        # Equal elements are close: infinities, too, whose difference is not a number.
        close = mine.eq(theirs)
        limit = theirs.abs() * relative + absolute
        near = (mine - theirs).abs().le(limit)
        if mine.dtype.is_float:
            near = near & theirs.isfinite() & mine.isfinite()
            if nan_is_close:
                close = close | (mine.isnan() & theirs.isnan())
        return close | near


# --------------------------------------------------------------------------------------------------
# Chained operands and functions.


class Several(Base):
    """usum, uprod, ufix, sequential."""

    __slots__ = ()

    def usum(self, *uops: Operand) -> Self:
        """Return the sum of this tensor and `uops`."""
        return reduce(lambda total, x: total + x, uops, self)

    def uprod(self, *uops: Operand) -> Self:
        """Return the product of this tensor and `uops`."""
        return reduce(lambda total, x: total * x, uops, self)

    def ufix(self, x: Operand) -> Self:
        """Return `x` as a tensor; a number takes this one's dtype where it fits.

        Errors: DTypeError if it is not a number, an array or a tensor.
        """
        return self._lift(x, "combine")

    def sequential(self, ll: Sequence[Callable[[Any], Any]]) -> Self:
        """Return the result of the functions `ll`, each called with the result of the one before.

        Errors: DTypeError for one that cannot be called.
        """
        result: Any = self
        for layer in listed(ll, "sequential: ll"):
            if not callable(layer):
                raise dtype_error(
                    f"sequential: {short(layer)} cannot be called",
                    "each layer is a function of a tensor",
                    "x.sequential([f, g]), which is g(f(x))",
                )
            result = layer(result)
        return result  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------------------
# Casts: other dtypes of the same values, or of the same bits.


class Casts(Base):
    """cast, bitcast, and short names: `t.float()` for `t.cast(dtypes.float32)`."""

    __slots__ = ()

    def cast(self, dtype: DType | str) -> Self:
        """Return the values as `dtype`; this tensor if it has that dtype. Floats become integers by
        truncation, and saturate."""
        kind = as_dtype(dtype)
        if kind is self.dtype and not self._is_weak:
            return self
        return self._typed(cast_to(self.uop, kind))

    def bitcast(self, dtype: DType | str) -> Self:
        """Return the bits read as `dtype`, the lowest byte of an element first: a view.

        Shapes: the last axis keeps its bytes: it has more elements of a narrower type, and fewer of
        a wider one. Errors: ShapeError if they are no whole elements of `dtype`; DTypeError between
        bools and other types.
        """
        kind = as_dtype(dtype)
        if kind is self.dtype:
            return self
        if is_file(self._device):
            return self._with(reinterpreted(self.uop, kind))
        if kind.is_bool or self.dtype.is_bool:
            raise dtype_error(
                f"cannot bitcast {self.dtype} to {kind}",
                "most bits of a bool's byte have no meaning",
                f".cast(dtypes.{kind}) to convert the values",
            )
        own, size = self.dtype.itemsize, self.shape[-1] if self.ndim else 1
        if own != kind.itemsize and (not self.ndim or size * own % kind.itemsize):
            raise shape_error(
                f"cannot bitcast {self.dtype} of shape {self.shape} to {kind}",
                f"the last axis has {size * own} bytes, and an element {kind.itemsize}"
                if self.ndim
                else "a scalar has no last axis, whose size would change",
                f"a last axis of a multiple of {kind.itemsize} bytes"
                if self.ndim
                else ".reshape(1) first",
            )
        view = self._view(bits_as(self.uop, kind))
        view._is_weak = False
        return view

    def _typed(self, value: UOp) -> Self:
        """Return a tensor whose dtype the user named."""
        tensor = self._with(value)
        tensor._is_weak = False
        return tensor

    def half(self) -> Self:
        """Return the values as float16; larger values become infinite."""
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Return the values as bfloat16: the range of float32, with 8 significant bits."""
        return self.cast(dtypes.bfloat16)

    def float(self) -> Self:
        """Return the values as float32."""
        return self.cast(dtypes.float32)

    def double(self) -> Self:
        """Return the values as float64."""
        return self.cast(dtypes.float64)

    def short(self) -> Self:
        """Return the values as int16; floats truncate and saturate."""
        return self.cast(dtypes.int16)

    def int(self) -> Self:
        """Return the values as int32; floats truncate and saturate."""
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        """Return the values as int64; floats truncate and saturate."""
        return self.cast(dtypes.int64)

    def bool(self) -> Self:
        """Return where the values are not 0."""
        return self.cast(dtypes.bool)

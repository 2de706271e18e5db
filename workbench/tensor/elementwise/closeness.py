"""Equality of two tensors but for rounding."""

from __future__ import annotations

from typing import Self

from workbench.base.dtypes import dtypes
from workbench.tensor.base import Base, Operand
from workbench.tensor.operands.arguments import flag, number
from workbench.tensor.operands.refuse import dtype_error


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
            raise dtype_error(
                f"{what}: rtol={rtol} and atol={atol} do not fit", "a tolerance is 0 or more"
            )
        a, b, theirs = self._meet(other, "compare")
        mine, theirs = self._with(a, theirs), theirs._with(b, self)
        if a.dtype.is_bool:
            mine, theirs = mine.cast(dtypes.int32), theirs.cast(dtypes.int32)
        # What is equal is close: so are infinities, whose difference is not a number.
        close = mine.eq(theirs)
        limit = theirs.abs() * relative + absolute
        near = (mine - theirs).abs().le(limit)
        if mine.dtype.is_float:
            near = near & theirs.isfinite() & mine.isfinite()
            if nan_is_close:
                close = close | (mine.isnan() & theirs.isnan())
        return close | near

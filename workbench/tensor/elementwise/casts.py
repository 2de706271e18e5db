"""Casts: other dtypes of the same values, or of the same bits."""

from __future__ import annotations

from typing import Self

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.files import is_file, reinterpreted
from workbench.tensor.operands.broadcast import cast_to
from workbench.tensor.operands.literal import as_dtype, bits_as
from workbench.tensor.operands.refuse import dtype_error, shape_error


class Casts(Base):
    """cast, bitcast, and short names: `t.float()` for `t.cast(dtypes.float32)`."""

    __slots__ = ()

    def cast(self, dtype: DType | str) -> Self:
        """Return the values as `dtype`, itself if it has that. Floats truncate towards zero and
        saturate as integers."""
        kind = as_dtype(dtype)
        if kind is self.dtype and not self._is_weak:
            return self
        return self._typed(cast_to(self.uop, kind))

    def bitcast(self, dtype: DType | str) -> Self:
        """Return the bits read as `dtype`, the lowest byte of an element first: a view.

        Shapes: the last axis has more elements of a narrower type, fewer of a wider one; its bytes
        stay. Errors: ShapeError where they are not whole elements of `dtype`; DTypeError between
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
                ".reshape(1) first" if not self.ndim else "",
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
        """Return the values as float16; what is too large is infinite."""
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Return the values as bfloat16, which has the range of float32 and 8 bits of it."""
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

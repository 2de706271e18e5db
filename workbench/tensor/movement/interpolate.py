"""Interpolation: tensors resampled to another size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import flag, short, text
from workbench.tensor.operands.axes import sizes
from workbench.tensor.operands.broadcast import wide_dtype
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.operands.refuse import dtype_error, shape_error

_MODES = ("linear", "nearest", "nearest-exact")


class Interpolation(Base):
    """interpolate."""

    __slots__ = ()

    def interpolate(
        self, size: Sequence[int], mode: str = "linear", align_corners: bool = False
    ) -> Self:
        """Return the last len(size) axes resampled to `size`; the axes before them stay.

        "linear" weighs the two elements beside a place on each axis (of two axes bilinear, of
        three trilinear), "nearest" takes the one at the start of its share, as PyTorch always did,
        "nearest-exact" the one at its middle. With `align_corners` the first and the last
        elements keep their places; otherwise elements are the middles of their shares.
        Dtypes: the tensor's; integers are interpolated as floats and rounded.
        Errors: ShapeError for more sizes than axes, an empty axis, or a size below 1.
        """
        if text(mode, "interpolate: mode") not in _MODES:
            raise dtype_error(
                f"cannot interpolate with mode={mode!r}",
                "the modes are " + ", ".join(_MODES),
                'mode="linear", which is bilinear for a size of two numbers',
            )
        aligned = flag(align_corners, "interpolate: align_corners")
        if aligned and mode != "linear":
            raise dtype_error(
                f"cannot interpolate with mode={mode!r} and align_corners",
                "only elements that are weighed can keep the corners in their places",
                'mode="linear"',
            )
        target = sizes((size,), "interpolate: size")
        first = self.ndim - len(target)
        if first < 0 or 0 in target or 0 in self.shape[first:]:
            raise shape_error(
                f"cannot interpolate shape {self.shape} to {short(size)}",
                "it takes a size, 1 or more, for each of the last axes, none of them empty",
            )
        axes = range(first, self.ndim)
        if target == self.shape[first:]:
            return self._with(self.uop)
        if mode == "linear":
            return self._linear(axes, target, aligned)
        result, shift = self, 0.0 if mode == "nearest" else 0.5
        for axis, count in zip(axes, target, strict=True):
            result = result._nearest(axis, count, shift)
        return result

    def _nearest(self, axis: int, count: int, shift: float) -> Self:
        length = self.shape[axis]
        if count == length:
            return self
        place = _places(count, dtypes.float32, shift) * (length / count)
        return self._elements_at(axis, self._with(_clipped(place, length)))

    def _linear(self, axes: range, target: Sequence[int], aligned: bool) -> Self:
        kind = self.dtype if self.dtype.is_float else dtypes.float32
        result = self.cast(wide_dtype(kind))
        for axis, count in zip(axes, target, strict=True):
            result = result._blended(axis, count, aligned)
        return (result if self.dtype.is_float else result.round()).cast(self.dtype)

    def _blended(self, axis: int, count: int, aligned: bool) -> Self:
        """Return the sum of the two elements beside each place, weighed by their distances."""
        length = self.shape[axis]
        if count == length:
            return self
        if aligned:
            step = (length - 1) / (count - 1) if count > 1 else 0.0
            place = _places(count, self.dtype, 0.0) * step
        else:
            place = _places(count, self.dtype, 0.5) * (length / count) + -0.5
            place = place.max(place.like(0))
        low = _clipped(place, length)
        high = (low + 1).min(low.like(length - 1))
        column = (count,) + (1,) * (self.ndim - 1 - axis)
        weight = self._with(reshaped(place + -low.cast(self.dtype), column))
        first, second = (self._elements_at(axis, self._with(n)) for n in (low, high))
        return first * (1 - weight) + second * weight


def _places(count: int, dtype: DType, shift: float) -> UOp:
    """Return 0 + shift, 1 + shift, .. as floats, which PyTorch counts in."""
    return numbered(count, dtype) + shift


def _clipped(place: UOp, length: int) -> UOp:
    """Return the integer part of a place, at most that of the last element."""
    whole = place.cast(dtypes.int32)
    return whole.min(whole.like(length - 1))

"""Padding with a constant or with elements of the tensor; interpolation to another size.

Sections: Padding; Interpolation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from workbench.base.dtypes import Const, DType, dtypes
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.joining import joined
from workbench.tensor.movement.movement import (
    Box,
    box_pairs,
    flipped,
    padded,
    pairs_text,
    reshaped,
    shrunk,
    slab,
)
from workbench.tensor.operands.arguments import (
    choice,
    dtype_error,
    flag,
    listed,
    number,
    shape_error,
    short,
)
from workbench.tensor.operands.axes import flat, iota, sizes
from workbench.tensor.operands.broadcast import constant, expanded, wide_dtype

# --------------------------------------------------------------------------------------------------
# Padding.

_MODES = ("constant", "reflect", "replicate", "circular")


class Padding(Base):
    """pad, pad_to, shrink_to."""

    __slots__ = ()

    def pad(self, padding: Sequence[Any], mode: str = "constant", value: Const = 0.0) -> Self:
        """Return the tensor with elements added around it.

        `mode` is "constant" for `value`, "reflect" for the tensor mirrored at its first and last
        elements, "replicate" for these elements, "circular" for the elements of the other end.
        Shapes: `padding` is a (before, after) or None per axis, or PyTorch's flat form: before and
        after of the last axis, then of the one before it. A negative number removes elements.
        Dtypes: the tensor's; a float `value` is truncated to an integer type.
        Errors: ShapeError if `padding` fits neither form, removes too many elements, or needs more
        than there are; DTypeError for an integer `value` out of range of the tensor's type.
        """
        choice(mode, "pad: mode", _MODES)
        amounts = listed(padding, "pad: padding")
        fill = constant(self.dtype, number(value, "pad: value"), "pad").arg
        box = _padding(amounts, self.shape)
        bounds = tuple(
            (max(0, -before), size - max(0, -after))
            for (before, after), size in zip(box, self.shape, strict=True)
        )
        if any(lo > hi for lo, hi in bounds):
            raise shape_error(
                f"cannot pad shape {self.shape} by {short(amounts)}",
                "it cuts off more than there is",
                "numbers nearer to 0: a negative one cuts elements off",
            )
        added = tuple((max(0, before), max(0, after)) for before, after in box)
        if mode == "reflect":  # mirrors the whole axis, as PyTorch does, and cuts afterwards
            wide = self._extended(mode, self.uop, added)
            cut = tuple(
                (lo, hi + sum(sides)) for (lo, hi), sides in zip(bounds, added, strict=True)
            )
            return self._with(shrunk(wide, cut))
        inside = shrunk(self.uop, bounds)
        if mode == "constant":
            return self._with(padded(inside, added, fill))
        return self._with(self._extended(mode, inside, added))

    def _extended(self, mode: str, value: UOp, added: Box) -> UOp:
        for axis, sides in enumerate(added):
            _check_source(mode, self.shape, value.shape, axis, sides)
            value = _extended(value, axis, *sides, mode)
        return value

    def pad_to(self, shape: Any, *args: Any, value: Const = 0.0) -> Self:
        """Return the tensor with `value` after its elements, up to `shape`; None keeps an axis.

        Errors: ShapeError if an axis is longer than that, or `shape` has not one size per axis.
        """
        target = _target("pad_to", flat((shape, *args)), self.shape)
        for axis, (size, have) in enumerate(zip(target, self.shape, strict=True)):
            if size < have:
                raise shape_error(
                    f"cannot pad shape {self.shape} to {short(target)}",
                    f"axis {axis} has {have} elements already",
                    f"shrink_to({size}) on that axis",
                )
        sides = [(0, n - have) for n, have in zip(target, self.shape, strict=True)]
        return self.pad(sides, value=value)

    def shrink_to(self, shape: Any, *args: Any) -> Self:
        """Return the first elements of each axis, as many as `shape` has; None keeps an axis.

        Errors: ShapeError if an axis is shorter than that, or `shape` has not one size per axis.
        """
        target = _target("shrink_to", flat((shape, *args)), self.shape)
        return self.shrink([(0, size) for size in target])


def _target(what: str, entries: tuple[Any, ...], shape: Shape) -> Shape:
    """Return a size for each axis; None means that of `shape`."""
    fits = len(entries) == len(shape)
    if not fits or not all(n is None or (type(n) is int and n >= 0) for n in entries):
        raise shape_error(
            f"cannot {what} {short(entries)} from shape {shape}",
            f"it takes a size, 0 or more, or None for each of the {len(shape)} axes",
            f"{what}{short(shape)}, which changes nothing",
        )
    return tuple(have if n is None else n for n, have in zip(entries, shape, strict=True))


def _check_source(
    mode: str, shape: Shape, inside: Shape, axis: int, sides: tuple[int, int]
) -> None:
    """Raise ShapeError where the elements to add are more than the axis has."""
    size = inside[axis]
    most = {"reflect": size - 1, "circular": size}.get(mode, max(sides) if size else 0)
    if any(sides) and max(sides) > most:
        raise shape_error(
            f"cannot pad axis {axis} of shape {shape} by {sides} with mode={mode!r}",
            f"the elements come from the axis, which has {max(0, most)} of them to copy",
            'mode="replicate", or "constant"' if size else 'mode="constant"',
        )


def _extended(value: UOp, axis: int, before: int, after: int, mode: str) -> UOp:
    """Return `value` with copies of its own elements before and after it."""
    if not before and not after:
        return value
    size = value.shape[axis]
    if mode == "circular":
        lead, rest = value.shape[:axis], value.shape[axis + 1 :]
        times = expanded(reshaped(value, (*lead, 1, size, *rest)), (*lead, 3, size, *rest))
        ring = reshaped(times, (*lead, 3 * size, *rest))
        return slab(ring, axis, size - before, 2 * size + after)
    if mode == "reflect":
        first = flipped(slab(value, axis, 1, before + 1), (axis,))
        last = flipped(slab(value, axis, size - 1 - after, size - 1), (axis,))
    else:
        first = _repeated(slab(value, axis, 0, 1), axis, before)
        last = _repeated(slab(value, axis, size - 1, size), axis, after)
    parts = [p for p in (first, value, last) if p.shape[axis]]
    return joined(parts, axis)


def _repeated(value: UOp, axis: int, times: int) -> UOp:
    return expanded(value, (*value.shape[:axis], times, *value.shape[axis + 1 :]))


def _padding(amounts: tuple[Any, ...], shape: Shape) -> Box:
    if amounts and all(isinstance(n, int | np.integer) for n in amounts):
        if len(amounts) % 2 or len(amounts) > 2 * len(shape):
            raise shape_error(
                f"cannot pad shape {shape} by {short(amounts)}",
                f"the flat form has two numbers per axis, from the last axis on, at most"
                f" {2 * len(shape)} here, and this has {len(amounts)}",
                f"pad({pairs_text(shape)}): before and after each axis",
            )
        numbers = [int(n) for n in amounts]
        ends = [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]
        return ((0, 0),) * (len(shape) - len(ends)) + tuple(reversed(ends))
    pairs = box_pairs("pad", amounts, shape)
    return tuple((0, 0) if pair is None else pair for pair in pairs)


# --------------------------------------------------------------------------------------------------
# Interpolation: tensors resampled to another size.

_INTERPOLATIONS = ("linear", "nearest", "nearest-exact")


class Interpolation(Base):
    """interpolate."""

    __slots__ = ()

    def interpolate(
        self, size: Sequence[int], mode: str = "linear", align_corners: bool = False
    ) -> Self:
        """Return the tensor with its last len(size) axes resampled to `size`.

        Each new element covers a share of an axis. "nearest" takes the element at the start of the
        share, as PyTorch always did, "nearest-exact" the one at its middle. "linear" weighs the two
        elements beside the middle (of two axes bilinear, of three trilinear); with `align_corners`
        positions are spread so that the first and the last elements keep their places.
        Dtypes: the tensor's; with "linear" integers are interpolated as floats and rounded.
        Errors: ShapeError for no sizes, or more than axes, an empty axis, or a size below 1;
        DTypeError for another `mode`, or `align_corners` with one that is not "linear".
        """
        hint = 'mode="linear", which is bilinear for a size of two numbers'
        choice(mode, "interpolate: mode", _INTERPOLATIONS, hint)
        aligned = flag(align_corners, "interpolate: align_corners")
        if aligned and mode != "linear":
            raise dtype_error(
                f"cannot interpolate with mode={mode!r} and align_corners",
                "only elements that are weighed can keep the corners in their places",
                'mode="linear"',
            )
        target = sizes((size,), "interpolate: size")
        first = self.ndim - len(target)
        if not target or first < 0 or 0 in target or 0 in self.shape[first:]:
            raise shape_error(
                f"cannot interpolate shape {self.shape} to {short(size)}",
                "it takes a size, 1 or more, for each of the last axes, none of them empty",
                f"size={short(tuple(max(1, n) for n in self.shape[-2:]))}",
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
        place = _float_positions(count, dtypes.float32, shift) * (length / count)
        return self._elements_at(axis, self._with(_clipped(place, length)))

    def _linear(self, axes: range, target: Sequence[int], aligned: bool) -> Self:
        kind = self.dtype if self.dtype.is_float else dtypes.float32
        result = self.cast(wide_dtype(kind))
        for axis, count in zip(axes, target, strict=True):
            result = result._blended(axis, count, aligned)
        return (result if self.dtype.is_float else result.round()).cast(self.dtype)

    def _blended(self, axis: int, count: int, aligned: bool) -> Self:
        """Return the two elements beside each position, weighed by their distances, and added."""
        length = self.shape[axis]
        if count == length:
            return self
        if aligned:
            step = (length - 1) / (count - 1) if count > 1 else 0.0
            place = _float_positions(count, self.dtype, 0.0) * step
        else:
            place = _float_positions(count, self.dtype, 0.5) * (length / count) + -0.5
            place = place.max(place.like(0))
        low = _clipped(place, length)
        high = (low + 1).min(low.like(length - 1))
        column = (count,) + (1,) * (self.ndim - 1 - axis)
        weight = self._with(reshaped(place + -low.cast(self.dtype), column))
        first, second = (self._elements_at(axis, self._with(n)) for n in (low, high))
        return first * (1 - weight) + second * weight


def _float_positions(count: int, dtype: DType, shift: float) -> UOp:
    """Return 0 + shift, 1 + shift, .. as floats, which PyTorch counts in."""
    return iota(count, dtype) + shift


def _clipped(place: UOp, length: int) -> UOp:
    """Return the integer part of a position, at most that of the last element."""
    whole = place.cast(dtypes.int32)
    return whole.min(whole.like(length - 1))

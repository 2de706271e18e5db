"""Indexing: integers, slices, None and Ellipsis as movement; tensors, lists and masks as sums over
positions.

Sections: Basic indexing; Indexing by tensors.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from types import EllipsisType
from typing import Any, NamedTuple, Self, SupportsIndex

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import type_name
from workbench.execution.memory_plan import values_at_hand
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base
from workbench.tensor.lazily import refuse_to_compute
from workbench.tensor.movement.movement import Movement, flipped, padded, reshaped, shrunk
from workbench.tensor.operands.arguments import axis_error, dtype_error, shape_error, short, whole
from workbench.tensor.operands.axes import iota, one_axis, position_dtype
from workbench.tensor.operands.broadcast import BoundVariable, common_shape

# --------------------------------------------------------------------------------------------------
# Basic indexing.

Index = SupportsIndex | slice | EllipsisType | None


class Indexing(Base):
    """`t[...]`, `len(t)`, `for row in t`."""

    __slots__ = ()

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Self:
        """Return the elements that `index` names, as numpy's basic indexing does.

        Shapes: an integer removes its axis, a slice keeps it, None adds one of size 1.
        Errors: AxisError if an index is out of range or there are too many; ShapeError for a slice
        of step 0; DTypeError for an index that is a tensor, array, list, float or bool.
        """
        indices = index if isinstance(index, tuple) else (index,)
        entries = one_per_axis(indices, self.shape)
        value, shape = self.uop, []
        axis = 0
        for entry in entries:
            if entry is None:
                shape.append(1)
                continue
            size = self.shape[axis]
            if isinstance(entry, slice):
                value = sliced(value, axis, *_slice(entry, size))
                shape.append(value.shape[axis])
            else:
                at = _position(entry, axis, self.shape)
                value = _on_axis(value, axis, at, at + 1)
            axis += 1
        return self._view(reshaped(value, tuple(shape)))

    def __len__(self) -> int:
        if not self.shape:
            raise shape_error("a tensor without axes has no length", "its shape is ()", ".item()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))


def sliced(value: UOp, axis: int, start: int, count: int, step: int) -> UOp:
    """Return `count` elements of `axis` from `start`, `step` apart; `step` may be negative.

    Rewrite: a step makes blocks of |step| elements, of which the first is kept.
    """
    if count == 0:
        return _on_axis(value, axis, 0, 0)
    size, stride = value.shape[axis], abs(step)
    if step > 0:
        lo, hi = start, min(size, start + count * stride)
        value = _on_axis(value, axis, lo, hi)
    else:
        lo, hi = max(0, start + 1 - count * stride), start + 1
        value = flipped(_on_axis(value, axis, lo, hi), (axis,))
    if stride == 1:
        return value
    if count == 1:
        return _on_axis(value, axis, 0, 1)
    return _first_of_blocks(value, axis, count, stride)


def _first_of_blocks(value: UOp, axis: int, count: int, stride: int) -> UOp:
    shape = value.shape
    missing = count * stride - shape[axis]
    value = padded(value, tuple((0, missing if i == axis else 0) for i in range(len(shape))))
    blocks = (*shape[:axis], count, stride, *shape[axis + 1 :])
    firsts = _on_axis(reshaped(value, blocks), axis + 1, 0, 1)
    return reshaped(firsts, (*shape[:axis], count, *shape[axis + 1 :]))


def _on_axis(value: UOp, axis: int, lo: int, hi: int) -> UOp:
    box = tuple((lo, hi) if i == axis else (0, n) for i, n in enumerate(value.shape))
    return shrunk(value, box)


def one_per_axis(indices: tuple[Any, ...], shape: Shape) -> list[Any]:
    """Return `indices` with Ellipsis, and missing indices at the end, as full slices.

    None indexes no axis, nor does an entry whose `is_new_axis` is true.
    """
    free = (None, Ellipsis)
    used = sum(
        not any(entry is f for f in free) and not getattr(entry, "is_new_axis", False)
        for entry in indices
    )
    if used > len(shape):
        raise axis_error(
            f"too many indices for shape {shape}",
            f"there are {used} of them and {len(shape)} axes",
            "t[" + ", ".join("0" * len(shape)) + "]" if shape else ".item()",
        )
    dots = [i for i, entry in enumerate(indices) if entry is Ellipsis]
    if len(dots) > 1:
        raise axis_error(
            "an index has two Ellipsis", "only one can stand for the rest", "t[..., 0]"
        )
    rest = [slice(None)] * (len(shape) - used)
    cut = dots[0] if dots else len(indices)
    return [*indices[:cut], *rest, *indices[cut + 1 :]]


def _slice(entry: slice, size: int) -> tuple[int, int, int]:
    try:
        steps = range(*entry.indices(size))
    except TypeError:
        raise dtype_error(
            f"cannot index with {entry}", "the ends and step of a slice are integers", "t[0:2]"
        ) from None
    except ValueError:
        because = "the step of a slice cannot be 0"
        raise shape_error(f"cannot index with {entry}", because, "t[::1]") from None
    return steps.start, len(steps), steps.step


def _position(entry: Any, axis: int, shape: Shape) -> int:
    if isinstance(entry, bool) or str(getattr(entry, "dtype", "")) == "bool":
        raise _not_basic(entry, "(mask).where(a, b) chooses by element")
    if isinstance(entry, Movement | list | tuple) or getattr(entry, "shape", ()) != ():
        raise _not_basic(entry, "slices, or a sum over (indices == positions).where(t, 0)")
    try:
        at = operator.index(entry)
    except TypeError:
        raise _not_basic(entry, "int(index)") from None
    if not -shape[axis] <= at < shape[axis]:
        raise out_of_range(at, axis, shape)
    return at % shape[axis]


def out_of_range(at: int, axis: int, shape: Shape) -> Exception:
    """Return the error that says that an axis has no element `at`."""
    return axis_error(
        f"index {short(at)} is out of range for axis {axis} of shape {shape}",
        f"the axis has {shape[axis]} elements",
        f"an index from {-shape[axis]} to {shape[axis] - 1}"
        if shape[axis]
        else "a tensor with elements",
    )


def _not_basic(entry: Any, hint: str) -> Exception:
    return dtype_error(
        f"cannot index a tensor with {type_name(type(entry))}",
        "an index is an integer, a slice, None or Ellipsis",
        hint,
    )


# --------------------------------------------------------------------------------------------------
# Indexing by tensors: a sum over positions, of which only the indexed element counts.
#
# Rewrite: x[index] -> sum over i of where(index == i, x[i], 0). It is computed, not loaded, so
# every device can do it; an index out of range gives 0, and -0.0 may become 0.0.

TensorIndex = Index | Base | BoundVariable | np.ndarray[Any, Any] | list[Any]


class Gather(Indexing):
    """`t[tensor]`, gather, one_hot."""

    __slots__ = ()

    def __getitem__(self, index: TensorIndex | tuple[TensorIndex, ...]) -> Self:
        """Return the elements that `index` names: basic indexing, tensors of integers, and masks.

        Shapes: an integer removes its axis, a slice keeps it, None adds one of size 1. Index
        tensors (or arrays, or lists) broadcast; their shape takes the place of the axes that they
        index, or comes first if a slice separates these. An integer beside them counts as basic, as
        in PyTorch and unlike numpy. A mask, of bools, stands for the positions where it is true:
        one index for each of its axes. A mask in a tensor is computed for that.
        Errors: AxisError for too many indices, and for an element out of range in an integer, a
        list, an array or a tensor in memory; in a tensor that is not computed yet such an element
        gives 0. ShapeError for a mask of other sizes or a step of 0, DTypeError for an index of
        floats.
        """
        view, places = self._located(index)
        return view._at(places) if places else view

    def _located(
        self, index: TensorIndex | tuple[TensorIndex, ...]
    ) -> tuple[Self, list[tuple[int, Self]]]:
        """Return the view that the basic entries of `index` name, and its index tensors: pairs of
        an axis of that view and the tensor."""
        indices = _without_masks(index if isinstance(index, tuple) else (index,))
        if not any(map(_is_advanced, indices)):
            return super().__getitem__(indices), []
        entries = one_per_axis(indices, self.shape)
        basic: list[Any] = []
        places: list[tuple[int, Self]] = []
        axis = place = 0  # before and after basic indexing
        for entry in entries:
            if _is_advanced(entry):
                index = entry.index if isinstance(entry, MaskColumn) else entry
                places.append((place, self._index(index)))
                if not isinstance(entry, MaskColumn):
                    refuse_outside(entry, axis, self.shape)
                elif entry.size is not None and entry.size != self.shape[axis]:
                    raise _another_shape(entry, axis, self.shape)
            is_new = entry is None or getattr(entry, "is_new_axis", False)
            basic.append(None if is_new else slice(None) if _is_advanced(entry) else entry)
            axis += not is_new
            place += is_new or isinstance(entry, slice) or _is_advanced(entry)
        return super().__getitem__(tuple(basic)), places

    def gather(self, dim: int, index: Self) -> Self:
        """Return self[.., index[i, j, ..], ..]: the index is for axis `dim`.

        Shapes: that of `index`, which has the axes of this tensor, and except along `dim` is not
        larger. Errors: ShapeError for another shape of it, DTypeError for one that is not of
        integers, AxisError for an element out of range, as in `t[index]`.
        """
        axis = one_axis(dim, self.ndim, "gather")
        raw_index, index = index, self._index(index)
        refuse_outside(raw_index, axis, self.shape or (1,))
        if index.ndim != self.ndim or any(
            i != axis and n > self.shape[i] for i, n in enumerate(index.shape)
        ):
            raise shape_error(
                f"cannot gather from shape {self.shape} by an index of {index.shape}",
                f"they have equally many axes, and only axis {axis} of the index may be longer",
                f"an index of shape {self.shape}, or a smaller one",
            )
        if not self.ndim:
            return self.reshape(1).gather(0, index.reshape(1)).reshape(())
        box = tuple(None if i == axis else (0, n) for i, n in enumerate(index.shape))
        wrapped = index._wrapped(self.shape[axis], axis, self.shape)
        return self.shrink(box).unsqueeze(axis)._where_equal(wrapped.unsqueeze(axis + 1), axis + 1)

    def one_hot(self, num_classes: int) -> Self:
        """Return int32 with a new last axis of `num_classes`: 1 at the position that self names,
        else 0.

        Errors: DTypeError unless self is of integers.
        """
        count = whole(num_classes, "one_hot: num_classes", 0)
        index = self._index(self)._counting_to(count)
        index = index.unsqueeze(-1) if self.ndim else index
        positions = self._with(iota(count, index.dtype))
        return index.eq(positions).where(1, 0)

    def _at(self, places: list[tuple[int, Self]]) -> Self:
        """Return the elements at `places`, pairs of an axis and the index along it."""
        axes, first, index = self._merged(places)
        if len(places) == 1:
            return self._elements_at(first, index)
        rest = [axis for axis in range(self.ndim) if axis not in axes]
        moved = self.permute(*rest[:first], *axes, *rest[first:])
        merged = moved.flatten(first, first + len(axes) - 1)
        return merged._elements_at(first, index)

    def _merged(self, places: list[tuple[int, Self]]) -> tuple[list[int], int, Self]:
        """Return the axes of `places`, the axis at which the shape of their indexes is put, and one
        index for them all."""
        axes = [axis for axis, _ in places]
        if len(places) == 1:
            index = places[0][1]._wrapped(self.shape[axes[0]], axes[0], self.shape)
            return axes, axes[0], index
        shapes = [index.shape for _, index in places]
        common_shape("index", *shapes, refusal=axis_error)
        beside = axes == list(range(axes[0], axes[-1] + 1))
        return axes, axes[0] if beside else 0, self._flat_index(places)

    def _flat_index(self, places: list[tuple[int, Self]]) -> Self:
        """Return one index, row-major over the axes named; -1 where one of them is outside."""
        sizes = [self.shape[axis] for axis, _ in places]
        dtype = position_dtype(math.prod(sizes))
        offset, inside = None, None
        for (axis, index), size in zip(places, sizes, strict=True):
            at = index._wrapped(size, axis, self.shape)
            fits = at.ge(0) & at.lt(size)
            at = at.cast(dtype)
            offset = at if offset is None else offset * size + at
            inside = fits if inside is None else inside & fits
        assert offset is not None and inside is not None
        return inside.where(offset, -1)

    def _elements_at(self, axis: int, index: Self) -> Self:
        """Return the elements of `axis` at `index`, whose shape takes the place of the axis."""
        before, size, after = (self.shape[:axis], self.shape[axis], self.shape[axis + 1 :])
        ones = (1,) * index.ndim
        source = self.reshape(*before, *ones, size, *after)
        column = index.reshape(*index.shape, 1, *(1,) * len(after))
        return source._where_equal(column, axis + index.ndim)

    def _where_equal(self, index: Self, axis: int) -> Self:
        """Return the sum over `axis` of the elements whose position there equals `index`."""
        size = self.shape[axis]
        column = (size,) + (1,) * (self.ndim - 1 - axis)
        positions = self._with(reshaped(iota(size, index.dtype), column))
        nothing = self._with(self.uop.like(0))
        masked = index.eq(positions).where(self, nothing)
        return masked._combine(Ops.ADD, axis, False, "index", 0)

    def _wrapped(self, size: int, axis: int, shape: tuple[int, ...]) -> Self:
        """Return the index with negative ones counted from the end of an axis of `size`."""
        if size == 0 and self.numel():
            raise axis_error(
                f"cannot index axis {axis} of shape {shape}",
                "it has no elements",
                "a tensor with elements",
            )
        index = self._counting_to(size)
        if index.dtype.kind == "uint":
            return index
        return index.lt(0).where(index + size, index)

    def _counting_to(self, count: int) -> Self:
        """Return an index in a dtype that holds all positions among `count`."""
        return self if count <= self.dtype.max else self.cast(position_dtype(count))

    def _index(self, entry: Any) -> Self:
        """Return an index as a tensor of at least 32 bits, on this tensor's device."""
        index = entry
        if not isinstance(entry, type(self)):
            index = type(self)(entry, device=self._device)
            if not index.numel():
                index = index.cast(dtypes.int32)
        if not index.dtype.is_int:
            raise _no_index(index.dtype)
        if index.dtype.bits < 32:
            index = index.cast(dtypes.int32)
        return index  # type: ignore[no-any-return]


class MaskColumn(NamedTuple):
    """The positions where a mask of `shape` is true, along an axis of `size` elements. A mask
    without axes has one column, along a new axis, with size None."""

    index: Any
    size: int | None
    shape: Shape

    @property
    def is_new_axis(self) -> bool:
        """Whether the mask has no axes."""
        return self.size is None


def _without_masks(indices: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `indices` with each mask replaced by its columns.

    A mask in a tensor is computed: the shape of the result depends on its true elements.
    """
    entries: list[Any] = []
    for entry in indices:
        mask = _mask(entry)
        if mask is None:
            entries.append(entry)
            continue
        if isinstance(mask, Base):
            refuse_to_compute(
                "a mask chooses elements of a Tensor",
                "its values decide how many they are",
                "np.where(mask, x, 0) for x[mask], np.sum(x, where=mask) for x[mask].sum(), with "
                "mask[:, None] for rows",
            )
        if not mask.shape:
            flag = np.zeros(int(bool(mask.item())), np.int32)
            entries.append(MaskColumn(flag, None, ()))
        else:
            columns = np.nonzero(mask) if isinstance(mask, np.ndarray) else mask.nonzero().T
            entries += [
                MaskColumn(column, size, mask.shape)
                for column, size in zip(columns, mask.shape, strict=True)
            ]
    return tuple(entries)


def _mask(entry: Any) -> Any:
    """Return an index of bools as an array or a tensor; None for any other index."""
    if isinstance(entry, Base):
        return entry if entry.dtype.is_bool else None
    if isinstance(entry, bool | np.bool_) or (
        isinstance(entry, np.ndarray) and entry.dtype == bool
    ):
        return np.asarray(entry)
    if isinstance(entry, list | tuple) and _first_leaf(entry) in (True, False):
        array = np.asarray(entry)
        return array if array.dtype == bool else None
    return None


def _first_leaf(entry: Any) -> Any:
    while isinstance(entry, list | tuple):
        if not entry:
            return None
        entry = entry[0]
    return entry if isinstance(entry, bool | np.bool_) else None


def _is_advanced(entry: object) -> bool:
    if isinstance(entry, np.ndarray):
        return entry.ndim > 0
    return isinstance(entry, Base | BoundVariable | list | tuple | range)


def refuse_outside(entry: Any, axis: int, shape: Shape) -> None:
    """Raise AxisError for an index that the axis does not have, in a list, an array, a variable, or
    a tensor whose values need not be computed."""
    size = shape[axis]
    if not size or isinstance(entry, Base) and not entry.numel():
        return
    values = _values_of(entry)
    if values is None or values.dtype.kind not in "iu" or not values.size:
        return
    for at in (int(values.min()), int(values.max())):
        if not -size <= at < size:
            raise out_of_range(at, axis, shape)


def _values_of(entry: Any) -> Any:
    """Return the values of an index as an array; None where they must be computed."""
    if isinstance(entry, Base):
        return values_at_hand(entry.uop)
    return np.asarray(entry.val if isinstance(entry, BoundVariable) else entry)


def _no_index(dtype: DType) -> Exception:
    return dtype_error(
        f"cannot index a tensor with a tensor of {dtype}",
        "an index is of integers, or a mask of bools",
        ".int() on the index",
    )


def _another_shape(column: MaskColumn, axis: int, shape: Shape) -> Exception:
    return shape_error(
        f"cannot index shape {shape} with a mask of shape {column.shape}",
        f"axis {axis} has {shape[axis]} elements, and the mask {column.size} there",
        "a mask with the sizes of the axes that it is for",
    )

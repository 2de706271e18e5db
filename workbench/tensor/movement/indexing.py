"""Basic indexing: integers, slices with any step, None and Ellipsis, as movement."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from types import EllipsisType
from typing import Any, Self, SupportsIndex

from workbench.base.words import type_name
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import Movement, flipped, padded, reshaped, shrunk
from workbench.tensor.operands.arguments import short
from workbench.tensor.operands.refuse import axis_error, dtype_error, shape_error

Index = SupportsIndex | slice | EllipsisType | None


class Indexing(Base):
    """`t[...]`, `len(t)`, `for row in t`."""

    __slots__ = ()

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Self:
        """Return the elements that `index` names, as numpy's basic indexing does.

        Shapes: an integer removes its axis, a slice keeps it, None adds one of size 1.
        Errors: AxisError if an index is out of range or there are too many; DTypeError for
        an index that is a tensor, array, list, float or bool.
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

    Rewrite: a stride is blocks of |step| elements, of which the first is kept.
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

    None is of no axis, nor is an entry that says that it `is_new_axis`.
    """
    free = (None, Ellipsis)
    used = sum(
        not any(entry is f for f in free) and not getattr(entry, "is_new_axis", False)
        for entry in indices
    )
    if used > len(shape):
        raise axis_error(
            f"too many indices for shape {shape}", f"there are {used} of them and {len(shape)} axes"
        )
    dots = [i for i, entry in enumerate(indices) if entry is Ellipsis]
    if len(dots) > 1:
        raise axis_error("an index has two Ellipsis", "only one can stand for the rest")
    rest = [slice(None)] * (len(shape) - used)
    cut = dots[0] if dots else len(indices)
    return [*indices[:cut], *rest, *indices[cut + 1 :]]


def _slice(entry: slice, size: int) -> tuple[int, int, int]:
    try:
        steps = range(*entry.indices(size))
    except TypeError:
        raise dtype_error(
            f"cannot index with {entry}", "the ends and step of a slice are integers"
        ) from None
    except ValueError:
        raise shape_error(f"cannot index with {entry}", "the step of a slice cannot be 0") from None
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
        f"an index from {-shape[axis]} to {shape[axis] - 1}" if shape[axis] else "",
    )


def _not_basic(entry: Any, hint: str) -> Exception:
    return dtype_error(
        f"cannot index a tensor with {type_name(type(entry))}",
        "an index is an integer, a slice, None or Ellipsis",
        hint,
    )

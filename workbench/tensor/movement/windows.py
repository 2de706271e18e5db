"""Sliding windows of the last axes, by movement alone; diagonals and triangles of matrices.

Sections: Sliding windows of the last axes, by movement alone; Diagonals of matrices, and the
triangles beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from workbench.base.dtypes import Const
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.indexing import sliced
from workbench.tensor.movement.movement import padded, reshaped, shrunk
from workbench.tensor.operands.arguments import axis_error, listed, shape_error, short, whole
from workbench.tensor.operands.axes import flat, iota, one_axis, position_dtype
from workbench.tensor.operands.broadcast import expanded

# --------------------------------------------------------------------------------------------------
# Sliding windows of the last axes, by movement alone.


class Window(NamedTuple):
    """A window along one axis: `size` elements `dilation` apart, every `stride` elements, with
    `before` and `after` elements of padding. With `ceil` the last window may extend beyond them."""

    size: int
    stride: int
    dilation: int
    before: int
    after: int
    ceil: bool = False

    @property
    def extent(self) -> int:
        """The number of elements from the first to the last of a window, both included."""
        return self.dilation * (self.size - 1) + 1

    def count(self, length: int) -> int:
        """Return the number of windows on an axis of `length`; below 1 if it is too short."""
        room = length + self.before + self.after - self.extent
        if not self.ceil:
            return room // self.stride + 1
        number = -(-room // self.stride) + 1
        # A window must begin before the padding at the end does.
        return number - ((number - 1) * self.stride >= length + self.before)

    def padding(self, length: int) -> tuple[int, int]:
        """Return the padding before and after that the windows of `length` elements need."""
        need = (self.count(length) - 1) * self.stride + self.extent
        return self.before, max(self.after, need - length - self.before)


def windows_of(
    what: str, kernel: Sequence[int], stride: Any, dilation: Any, padding: Any, ceil: bool = False
) -> tuple[Window, ...]:
    """Return a window per axis from a call's arguments: one number for all axes, or one each.

    `padding` may also be PyTorch's flat form: before and after of the last axis first.
    Errors: ShapeError for a wrong number of numbers, or one that is too small.
    """
    axes = len(kernel)
    if not axes:
        raise shape_error(
            f"{what}: kernel size () does not fit",
            "it slides along one axis or more",
            "kernel_size=(2, 2)",
        )
    sizes = per_axis(what, "kernel size", kernel, axes)
    strides = per_axis(what, "stride", stride, axes)
    dilations = per_axis(what, "dilation", dilation, axes)
    sides = _sides(what, padding, axes)
    columns = zip(sizes, strides, dilations, sides, strict=True)
    return tuple(Window(n, step, apart, *side, ceil) for n, step, apart, side in columns)


def per_axis(what: str, name: str, value: Any, axes: int, least: int = 1) -> tuple[int, ...]:
    """Return one number for each of `axes` axes. Errors: ShapeError if one is below `least`, or too
    large for a position; DTypeError if one is not an integer."""
    numbers = one_or_many(value, axes, f"{what}: {name}")
    if len(numbers) != axes:
        raise shape_error(
            f"{what}: {name} {short(value)} does not fit",
            f"there are {axes} axes to slide along, and {len(numbers)} numbers",
            f"one number for all, or {axes}",
        )
    return tuple(whole(n, f"{what}: {name}", least) for n in numbers)


def one_or_many(value: Any, count: int, name: str) -> tuple[Any, ...]:
    """Return `count` times one number, or the numbers of a list."""
    if isinstance(value, int | np.integer):
        return (whole(value, name),) * count
    return flat((listed(value, name, "1", "an integer, a list or a tuple"),))


def windows(value: UOp, each: Sequence[Window]) -> UOp:
    """Return the windows of the last len(each) axes of `value`, which is padded already.

    Shapes: (.., y, x) -> (.., windows along y, along x, window's y, window's x).
    """
    first = len(value.shape) - len(each)
    for axis, window in enumerate(each, first):
        value = along(value, axis, window)
    return value


def along(value: UOp, axis: int, window: Window) -> UOp:
    """Return the windows along `axis`; the elements of each are the last axis.

    Rewrite: copies of the axis, end to end, are cut into rows longer than it by `dilation`, so
    that each row begins `dilation` later than the one above: row j, column i is element
    i + j * dilation. Windows that touch without overlap are pieces of the axis.
    """
    shape = value.shape
    before, length, after = shape[:axis], shape[axis], shape[axis + 1 :]
    size, shift = window.size, window.dilation
    count = window._replace(before=0, after=0, ceil=False).count(length)
    if size > 1 and shift == 1 and window.stride == size:
        return _side_by_side(value, axis, size, count)
    if size > 1:
        copies = -(-size * (length + shift) // length)
        value = reshaped(value, (*before, 1, length, *after))
        value = expanded(value, (*before, copies, length, *after))
        value = reshaped(value, (*before, copies * length, *after))
        whole = tuple((0, n) for n in value.shape)
        box = (*whole[:axis], (0, size * (length + shift)), *whole[axis + 1 :])
        value = shrunk(value, box)
    rows = length + shift if size > 1 else length
    value = reshaped(value, (*before, size, rows, *after))
    whole = tuple((0, n) for n in value.shape)
    columns = (count - 1) * window.stride + 1
    value = shrunk(value, (*whole[: axis + 1], (0, columns), *whole[axis + 2 :]))
    value = sliced(value, axis + 1, 0, count, window.stride)
    order = [i for i in range(len(value.shape)) if i != axis]
    return UOp(Ops.PERMUTE, value.dtype, (value,), (*order, axis))


def _side_by_side(value: UOp, axis: int, size: int, count: int) -> UOp:
    """Return windows of which each begins where the last one ended: pieces of the axis."""
    shape = value.shape
    before, after = shape[:axis], shape[axis + 1 :]
    box = [(0, n) for n in shape]
    box[axis] = (0, count * size)
    value = reshaped(shrunk(value, tuple(box)), (*before, count, size, *after))
    order = [i for i in range(len(value.shape)) if i != axis + 1]
    return UOp(Ops.PERMUTE, value.dtype, (value,), (*order, axis + 1))


def padded_for(value: UOp, each: Sequence[Window], fill: Const) -> UOp:
    """Return `value` with the padding that the windows of its last axes need."""
    first = len(value.shape) - len(each)
    sides = [w.padding(n) for w, n in zip(each, value.shape[first:], strict=True)]
    return padded(value, ((0, 0),) * first + tuple(sides), fill)


def check_fits(what: str, shape: Shape, each: Sequence[Window]) -> None:
    """Raise ShapeError for windows that are longer than their axes with padding, or empty axes."""
    for axis, window in enumerate(each, len(shape) - len(each)):
        if window.count(shape[axis]) < 1 or not shape[axis]:
            around = window.before + window.after
            raise shape_error(
                f"{what}: no window fits axis {axis} of shape {shape}",
                f"it sees {window.extent} elements, and there are {shape[axis]}"
                + (f" and {around} of padding" if around else ""),
                "a smaller kernel, or padding",
            )


def _sides(what: str, padding: Any, axes: int) -> tuple[tuple[int, int], ...]:
    amounts = one_or_many(padding, axes, f"{what}: padding")
    if len(amounts) == 2 * axes:
        numbers = per_axis(what, "padding", amounts, 2 * axes, 0)
        pairs = [(numbers[i], numbers[i + 1]) for i in range(0, 2 * axes, 2)]
        return tuple(reversed(pairs))
    return tuple((n, n) for n in per_axis(what, "padding", padding, axes, 0))


# --------------------------------------------------------------------------------------------------
# Diagonals of matrices, and the triangles beside them.


class Diagonals(Base):
    """diag, diagonal, tril, triu."""

    __slots__ = ()

    def diag(self) -> Self:
        """Return the square matrix with this vector on its diagonal and 0 elsewhere.

        Rewrite: rows of an element and n zeros, end to end, are cut into rows of n: each element
        is then one place further on in its row than the one above.
        Errors: ShapeError unless it has one axis.
        """
        if self.ndim != 1:
            raise shape_error(
                f"cannot make a diagonal matrix of shape {self.shape}",
                "it is made of a vector, a tensor of one axis",
                ".diagonal() for the diagonal of a matrix" if self.ndim > 1 else ".reshape(1)",
            )
        size = self.shape[0]
        rows = padded(reshaped(self.uop, (size, 1)), ((0, 0), (0, size)))
        line = reshaped(rows, (size * (size + 1),))
        return self._with(reshaped(shrunk(line, ((0, size**2),)), (size, size)))

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """Return a view of the elements where the position along `dim2` is `offset` more than along
        `dim1`.

        Shapes: the two axes are removed, and the diagonal is a new last one; it is empty if
        `offset` is outside the matrix. Errors: AxisError for fewer than two axes, or equal ones.
        """
        row, column = (one_axis(dim, self.ndim, "diagonal") for dim in (dim1, dim2))
        if self.ndim < 2:
            raise axis_error(
                f"shape {self.shape} has no diagonal", "a matrix has two axes", "a matrix"
            )
        if row == column:
            raise axis_error(
                f"diagonal: dim1={dim1} and dim2={dim2} are the same axis",
                "a diagonal runs along two",
                "dim1=0, dim2=1",
            )
        lead = [i for i in range(self.ndim) if i not in (row, column)]
        matrix = self.permute(*lead, row, column).uop
        start = whole(offset, "diagonal: offset")
        return self._view(_diagonal(matrix, max(0, -start), max(0, start)))

    def tril(self, diagonal: int = 0) -> Self:
        """Return the tensor with 0 above a diagonal of its last two axes.

        `diagonal` is the offset from the main one, upwards. Errors: AxisError for fewer axes.
        """
        return self._triangle("tril", diagonal, True)

    def triu(self, diagonal: int = 0) -> Self:
        """Return the tensor with 0 below a diagonal of its last two axes, as `tril`."""
        return self._triangle("triu", diagonal, False)

    def _triangle(self, what: str, diagonal: int, is_lower: bool) -> Self:
        place = whole(diagonal, f"{what}: diagonal")
        if self.ndim < 2:
            raise axis_error(
                f"cannot {what} shape {self.shape}",
                "a matrix has two axes",
                "reshape, or unsqueeze(0) for a row",
            )
        shape = self.shape[-2:]
        wide = position_dtype(max(shape) + abs(place))
        row = expanded(reshaped(iota(shape[0], wide), (shape[0], 1)), shape)
        column = expanded(iota(shape[1], wide), shape)
        inside = column <= row + place if is_lower else row + place <= column
        return self._with(expanded(inside, self.shape).where(self.uop, self.uop.like(0)))


def _diagonal(matrix: UOp, row: int, column: int) -> UOp:
    """Return the diagonal of the last two axes from (row, column) on.

    Rewrite: the rows of a square, end to end, are cut into rows of one element
    more; the diagonal is the first column.
    """
    *lead, height, width = matrix.shape
    size = max(0, min(height - row, width - column))
    whole = tuple((0, n) for n in lead)
    if not size:
        return reshaped(shrunk(matrix, (*whole, (0, 0), (0, 0))), (*lead, 0))
    square = shrunk(matrix, (*whole, (row, row + size), (column, column + size)))
    line = reshaped(square, (*lead, size * size))
    line = padded(line, (*((0, 0) for _ in lead), (0, size)))
    rows = reshaped(line, (*lead, size, size + 1))
    return reshaped(shrunk(rows, (*whole, (0, size), (0, 1))), (*lead, size))

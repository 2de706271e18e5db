"""Joining, splitting and repeating tensors along an axis; circular shifts, windows and grids.

Sections: Joining tensors along an axis, and splitting them; Repeated elements and circular
shifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Self

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.errors import type_name
from workbench.ir.gradient.occurrences import depending
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base, promoted_tensors
from workbench.tensor.movement.movement import padded, reshaped, slab
from workbench.tensor.movement.windows import Window, along
from workbench.tensor.operands.arguments import (
    axis_error,
    choice,
    dtype_error,
    listed,
    shape_error,
    short,
    whole,
)
from workbench.tensor.operands.axes import one_axis, sizes, with_named
from workbench.tensor.operands.broadcast import expanded

# --------------------------------------------------------------------------------------------------
# Joining tensors along an axis, and splitting them.

MOST_PIECES = 1 << 20
"""The maximal number of tensors that one call returns."""


class Joining(Base):
    """cat, stack, split, chunk."""

    __slots__ = ()

    def cat(*tensors: Self, dim: int = 0) -> Self:
        """Return tensors one after the other along axis `dim`.

        Shapes: equal but for axis `dim`, whose sizes add up. Dtypes: they promote.
        Errors: ShapeError if another axis differs. Also known as: numpy concatenate.
        """
        parts: list[Self] = _tensors(tensors, "cat")
        first, *others = parts
        axis = one_axis(dim, first.ndim, "cat")
        _check_joined([t.shape for t in parts], axis)
        values = promoted_tensors("join", *parts)
        empty = [value for value in values if not value.shape[axis]]
        result = joined(values, axis)
        return first._with(depending(result, *empty) if empty else result, *others)

    def stack(*tensors: Self, dim: int = 0) -> Self:
        """Return tensors side by side along a new axis in place `dim`.

        Errors: ShapeError unless all have one shape.
        """
        parts: list[Self] = _tensors(tensors, "stack")
        first, *others = parts
        other = next((t for t in others if t.shape != first.shape), None)
        if other is not None:
            raise shape_error(
                f"cannot stack tensors of shapes {first.shape} and {other.shape}",
                "along a new axis only equal shapes fit side by side",
                "cat, to join along an axis that they have",
            )
        axis = one_axis(dim, first.ndim, "stack", extra=1)
        columns = [t.unsqueeze(axis) for t in others]
        return first.unsqueeze(axis).cat(*columns, dim=axis)

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Return the pieces of axis `dim`, with `sizes` from a list, or all of one size.

        Shapes: with one number the last piece may be smaller.
        Errors: ShapeError unless a list adds up to the size of the axis, and for pieces of 0;
        AxisError for a scalar.
        """
        axis = self._cut_axis(dim, "split")
        size = self.shape[axis]
        lengths = _lengths(sizes, size, self.shape, axis)
        ends = accumulate(lengths)
        return tuple(
            self._view(slab(self.uop, axis, end - length, end))
            for length, end in zip(lengths, ends, strict=True)
        )

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Self, ...]:
        """Return axis `dim` in `chunks` equal pieces; the last may be smaller, some may be missing.

        Errors: ShapeError if `chunks` is below 1.
        """
        axis = self._cut_axis(dim, "chunk")
        size, count = self.shape[axis], whole(chunks, "chunk: chunks")
        if count < 1:
            raise shape_error(
                f"cannot cut shape {self.shape} into {short(count)} chunks",
                "there is at least one",
                "chunk(1)",
            )
        if size:
            return self.split(-(-size // count), axis)
        _refuse_pieces(count, self.shape, axis)
        return self.split([0] * count, axis)

    def _cut_axis(self, dim: int, what: str) -> int:
        if not self.shape:
            raise axis_error(f"cannot {what} a tensor without axes", "its shape is ()", "unsqueeze")
        return one_axis(dim, self.ndim, what)


def arguments(args: tuple[Any, ...], what: str) -> list[Any]:
    """Return the arguments of `cat(a, b)` or `cat([a, b])` as a list of at least one."""
    is_list = bool(args) and isinstance(args[0], list | tuple)
    if is_list and len(args) > 1:
        raise dtype_error(
            f"cannot {what} a list and {len(args) - 1} more",
            "the tensors are a list, or arguments one by one, and what follows has a name",
            f"Tensor.{what}(*tensors, ..)",
        )
    parts = list(args[0] if is_list else args)
    if not parts:
        because = "the list is empty" if args else "there are no arguments"
        raise shape_error(f"cannot {what} no tensors", because, f"Tensor.{what}(a, b)")
    return parts


def _tensors(args: tuple[Any, ...], what: str) -> list[Any]:
    tensors = arguments(args, what)
    maker = next((t for t in tensors if isinstance(t, Base)), None)
    for i, tensor in enumerate(tensors):
        if maker is not None and isinstance(tensor, np.ndarray):
            tensors[i] = maker._lift(tensor, what)
        elif not isinstance(tensor, Base):
            raise dtype_error(
                f"cannot {what} {type_name(type(tensor))} {short(tensor)}",
                "only tensors are joined",
                f"Tensor.{what}(a, b, dim=0)",
            )
    return tensors


def _check_joined(shapes: Sequence[Shape], axis: int) -> None:
    first = shapes[0]
    for shape in shapes:
        if len(shape) != len(first):
            because = f"one has {len(first)} axes and the other {len(shape)}"
        elif not shape:
            because = "a tensor without axes has no axis to join along"
        else:
            others = zip(first, shape, strict=True)
            different = [i for i, (a, b) in enumerate(others) if a != b and i != axis]
            if not different:
                continue
            because = f"only axis {axis} may differ, and axis {different[0]} does"
        raise shape_error(
            f"cannot cat tensors of shapes {first} and {shape}",
            because,
            "stack, to join along a new axis"
            if first == shape
            else "pad, shrink or reshape one of them",
        )


def joined(values: Sequence[UOp], axis: int) -> UOp:
    """Return `values`, equally shaped but for `axis`, one after the other along it.

    Rewrite: cat(a, b) -> where(position < len(a), pad(a after), pad(b before)), in halves.
    Adding the padded tensors would be right, too, but would lose the sign of -0.0.
    """
    values = [v for v in values if v.shape[axis]] or values[:1]
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    left, right = joined(values[:half], axis), joined(values[half:], axis)
    first, second = left.shape[axis], right.shape[axis]
    after = _one_axis(left.shape, axis, (0, second))
    row = (1,) * axis + (first,) + (1,) * (len(left.shape) - axis - 1)
    ones = expanded(UOp.const(dtypes.bool, True), row)
    inside = expanded(
        padded(ones, after), (*left.shape[:axis], first + second, *left.shape[axis + 1 :])
    )
    before = _one_axis(right.shape, axis, (first, 0))
    return inside.where(padded(left, after), padded(right, before))


def _one_axis(shape: Shape, axis: int, pair: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(pair if i == axis else (0, 0) for i in range(len(shape)))


def _refuse_pieces(count: int, shape: Shape, axis: int) -> None:
    if count > MOST_PIECES:
        raise shape_error(
            f"cannot cut axis {axis} of shape {shape} into {short(count)} pieces",
            f"each would be a tensor of its own, and {MOST_PIECES} are many",
            "reshape, to make the pieces an axis",
        )


def _lengths(
    piece_sizes: int | Sequence[int], size: int, shape: Shape, axis: int
) -> tuple[int, ...]:
    if not isinstance(piece_sizes, list | tuple):
        step = whole(piece_sizes, "split: a size", 0)
        if step == 0 and size:
            raise shape_error(
                f"cannot split axis {axis} of shape {shape} into pieces of 0",
                "they would never reach the end",
                "split(1)",
            )
        starts = range(0, max(1, size), max(1, step))
        _refuse_pieces(-(-size // max(1, step)), shape, axis)
        return tuple(min(step, size - start) for start in starts)
    lengths = sizes((piece_sizes,), "split")
    if sum(lengths) != size:
        raise shape_error(
            f"cannot split axis {axis} of shape {shape} into {short(lengths)}",
            f"they add up to {short(sum(lengths))}, and the axis has {size} elements",
            "lengths that add up to it, or one length for all pieces",
        )
    return lengths


# --------------------------------------------------------------------------------------------------
# Repeated elements and circular shifts: repeats, rolls, windows, grids.


class Repetition(Base):
    """repeat, repeat_interleave, roll, unfold, meshgrid."""

    __slots__ = ()

    def repeat(self, *repeats: Any, **named: Any) -> Self:
        """Return the tensor `repeats[i]` times after itself along axis i.

        Shapes: more numbers than axes add leading axes, as in PyTorch.
        Errors: ShapeError for fewer numbers than axes. Also known as: numpy tile.
        """
        times = sizes(with_named(repeats, named, "repeat", "repeats"), "repeat")
        if len(times) < self.ndim:
            raise shape_error(
                f"cannot repeat shape {self.shape} by {short(times)}",
                f"there are {len(times)} numbers for {self.ndim} axes",
                f"repeat{(1,) * (self.ndim - len(times)) + times}",
            )
        shape = (1,) * (len(times) - self.ndim) + self.shape
        ones = [size for n in shape for size in (1, n)]
        beside = [size for pair in zip(times, shape, strict=True) for size in pair]
        wide = expanded(reshaped(self.uop, tuple(ones)), tuple(beside))
        whole = tuple(t * n for t, n in zip(times, shape, strict=True))
        return self._with(reshaped(wide, whole))

    def repeat_interleave(self, repeats: int, dim: int | None = None) -> Self:
        """Return the tensor with each element of axis `dim` repeated in place.

        Shapes: None for `dim` flattens first. Also known as: numpy repeat.
        """
        if dim is None:
            return self.flatten().repeat_interleave(repeats, 0)
        times = whole(repeats, "repeat_interleave: repeats", 0)
        axis = one_axis(dim, self.ndim, "repeat_interleave")
        before, size = self.shape[:axis], self.shape[axis : axis + 1] or (1,)
        after = self.shape[axis + 1 :]
        with_one = reshaped(self.uop, (*before, *size, 1, *after))
        wide = expanded(with_one, (*before, *size, times, *after))
        return self._with(reshaped(wide, (*before, size[0] * times, *after)))

    def roll(self, shifts: Any, dims: Any = None) -> Self:
        """Return the tensor with the elements of each axis of `dims` moved `shifts` places on;
        what leaves at the end comes in at the start.

        Shapes: None for `dims` rolls the elements in row-major order.
        Errors: ShapeError unless there is a shift for each axis.
        """
        if dims is None:
            flat = self.reshape(-1) if self.numel() else self.reshape(0)
            return flat.roll(_whole_number("roll: shifts", shifts), 0).reshape(self.shape)
        amounts = _numbers("roll: shifts", shifts)
        axes = [one_axis(d, self.ndim, "roll") for d in _numbers("roll: dims", dims)]
        if len(amounts) != len(axes):
            raise shape_error(
                f"cannot roll shape {self.shape} by {short(shifts)} along {short(dims)}",
                f"there are {len(amounts)} shifts and {len(axes)} axes",
                "a shift for each axis",
            )
        result = self
        for amount, axis in zip(amounts, axes, strict=True):
            result = result._rolled(amount, axis)
        return result

    def unfold(self, dim: int, size: int, step: int) -> Self:
        """Return windows of `size` elements along axis `dim`, one every `step` elements, as a view:
        only windows that do not overlap can be written to.

        Shapes: the axis counts the windows, and a last axis is added for their elements.
        Errors: ShapeError if `size` is larger than the axis, or `step` below 1.
        """
        axis = one_axis(dim, self.ndim, "unfold")
        value = self.uop if self.ndim else reshaped(self.uop, (1,))
        length = value.shape[axis]
        window = Window(whole(size, "unfold: size", 1), whole(step, "unfold: step", 1), 1, 0, 0)
        if window.size > length:
            raise shape_error(
                f"cannot unfold axis {axis} of shape {self.shape} in windows of {short(size)}",
                f"the axis has {length} elements",
                f"size={length}, or a smaller one",
            )
        windows = along(value, axis, window)
        return self._view(windows if self.ndim else reshaped(windows, (window.size,)))

    def meshgrid(*vectors: Self, indexing: str = "ij") -> tuple[Self, ...]:
        """Return for each vector a tensor in the shape of the grid, with the vector's values along
        its own axis.

        Shapes: with `indexing` "xy" the first two axes are exchanged; a scalar is a vector of one.
        Errors: ShapeError for tensors of more axes; DTypeError for another `indexing`, or if none
        of `vectors` is a tensor.
        """
        choice(indexing, "meshgrid: indexing", ("ij", "xy"))
        parts: list[Any] = arguments(vectors, "meshgrid")
        maker: Any = next((part for part in parts if isinstance(part, Base)), None)
        if maker is None:
            raise dtype_error(
                f"cannot meshgrid {type(parts[0]).__name__} {short(parts[0])}",
                "none of the arguments is a tensor",
                "Tensor.meshgrid(a, b)",
            )
        lines: list[Any] = [maker._lift(part, "meshgrid") for part in parts]
        wrong = next((v for v in lines if v.ndim > 1), None)
        if wrong is not None:
            raise shape_error(
                f"cannot make a grid of a tensor of shape {wrong.shape}",
                "its axes are made of vectors and scalars",
                ".flatten()",
            )
        order = list(range(len(lines)))
        if indexing == "xy" and len(order) > 1:
            order[:2] = 1, 0
        grid = [1] * len(order)
        for vector, axis in zip(lines, order, strict=True):
            grid[axis] = vector.numel()
        return tuple(
            vector.reshape(*(-1 if i == axis else 1 for i in range(len(grid)))).expand(grid)
            for vector, axis in zip(lines, order, strict=True)
        )

    def _rolled(self, amount: int, axis: int) -> Self:
        size = self.shape[axis] if self.ndim else 1
        start = -amount % size if size else 0
        if not start:
            return self._with(self.uop)
        twice = self.repeat(*(2 if i == axis else 1 for i in range(self.ndim)))
        box = [None] * self.ndim
        return twice.shrink(
            [(start, start + size) if i == axis else none for i, none in enumerate(box)]
        )


def _whole_number(name: str, value: Any) -> int:
    numbers = _numbers(name, value)
    if len(numbers) != 1:
        raise shape_error(
            f"{name}: {short(value)} does not fit",
            "without dims there is one number for all elements",
            "dims, an axis for each",
        )
    return numbers[0]


def _numbers(name: str, value: Any) -> tuple[int, ...]:
    """Return one integer, or several, as a tuple."""
    many = isinstance(value, list | tuple)
    return tuple(whole(n, name) for n in (listed(value, name) if many else (value,)))

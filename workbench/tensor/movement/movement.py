"""Movement: the same elements in another arrangement. None of these computes or copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never, Self

from workbench.base.dtypes import Const, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import (
    axis_error,
    listed,
    refuse_keywords,
    shape_error,
    short,
    whole,
)
from workbench.tensor.operands.axes import (
    flat,
    is_minus_one,
    many_axes,
    one_axis,
    sizes,
    with_inferred,
    with_named,
)
from workbench.tensor.operands.broadcast import expanded

Box = tuple[tuple[int, int], ...]


class Movement(Base):
    """reshape, permute, expand, shrink, flip, and methods built on them."""

    __slots__ = ()

    def reshape(self, *shape: Any, **named: Any) -> Self:
        """Return the elements, in row-major order, in another shape.

        Shapes: -1 once, for the size that remains; None keeps the size of that axis.
        Errors: ShapeError if the number of elements differs.
        """
        sizes = flat(with_named(shape, named, "reshape", "shape"))
        return self._view(reshaped(self.uop, with_inferred(sizes, self.shape)))

    def view(self, *shape: Any, **named: Any) -> Self:
        """Return `reshape(*shape)`. Also known as: PyTorch view."""
        sizes = flat(with_named(shape, named, "view", "shape"))
        return self._view(reshaped(self.uop, with_inferred(sizes, self.shape, "view")))

    def permute(self, *order: Any, **named: Any) -> Self:
        """Return the tensor with axis `order[i]` in place i.

        Errors: ShapeError unless `order` names every axis once.
        """
        places = flat(with_named(order, named, "permute", "order", "dims"))
        axes = tuple(one_axis(axis, self.ndim, "permute") for axis in places)
        if sorted(axes) != list(range(self.ndim)):
            raise shape_error(
                f"cannot permute shape {self.shape} by {short(places)}",
                f"the order must name each of the {self.ndim} axes once",
                f"permute{tuple(reversed(range(self.ndim)))} turns them round",
            )
        if axes == tuple(range(self.ndim)):
            return self._view(self.uop)
        return self._view(UOp(Ops.PERMUTE, self.dtype, (self.uop,), axes))

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Self:
        """Return the tensor with two axes exchanged.

        Errors: AxisError if one does not exist.
        """
        a, b = (one_axis(dim, self.ndim, "transpose") for dim in (dim0, dim1))
        order = list(range(self.ndim))
        if order:
            order[a], order[b] = order[b], order[a]
        return self.permute(order)

    @property
    def mT(self) -> Self:
        """The tensor with its last two axes exchanged. Errors: AxisError for fewer axes."""
        if self.ndim < 2:
            raise axis_error(
                f"shape {self.shape} has no matrices to transpose",
                "a matrix has two axes",
                "unsqueeze(0) for a row",
            )
        return self.transpose(-2, -1)

    @property
    def T(self) -> Self:
        """The tensor with its first two axes exchanged; one of fewer axes as it is."""
        return self._view(self.uop) if self.ndim < 2 else self.transpose()

    def expand(self, *shape: Any, **named: Any) -> Self:
        """Return the tensor with axes of size 1 repeated, and new leading axes.

        Shapes: -1 and None keep the size of an axis. Errors: ShapeError if an axis of
        another size than 1 would change.
        """
        return self._expanded(flat(with_named(shape, named, "expand", "shape", "size")), "expand")

    def _expanded(self, new: tuple[Any, ...], what: str) -> Self:
        old = self.shape
        lead = len(new) - len(old)
        entries = [
            old[i - lead] if i >= lead and (s is None or is_minus_one(s)) else s
            for i, s in enumerate(new)
        ]
        target = sizes((entries,), what)
        pairs = zip(old, target[max(lead, 0) :], strict=False)
        if lead < 0 or any(have not in (1, want) for have, want in pairs):
            raise shape_error(
                f"cannot expand shape {old} to {short(new)}",
                "axes are aligned at the last one, and only axes of size 1 can be repeated",
                "reshape or unsqueeze first, so that the axes to repeat have size 1",
            )
        return self._view(expanded(self.uop, target))

    def expand_as(self, other: Self) -> Self:
        """Return the tensor expanded to the shape of `other`."""
        return self.expand(self._lift(other, "expand").shape)

    def view_as(self, other: Self) -> Self:
        """Return the tensor in the shape of `other`."""
        return self.reshape(self._lift(other, "reshape").shape)

    reshape_as = view_as

    def broadcast_to(self, *shape: Any, **named: Any) -> Self:
        """Return `expand(*shape)`. Also known as: numpy and PyTorch broadcast_to."""
        return self._expanded(
            flat(with_named(shape, named, "broadcast_to", "shape", "size")), "broadcast_to"
        )

    def shrink(self, bounds: Sequence[tuple[int, int] | None]) -> Self:
        """Return the box from lo up to hi of each axis; None keeps a whole axis.

        Errors: ShapeError if a bound is outside the tensor.
        """
        pairs = box_pairs("shrink", listed(bounds, "shrink: bounds", "((0, 1), None)"), self.shape)
        box = tuple(
            (0, size) if pair is None else pair
            for pair, size in zip(pairs, self.shape, strict=True)
        )
        for axis, ((lo, hi), size) in enumerate(zip(box, self.shape, strict=True)):
            if not 0 <= lo <= hi <= size:
                raise shape_error(
                    f"cannot shrink axis {axis} of shape {self.shape} to {short((lo, hi))}",
                    f"bounds run from 0 to {size}, the lower one first",
                    f"(0, {size}), or None, for all of the axis",
                )
        return self._view(shrunk(self.uop, box))

    def flip(self, axis: int | Sequence[int], *more: int) -> Self:
        """Return the tensor with its elements in reverse order along each of the given axes."""
        axes = many_axes(flat((axis, *more)), self.ndim, "flip")
        return self._view(flipped(self.uop, axes))

    def squeeze(self, dim: int | None = None, **others: Never) -> Self:
        """Return the tensor without its axes of size 1, or without axis `dim` if its size is 1."""
        if others:
            refuse_keywords(Movement.squeeze, others)
        shape = self.shape
        if dim is None:
            return self.reshape(tuple(size for size in shape if size != 1))
        axis = one_axis(dim, self.ndim, "squeeze")
        if not shape or shape[axis] != 1:
            return self._view(self.uop)
        return self.reshape(shape[:axis] + shape[axis + 1 :])

    def unsqueeze(self, dim: int) -> Self:
        """Return the tensor with a new axis of size 1 in place `dim`."""
        axis = one_axis(dim, self.ndim, "unsqueeze", extra=1)
        return self.reshape((*self.shape[:axis], 1, *self.shape[axis:]))

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Return the tensor with the axes from `start_dim` to `end_dim` merged.

        Errors: AxisError for an axis that does not exist; ShapeError if the first is after the
        last.
        """
        first = one_axis(start_dim, self.ndim, "flatten")
        last = one_axis(end_dim, self.ndim, "flatten")
        if first > last:
            raise shape_error(
                f"cannot flatten axes {start_dim} to {end_dim} of shape {self.shape}",
                "the first of them comes after the last",
                f"flatten({end_dim}, {start_dim})",
            )
        size = 1
        for n in self.shape[first : last + 1]:
            size *= n
        return self.reshape((*self.shape[:first], size, *self.shape[last + 1 :]))

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Self:
        """Return the tensor with axis `dim` split into axes of `sizes`; one may be -1.

        Errors: ShapeError unless their product is the size of the axis, and for no sizes.
        """
        axis = one_axis(dim, self.ndim, "unflatten")
        if sizes is None or not flat((sizes,)):
            raise shape_error(
                f"cannot unflatten axis {axis} of shape {self.shape} into {short(sizes)}",
                "an axis becomes one axis or more, each with a size",
                "sizes=(-1,)",
            )
        split = with_inferred(flat((sizes,)), self.shape[axis : axis + 1], "unflatten")
        return self.reshape((*self.shape[:axis], *split, *self.shape[axis + 1 :]))


# On nodes: a movement that changes nothing returns the node itself.


def reshaped(value: UOp, shape: Shape) -> UOp:
    """Return `value` in `shape`, which has as many elements."""
    if value.shape == shape:
        return value
    return UOp(Ops.RESHAPE, value.dtype, (value,), shape)


def shrunk(value: UOp, box: Box) -> UOp:
    """Return the box (lo, hi per axis) of `value`."""
    if all(pair == (0, size) for pair, size in zip(box, value.shape, strict=True)):
        return value
    return UOp(Ops.SHRINK, value.dtype, (value,), box)


def slab(value: UOp, axis: int, lo: int, hi: int) -> UOp:
    """Return the elements from `lo` up to `hi` along `axis`."""
    box = tuple((lo, hi) if i == axis else (0, n) for i, n in enumerate(value.shape))
    return shrunk(value, box)


def flipped(value: UOp, axes: tuple[int, ...]) -> UOp:
    """Return `value` reversed along `axes`."""
    return UOp(Ops.FLIP, value.dtype, (value,), axes) if axes else value


def padded(value: UOp, box: Box, fill: Const = 0) -> UOp:
    """Return `value` with (before, after) elements of `fill` added per axis."""
    if not any(before or after for before, after in box):
        return value
    zeros = UOp(Ops.PAD, value.dtype, (value,), box)
    if value.like(fill) is value.like(0):  # -0.0 is another constant
        return zeros
    everywhere = expanded(UOp.const(dtypes.bool, True), value.shape)
    inside = UOp(Ops.PAD, dtypes.bool, (everywhere,), box)
    return inside.where(zeros, value.like(fill))


def pairs_text(shape: Shape) -> str:
    """Return an example of a pair for each axis: "((0, 1), (0, 1))"."""
    return short(((0, 1),) * len(shape))


def box_pairs(what: str, entries: tuple[Any, ...], shape: Shape) -> list[tuple[int, int] | None]:
    """Return a pair of integers or None for each axis. Errors: ShapeError for another number of
    entries, or entries of another kind."""
    pairs = all(p is None or (isinstance(p, list | tuple) and len(p) == 2) for p in entries)
    if len(entries) != len(shape) or not pairs:
        raise shape_error(
            f"cannot {what} shape {shape} by {short(entries)}",
            f"it takes a pair of numbers or None for each of the {len(shape)} axes",
            f"{what}({pairs_text(shape)})",
        )
    name = f"{what}: a number of a pair"
    return [p if p is None else (whole(p[0], name), whole(p[1], name)) for p in entries]

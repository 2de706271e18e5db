"""Axes split, reordered and merged by a formula, "b (h w) c -> b c h w"; scatter.

Source of the formulas: einops. Each side names axes; parentheses hold the axes that one axis is
made of, the slowest first; `...` stands for all axes that are not named, 1 for an axis of size 1.

Sections: Axes split, reordered and merged by a formula; Scatter.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn, Self

from workbench.base.dtypes import Const, dtypes
from workbench.ir.node.construct import identity
from workbench.ir.node.ops import Ops
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.indexing import Gather, refuse_outside
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import (
    choice,
    dtype_error,
    flag,
    number,
    shape_error,
    short,
    text,
    whole,
)
from workbench.tensor.operands.axes import iota, one_axis
from workbench.tensor.operands.broadcast import constant, wide_dtype

# --------------------------------------------------------------------------------------------------
# Axes split, reordered and merged by a formula.

_TOKEN = re.compile(r"\s*(\.\.\.|[()]|[A-Za-z_]\w*|1\b)")
_DOTS = "..."
_MERGED_DOTS = "(...)"
"""The axes of `...`: each on its own, and inside parentheses as a part of one axis."""

Side = list[list[str]]
"""For each axis the names that it is made of."""


class Rearrange(Base):
    """rearrange."""

    __slots__ = ()

    def rearrange(self, formula: str, **sizes: int) -> Self:
        """Return the elements with axes split, reordered and merged as `formula` says; `sizes`
        has the sizes that do not follow from the shape.

        Errors: ShapeError for a formula that cannot be read, names that differ between its sides,
        or sizes that do not fit.
        """
        left, right = _sides(text(formula, "rearrange: formula", "a b -> b a"))
        left, right = _without_dots(left, right, self.ndim, formula)
        lengths = _lengths(left, self.shape, sizes, formula)
        names = [name for axis in left for name in axis]
        split = self.reshape([lengths[name] for name in names])
        right_names = [name for axis in right for name in axis if name != "1"]
        # An axis of size 1 without a name has no place in the order: reshape drops or adds it.
        order = [names.index(name) for name in right_names]
        rest = [i for i in range(len(names)) if i not in order]
        shape = [math.prod(lengths.get(n, 1) for n in axis) for axis in right]
        return split.permute(*order, *rest).reshape(shape)


def _sides(formula: str) -> tuple[Side, Side]:
    halves = formula.split("->")
    if len(halves) != 2:
        _refuse(formula, f"it has {len(halves) - 1} arrows, and must have one")
    left, right = (_axes(half, formula) for half in halves)
    for side in (left, right):
        names = [n.strip("()") for axis in side for n in axis if n != "1"]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice:
            _refuse(formula, f"{twice} stands twice on one side")
    sets = [{n.strip("()") for axis in side for n in axis} for side in (left, right)]
    unmatched = (sets[0] ^ sets[1]) - {"1"}
    if unmatched:
        _refuse(formula, f"{', '.join(sorted(unmatched))} stands on one side alone")
    return left, right


def _axes(half: str, formula: str) -> Side:
    axes: Side = []
    is_inside, place, half = False, 0, half.rstrip()
    while place < len(half):
        match = _TOKEN.match(half, place)
        if match is None:
            _refuse(formula, f"{half[place:].strip()[:20]!r} is not the name of an axis")
        token, place = match[1], match.end()
        if token in "()":
            if (token == "(") is is_inside:
                _refuse(formula, "parentheses must come in pairs, and not in each other")
            is_inside = not is_inside
            if is_inside:
                axes.append([])
        elif is_inside:
            axes[-1].append(_MERGED_DOTS if token == _DOTS else token)
        else:
            axes.append([token])
    if is_inside:
        _refuse(formula, "a parenthesis is open at the end")
    return axes


def _without_dots(left: Side, right: Side, ndim: int, formula: str) -> tuple[Side, Side]:
    """Return both sides with a name for each of the axes that `...` stands for."""
    has_dots = [_DOTS] in left
    if any(_MERGED_DOTS in axis for axis in left):
        _refuse(formula, "... cannot be a part of an axis of the tensor")
    missing = ndim - len(left) + has_dots
    if missing < 0 or (missing and not has_dots):
        _refuse(formula, f"it names {len(left) - has_dots} axes, and the tensor has {ndim}")
    dots = [f"...{i}" for i in range(missing)]

    def named(side: Side) -> Side:
        axes: Side = []
        for axis in side:
            if axis == [_DOTS]:
                axes += [[dot] for dot in dots]
            else:
                axes.append([n for a in axis for n in (dots if a == _MERGED_DOTS else [a])])
        return axes

    return named(left), named(right)


def _lengths(left: Side, shape: Shape, sizes: dict[str, Any], formula: str) -> dict[str, int]:
    """Return the size of each name of the left side; one in an axis may follow from the others."""
    names = {name for axis in left for name in axis}
    for name in sizes:
        if name not in names:
            _refuse(formula, f"it has no axis {short(name)}")
    lengths = {name: whole(n, f"rearrange: {name}", 0) for name, n in sizes.items()}
    lengths["1"] = 1
    for axis, (parts, size) in enumerate(zip(left, shape, strict=True)):
        unknown = [name for name in parts if name not in lengths]
        product = math.prod(lengths[name] for name in parts if name in lengths)
        if len(unknown) > 1:
            _refuse(formula, f"the sizes of {' and '.join(unknown)} are unknown", unknown)
        if unknown and product and size % product == 0:
            lengths[unknown[0]] = size // product
        elif unknown or product != size:
            _refuse(
                formula,
                f"axis {axis} of shape {shape} has {size} elements, and"
                f" ({' '.join(parts)}) has {product}{' times as many' if unknown else ''}",
            )
    return lengths


def _refuse(formula: str, because: str, unknown: list[str] | None = None) -> NoReturn:
    hint = (
        f"{unknown[0]}=2, or its size, as an argument" if unknown else 'x.rearrange("a b -> b a")'
    )
    raise shape_error(f"cannot rearrange by {short(formula)}", because, hint)


# --------------------------------------------------------------------------------------------------
# Scatter: elements written to the positions of an index.
#
# No kernel writes to a computed position: each element of the result searches the index for the
# elements that go to it. That is a loop over the index, without a tensor of the size of both.
# Elements that are overwritten are not computed.

_REDUCTIONS = {
    "sum": Ops.ADD, "prod": Ops.MUL, "mean": Ops.ADD, "amax": Ops.MAX, "amin": Ops.MIN,
}  # fmt: skip


class Scatter(Gather):
    """scatter, scatter_reduce."""

    __slots__ = ()

    def scatter(self, dim: int, index: Self, src: Self | Const, reduce: str | None = None) -> Self:
        """Return this tensor with `src` written at [.., index[i, j, ..], ..]: the index is for axis
        `dim`. With `reduce` "add" or "multiply" it is combined with what is there.

        Shapes: all have the same number of axes; `index` is not larger than `src` and, except along
        `dim`, not larger than this tensor. Of equal indexes the last one counts. An index that is
        out of range, in a tensor that is not computed yet, is ignored.
        Dtypes: `src` has this tensor's; a number takes it.
        Errors: ShapeError or DTypeError for operands that do not fit; AxisError for an index out
        of range, as in `t[index]`.
        """
        if reduce is not None:
            hint = 'reduce="add", or scatter_reduce for others'
            choice(reduce, "scatter: reduce", ("add", "multiply"), hint)
        axis, places, source = self._scattered("scatter", dim, index, src)
        if reduce is not None:
            op = Ops.ADD if reduce == "add" else Ops.MUL
            return self._combined_at(axis, places, source, op)
        hits = places._hits(self.shape[axis] if self.ndim else 1)
        order = self._with(iota(hits.shape[-1]))
        last = hits.where(order, -1)._combine(Ops.MAX, -1, False, "scatter", -1)
        values = source.unsqueeze(-2)._where_equal(last.unsqueeze(-1), last.ndim)
        return self._where_inside(axis, last.ge(0), values)

    def scatter_reduce(
        self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True
    ) -> Self:
        """Return this tensor, combined with `src` at the places of `index` as in `scatter`.

        `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self` an element of
        this tensor counts only if nothing is combined with it. A mean of integers is floored.
        Errors: as `scatter`.
        """
        choice(reduce, "scatter_reduce: reduce", tuple(_REDUCTIONS))
        with_self = flag(include_self, "scatter_reduce: include_self")
        axis, places, source = self._scattered("scatter_reduce", dim, index, src)
        if reduce != "mean":
            op = _REDUCTIONS[reduce]
            return self._combined_at(axis, places, source, op, with_self)
        wide = self.cast(wide_dtype(self.dtype))
        total = wide._combined_at(axis, places, source.cast(wide.dtype), Ops.ADD, with_self)
        hits = places._hits(self.shape[axis] if self.ndim else 1).cast(dtypes.int32)
        count = self._back(hits.sum(-1, dtype=hits.dtype), axis) + int(with_self)
        rounding = None if self.dtype.is_float else "floor"
        mean = total.div(count.maximum(1).cast(total.dtype), rounding_mode=rounding)
        return mean.cast(self.dtype)

    def _scattered(self, what: str, dim: int, index: Self, src: Any) -> tuple[int, Self, Self]:
        """Return the axis, and index and source with that axis last, in the index's shape."""
        axis = one_axis(dim, self.ndim, what)
        raw_index, index = index, self._index(index)
        refuse_outside(raw_index, axis, self.shape or (1,))
        if isinstance(src, type(self)):
            source = src
            if source.dtype is not self.dtype:
                raise dtype_error(
                    f"cannot {what} {source.dtype} into {self.dtype}",
                    "the source must have the dtype of the tensor",
                    f"src.cast(dtypes.{self.dtype})",
                )
        else:
            value = constant(self.dtype, number(src, f"{what}: src"), what)
            source = self._with(value).expand(index.shape)
        _check_shapes(what, axis, self.shape, index.shape, source.shape)
        source = source.shrink([(0, n) for n in index.shape])
        if not self.ndim:
            return 0, index.reshape(1), source.reshape(1)
        places = index._wrapped(self.shape[axis], axis, self.shape)
        return axis, places.transpose(axis, -1), source.transpose(axis, -1)

    def _hits(self, size: int) -> Self:
        """Return whether each element of an index equals each position below `size`, along a new
        axis before the last: (.., n) -> (.., size, n)."""
        column = self._with(reshaped(iota(size, self.dtype), (size, 1)))
        return self.unsqueeze(-2).eq(column)

    def _combined_at(
        self, axis: int, places: Self, source: Self, op: Ops, with_self: bool = True
    ) -> Self:
        hits = places._hits(self.shape[axis] if self.ndim else 1)
        if self.dtype.is_bool:
            op = {Ops.MAX: Ops.ADD, Ops.MIN: Ops.MUL}.get(op, op)
        neutral = self._with(identity(op, self.dtype))
        terms = hits.where(source.unsqueeze(-2), neutral)
        total = terms._combine(op, -1, False, "scatter", neutral.uop.arg)
        if not with_self:
            return self._where_inside(axis, hits.any(-1), total)
        box = self._back(total, axis, neutral.uop.arg)
        return self._with(self.uop.alu(op, box.uop), box)

    def _where_inside(self, axis: int, is_hit: Self, values: Self) -> Self:
        return self._back(is_hit, axis).where(self._back(values, axis), self)

    def _back(self, values: Self, axis: int, fill: Const = 0) -> Self:
        """Return `values`, which are for the part of this tensor that the index covers, padded to
        the tensor's shape."""
        if not self.ndim:
            return values.reshape(())
        part = values.transpose(axis, -1)
        sides = [(0, n - m) for n, m in zip(self.shape, part.shape, strict=True)]
        return part.pad(sides, value=fill)


def _check_shapes(what: str, axis: int, shape: Any, index: Any, source: Any) -> None:
    """Raise ShapeError where the index has other axes than the tensor and the source, or more
    elements along one."""
    problem = ""
    if not len(shape) == len(index) == len(source):
        problem = f"they have {len(shape)}, {len(index)} and {len(source)} axes"
    elif any(n > m for n, m in zip(index, source, strict=True)):
        problem = "the index is larger than the source"
    elif any(n > shape[i] for i, n in enumerate(index) if i != axis):
        problem = f"only axis {axis} of the index may be longer than the tensor"
    if problem:
        raise shape_error(
            f"cannot {what} into shape {shape} by an index of {index} from {source}",
            problem,
            "an index of the shape of the source, with as many axes as the tensor has",
        )

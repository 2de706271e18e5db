"""Scatter: elements written to the positions of an index.

No kernel writes to a computed place: each element of the result looks for what goes to it. That is
a loop over the index, without a tensor of the size of both; what is overwritten is not computed.
"""

from __future__ import annotations

from typing import Any, Self

from workbench.base.dtypes import Const, dtypes
from workbench.ir.node.constants import identity
from workbench.ir.node.ops import Ops
from workbench.tensor.movement.gather import Gather, refuse_outside
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import flag, number, text
from workbench.tensor.operands.axes import one_axis
from workbench.tensor.operands.broadcast import constant, wide_dtype
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.operands.refuse import dtype_error, shape_error

_REDUCTIONS = {
    "sum": Ops.ADD, "prod": Ops.MUL, "mean": Ops.ADD, "amax": Ops.MAX, "amin": Ops.MIN,
}  # fmt: skip


class Scatter(Gather):
    """scatter, scatter_reduce."""

    __slots__ = ()

    def scatter(self, dim: int, index: Self, src: Self | Const, reduce: str | None = None) -> Self:
        """Return this tensor with `src` at [.., index[i, j, ..], ..], the index in the place of
        axis `dim`; with `reduce` "add" or "multiply" combined with what is there.

        Shapes: as many axes everywhere; `index` is not larger than `src`, and than this tensor but
        along `dim`. Of equal indexes the last one counts; one outside the axis, in a tensor that is
        not computed yet, goes nowhere.
        Dtypes: `src` has this tensor's; a number takes it.
        Errors: ShapeError or DTypeError for operands that do not fit; AxisError for an index out
        of range, as in `t[index]`.
        """
        if reduce is not None and text(reduce, "scatter: reduce") not in ("add", "multiply"):
            raise dtype_error(
                f"cannot scatter with reduce={reduce!r}",
                'it is None, "add" or "multiply"',
                "scatter_reduce, for others",
            )
        axis, places, source = self._scattered("scatter", dim, index, src)
        if reduce is not None:
            op = Ops.ADD if reduce == "add" else Ops.MUL
            return self._combined_at(axis, places, source, op)
        hits = places._hits(self.shape[axis] if self.ndim else 1)
        order = self._with(numbered(hits.shape[-1]))
        last = hits.where(order, -1)._combine(Ops.MAX, -1, False, "scatter", -1)
        values = source.unsqueeze(-2)._where_equal(last.unsqueeze(-1), last.ndim)
        return self._where_inside(axis, last.ge(0), values)

    def scatter_reduce(
        self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True
    ) -> Self:
        """Return this tensor, combined with `src` at the places of `index` as in `scatter`.

        `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self` what is there
        counts only where nothing is combined with it. A mean of integers is floored.
        Errors: as `scatter`.
        """
        if text(reduce, "scatter_reduce: reduce") not in _REDUCTIONS:
            raise dtype_error(
                f"cannot scatter_reduce with reduce={reduce!r}",
                "it is one of " + ", ".join(_REDUCTIONS),
            )
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
        """Return where an index is a position of an axis of `size`, which is a new last axis but
        one: (.., n) -> (.., size, n)."""
        column = self._with(reshaped(numbered(size, self.dtype), (size, 1)))
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
        """Return `values`, of the part of this tensor that the index covers, in its shape."""
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
            f"cannot {what} into shape {shape} by an index of {index} from {source}", problem
        )

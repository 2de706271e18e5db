"""Unpooling: values written back to the positions from which pooling took them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from workbench.ir.node.shapes import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.windows import one_or_many, windows_of
from workbench.tensor.operands.arguments import short
from workbench.tensor.operands.axes import sizes
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.operands.refuse import dtype_error, shape_error

_WHAT = "max_unpool2d"


class Unpooling(Base):
    """max_unpool2d."""

    __slots__ = ()

    def max_unpool2d(
        self,
        indices: Self,
        kernel_size: int | Sequence[int] = (2, 2),
        stride: int | Sequence[int] | None = None,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_size: Sequence[int] | None = None,
    ) -> Self:
        """Return zeros with the elements of self at `indices`, as `max_pool2d` returns them.

        Shapes: the last axes (as many as `kernel_size` has numbers) become those that the pool had,
        or `output_size`, which has their sizes or those of all axes. An index counts the places of
        these axes row by row. A value with an index outside is dropped; of several with one index
        (they are equal where windows overlap) the last one is put there.
        Errors: ShapeError if shapes differ or an output size is below 1, DTypeError for `indices`
        that are not integers.
        """
        places = self._lift(indices, "index")
        if places.shape != self.shape or not places.dtype.is_int:
            raise _unlike(self, places)
        kernel = one_or_many(kernel_size, 2, f"{_WHAT}: kernel_size")
        if len(kernel) > self.ndim:
            raise shape_error(
                f"cannot {_WHAT} shape {self.shape} with a kernel of {short(kernel)}",
                f"it slides over {len(kernel)} axes, and there are {self.ndim}",
            )
        steps = kernel if stride is None else stride
        each = windows_of(_WHAT, kernel, steps, dilation, padding)
        lead, last = self.shape[: -len(each)], self.shape[-len(each) :]
        if output_size is None:
            shape = tuple(
                (n - 1) * w.stride + w.extent - w.before - w.after
                for n, w in zip(last, each, strict=True)
            )
        else:
            shape = _output(output_size, lead, len(each))
        if min(shape) < 1:
            raise shape_error(
                f"{_WHAT}: shape {last} would become {shape}",
                "an axis has one element or more",
                "less padding, or output_size=",
            )
        return self._placed(places, lead, shape)

    def _placed(self, places: Self, lead: Shape, shape: Shape) -> Self:
        """Return zeros of `lead` + `shape` with self at `places`, row-major in `shape`."""
        count = math.prod(self.shape[len(lead) :])
        flat, order = places.reshape(*lead, count), self._with(numbered(count))
        is_same = flat.unsqueeze(-1).eq(flat.unsqueeze(-2))
        is_later = order.gt(order.unsqueeze(-1))
        is_last = (is_same & is_later).any(-1).logical_not().unsqueeze(-1)
        is_there = flat.unsqueeze(-1).eq(self._with(numbered(math.prod(shape))))
        values = (is_there & is_last).where(self.reshape(*lead, count, 1), 0)
        return values.sum(-2, dtype=self.dtype).reshape(*lead, *shape)


def _unlike(values: Base, indices: Base) -> Exception:
    if indices.shape != values.shape:
        return shape_error(
            f"{_WHAT}: indices of shape {indices.shape} do not fit shape {values.shape}",
            "each element has an index",
            "both results of max_pool2d(.., return_indices=True)",
        )
    return dtype_error(
        f"{_WHAT}: indices of {indices.dtype}",
        "an index is the number of a place, an integer",
        ".int() first",
    )


def _output(output_size: Any, lead: Shape, axes: int) -> Shape:
    """Return the sizes of the last axes that `output_size` names.

    Errors: ShapeError unless it has one for each of them, or for all axes.
    """
    shape = sizes((output_size,), f"{_WHAT}: output_size")
    if len(shape) == axes:
        return shape
    if len(shape) == len(lead) + axes and shape[: len(lead)] == lead:
        return shape[len(lead) :]
    raise shape_error(
        f"{_WHAT}: output_size {shape} does not fit",
        f"it has a size for each of the last {axes} axes, or for all {len(lead) + axes}",
    )

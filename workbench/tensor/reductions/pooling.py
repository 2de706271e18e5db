"""Pooling: windows slide over the last axes, and each is combined to one element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from workbench.ir.node.shapes import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import padded, reshaped
from workbench.tensor.movement.windows import (
    Window,
    check_fits,
    one_or_many,
    padded_for,
    windows,
    windows_of,
)
from workbench.tensor.operands.arguments import flag, short
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.operands.refuse import shape_error

Numbers = int | Sequence[int]


class Pooling(Base):
    """max_pool2d, avg_pool2d.

    Shapes: windows slide over as many of the last axes as `kernel_size` has numbers (one number:
    two axes). `stride` is the size of the window unless given; `padding` is a number for all sides,
    one per axis, or PyTorch's flat form, (left, right, top, bottom). With `ceil_mode` a last window
    may extend beyond the end.
    Errors: ShapeError if no window fits.
    """

    __slots__ = ()

    def max_pool2d(
        self,
        kernel_size: Numbers = (2, 2),
        stride: Numbers | None = None,
        dilation: Numbers = 1,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Self | tuple[Self, Self]:
        """Return the greatest value of each window; padding is never the greatest. With
        `return_indices`, return its place, too: the first one's, or that of the first NaN.

        Shapes: places count the elements of the last axes row by row. Dtypes: they are int32.
        """
        what = "max_pool2d"
        each = self._windows(what, kernel_size, stride, dilation, padding, ceil_mode)
        value = padded_for(self.uop, each, self.dtype.min)
        patches = self._with(windows(value, each))
        greatest = patches.max(_last(each))
        if not flag(return_indices, f"{what}: return_indices"):
            return greatest
        return greatest, patches._places(greatest, each, self.shape[-len(each) :])

    def avg_pool2d(
        self,
        kernel_size: Numbers = (2, 2),
        stride: Numbers | None = None,
        dilation: Numbers = 1,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Self:
        """Return the mean of each window; padding counts as zeros unless
        `count_include_pad` is False.

        Dtypes: integers and bools give float32.
        """
        each = self._windows("avg_pool2d", kernel_size, stride, dilation, padding, ceil_mode)
        value = self._wide()
        patches = value._with(windows(padded_for(value.uop, each, 0), each))
        means = patches.sum(_last(each)) / value._counts(each, count_include_pad)
        return means.cast(self._fraction())

    def _places(self, greatest: Self, each: Sequence[Window], shape: Shape) -> Self:
        """Return the first place in `shape`, row-major, of the greatest value of each window."""
        count = math.prod(shape)
        plane = reshaped(numbered(count), shape)
        # Padding has the place after the last.
        places = self._with(windows(padded_for(plane, each, count), each))
        spread = greatest.reshape(*greatest.shape, *(1,) * len(each))
        is_greatest = self.eq(spread)
        if self.dtype.is_float:
            is_greatest = is_greatest | self.isnan()
        return is_greatest.where(places, count).min(_last(each))

    def _windows(
        self,
        what: str,
        kernel: Numbers,
        stride: Numbers | None,
        dilation: Any,
        padding: Any,
        ceil: bool,
    ) -> tuple[Window, ...]:
        sizes = one_or_many(kernel, 2, f"{what}: kernel_size")
        if len(sizes) > self.ndim:
            raise shape_error(
                f"cannot {what} shape {self.shape} with a kernel of {short(sizes)}",
                f"it slides over {len(sizes)} axes, and there are {self.ndim}",
            )
        each = windows_of(
            what,
            sizes,
            sizes if stride is None else stride,
            dilation,
            padding,
            flag(ceil, f"{what}: ceil_mode"),
        )
        check_fits(what, self.shape, each)
        return each

    def _counts(self, each: Sequence[Window], with_padding: bool) -> Self | int:
        """Return the number of elements of each window; elements beyond the end never count."""
        shape = self.shape[self.ndim - len(each) :]
        sides = [w.padding(n) for w, n in zip(each, shape, strict=True)]
        if flag(with_padding, "avg_pool2d: count_include_pad"):
            sides = [(0, after - w.after) for w, (_, after) in zip(each, sides, strict=True)]
            shape = tuple(n + w.before + w.after for w, n in zip(each, shape, strict=True))
        if not any(before or after for before, after in sides):
            return math.prod(w.size for w in each)
        ones = padded(expanded(self.uop.like(1), shape), tuple(sides))
        return self._with(windows(ones, each)).sum(_last(each))


def _last(each: Sequence[Window]) -> tuple[int, ...]:
    return tuple(range(-len(each), 0))

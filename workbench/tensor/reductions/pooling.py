"""Pooling: windows slide over the last axes, and each is combined to one element.

Sections: Pooling; Unpooling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from workbench.ir.node.views import Shape
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
from workbench.tensor.operands.arguments import dtype_error, flag, shape_error, short
from workbench.tensor.operands.axes import iota, sizes
from workbench.tensor.operands.broadcast import expanded

# --------------------------------------------------------------------------------------------------
# Pooling.

Numbers = int | Sequence[int]


class Pooling(Base):
    """max_pool2d, avg_pool2d.

    Shapes: windows slide over as many of the last axes as `kernel_size` has numbers (one number:
    two axes). `stride` is the size of the window unless given; `padding` is a number for all sides,
    one per axis, or PyTorch's flat form, (left, right, top, bottom). With `ceil_mode` a last window
    may extend beyond the end.
    Errors: ShapeError if no window fits, or for so much padding that a window sees nothing else: as
    in PyTorch more than half of a window, or in the flat form a whole window on one side.
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
        `return_indices`, return its position, too: of equal values, or of NaNs, the first one's.

        Shapes: positions count the elements of the last axes row by row. Dtypes: they are int32.
        """
        what = "max_pool2d"
        each = self._windows(what, kernel_size, stride, dilation, padding, ceil_mode)
        value = padded_for(self.uop, each, self.dtype.min)
        patches = self._with(windows(value, each))
        greatest = patches.max(_last_axes(each))
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
        means = patches.sum(_last_axes(each)) / value._counts(each, count_include_pad)
        return means.cast(self._fraction())

    def _places(self, greatest: Self, each: Sequence[Window], shape: Shape) -> Self:
        """Return the first position in `shape`, row-major, of the greatest value of each window."""
        count = math.prod(shape)
        plane = reshaped(iota(count), shape)
        # Padding has the position after the last.
        places = self._with(windows(padded_for(plane, each, count), each))
        spread = greatest.reshape(*greatest.shape, *(1,) * len(each))
        is_greatest = self.eq(spread)
        if self.dtype.is_float:
            is_greatest = is_greatest | self.isnan()
        return is_greatest.where(places, count).min(_last_axes(each))

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
                f"kernel_size={short(sizes[: self.ndim])}, or images (batch, channels, y, x)",
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
        _check_padding(what, each, padding)
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
        return self._with(windows(ones, each)).sum(_last_axes(each))


def _check_padding(what: str, each: Sequence[Window], padding: Any) -> None:
    """Raise ShapeError for more padding than windows of the size may have.

    ONNX, which has a number for each side, allows all but one element of a window.
    """
    is_flat = len(one_or_many(padding, len(each), what)) == 2 * len(each)
    for window in each:
        most = window.extent - 1 if is_flat else window.extent // 2
        widest = max(window.before, window.after)
        if widest > most:
            raise shape_error(
                f"{what}: padding {short(padding)} does not fit",
                f"a window of {window.extent} elements may have {most} of padding on a side, "
                f"and this is {widest}",
                f"padding={most}, or pad() first",
            )


def _last_axes(each: Sequence[Window]) -> tuple[int, ...]:
    return tuple(range(-len(each), 0))


# --------------------------------------------------------------------------------------------------
# Unpooling: values written back to the positions from which pooling took them.

_UNPOOL = "max_unpool2d"


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

        Shapes: the last axes (as many as `kernel_size` has numbers) get the least sizes that pool
        to self's, or `output_size`: sizes of these axes, or of all. An index counts the elements of
        these axes row by row. A value whose index is outside is dropped; of several values with one
        index the last one counts (values of overlapping windows are equal).
        Errors: ShapeError if shapes differ or an output size is below 1, DTypeError for `indices`
        that are not integers.
        """
        places = self._lift(indices, "index")
        if places.shape != self.shape or not places.dtype.is_int:
            raise _unlike(self, places)
        kernel = one_or_many(kernel_size, 2, f"{_UNPOOL}: kernel_size")
        if len(kernel) > self.ndim:
            raise shape_error(
                f"cannot {_UNPOOL} shape {self.shape} with a kernel of {short(kernel)}",
                f"it slides over {len(kernel)} axes, and there are {self.ndim}",
                f"kernel_size={short(kernel[: self.ndim])}, or images (batch, channels, y, x)",
            )
        steps = kernel if stride is None else stride
        each = windows_of(_UNPOOL, kernel, steps, dilation, padding)
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
                f"{_UNPOOL}: shape {last} would become {shape}",
                "an axis has one element or more",
                "less padding, or output_size=",
            )
        return self._placed(places, lead, shape)

    def _placed(self, places: Self, lead: Shape, shape: Shape) -> Self:
        """Return zeros of `lead` + `shape` with self at `places`, row-major in `shape`."""
        count = math.prod(self.shape[len(lead) :])
        flat, order = places.reshape(*lead, count), self._with(iota(count))
        is_same = flat.unsqueeze(-1).eq(flat.unsqueeze(-2))
        is_later = order.gt(order.unsqueeze(-1))
        is_last = (is_same & is_later).any(-1).logical_not().unsqueeze(-1)
        is_there = flat.unsqueeze(-1).eq(self._with(iota(math.prod(shape))))
        values = (is_there & is_last).where(self.reshape(*lead, count, 1), 0)
        return values.sum(-2, dtype=self.dtype).reshape(*lead, *shape)


def _unlike(values: Base, indices: Base) -> Exception:
    if indices.shape != values.shape:
        return shape_error(
            f"{_UNPOOL}: indices of shape {indices.shape} do not fit shape {values.shape}",
            "each element has an index",
            "both results of max_pool2d(.., return_indices=True)",
        )
    return dtype_error(
        f"{_UNPOOL}: indices of {indices.dtype}",
        "an index is the number of a place, an integer",
        ".int() first",
    )


def _output(output_size: Any, lead: Shape, axes: int) -> Shape:
    """Return the sizes of the last axes that `output_size` names.

    Errors: ShapeError unless it has one for each of them, or for all axes.
    """
    shape = sizes((output_size,), f"{_UNPOOL}: output_size")
    if len(shape) == axes:
        return shape
    if len(shape) == len(lead) + axes and shape[: len(lead)] == lead:
        return shape[len(lead) :]
    raise shape_error(
        f"{_UNPOOL}: output_size {shape} does not fit",
        f"it has a size for each of the last {axes} axes, or for all {len(lead) + axes}",
        "the shape of the tensor that was pooled",
    )

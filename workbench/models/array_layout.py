"""The layout that numpy gives an array: it decides whether `x.reshape(..)` shares memory with x.

Each array has a twin: an array of numpy of its shape and strides, whose memory is never read. numpy
makes the views of twins. Elements of a Tensor are in row-major order everywhere; only code that
writes to one of two arrays that share memory, or do not, sees a layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

Strides = tuple[int, ...]
Array = np.ndarray[Any, Any]
_MEMORY = np.empty(1, np.int8)


def twin(shape: tuple[int, ...], strides: Strides | None) -> Array:
    """Return an array whose elements must not be read. `strides` count elements; None stands for
    those of row-major order."""
    if strides is None:
        strides = _row_major(shape)
    return as_strided(_MEMORY, shape, strides, writeable=False)


def strides_of(array: Array) -> Strides | None:
    """Return the strides of an array, in elements; None for those of row-major order."""
    if array.flags.c_contiguous:
        return None
    return tuple(stride // array.itemsize for stride in array.strides)


def reshaped(array: Array, shape: Any, order: Any) -> Array | None:
    """Return a twin in another shape; None if numpy would copy the elements."""
    try:
        return np.reshape(array, shape, order=order, copy=False)
    except ValueError:
        return None


def is_contiguous(array: Array, order: Any = "C") -> bool:
    """Whether the elements of an array lie side by side, in an order."""
    flags = array.flags
    return flags.f_contiguous if order == "F" else flags.c_contiguous


def strides_of_result(shape: tuple[int, ...], operands: Sequence[Strides]) -> Strides | None:
    """Return the strides of what a ufunc makes of operands of these strides: new memory, whose axes
    are in the order of the first operand's."""
    strides = next((each for each in operands if len(each) == len(shape)), None)
    if strides is None:
        return None
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    if order == sorted(order):
        return None
    sizes = _row_major(tuple(shape[axis] for axis in order))
    return tuple(sizes[order.index(axis)] for axis in range(len(shape)))


def _row_major(shape: tuple[int, ...]) -> Strides:
    strides, size = [], 1
    for extent in reversed(shape):
        strides.append(size)
        size *= max(extent, 1)
    return tuple(reversed(strides))

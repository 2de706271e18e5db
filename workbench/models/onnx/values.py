"""Values of an ONNX graph: arrays that are known while it is read, tensors, or both."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import DTypeError, ModelError
from workbench.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]

_DTYPES = {
    1: dtypes.float32,
    2: dtypes.uint8,
    3: dtypes.int8,
    4: dtypes.uint16,
    5: dtypes.int16,
    6: dtypes.int32,
    7: dtypes.int64,
    9: dtypes.bool,
    10: dtypes.float16,
    11: dtypes.float64,
    12: dtypes.uint32,
    13: dtypes.uint64,
    16: dtypes.bfloat16,
    17: dtypes.fp8e4m3,
    19: dtypes.fp8e5m2,
}
"""Dtypes by the numbers that ONNX has for them."""


def dtype_of(number: int) -> DType:
    """Return the dtype with one of ONNX's numbers.

    Errors: DTypeError for strings, complex numbers and integers of 4 bits.
    """
    if number not in _DTYPES:
        from onnx import TensorProto

        known = TensorProto.DataType.values()
        name = TensorProto.DataType.Name(number).lower() if number in known else str(number)
        raise DTypeError(f"there is no dtype {name} here", "tensors have integers, bools, floats")
    return _DTYPES[number]


def number_of(dtype: DType) -> int:
    """Return ONNX's number of a dtype."""
    return next(number for number, each in _DTYPES.items() if each is dtype)


MOST_POSITIONS = 1 << 25
"""The maximal number of positions that are listed while a graph is read."""


def check_positions(count: int) -> None:
    """Errors: ModelError for positions that are too many to be listed."""
    if count > MOST_POSITIONS:
        because = f"there are {count:,} positions, and at most {MOST_POSITIONS:,} are listed"
        raise ModelError("a result is too large", because)


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the first one. Errors: ModelError for one that is not there."""
    if not -rank <= axis < rank:
        raise ModelError(f"there is no axis {axis}", f"a tensor has {rank} axes")
    return axis % rank


class Value:
    """A value of a graph. It has an array if it is `known` while the graph is read; its tensor is
    made of that when an operator takes it."""

    __slots__ = ("_tensor", "known")

    def __init__(self, known: Array | None, tensor: Tensor | None = None):
        self.known, self._tensor = known, tensor

    @property
    def tensor(self) -> Tensor:
        if self._tensor is None:
            assert self.known is not None
            self._tensor = tensor_of(self.known)
        return self._tensor

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype


def tensor_of(array: Array) -> Tensor:
    """Return a tensor of an array: a constant of the graph if it is a number."""
    if array.ndim:
        return Tensor(array)
    dtype = Tensor(array.reshape(1)[:0]).dtype
    return Tensor.const(array.astype(np.float64).item() if dtype.is_float else array.item(), dtype)

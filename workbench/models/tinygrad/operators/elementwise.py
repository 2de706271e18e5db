"""Arithmetic, comparisons and functions of each element."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.models.tinygrad.table import row
from workbench.models.tinygrad.values import common_dtype, dtype_of
from workbench.tensor.tensor import Tensor


def _quotient(x: Tensor, y: Tensor) -> Tensor:
    """Return integers divided, rounded to zero."""
    return (x - x.fmod(y)) // y


def _threefry(counter: Tensor, key: Tensor) -> Tensor:
    """Return 64 random bits for a counter and a key. Dtypes: uint64."""
    shape = np.broadcast_shapes(counter.shape, key.shape)
    first, *others = [*_words(counter.expand(shape)), *_words(key.expand(shape))]
    low, high = (first.alu(Ops.THREEFRY, *others, first.like(word)) for word in (0, 1))
    return counter._with(high).cast(dtypes.uint64) << 32 | counter._with(low).cast(dtypes.uint64)


def _words(x: Tensor) -> tuple[UOp, UOp]:
    low, high = x.cast(dtypes.uint32), (x >> 32).cast(dtypes.uint32)
    return low.uop, high.uop


OF_ONE_DTYPE: dict[str, Callable[..., Tensor]] = {
    "ADD": operator.add,
    "AND": operator.and_,
    "CDIV": _quotient,
    "CMOD": Tensor.fmod,
    "EXP2": Tensor.exp2,
    "FDIV": operator.truediv,
    "FLOORDIV": operator.floordiv,
    "FLOORMOD": operator.mod,
    "LOG2": Tensor.log2,
    "MAX": Tensor.maximum,
    "MUL": operator.mul,
    "MULACC": lambda x, y, z: x * y + z,
    "NEG": operator.neg,
    "OR": operator.or_,
    "RECIPROCAL": Tensor.reciprocal,
    "SHL": operator.lshift,
    "SHR": operator.rshift,
    "SIN": Tensor.sin,
    "SQRT": Tensor.sqrt,
    "SUB": operator.sub,
    "THREEFRY": _threefry,
    "TRUNC": Tensor.trunc,
    "XOR": operator.xor,
}
"""Ops whose operands and result have one dtype."""


def _of_one_dtype(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def computed(node: Any, *values: Tensor) -> Tensor:
        return function(*_cast(dtype_of(node.dtype), values))

    return computed


def _cast(dtype: DType, values: tuple[Tensor, ...]) -> list[Tensor]:
    return [value.cast(dtype) for value in values]


for name, function in OF_ONE_DTYPE.items():
    row(name)(_of_one_dtype(function))


@row("POW")
def power(node: Any, *values: Tensor) -> Tensor:
    x, y = _cast(dtype_of(node.dtype), values)
    exponent = node.src[1]
    return x ** (exponent.val if exponent.op.name == "CONST" else y)  # of a number: products


@row("CMPEQ")
def equal(node: Any, *values: Tensor) -> Tensor:
    x, y = _cast(common_dtype(node.src), values)
    return x == y


@row("CMPNE")
def not_equal(node: Any, *values: Tensor) -> Tensor:
    x, y = _cast(common_dtype(node.src), values)
    return x != y


@row("CMPLT")
def less(node: Any, *values: Tensor) -> Tensor:
    x, y = _cast(common_dtype(node.src), values)
    return x < y


@row("WHERE")
def where(node: Any, condition: Tensor, *values: Tensor) -> Tensor:
    x, y = _cast(dtype_of(node.dtype), values)
    return condition.where(x, y)


@row("CAST")
def cast(node: Any, x: Tensor) -> Tensor:
    return x.cast(dtype_of(node.dtype))


@row("BITCAST")
def bitcast(node: Any, x: Tensor) -> Tensor:
    return x.bitcast(dtype_of(node.dtype))

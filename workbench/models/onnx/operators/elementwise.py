"""Arithmetic, comparisons and functions of each element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import ModelError
from workbench.models.arithmetic import wide
from workbench.models.onnx.table import row
from workbench.models.onnx.values import Array, dtype_of
from workbench.tensor.tensor import Tensor

SAME = {
    **{name: name.lower() for name in ("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh")},
    **{name: name.lower() for name in ("Cos", "Cosh", "Erf", "Exp", "Log", "Neg", "Relu")},
    **{
        name: name.lower() for name in ("Sigmoid", "Sign", "Sin", "Sinh", "Softsign", "Sqrt", "Tan")
    },
    **{name: name.lower() for name in ("Tanh", "Mish", "Reciprocal", "HardSwish")},
    "IsNaN": "isnan",
    "Not": "logical_not",
    "BitwiseNot": "bitwise_not",
}
"""Operators of one tensor, each with its method."""


def _method(name: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        result: Tensor = getattr(wide(x), name)()
        return result

    return function


for each, method in SAME.items():
    row(each)(_method(method))


def _rounded(name: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        result: Tensor = getattr(x, name)() if x.dtype.is_float else x
        return result

    return function


for each in ("Ceil", "Floor", "Round"):
    row(each)(_rounded(each.lower()))

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Equal": lambda x, y: x.eq(y),
    "Less": lambda x, y: x < y,
    "LessOrEqual": lambda x, y: x <= y,
    "Greater": lambda x, y: x > y,
    "GreaterOrEqual": lambda x, y: x >= y,
    "And": lambda x, y: x & y,
    "Or": lambda x, y: x | y,
    "Xor": lambda x, y: x ^ y,
    "BitwiseAnd": lambda x, y: x & y,
    "BitwiseOr": lambda x, y: x | y,
    "BitwiseXor": lambda x, y: x ^ y,
}
"""Operators of two tensors of one dtype, whose shapes are broadcast."""


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Tensor, Tensor], Tensor]:
    def computed(x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = function(x, y)
        return result

    return computed


for each, compute in BINARY.items():
    row(each, since=7)(_binary(compute))


@row("Div", since=7)
def div(x: Tensor, y: Tensor) -> Tensor:
    """The quotient; of integers rounded towards zero."""
    return x / y if x.dtype.is_float else x.div(y, rounding_mode="trunc")


@row("Mod", since=10)
def mod(x: Tensor, y: Tensor, *, fmod: int = 0) -> Tensor:
    """The rest, with the sign of the divisor; with `fmod` that of the dividend."""
    return x.fmod(y) if fmod else x % y


@row("Pow", since=7)
def power(x: Tensor, y: Tensor) -> Tensor:
    """The power in the dtype of the base."""
    if x.dtype.is_float:
        return (wide(x) ** y.cast(wide(x).dtype)).cast(x.dtype)
    if y.dtype.is_float:
        exact = x.cast(dtypes.float64) ** y.cast(dtypes.float64)
        # A power that is whole may be computed as a little less, which would be cut to one less.
        whole = exact.round()
        return ((exact - whole).abs() < exact.abs() * 1e-12).where(whole, exact).cast(x.dtype)
    return (x ** y.cast(x.dtype)).cast(x.dtype)


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def computed(*inputs: Tensor) -> Any:
        return reduce(function, inputs)

    return computed


row("Sum", since=6)(_folded(lambda x, y: x + y))
row("Max", since=6)(_folded(lambda x, y: x.maximum(y)))
row("Min", since=6)(_folded(lambda x, y: x.minimum(y)))


@row("Mean", since=6)
def mean_of(*inputs: Tensor) -> Tensor:
    return reduce(lambda x, y: x + y, inputs) / len(inputs)


@row("BitShift", since=11)
def bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Tensor:
    """The bits of `x` moved by `y`; all of them are moved out where `y` is not below their number,
    or negative."""
    bits = x.dtype.itemsize * 8
    is_beyond = (y >= bits) | (y < 0)
    by = is_beyond.where(bits - 1, y)
    moved = x << by if direction == "LEFT" else x >> by
    is_signed = x.dtype.kind == "int"
    return moved if direction == "RIGHT" and is_signed else is_beyond.where(0, moved).cast(x.dtype)


@row("Where", since=9)
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return condition.where(x, y)


@row("Identity")
def identity(x: Tensor) -> Tensor:
    return x


@row("Dropout", since=7)
def dropout_fixed(x: Tensor, *, ratio: float = 0.5) -> Any:
    return x, Tensor.ones(*x.shape, dtype=dtypes.bool)


@row("Dropout", since=12, known=("ratio", "training"))
def dropout(
    x: Tensor, ratio: Array | None = None, training: Array | None = None, *, seed: int = 0
) -> Any:
    """Dropout as it is in inference: `x`, and a mask of ones."""
    if training is not None and training.item() and (ratio is None or ratio.item() > 0):
        raise ModelError("cannot drop out in training", "its numbers would not be ONNX's")
    return x, Tensor.ones(*x.shape, dtype=dtypes.bool)


@row("Cast", since=6)
def cast(x: Tensor, *, to: int, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return cast_to(x, dtype_of(to), bool(saturate))


@row("CastLike", since=15)
def cast_like(x: Tensor, like: Tensor, *, saturate: int = 1, round_mode: str = "up") -> Tensor:
    return cast_to(x, like.dtype, bool(saturate))


GREATEST = {dtypes.fp8e4m3: 448.0, dtypes.fp8e5m2: 57344.0}
"""The greatest finite values of floats of 8 bits."""
FIRST_NAN = 464.0
"""Greater values are rounded to above 448, which float8e4m3 has only NaN for."""


def cast_to(x: Tensor, dtype: DType, saturates: bool = True) -> Tensor:
    """Return values in another dtype; floats of 8 bits saturate, or become infinity or NaN."""
    if dtype in GREATEST and x.dtype is not dtype:
        most = GREATEST[dtype]
        x = x if x.dtype.is_float else x.cast(dtypes.float32)
        if saturates:
            x = x.isnan().where(x, x.clamp(-most, most))
        elif dtype is dtypes.fp8e4m3:
            x = (x.abs() > FIRST_NAN).where(math.nan, x)
        return x.cast(dtype)
    if x.dtype.is_float and dtype.is_int and dtype.itemsize < 4:
        return x.cast(dtypes.int64).cast(dtype)  # it wraps, as ONNX's own evaluator does
    return x.cast(dtype)


@row("BitCast", since=26)
def bit_cast(x: Tensor, *, to: int) -> Tensor:
    x = x.cast(dtypes.uint8) if x.dtype is dtypes.bool else x
    return x.bitcast(dtype_of(to))


@row("Clip", since=6)
def clip_fixed(x: Tensor, *, min: float = -math.inf, max: float = math.inf) -> Tensor:
    return x.clamp(min, max)


@row("Clip", since=11)
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    x = x if low is None else x.maximum(low)
    return x if high is None else x.minimum(high)


@row("Elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return (x > 0).where(x, _power_below(x) * alpha)


@row("Celu", since=12)
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return (x > 0).where(x, _power_below(x / alpha) * alpha)


@row("Selu")
def selu(
    x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Tensor:
    return (x > 0).where(x, _power_below(x) * alpha) * gamma


def _power_below(x: Tensor) -> Tensor:
    """exp(x) - 1 below 0. Above, the power may be infinite, and its gradient NaN."""
    return (x > 0).where(0, wide(x)).exp() - 1


@row("LeakyRelu", since=6)
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return (x >= 0).where(x, x * alpha)


@row("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    return (x >= 0).where(x, x * slope)


@row("ThresholdedRelu", since=10)
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return (x > alpha).where(x, 0)


@row("HardSigmoid", since=6)
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return (x * alpha + beta).clamp(0, 1)


@row("Shrink", since=9)
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    return (x < -lambd).where(x + bias, (x > lambd).where(x - bias, 0))


@row("Softplus")
def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), where exp(x) may be infinite."""
    x = wide(x)
    return x.maximum(0) + ((-x.abs()).exp() + 1).log()


@row("Gelu", since=20)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return wide(x).gelu(approximate)


@row("Swish", since=24)
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x * (wide(x) * alpha).sigmoid()


@row("IsInf", since=10)
def isinf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    return x.isinf(bool(detect_positive), bool(detect_negative))


def numbers(array: Array | Sequence[int] | None) -> list[int]:
    """Return whole numbers of a known input."""
    return [] if array is None else [int(n) for n in np.asarray(array).reshape(-1)]

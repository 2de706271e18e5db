"""Arithmetic, comparisons and functions of each element."""

from __future__ import annotations

import math
from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.models.torch.table import ROWS, row, whole_row
from workbench.tensor.numpy import formulas
from workbench.tensor.tensor import Tensor

SAME_NAME = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf"),
    *("exp", "exp2", "floor", "isnan", "log", "log10", "log2", "neg", "reciprocal", "relu"),
    *("round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "silu"),
    *("bitwise_not", "logical_not", "isfinite", "square"),
)
"""Operators of one tensor whose method has the same name."""
INTEGERS_STAY = frozenset({"ceil", "floor", "round", "trunc", "sign", "abs", "neg"})


def _method(name: str) -> Any:
    def function(x: Tensor) -> Any:
        if name in INTEGERS_STAY and not x.dtype.is_float and name not in ("abs", "neg"):
            return x
        return getattr(x, name)()

    return function


for each in SAME_NAME:
    ROWS[each] = _method(each)


def floats(x: Tensor) -> Tensor:
    """Return floating-point numbers of the values of a tensor."""
    return x if x.dtype.is_float else x.cast(dtypes.float32)


@row("sign", "sgn")
def sign(x: Tensor) -> Tensor:
    return x if x.dtype is dtypes.bool else x.sign()


@row("isinf")
def isinf(x: Tensor) -> Tensor:
    return floats(x).isinf()


@row("expm1")
def expm1(x: Tensor) -> Tensor:
    result: Tensor = formulas.expm1(floats(x))
    return result


@row("log1p")
def log1p(x: Tensor) -> Tensor:
    result: Tensor = formulas.log1p(floats(x))
    return result


@row("add.Tensor", "add.Scalar")
def add(x: Tensor, y: Any, alpha: float = 1) -> Any:
    return _or(x, y) if _are_bools(x, y) else x + (y if alpha == 1 else y * alpha)


@row("sub.Tensor", "sub.Scalar")
def sub(x: Tensor, y: Any, alpha: float = 1) -> Any:
    return x - (y if alpha == 1 else y * alpha)


@row("rsub.Scalar", "rsub.Tensor")
def rsub(x: Tensor, y: Any, alpha: float = 1) -> Any:
    return y - (x if alpha == 1 else x * alpha)


@row("mul.Tensor", "mul.Scalar")
def mul(x: Tensor, y: Any) -> Any:
    return x & y if _are_bools(x, y) else x * y


@row("div.Tensor", "div.Scalar")
def div(x: Tensor, y: Any) -> Any:
    return floats(x) / y


@row("div.Tensor_mode", "div.Scalar_mode")
def div_rounded(x: Tensor, y: Any, *, rounding_mode: str | None) -> Any:
    return div(x, y) if rounding_mode is None else x.div(y, rounding_mode=rounding_mode)


@row("ldexp.Tensor")
def ldexp(x: Tensor, y: Tensor) -> Tensor:
    return floats(x) * floats(y).exp2()


@row("floor_divide", "floor_divide.Scalar")
def floor_divide(x: Tensor, y: Any) -> Any:
    return x.div(y, rounding_mode="floor")


@row("fmod.Tensor", "fmod.Scalar")
def fmod(x: Tensor, y: Any) -> Any:
    return x.fmod(y)


@row("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(x: Any, y: Any) -> Any:
    return x % y


@row("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(x: Any, y: Any) -> Any:
    return x**y


@row("maximum")
def maximum(x: Tensor, y: Tensor) -> Tensor:
    return x.maximum(y)


@row("minimum")
def minimum(x: Tensor, y: Tensor) -> Tensor:
    return x.minimum(y)


@row("clamp", "clamp.Tensor")
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    return x.clamp(min, max)


@row("hardtanh")
def hardtanh(x: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return x.hardtanh(min_val, max_val) if x.dtype.is_float else x.clamp(min_val, max_val)


@row("atan2")
def atan2(y: Tensor, x: Tensor) -> Tensor:
    result: Tensor = formulas.arctan2(floats(y), floats(x))
    return result


@row("angle")
def angle(x: Tensor) -> Tensor:
    """The angle of real numbers: pi below 0, and 0 above."""
    x = floats(x)
    return x.isnan().where(x, (x < 0).where(math.pi, 0.0)).cast(x.dtype)


@row("signbit")
def signbit(x: Tensor) -> Any:
    return formulas.is_negative(x) if x.dtype.is_float else x < 0


@row("copysign.Tensor", "copysign.Scalar")
def copysign(x: Tensor, y: Any) -> Tensor:
    return floats(x).copysign(y)


@row("fmax")
def fmax(x: Tensor, y: Tensor) -> Tensor:
    result: Tensor = formulas.fmax(x, y)
    return result


@row("fmin")
def fmin(x: Tensor, y: Tensor) -> Tensor:
    result: Tensor = formulas.fmin(x, y)
    return result


@row("round.decimals")
def round_decimals(x: Tensor, *, decimals: int = 0) -> Tensor:
    scale = 10.0 ** abs(decimals)
    return (x * scale).round() / scale if decimals >= 0 else (x / scale).round() * scale


COMPARED = {"eq": "eq", "ne": "ne", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}


def _compared(method: str) -> Any:
    def function(x: Tensor, y: Any) -> Any:
        return getattr(x, method)(y)

    return function


for each, method in COMPARED.items():
    ROWS[f"{each}.Tensor"] = ROWS[f"{each}.Scalar"] = _compared(method)


@row("logical_and")
def logical_and(x: Tensor, y: Tensor) -> Tensor:
    return x.cast(dtypes.bool) & y.cast(dtypes.bool)


@row("logical_or")
def logical_or(x: Tensor, y: Tensor) -> Tensor:
    return x.cast(dtypes.bool) | y.cast(dtypes.bool)


@row("logical_xor")
def logical_xor(x: Tensor, y: Tensor) -> Tensor:
    return x.cast(dtypes.bool) ^ y.cast(dtypes.bool)


@row("bitwise_and.Tensor", "bitwise_and.Scalar")
def bitwise_and(x: Tensor, y: Any) -> Any:
    return x & y


@row("bitwise_or.Tensor", "bitwise_or.Scalar")
def _or(x: Tensor, y: Any) -> Any:
    return x | y


@row("bitwise_xor.Tensor", "bitwise_xor.Scalar")
def bitwise_xor(x: Tensor, y: Any) -> Any:
    return x ^ y


@row("__lshift__.Scalar", "__lshift__.Tensor", "bitwise_left_shift.Tensor")
def left_shift(x: Tensor, y: Any) -> Any:
    return x << y


@row("__rshift__.Scalar", "__rshift__.Tensor", "bitwise_right_shift.Tensor")
def right_shift(x: Tensor, y: Any) -> Any:
    return x >> y


@row("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(condition: Tensor, x: Any, y: Any) -> Any:
    return condition.cast(dtypes.bool).where(x, y)


@row("gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return x.gelu(approximate)


@row("elu")
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    below = (x > 0).where(0, x)  # above, the power may be infinite, and its gradient NaN
    return (x > 0).where(x * scale, expm1(below * input_scale) * (alpha * scale))


@row("leaky_relu")
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    return (x > 0).where(x, x * negative_slope)


@row("rrelu_with_noise_functional")
def rrelu(
    x: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: object = None,
) -> tuple[Tensor, Tensor]:
    """Leaky relu with a random slope in training, else with the mean one; and the slopes."""
    if not training:
        return leaky_relu(x, (lower + upper) / 2), noise
    slope = (x > 0).where(1, Tensor.rand(*x.shape) * (upper - lower) + lower)
    return x * slope, slope


@row("_to_copy")
def to_copy(x: Tensor, *, dtype: DType | None = None, **_: object) -> Tensor:
    return x if dtype is None else x.cast(dtype)


@whole_row("detach")
def detach(x: Tensor) -> Tensor:
    return x.detach()


@row("clone", "alias", "lift_fresh_copy", "contiguous", "_assert_tensor_metadata")
def same(x: Tensor, *_: object, **__: object) -> Tensor:
    return x


@row("copy")
def copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return source.cast(x.dtype).expand(x.shape)


@row("native_dropout")
def native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout, with a mask of this library's random numbers."""
    if not train or p == 0:
        return x, Tensor.ones(*x.shape, dtype=dtypes.bool)
    mask = Tensor.rand(*x.shape) >= p if p < 1 else Tensor.zeros(*x.shape, dtype=dtypes.bool)
    scale = 1 / (1 - p) if p < 1 else 0.0
    return mask.where(x * scale, 0).cast(x.dtype), mask


def _are_bools(x: Any, y: Any) -> bool:
    return all(
        v.dtype is dtypes.bool if isinstance(v, Tensor) else v is True or v is False for v in (x, y)
    )

"""Python numbers as floats of each type: to the nearest one, of two as near the even one.

What is too large is infinite, in fp8e4m3, which has no infinity, 448: as in PyTorch. (tinygrad 0.14
gives NaN for infinity in fp8e4m3, and 57344 for what is too large for fp8e5m2.)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Final


def _packed(value: float, code: str) -> float:
    """Return `value` rounded to the struct format `code`, to even; too large: infinite."""
    try:
        rounded: float = struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _round_float32(value: float) -> float:
    if isinstance(value, int) and value.bit_length() > _DOUBLE_BITS:
        # Through float64 it would be rounded twice: what float64 lacks leaves a sticky bit.
        shift = abs(value).bit_length() - _DOUBLE_BITS
        mantissa = abs(value) >> shift
        mantissa |= mantissa << shift != abs(value)
        value = math.copysign(math.ldexp(mantissa, shift), value)
    return _packed(float(value), "<f")


def _round_float16(value: float) -> float:
    """Round a float once, and an integer by way of float32, as numpy does."""
    return _packed(float(value), "<e")


def _round_bfloat16(value: float) -> float:
    """Round to float32, and that to the upper half of its bits, as ml_dtypes and PyTorch do."""
    single = _round_float32(value)
    if math.isnan(single):
        return single
    (bits,) = struct.unpack("<I", struct.pack("<f", single))
    bits += 0x7FFF + (bits >> 16 & 1)
    rounded: float = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]
    return rounded


def _round_fp8e4m3(value: float) -> float:
    """Round to float32, and that to 4 significant bits, at most 448."""
    rounded = _nearest(_round_float32(value), fraction_bits=3, least_exponent=-6)
    return math.copysign(448.0, rounded) if abs(rounded) > 448.0 else rounded


def _round_fp8e5m2(value: float) -> float:
    """Round to float32, and that to 3 significant bits."""
    rounded = _nearest(_round_float32(value), fraction_bits=2, least_exponent=-14)
    return math.copysign(math.inf, rounded) if abs(rounded) > 57344.0 else rounded


def _nearest(value: float, fraction_bits: int, least_exponent: int) -> float:
    """Return the nearest multiple of the last place that `value` has in a float of `fraction_bits`,
    of two the even one."""
    if not math.isfinite(value):
        return value
    exponent = max(math.frexp(value)[1] - 1, least_exponent)
    place = math.ldexp(1.0, exponent - fraction_bits)
    return math.copysign(round(value / place) * place, value)


_DOUBLE_BITS: Final = 53
FRACTION_BITS: Final = {
    "fp8e4m3": 3,
    "fp8e5m2": 2,
    "float16": 10,
    "bfloat16": 7,
    "float32": 23,
    "float64": 52,
}
"""The bits after the point of each float's 1.fraction."""
ROUND: Final[dict[str, Callable[[float], float]]] = {
    "fp8e4m3": _round_fp8e4m3,
    "fp8e5m2": _round_fp8e5m2,
    "float16": _round_float16,
    "bfloat16": _round_bfloat16,
    "float32": _round_float32,
    "float64": float,
}

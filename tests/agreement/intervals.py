"""What numpy knows of a tensor's values: each element lies between two numbers.

A float step may be rounded, fused or reordered, so its result is an interval, computed in
float64 and widened by what the dtype may lose there. Where the exact result fits the dtype
nothing is lost, and the interval is one number. What jumps (a comparison, a cast to integers)
is only known where both ends of all its inputs give one answer; otherwise the step is
`Ambiguous`, and a random expression does without it. Nothing here knows of workbench.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

FP8 = {"fp8e4m3": ml_dtypes.float8_e4m3fn, "fp8e5m2": ml_dtypes.float8_e5m2}
"""The floats of 8 bits, by the name of a tensor's dtype."""
BITS = {"fp8e4m3": 3, "fp8e5m2": 2, "float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
"""The floats, and how many bits of a fraction each has."""
TINY = {
    "fp8e4m3": 2.0**-9,
    "fp8e5m2": 2.0**-16,
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
    "float32": 2.0**-149,
}
"""The least positive number, of float64 2**-1074."""
SMALL = (*FP8, "float16", "bfloat16")
LACKED = (*FP8, "bfloat16")
"""What numpy lacks, and reads as float32."""
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = tuple(BITS)
DTYPES = ("bool", *INTEGERS, *FLOATS)


class Ambiguous(Exception):
    """The answer hangs on how an earlier step was rounded, or there is none."""


@dataclass(frozen=True, eq=False)
class Known:
    """Elements of `dtype` from `low` to `high`: of floats in float64, else in the dtype itself.

    `low` is `high` where all is exact. `signed` tells that the signs of zeros are known too.
    """

    dtype: str
    low: Array
    high: Array
    signed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.low.shape)

    @property
    def exact(self) -> bool:
        return self.low is self.high

    @property
    def ends(self) -> tuple[Array, ...]:
        return (self.low,) if self.exact else (self.low, self.high)

    @property
    def sizes(self) -> Array:
        """The greatest absolute value that each element may have; NaN for NaN."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def held(dtype: str) -> np.dtype[Any]:
    """Return the numpy type in which the ends of `dtype` are kept."""
    return np.dtype("float64" if dtype in BITS else dtype)


def stored(dtype: str) -> np.dtype[Any]:
    """Return the numpy type of a tensor's array."""
    if dtype in FP8:
        return np.dtype(FP8[dtype])
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def name_of(array: Array) -> str:
    """Return the name of the dtype of a tensor of `array`."""
    names = {np.dtype(own): name for name, own in FP8.items()}
    return names.get(array.dtype, array.dtype.name)


def known(array: Array, signed: bool = True) -> Known:
    """Return what an array of data is."""
    dtype = name_of(array)
    values = array.astype(held(dtype))
    return Known(dtype, values, values, signed)


def exactly(x: Known) -> Array:
    """Return the values of `x`, of which each must be one number."""
    if not x.exact:
        raise Ambiguous("an exact input is needed")
    return x.low


def to_dtype(values: Array, dtype: str) -> Array:
    """Return float64 values as the nearest ones of a float `dtype`, in float64; too large ones
    are infinite, but 448 where there is no infinity."""
    if dtype == "float64":
        return values
    if dtype == "fp8e4m3":
        values = np.clip(values, -448.0, 448.0)
    return values.astype(stored(dtype)).astype(np.float64)


def between(dtype: str, low: Array, high: Array, signed: bool = False) -> Known:
    """Return the interval; one number where the ends are the same.

    NaN and infinity must be certain: where only one end has them nothing is known.
    """
    low, high = np.asarray(low), np.asarray(high)
    if low is high:
        return Known(dtype, low, low, signed)
    if dtype not in BITS:
        if not np.array_equal(low, high):
            raise Ambiguous("a jump within the rounding")
        return Known(dtype, low, low, signed)
    if not np.array_equal(np.isfinite(low), np.isfinite(high)):
        raise Ambiguous("infinite or not, as it is rounded")
    same = (low == high) | (np.isnan(low) & np.isnan(high))
    wild = ~np.isfinite(low) & ~same
    if wild.any():
        raise Ambiguous("one infinity or the other, as it is rounded")
    return Known(dtype, low, low if same.all() else high, signed)


def widened(
    dtype: str,
    low: Array,
    high: Array,
    ulps: Array | float = 0.0,
    lost: Array | float = 0.0,
    signed: bool = False,
) -> Known:
    """Return the results from `low` to `high` (float64) as `dtype`, rounded somehow.

    Where `ulps` and `lost` are 0 a result that fits the dtype stays exact, and any other is one
    of its neighbours; else it may be off by so many units, and by `lost` (a number) more.
    """
    with np.errstate(all="ignore"):
        below, above = (_off(dtype, low, -1, ulps, lost), _off(dtype, high, 1, ulps, lost))
    if low is high and np.array_equal(below, above, equal_nan=True):
        above = below
    return between(dtype, below, above, signed)


def _off(dtype: str, end: Array, way: int, ulps: Array | float, lost: Array | float) -> Array:
    end = np.asarray(end, np.float64)
    step = np.abs(end) * 2.0 ** -BITS[dtype] + TINY.get(dtype, 2.0**-1074)
    fits = to_dtype(end, dtype) == end
    if dtype == "float64":  # where float64 itself may have rounded
        fits &= (np.trunc(end) == end) & (np.abs(end) < 2.0**52)
    stays = fits & (np.asarray(ulps) == 0) & (np.asarray(lost) == 0)
    moved = end + way * (np.maximum(ulps, 1.0) * step + lost)
    moved = np.where(stays, end, to_dtype(moved, dtype))
    return np.where(np.isfinite(end), moved, to_dtype(end, dtype))


def corners(f: Callable[..., Any], *inputs: Known) -> tuple[Array, Array]:
    """Return the least and greatest of `f`, monotone in each input, over their intervals."""
    with np.errstate(all="ignore"):
        results = [np.asarray(f(*ends)) for ends in itertools.product(*(x.ends for x in inputs))]
    if len(results) == 1:
        return results[0], results[0]
    if results[0].dtype.kind != "f":
        if any(not np.array_equal(results[0], other) for other in results):
            raise Ambiguous("a jump within the rounding")
        return results[0], results[0]
    nans = np.isnan(results)
    if (nans.any(0) != nans.all(0)).any():
        raise Ambiguous("NaN or not, as it is rounded")
    return np.min(results, axis=0), np.max(results, axis=0)


def elements(x: Known, f: Callable[[Array], Array], signed: bool | None = None) -> Known:
    """Return what moving or choosing elements makes of `x`."""
    low = np.asarray(f(x.low))
    high = low if x.exact else np.asarray(f(x.high))
    return between(x.dtype, low, high, x.signed if signed is None else signed)


# dtypes


def promoted(a: str, b: str) -> str:
    """Return the dtype in which two tensors meet: the least that holds both; of int64 and
    uint64 float32, of float16 and bfloat16 float32, of both of 8 bits float16, of an integer and a
    float that float."""
    if a == b:
        return a
    if a in BITS or b in BITS:
        if a in SMALL and b in SMALL and _bits(a) == _bits(b):
            return "float16" if a in FP8 else "float32"
        return max((d for d in (a, b) if d in BITS), key=_bits)
    if "bool" in (a, b):
        return b if a == "bool" else a
    if (a in SIGNED) == (b in SIGNED):
        return max(a, b, key=_bits)
    sign, plain = (a, b) if a in SIGNED else (b, a)
    if _bits(sign) > _bits(plain):
        return sign
    return "float32" if _bits(plain) == 64 else f"int{2 * _bits(plain)}"


def _bits(dtype: str) -> int:
    return stored(dtype).itemsize * 8


bits = _bits


def beside(scalar: bool | int | float, dtype: str) -> str:
    """Return the dtype in which a Python number and a tensor meet: the tensor's, unless the
    number is of a higher kind, and then int32 or float32."""
    if isinstance(scalar, bool) or dtype in BITS:
        return dtype
    if isinstance(scalar, float):
        return "float32"
    return "int32" if dtype == "bool" else dtype


def limits(dtype: str) -> tuple[int, int]:
    """Return the least and greatest integer of a dtype."""
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def cast(x: Known, dtype: str) -> Known:
    """Return `x` as `dtype`: integers wrap, floats round once, and saturate as integers."""
    if x.dtype == dtype:
        return x
    with np.errstate(all="ignore"):
        if dtype == "bool":
            low, high = corners(lambda v: v != 0, x)
            if not x.exact and ((x.low < 0) & (x.high > 0)).any():
                raise Ambiguous("zero or not, as it is rounded")
            return between(dtype, low, high)
        if x.dtype not in BITS:
            if dtype in FP8:
                values = to_dtype(x.low.astype(np.float64), dtype)
                return Known(dtype, values, values, True)
            values = np.asarray(x.low.astype(stored(dtype)).astype(held(dtype)))
            return Known(dtype, values, values, True)
        if dtype in BITS:
            return between(dtype, *_ends(x, lambda v: to_dtype(v, dtype)), x.signed)
        return between(dtype, *_ends(x, lambda v: saturated(v, dtype)))


def _ends(x: Known, f: Callable[[Array], Array]) -> Iterator[Array]:
    low = f(x.low)
    yield low
    yield low if x.exact else f(x.high)


def saturated(values: Array, dtype: str) -> Array:
    """Return floats as integers: towards zero, held within the type's limits, NaN as 0."""
    least, greatest = limits(dtype)
    whole = np.trunc(np.where(np.isnan(values), 0, values))
    inside = (whole > float(least)) & (whole < float(greatest))
    integers = np.where(inside, whole, 0).astype(dtype)
    integers = np.where(whole >= float(greatest), integers.dtype.type(greatest), integers)
    return np.asarray(np.where(whole <= float(least), integers.dtype.type(least), integers))

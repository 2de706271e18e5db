"""Values that a tensor must have: of integers the bits, of floats also a bound of the error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import inf

from workbench import Tensor

BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3e38, "float32": 3.4e38, "float64": 1.7e308}
INTS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
Array = np.ndarray[Any, Any]


MOST_ELEMENTS = 300


class NoOperand(Exception):
    """The op that was drawn has no operand among the values: another is drawn."""


def held(v: Array, dtype: str) -> Array:
    """Return where values are ones of a float type."""
    narrow = v.astype({"float16": "float16", "float64": "float64"}.get(dtype, "float32"))
    if dtype == "bfloat16":
        cut = (narrow.view(np.uint32) & 0xFFFF0000).view(np.float32)
        narrow = np.where(np.isfinite(narrow), cut, narrow)
    return np.asarray((narrow == v) | np.isnan(v))


def step(dtype: str) -> float:
    return 2.0 ** (1 - BITS[dtype])


@dataclass(eq=False)
class Value:
    """A named tensor: what it must be, and within which error."""

    name: str
    dtype: str
    v: Array
    e: Array

    @classmethod
    def of(cls, name: str, dtype: str, v: Any, e: Any = 0.0) -> Value:
        if dtype not in BITS:
            return cls(name, dtype, np.array(v).astype(dtype), np.zeros(np.shape(v)))
        v = np.array(v, np.float64)
        e = np.array(np.broadcast_to(e, v.shape), np.float64)
        e = np.where(np.isnan(e), np.where(np.isfinite(v), inf, 0), e)
        e = np.where(held(v, dtype), e, e + step(dtype) * abs(v) + 1e-6 * (dtype == "float16"))
        overflows = np.isfinite(v) & (abs(v) + e > 0.9 * LARGEST[dtype])
        return cls(name, dtype, v, np.where(overflows, inf, e))

    @property
    def is_float(self) -> bool:
        return self.dtype in BITS

    def exact(self) -> bool:
        return not self.e.any()

    def cast(self, dtype: str) -> Value:
        if dtype in BITS:
            return Value.of("", dtype, self.v.astype(np.float64), self.e)
        if self.is_float and dtype != "bool":
            if not self.exact():
                raise NoOperand
            ends = np.iinfo(dtype)
            whole = np.where(np.isnan(self.v), 0, np.trunc(self.v))
            over, under = whole >= float(ends.max), whole <= float(ends.min)
            v = np.where(over | under, 0, whole).astype(dtype)
            v = np.where(over, np.array(ends.max, dtype), v)
            return Value.of("", dtype, np.where(under, np.array(ends.min, dtype), v))
        if not self.exact():
            raise NoOperand
        return Value.of("", dtype, self.v.astype(dtype))

    def difference(self, got: Array) -> str:
        """Return what is wrong with `got`, or nothing."""
        if got.shape != self.v.shape:
            return f"shape {got.shape}, not {self.v.shape}"
        if self.is_float:
            got = got.astype(np.float64)
        elif got.dtype != self.v.dtype:
            return f"dtype {got.dtype}, not {self.v.dtype}"
        elif not (got == self.v).all():
            wrong = got != self.v
            return f"{got[wrong][:8]}, not {self.v[wrong][:8]}"
        else:
            return ""
        with np.errstate(all="ignore"):
            ok = (got == self.v) | (self.e == inf) | ((got != got) & (self.v != self.v))
            ok |= (self.e > 0) & (abs(got - self.v) <= 2 * self.e + 1e-36)
        if ok.all():
            return ""
        return f"{got[~ok][:8]}, not {self.v[~ok][:8]} +- {self.e[~ok][:8]}"


def joined(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    fits = all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1], strict=False))
    return fits and np.prod(np.broadcast_shapes(a, b)) <= MOST_ELEMENTS


def promoted(a: str, b: str) -> str:
    return str((Tensor.empty(1, dtype=a) * Tensor.empty(1, dtype=b)).dtype.name)

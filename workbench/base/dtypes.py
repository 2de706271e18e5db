"""Element types: one immutable object per type, compared by identity.

A dtype knows its kind, its width and how many lanes a value of it has: `float32.vec(8)` is
eight lanes of float32. `index` is the type of loop counters and addresses until lowering
picks a machine width; `void` is the type of statements.

Low-precision floats (float16, bfloat16, fp8e4m3, fp8e5m2) are formats of memory: an elementwise op
on them is computed in float32 and rounded, and sums are accumulated in float32. The formats of 8
bits are the Open Compute Project's; fp8e4m3 has no infinity. Source: Micikevicius et al. 2022, "FP8
formats for deep learning".
"""

from __future__ import annotations

import builtins
import math
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from workbench.base.context import DEFAULT_FLOAT, DEFAULT_INT
from workbench.base.errors import DTypeError, short
from workbench.pickles import pickled

Kind = Literal["bool", "int", "uint", "float", "index", "void"]
Const = bool | int | float


@pickled
class DType:
    """An element type. Instances are unique: `float32.vec(8) is float32.vec(8)`."""

    __slots__ = ("bits", "count", "kind", "name", "scalar")

    def __init__(
        self, name: str, kind: Kind, bits: int, count: int = 1, scalar: DType | None = None
    ):
        self.name, self.kind, self.bits, self.count = name, kind, bits, count
        self.scalar: DType = self if scalar is None else scalar

    def __repr__(self) -> str:
        return f"dtypes.{self.scalar.name}" + (f".vec({self.count})" if self.count > 1 else "")

    def __str__(self) -> str:
        return self.scalar.name + (f"x{self.count}" if self.count > 1 else "")

    def __reduce__(self) -> tuple[object, ...]:
        return restored_dtype, (self.scalar.name, self.count)

    def vec(self, count: int) -> DType:
        """Return the type of `count` lanes of this one (`count` 1: the scalar type)."""
        if type(count) is not int or count < 1:
            because = "they are a whole number, 1 or more"
            raise DTypeError(f"there are no {count!r:.40} lanes of {self.scalar}", because, "4")
        return self.scalar if count == 1 else _vector(self.scalar, count)

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory; a bool takes one byte."""
        return max(1, self.bits // 8) * self.count

    @property
    def is_float(self) -> bool:
        """Whether values are floats, of any size."""
        return self.kind == "float"

    @property
    def is_low_precision(self) -> bool:
        """Whether it is a float below 32 bits: arithmetic on it is done in float32."""
        return self.kind == "float" and self.bits < 32

    @property
    def fraction_bits(self) -> int:
        """The bits after the point of a float's 1.fraction: 2**-fraction_bits is its epsilon."""
        return _FRACTION_BITS[self.scalar.name]

    @property
    def is_int(self) -> bool:
        """Whether values are integers (signed, unsigned or index); bool is not."""
        return self.kind in ("int", "uint", "index")

    @property
    def is_bool(self) -> bool:
        """Whether values are bools; in a vector they are masks."""
        return self.kind == "bool"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy type that stores this one: int64 for index, ml_dtypes' where numpy has none."""
        name = self.scalar.name
        if name in _ML_DTYPES:
            return _from_ml_dtypes(_ML_DTYPES[name])
        return np.dtype("int64" if self.kind == "index" else name)

    @property
    def saturates(self) -> bool:
        """Whether it is a float without infinity: larger values become its greatest one."""
        return self.scalar.name == "fp8e4m3"

    @property
    def in_numpy(self) -> bool:
        """Whether numpy itself has this type: other readers of arrays do not know the others."""
        return self.scalar.name not in _ML_DTYPES

    @property
    def min(self) -> Const:
        """The least value; minus infinity for floats, even for fp8e4m3, whose least is -448."""
        if self.is_float:
            return -math.inf
        if self.is_bool:
            return False
        return 0 if self.kind == "uint" else -(1 << (self.bits - 1))

    @property
    def max(self) -> Const:
        """The greatest value; infinity for floats, even for fp8e4m3, whose greatest is 448."""
        if self.is_float:
            return math.inf
        if self.is_bool:
            return True
        return (1 << (self.bits - (self.kind != "uint"))) - 1

    def const(self, value: Const) -> Const:
        """Return the Python value that this type holds for `value`: rounded, wrapped or truthy.

        Errors: DTypeError for a value that cannot be converted.
        """
        try:
            if self.is_bool:
                return bool(value)
            if self.is_float:
                return _ROUND[self.scalar.name](value)
            if isinstance(value, float):
                value = saturate(value, self)
            wrapped = int(value) & ((1 << self.bits) - 1)
        except (TypeError, ValueError, OverflowError):
            because = "it must be a bool, an int or a float"
            raise DTypeError(f"{self} does not hold {value!r:.40}", because, "0") from None
        return wrapped - (1 << self.bits) if wrapped > int(self.max) else wrapped


def saturate(value: float, dtype: DType) -> int:
    """Convert float -> int as every device here does: truncate and clamp; NaN gives 0."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return int(dtype.max if value > 0 else dtype.min)
    return max(int(dtype.min), min(int(dtype.max), int(value)))


def _packed(value: float, code: str) -> float:
    """Return `value` rounded to the struct format `code`, ties to even; infinity if too large."""
    try:
        rounded: float = struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _round_float32(value: Const) -> float:
    if isinstance(value, int) and value.bit_length() > _DOUBLE_BITS:
        # Through float64 it would be rounded twice, so the bits that float64 lacks become one
        # sticky bit.
        shift = abs(value).bit_length() - _DOUBLE_BITS
        mantissa = abs(value) >> shift
        mantissa |= mantissa << shift != abs(value)
        value = math.copysign(math.ldexp(mantissa, shift), value)
    return _packed(float(value), "<f")


def _round_float16(value: Const) -> float:
    """Round a float once, and an integer by way of float32, as numpy does."""
    return _packed(float(value), "<e")


class _Format(NamedTuple):
    """The layout of a float that Python cannot pack; values above `greatest` become `large`."""

    fraction_bits: int
    least_exponent: int
    greatest: float
    large: float = math.inf

    def round(self, value: Const) -> float:
        """Round to float32, and then to the nearest value, ties to even, as PyTorch does."""
        single = _round_float32(value)
        if math.isfinite(single):
            exponent = max(math.frexp(single)[1] - 1, self.least_exponent)
            place = math.ldexp(1.0, exponent - self.fraction_bits)
            single = math.copysign(round(single / place) * place, single)
        is_large = abs(single) > self.greatest
        return math.copysign(self.large, single) if is_large else single


_DOUBLE_BITS: Final = 53
_FRACTION_BITS: Final = {
    "fp8e4m3": 3,
    "fp8e5m2": 2,
    "float16": 10,
    "bfloat16": 7,
    "float32": 23,
    "float64": 52,
}
# Values above the greatest number are rounded as in PyTorch. In tinygrad 0.14 infinity becomes NaN
# in fp8e4m3, and a finite value that is too large becomes 57344 in fp8e5m2.
_ROUND: Final[dict[str, Callable[[Const], float]]] = {
    "fp8e4m3": _Format(3, -6, 448.0, large=448.0).round,
    "fp8e5m2": _Format(2, -14, 57344.0).round,
    "float16": _round_float16,
    "bfloat16": _Format(7, -126, (2.0 - 2.0**-7) * 2.0**127).round,
    "float32": _round_float32,
    "float64": float,
}
_ML_DTYPES: Final = {"bfloat16": "bfloat16", "fp8e4m3": "float8_e4m3fn", "fp8e5m2": "float8_e5m2"}
"""The types that numpy lacks, with their names in ml_dtypes."""


@cache
def _from_ml_dtypes(name: str) -> np.dtype[np.generic]:
    # Imported when such a type is first used: importing this package must stay fast.
    import ml_dtypes

    numpy_dtype: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, name))
    return numpy_dtype


@cache
def _vector(scalar: DType, count: int) -> DType:
    return DType(scalar.name, scalar.kind, scalar.bits, count, scalar)


def restored_dtype(name: str, count: int) -> DType:
    return dtypes.named(name).vec(count)


class _Defaults(type):
    """The dtypes of Python's numbers, which the settings DEFAULT_FLOAT and DEFAULT_INT name."""

    @property
    def default_float(cls) -> DType:
        """The dtype of Python's floats; float32 unless DEFAULT_FLOAT names another."""
        return _named(DEFAULT_FLOAT.value)

    @property
    def default_int(cls) -> DType:
        """The dtype of Python's integers; int32 unless DEFAULT_INT names another."""
        return _named(DEFAULT_INT.value)


@cache
def _named(name: str) -> DType:
    dtype: DType = vars(dtypes)[name]
    return dtype


class dtypes(metaclass=_Defaults):
    """The element types by name; the usual short names are aliases.

    `floats`, `fp8s` (of 8 bits), `ints`, `sints` (signed), `uints` and `all` are tuples by kind.
    """

    bool: Final = DType("bool", "bool", 1)
    int8: Final = DType("int8", "int", 8)
    int16: Final = DType("int16", "int", 16)
    int32: Final = DType("int32", "int", 32)
    int64: Final = DType("int64", "int", 64)
    uint8: Final = DType("uint8", "uint", 8)
    uint16: Final = DType("uint16", "uint", 16)
    uint32: Final = DType("uint32", "uint", 32)
    uint64: Final = DType("uint64", "uint", 64)
    fp8e4m3: Final = DType("fp8e4m3", "float", 8)
    fp8e5m2: Final = DType("fp8e5m2", "float", 8)
    float16: Final = DType("float16", "float", 16)
    bfloat16: Final = DType("bfloat16", "float", 16)
    float32: Final = DType("float32", "float", 32)
    float64: Final = DType("float64", "float", 64)
    index: Final = DType("index", "index", 64)
    void: Final = DType("void", "void", 0)

    char, short, int, long = int8, int16, int32, int64
    uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64
    half, float, double = float16, float32, float64

    sints: Final = (int8, int16, int32, int64)
    uints: Final = (uint8, uint16, uint32, uint64)
    ints: Final = (*uints, *sints)
    fp8s: Final = (fp8e4m3, fp8e5m2)
    floats: Final = (*fp8s, float16, bfloat16, float32, float64)
    all: Final = (bool, *ints, *floats)

    @staticmethod
    def named(name: str) -> DType:
        """Return the dtype called `name`; KeyError if there is none."""
        return _BY_NAME[name]

    @staticmethod
    @cache  # numpy computes the name each time
    def from_numpy(dtype: np.dtype[np.generic]) -> DType:
        """Return the dtype of a numpy type; KeyError (with its name) if we have none."""
        return _BY_NUMPY_NAME[dtype.name]

    @staticmethod
    def is_float(dtype: DType) -> builtins.bool:
        """Return whether values are floats, of any size."""
        return dtype.is_float

    @staticmethod
    def is_int(dtype: DType) -> builtins.bool:
        """Return whether values are integers; bool is not."""
        return dtype.is_int

    @staticmethod
    def is_unsigned(dtype: DType) -> builtins.bool:
        """Return whether values are integers of 0 or more."""
        return dtype.kind == "uint"

    @staticmethod
    def is_bool(dtype: DType) -> builtins.bool:
        """Return whether values are bools."""
        return dtype.is_bool

    @staticmethod
    def finfo(dtype: DType) -> tuple[builtins.int, builtins.int]:
        """Return the numbers of exponent bits and of fraction bits of a float.

        Errors: DTypeError for other types. `DType.min`, `.max` are the ends of its range.
        """
        if not dtype.is_float:
            raise DTypeError(f"{dtype} has no exponent", "only floats have", "dtype.min, dtype.max")
        return dtype.bits - 1 - dtype.fraction_bits, dtype.fraction_bits

    @staticmethod
    def from_py(value: Any) -> DType:
        """Return the dtype of a Python number, or of a (nested) list of them: bool, the default
        float, or for integers the first of the default one, int32, int64 and uint64 that holds
        them.

        Errors: DTypeError for other values, and for integers that none of these holds.
        """
        numbers = [value]
        while any(isinstance(n, list | tuple) for n in numbers):
            numbers = [
                n for each in numbers for n in (each if isinstance(each, list | tuple) else (each,))
            ]
        kinds = {type(n) for n in numbers}
        if not kinds <= {builtins.bool, builtins.int, builtins.float}:
            raise DTypeError(
                f"no dtype is that of {short(value)}",
                "it is found for Python's bools, ints and floats, and lists of them",
                "dtypes.of(1.0)",
            )
        if not kinds or builtins.float in kinds:
            return dtypes.default_float
        return int_dtype(min(numbers), max(numbers)) if builtins.int in kinds else dtypes.bool

    @staticmethod
    def of(value: Const) -> DType:
        """Return the dtype of a Python scalar on its own, as `from_py` does."""
        if isinstance(value, bool):
            return dtypes.bool
        return dtypes.default_float if isinstance(value, float) else int_dtype(value, value)


def int_dtype(low: int, high: int) -> DType:
    """Return the first of the default integer type, int32, int64 and uint64 that holds both.

    Errors: DTypeError if none does.
    """
    for kind in (dtypes.default_int, dtypes.int32, dtypes.int64, dtypes.uint64):
        if kind.min <= low and high <= kind.max:
            return kind
    if low < dtypes.int64.min or high > dtypes.uint64.max:
        wide = low if low < dtypes.int64.min else high
        what, hint = f"cannot use the integer {short(wide)}", "a float: float(value)"
        raise DTypeError(what, "it does not fit 64 bits", hint)
    raise DTypeError(
        f"no integer type is that of {low} and {high}",
        "no 64-bit type holds both",
        "dtype=dtypes.float64",
    )


_BY_NAME: Final = {d.name: d for d in vars(dtypes).values() if isinstance(d, DType)}
_BY_NUMPY_NAME: Final = {_ML_DTYPES.get(name, name): d for name, d in _BY_NAME.items()}

# Promotion climbs one ladder: bool, then integers by width (a signed type one rung wider holds an
# unsigned one), then floats. Source: JAX's type promotion lattice, without weak types for arrays;
# Python scalars are weak (see tensor.broadcast).
_SIGNED: Final = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def promote(a: DType, b: DType) -> DType:
    """Return the dtype in which values of `a` and `b` are combined: the least one that holds both.
    But an integer with a float gives that float, uint64 with a signed integer the default float."""
    if a is b:
        return a
    if a.is_float and b.is_float and a.bits == b.bits:
        # one format has the range, the other the precision
        return dtypes.float16 if a.bits == 8 else dtypes.float32
    if a.is_float or b.is_float:
        return max((d for d in (a, b) if d.is_float), key=lambda d: d.bits)
    if a.is_bool or b.is_bool:
        return b if a.is_bool else a
    if a.kind == b.kind:
        return a if a.bits >= b.bits else b
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return _SIGNED.get(2 * unsigned.bits, dtypes.default_float)

"""C types, constants and the typedefs that a kernel needs.

A vector is a type of the compilers' vector extension: `f32x8` is eight floats, aligned like
one, so that any address will do. A bool is a byte in memory, `_Bool` as a value, and in a
vector a mask: an integer as wide as what it was computed from, all ones where it holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import CompileError

# fmt: off
_SCALAR = {"float32": "float", "float64": "double", "bool": "_Bool", "index": "long"}
_LETTER = {"float": "f", "int": "i", "index": "i", "uint": "u"}
_INTEGERS = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}
_MATH_SUFFIX = {32: "f", 64: ""}
# fmt: on
_SHORT_DIGITS = 9


def scalar_type(dtype: DType) -> str:
    """Return the C type of one value of `dtype`."""
    name = dtype.scalar.name
    if name in _SCALAR:
        return _SCALAR[name]
    if not dtype.is_int:
        raise CompileError("render", f"C has no type for {name}")
    return f"{name}_t"


def memory_type(dtype: DType) -> str:
    """Return the C type of one element in memory, where a bool is one byte."""
    return "uint8_t" if dtype.is_bool else scalar_type(dtype)


def vector_name(dtype: DType) -> str:
    """Return the name of a type as part of other names: `f32x8`, `i64`."""
    lanes = f"x{dtype.count}" if dtype.count > 1 else ""
    if dtype.is_bool:
        return f"bool{lanes}"
    return f"{_LETTER[dtype.kind]}{dtype.bits}{lanes}"


def mask_type(bits: int, count: int) -> DType:
    """Return the dtype of a mask for `count` elements of `bits` each."""
    return _INTEGERS[bits].vec(count)


def typedef(dtype: DType) -> str:
    """Return the line that declares a vector type."""
    if dtype.count & (dtype.count - 1):
        raise CompileError(
            "render", f"C has no vector of {dtype.count} lanes: they are powers of two"
        )
    element, nbytes = dtype.scalar.itemsize, dtype.itemsize
    about = f"vector_size({nbytes}), aligned({element}), may_alias"
    kind = "int64_t" if dtype.kind == "index" else scalar_type(dtype)
    name = vector_name(dtype)
    return f"typedef {kind} {name} __attribute__(({about}));  // {dtype.count} lanes"


def math_name(name: str, dtype: DType) -> str:
    """Return the compilers' own function `name` for one float: __builtin_sqrtf."""
    return f"__builtin_{name}{_MATH_SUFFIX[dtype.bits]}"


def constant(value: Const, dtype: DType) -> str:
    """Return a constant whose value, and bits, are exactly those of `value`."""
    value = dtype.scalar.const(value)
    if dtype.is_bool:
        return "1" if value else "0"
    if dtype.is_float:
        return _float(float(value), dtype)
    return _integer(int(value), dtype)


def lanes(values: Sequence[Const], dtype: DType) -> str:
    """Return a vector constant with one value per lane."""
    return f"({vector_name(dtype)}){{{', '.join(constant(v, dtype) for v in values)}}}"


def _integer(value: int, dtype: DType) -> str:
    if dtype.bits < 32 or dtype.kind == "index" and abs(value) < 1 << 31:
        return str(value)
    suffix = ("u" if dtype.kind == "uint" else "") + ("l" if dtype.bits == 64 else "")
    if value == dtype.min and value:  # -2147483648 would be a minus and a wider number
        return f"({value + 1}{suffix} - 1)"
    return f"{value}{suffix}"


def _float(value: float, dtype: DType) -> str:
    single = dtype.bits <= 32
    if not math.isfinite(value):
        name = '__builtin_nanf("")' if single else '__builtin_nan("")'
        if math.isnan(value):
            return name
        sign = "-" if value < 0 else ""
        return sign + ("__builtin_inff()" if single else "__builtin_inf()")
    text = str(np.float32(value)) if single else repr(value)
    if len(text) > _SHORT_DIGITS:
        text = _hexadecimal(value)
    return text + ("f" if single else "")


def _hexadecimal(value: float) -> str:
    mantissa, exponent = value.hex().split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + exponent

"""The meaning of one op on numpy arrays: constants, elementwise ops, casts and reductions.

The op table has the meaning of arithmetic. This file adds the dtypes of arrays (with `widen`,
floats of any width are computed in float64), casts, bit casts and empty reductions. Both
interpreters use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import VerifyError
from workbench.ir.meaning.closeness import rounded, rounded_reduction
from workbench.ir.meaning.values import bitcast_array, cast_array, cast_elementwise
from workbench.ir.node.construct import constant_of
from workbench.ir.node.ops import OPS, REDUCTIONS, Ops
from workbench.ir.node.uop import UOp

Array = Any  # numpy arrays of any dtype; numpy's own generics are no more precise


def array_dtype(dtype: DType, widen: bool) -> np.dtype[Any]:
    """Return the numpy dtype of arrays with values of `dtype`."""
    return np.dtype("float64") if widen and dtype.is_float else dtype.numpy


def constant(node: UOp, widen: bool) -> Array:
    """Return a CONST as a numpy scalar array."""
    return np.array(node.arg, array_dtype(node.dtype, widen))


def elementwise(node: UOp, values: Sequence[Array], widen: bool) -> Array:
    """Return the result of an elementwise op on arrays that broadcast. Errors: VerifyError for an
    op without such a meaning."""
    if node.op is Ops.CAST:
        return _cast(node, values[0], widen)
    if node.op is Ops.BITCAST:
        source = node.src[0].dtype
        own = dtypes.from_numpy(values[0].dtype)
        bits = cast_array(values[0], own, source)
        exact: Array = bitcast_array(bits, source, node.dtype)
        return exact.astype(array_dtype(node.dtype, widen), copy=False)
    meaning = OPS[node.op].python
    if meaning is None:
        raise VerifyError(f"{node.op.name} has no meaning by elements")
    with np.errstate(all="ignore"):
        if widen:
            result = _in_range(np.asarray(meaning(*values)), node.dtype)
            return _rounded_to(node.dtype, result) if is_rounding(node) else result
        sources = [s.dtype for s in node.src]
        result = np.asarray(cast_elementwise(meaning, sources, node.dtype, values))
    return result if is_rounding(node) else rounded(node.op, result, values, node.dtype)


def is_rounding(node: UOp) -> bool:
    """Return whether a node is an ADD of a constant for the sake of its rounding: a float of
    2**fraction_bits has no bits for a fraction (`ir/functions/formulas.py`)."""
    if node.op is not Ops.ADD or not node.dtype.is_float:
        return False
    constants = [c.arg for c in map(constant_of, node.src) if c is not None]
    return any(abs(c) == 2.0**node.dtype.fraction_bits for c in constants)


def _rounded_to(dtype: DType, value: Array) -> Array:
    """Return a float64 rounded to the values of `dtype`, as float64."""
    return np.asarray(cast_array(value, dtypes.float64, dtype)).astype(np.float64)


def _cast(node: UOp, value: Array, widen: bool) -> Array:
    if widen and node.dtype.is_float:
        return _in_range(value.astype(np.float64), node.dtype)
    return np.asarray(cast_array(value, node.src[0].dtype, node.dtype))


def _in_range(value: Array, dtype: DType) -> Array:
    """Clamp a float64 to the range of `dtype`, if the dtype saturates."""
    return value.clip(-448.0, 448.0) if dtype.saturates else value


def reduce(op: Ops, value: Array, axes: tuple[int, ...], dtype: DType, keepdims: bool) -> Array:
    """Return `value` combined over `axes`; the identity of `op` where an axis has no elements.
    Errors: VerifyError for an `op` that does not combine."""
    if op not in REDUCTIONS:
        raise VerifyError(f"a reduction cannot combine with {op.name}")
    ufunc, *_, identity = REDUCTIONS[op]
    options: dict[str, Any] = {}
    if ufunc.identity is None:  # numpy has no identity of a maximum
        options["initial"] = np.array(identity(dtype), value.dtype)
    with np.errstate(all="ignore"):
        result = np.asarray(
            ufunc.reduce(value, axis=axes, dtype=value.dtype, keepdims=keepdims, **options)
        )
    return rounded_reduction(op, result, value, axes, dtype, keepdims)

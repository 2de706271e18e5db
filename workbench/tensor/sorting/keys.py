"""Sort keys: integers that compare as the values do, of every dtype, in either direction.

A key's order is that of its values, as in torch: NaN is the greatest, and -0.0 equals 0.0. A
*packed* key is int64, the key above the position: no two are equal, so that any way to sort
them keeps the order of equal values.
"""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.operands.broadcast import cast_to, expanded
from workbench.tensor.operands.numbered import numbered

_POSITION_BITS = 32
_SIGN = -(1 << 31)


def keys_of(value: UOp, descending: bool) -> tuple[UOp, ...]:
    """Return the int32 keys of `value`, the last the most significant: one, of 64 bits two."""
    dtype = value.dtype
    if dtype.is_float:
        key = _float_key(value)
    elif dtype.kind == "uint" and dtype.bits >= 32:
        signed = dtypes.int64 if dtype.bits == 64 else dtypes.int32
        key = value.bitcast(signed) ^ signed.min
    else:
        key = cast_to(value, dtype if dtype.bits == 64 else dtypes.int32)
    key = ~key if descending else key
    if key.dtype is dtypes.int32:
        return (key,)
    # The lower half has no sign of its own.
    low = cast_to(key & 0xFFFFFFFF, dtypes.uint32).bitcast(dtypes.int32) ^ _SIGN
    return low, cast_to(key.alu(Ops.SHR, key.like(32)), dtypes.int32)


def packed(key: UOp) -> UOp:
    """Return the packed keys of int32 `key`, by the position in its last axis."""
    position = expanded(numbered(key.shape[-1], dtypes.int64), key.shape)
    wide = cast_to(key, dtypes.int64)
    return wide.alu(Ops.SHL, wide.like(_POSITION_BITS)) | position


def positions(pairs: UOp) -> UOp:
    """Return the positions, int32, of packed keys."""
    return cast_to(pairs & 0xFFFFFFFF, dtypes.int32)


def _float_key(value: UOp) -> UOp:
    """Return integers in the order of floats, which have a sign and a magnitude."""
    wide = cast_to(value, dtypes.float64 if value.dtype.bits == 64 else dtypes.float32)
    bits = wide.bitcast(dtypes.int64 if wide.dtype.bits == 64 else dtypes.int32)
    most = int(bits.dtype.max)
    key = (bits < 0).where(bits ^ most, bits)
    key = wide.eq(wide.like(0)).where(key.like(0), key)
    return wide.ne(wide).where(key.like(most), key)

"""Counting: the node whose values are 0, 1, 2, ..."""

from __future__ import annotations

from workbench.dtypes import DType, dtypes
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp
from workbench.tensor.broadcast import cast_to, expanded


def numbered(count: int, dtype: DType = dtypes.int32) -> UOp:
    """Return 0, 1, .. count - 1 as `dtype`, shape (count,)."""
    if count == 0:
        return expanded(UOp.const(dtype, 0), (0,))
    wide = dtypes.int32 if count <= dtypes.int32.max else dtypes.int64
    return cast_to(UOp(Ops.IOTA, wide, (), count), dtype)

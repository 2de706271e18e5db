"""Counting: the node of the values 0, 1, 2, ..."""

from __future__ import annotations

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.shapes import addressable
from workbench.ir.node.uop import UOp
from workbench.tensor.operands.broadcast import cast_to, expanded


def numbered(count: int, dtype: DType | None = None) -> UOp:
    """Return 0, 1, .. count - 1 as `dtype`, shape (count,); None: as `position_dtype`.

    Errors: ShapeError for more than 64-bit integers can count.
    """
    addressable((count,))
    own = position_dtype(count)
    kind = own if dtype is None else dtype
    if count == 0:
        return expanded(UOp.const(kind, 0), (0,))
    return cast_to(UOp(Ops.IOTA, own, (), count), kind)


def position_dtype(count: int) -> DType:
    """Return the dtype of positions among `count`, and of `count` itself: int32, or int64."""
    return dtypes.int32 if count <= dtypes.int32.max else dtypes.int64

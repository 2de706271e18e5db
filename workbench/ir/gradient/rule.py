"""Gradient rules: their type, and the parts that several of them share."""

from __future__ import annotations

from collections.abc import Callable

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

GradientRule = Callable[..., tuple[UOp | None, ...] | None]
"""Called with `g`, the gradient of a node, the node, and its sources; returns the gradient of each
source, in its shape and dtype, or None where nothing flows; None, where there is no gradient."""


def summed(g: UOp, axes: tuple[int, ...]) -> UOp:
    """Return `g` summed over `axes`, which keep size 1; low-precision floats in 32 bits."""
    if not axes:
        return g
    wide = wide_dtype(g.dtype)
    return construct.reduce_axis(g.cast(wide), axes, Ops.ADD).cast(g.dtype)


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype that sums of `dtype` are computed in."""
    return dtypes.float32 if dtype.is_low_precision else dtype


def reshaped(value: UOp, shape: tuple[int, ...]) -> UOp:
    """Return `value` in `shape`, which has as many elements."""
    if value.shape == shape:
        return value
    return UOp(Ops.RESHAPE, value.dtype, (value,), shape)


def expanded(value: UOp, shape: tuple[int, ...]) -> UOp:
    """Return `value` broadcast to `shape`, which must fit."""
    if value.shape == shape:
        return value
    return UOp(Ops.EXPAND, value.dtype, (value,), shape)

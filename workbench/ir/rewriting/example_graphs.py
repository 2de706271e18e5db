"""Constructors for the graphs of the rules' examples."""

from __future__ import annotations

from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp

F = dtypes.float32
KINDS = {kind.value: kind for kind in AxisType}
"""The kinds of axes, by their letters."""


def variable(dtype: DType, name: str = "x", lo: Any = None, hi: Any = None) -> UOp:
    """Return a VAR with bounds, by default those of its dtype."""
    bounds = dtype.min if lo is None else lo, dtype.max if hi is None else hi
    return UOp(Ops.VAR, dtype, (), (name, *bounds))


def axis(name: str, size: int) -> UOp:
    """Return a RANGE; the first letter of its name (or of what follows a "_") is its kind."""
    return UOp.range(size, name, KINDS[name.rpartition("_")[2][0]])


def param(slot: int, size: int, dtype: DType = F) -> UOp:
    return UOp(Ops.PARAM, dtype, (), (slot, size))


def at(target: UOp, *indexes: UOp) -> UOp:
    return UOp(Ops.INDEX, target.dtype, (target, *indexes))


def load(target: UOp, *indexes: UOp) -> UOp:
    return UOp(Ops.LOAD, target.dtype, (at(target, *indexes),))


def reduced(op: Ops, value: UOp, *ranges: UOp) -> UOp:
    return UOp(Ops.REDUCE, value.dtype, (value, *ranges), op)


def buffer(uid: int, *shape: int, dtype: DType = F) -> UOp:
    return UOp(Ops.BUFFER, dtype, (), (uid, "HOST", shape))


def tensor(op: Ops, source: UOp, arg: object) -> UOp:
    return UOp(op, source.dtype, (source,), arg)

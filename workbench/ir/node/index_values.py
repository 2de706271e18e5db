"""The values of index expressions for all values of their ranges, as numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.ir.meaning.evaluate import Array, constant, elementwise
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

MOST_AXES = 16
"""Ranges that are evaluated at once, at most; numpy's limit of dimensions is a little higher."""


def index_values(
    roots: Sequence[UOp], axes: Sequence[UOp], most: int, others_stand: bool = False
) -> list[Array] | None:
    """Return the values of expressions at every step of `axes`: arrays that broadcast to their
    extents. None where they have more than `most` steps, or depend on memory, on a float, or on a
    range that is not among `axes` (with `others_stand`, such a range is 0)."""
    if len(axes) > MOST_AXES or math.prod(r.extent for r in axes) > most:
        return None
    values: dict[UOp, Array] = {}
    for node in UOp.sink(*roots).toposort():
        # A program may round a product and its sum once, numpy rounds twice: of one float there
        # would be two values, and what is truncated to an index differs by a whole element.
        if node.dtype.is_float:
            return None
        if node.op is Ops.RANGE:
            if node not in axes and not others_stand:
                return None
            values[node] = _steps(node, axes)
        elif node.op is Ops.CONST:
            values[node] = constant(node, widen=False)
        elif node.is_elementwise:
            values[node] = elementwise(node, [values[s] for s in node.src], widen=False)
        elif node.op is not Ops.SINK:
            return None
    return [values[root] for root in roots]


def _steps(axis: UOp, axes: Sequence[UOp]) -> Array:
    if axis not in axes:
        return np.array(0, dtypes.index.numpy)
    shape = [1] * len(axes)
    shape[axes.index(axis)] = axis.extent
    return np.arange(axis.extent, dtype=dtypes.index.numpy).reshape(shape)

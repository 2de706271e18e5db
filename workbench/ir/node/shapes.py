"""Shapes of tensor-level values, derived from op, sources and arg."""

from __future__ import annotations

import math
from typing import Any

from workbench.base.errors import ShapeError, VerifyError
from workbench.base.source import user_line
from workbench.base.words import cut
from workbench.ir.node.ops import ELEMENTWISE, Ops

Shape = tuple[int, ...]
Node = Any  # a UOp: uop.py imports this file, not the other way round

LIMIT = 1 << 63
"""Positions are 64-bit integers: a shape has fewer elements than this."""


def shape_of(node: Node) -> Shape:
    """Return the shape of `node`; its sources' shapes are known.

    A constant has shape () and fits beside any shape; other operands must agree exactly.
    Errors: ShapeError as `addressable`.
    """
    return addressable(_derived(node))


def addressable(shape: Shape) -> Shape:
    """Return `shape`. Errors: ShapeError for more elements than 64-bit positions can name,
    which no index expression could tell apart."""
    if math.prod(shape) >= LIMIT or max(shape, default=0) >= LIMIT:
        line = user_line()
        raise ShapeError(
            f"cannot make a tensor of shape {cut(str(shape), 80)}",
            "positions are 64-bit integers, and it has 2**63 elements or more",
            "a smaller shape: of an expression, only what is read needs to fit memory",
            "" if line is None else line.where,
        )
    return shape


def _derived(node: Node) -> Shape:
    op, src = node.op, node.src
    if op is Ops.BUFFER:
        shape: Shape = node.buffer_shape
        return shape
    if op is Ops.IOTA:
        return (node.arg,)
    if op is Ops.CUSTOM:
        own: Shape = node.output_shapes[node.output]
        return own
    if op in (Ops.RESHAPE, Ops.EXPAND):
        target: Shape = node.arg
        return target
    if op in ELEMENTWISE:
        return _elementwise(node)
    if op is Ops.PERMUTE:
        return tuple(src[0].shape[axis] for axis in node.arg)
    if op is Ops.SHRINK:
        return tuple(hi - lo for lo, hi in node.arg)
    if op is Ops.PAD:
        return tuple(n + lo + hi for n, (lo, hi) in zip(src[0].shape, node.arg, strict=True))
    if op is Ops.REDUCE_AXIS:
        axes = node.reduced_axes
        return tuple(1 if i in axes else n for i, n in enumerate(src[0].shape))
    if op in (Ops.FLIP, Ops.CONTIGUOUS, Ops.COPY, Ops.DETACH, Ops.GRADIENT):
        same: Shape = src[0].shape
        return same
    return ()


def _elementwise(node: Node) -> Shape:
    shapes: set[Shape] = {s.shape for s in node.src if not s.is_const}
    if not shapes:
        return ()
    if len(shapes) > 1:
        raise VerifyError(f"{node.op.name} of shapes {sorted(shapes)}", "operands must agree")
    return shapes.pop()

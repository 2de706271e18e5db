"""Gradients of REDUCE_AXIS, by the op that it combines with. `g` is the gradient of the node `n`,
whose source is `x`.
"""

from __future__ import annotations

import math

from workbench.base.dtypes import dtypes
from workbench.ir.gradient.rule import GradientRule, expanded, reshaped, summed
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

BLOCK = 16
"""Elements of a block: the product of all others is computed within a block, and among the
products of the blocks."""


def of_sum(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` for each element that was added."""
    return (expanded(g, x.shape),)


def of_greatest(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` for the element that is the result, in equal parts where several are."""
    result = expanded(n, x.shape)
    # NaN equals nothing: where it is the result, the NaNs share.
    is_result = x.eq(result) | (x.ne(x) & result.ne(result))
    one = is_result.where(expanded(x.like(1), x.shape), x.like(0))
    count = expanded(summed(one, n.reduced_axes), x.shape)
    return (is_result.where(expanded(g, x.shape) / count, x.like(0)),)


def of_product(g: UOp, n: UOp, x: UOp) -> tuple[UOp]:
    """Return `g` times the product of all other elements: without a quotient, so also for zeros."""
    axes = n.reduced_axes
    others = tuple(a for a in range(len(x.shape)) if a not in axes)
    order = (*others, *axes)
    length = math.prod(x.shape[a] for a in axes)
    lead = tuple(x.shape[a] for a in others)
    rows = reshaped(UOp(Ops.PERMUTE, x.dtype, (x,), order), (*lead, length))
    rest = reshaped(_product_of_others(rows), tuple(x.shape[a] for a in order))
    back = tuple(order.index(a) for a in range(len(order)))
    return (expanded(g, x.shape) * UOp(Ops.PERMUTE, x.dtype, (rest,), back),)


def _product_of_others(x: UOp) -> UOp:
    """Return at each place of the last axis the product of all others along it."""
    *lead, size = x.shape
    if size <= BLOCK:
        return _others_directly(x)
    count = -(-size // BLOCK)
    none = ((0, 0),) * len(lead)
    missing = (*none, (0, count * BLOCK - size))
    padded = UOp(Ops.PAD, x.dtype, (x,), missing)
    everywhere = expanded(UOp.const(dtypes.bool, True), x.shape)
    inside = UOp(Ops.PAD, dtypes.bool, (everywhere,), missing)
    blocks = reshaped(inside.where(padded, x.like(1)), (*lead, count, BLOCK))
    products = construct.reduce_axis(blocks, (len(lead) + 1,), Ops.MUL)
    outer = _product_of_others(reshaped(products, (*lead, count)))
    rest = _others_directly(blocks) * expanded(reshaped(outer, (*lead, count, 1)), blocks.shape)
    box = (*((0, n) for n in lead), (0, size))
    return UOp(Ops.SHRINK, x.dtype, (reshaped(rest, (*lead, count * BLOCK)),), tuple(box))


def _others_directly(x: UOp) -> UOp:
    """Return the product of the others, each as a reduction of its own."""
    *lead, size = x.shape
    square = (*lead, size, size)
    numbers = UOp(Ops.IOTA, dtypes.int32, (), size)
    column = expanded(reshaped(numbers, (size, 1)), (size, size))
    row = expanded(reshaped(numbers, (1, size)), (size, size))
    is_other = expanded(row.ne(column), square)
    values = expanded(reshaped(x, (*lead, 1, size)), square)
    others = is_other.where(values, x.like(1))
    product = construct.reduce_axis(others, (len(lead) + 1,), Ops.MUL)
    return reshaped(product, x.shape)


REDUCTIONS: dict[Ops, GradientRule] = {
    Ops.ADD: of_sum,
    Ops.MUL: of_product,
    Ops.MAX: of_greatest,
    Ops.MIN: of_greatest,
}


def reduction(g: UOp, n: UOp, x: UOp) -> tuple[UOp | None, ...] | None:
    """Return the gradient of a REDUCE_AXIS, by its combining op."""
    return REDUCTIONS[n.combines](g, n, x)

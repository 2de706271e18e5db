"""Lanes in C: building vectors of scalars, extracting lanes and combining them."""

from __future__ import annotations

from workbench.backends.c.expressions.operands import COperands
from workbench.backends.program.expression import ATOM, EQUAL, UNARY, Expression, call, paren
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def stack(values: COperands, node: UOp) -> Expression:
    """Return a vector of one value per lane; bools become a mask."""
    parts = [values.text(s) for s in node.src]
    if not node.dtype.is_bool:
        kind = values.prelude.type(node.dtype)
        return f"({kind}){{{', '.join(p[0] for p in parts)}}}", ATOM
    values.mask_bits[node] = 8
    kind = values.prelude.mask(8, node.dtype.count)
    return f"({kind}){{{', '.join('-' + paren(p, UNARY) for p in parts)}}}", ATOM


def extract(values: COperands, node: UOp) -> Expression:
    """Return one lane of a vector."""
    test = " != 0" if node.dtype.is_bool else ""
    words = f"{paren(values.text(node.src[0]), ATOM)}[{node.arg}]{test}"
    return words, EQUAL if test else ATOM


def shuffle(values: COperands, node: UOp) -> Expression:
    """Return lanes picked out of two vectors."""
    a, b = (values.vector(s, node.dtype.count)[0] for s in node.src)
    return call("__builtin_shufflevector", a, b, *map(str, node.arg))


def combined(values: COperands, node: UOp) -> Expression:
    """Return all lanes of a vector combined into one value."""
    whole = node.src[0]
    if node.dtype.is_bool:
        bits, count = values.mask_width(whole), whole.dtype.count
        name = values.prelude.combine_masks(node.arg, bits, count)
        return call(name, values.mask(whole, bits, count)[0])
    vector = values.vector(whole, whole.dtype.count)
    return call(values.prelude.combine(node.arg, whole.dtype), vector[0])


LANES = {Ops.STACK: stack, Ops.EXTRACT: extract, Ops.SHUFFLE: shuffle, Ops.HREDUCE: combined}
"""The function of each op that moves values between lanes."""

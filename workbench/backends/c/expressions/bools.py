"""Bools in C: `_Bool` for scalars, and masks of 0 or -1 for vectors.

`&&` on bools, `&` on masks: a mask chooses between vectors by bit operations, so it is as wide
as the elements it chooses between. The width of each mask is in `COperands.mask_bits`.
"""

from __future__ import annotations

from workbench.backends.c.expressions.operands import COperands
from workbench.backends.c.expressions.operators import INFIX, where
from workbench.backends.c.expressions.types import constant, mask_type
from workbench.backends.program.expression import (
    ADD,
    AND,
    ATOM,
    BOTH,
    EITHER,
    EQUAL,
    LESS,
    OR,
    SHIFT,
    UNARY,
    XOR,
    Expression,
    call,
    paren,
)
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# fmt: off
_ON_BOOLS: dict[Ops, tuple[str, int]] = {
    Ops.ADD: ("||", EITHER), Ops.OR: ("||", EITHER), Ops.MAX: ("||", EITHER),
    Ops.MUL: ("&&", BOTH), Ops.AND: ("&&", BOTH), Ops.MIN: ("&&", BOTH),
    Ops.XOR: ("!=", EQUAL), Ops.CMPNE: ("!=", EQUAL), Ops.CMPEQ: ("==", EQUAL),
    Ops.CMPLT: ("<", LESS), Ops.CMPLE: ("<=", LESS),
}
_ON_MASKS: dict[Ops, tuple[str, int]] = {
    Ops.ADD: ("{a} | {b}", OR), Ops.OR: ("{a} | {b}", OR), Ops.MAX: ("{a} | {b}", OR),
    Ops.MUL: ("{a} & {b}", AND), Ops.AND: ("{a} & {b}", AND), Ops.MIN: ("{a} & {b}", AND),
    Ops.XOR: ("{a} ^ {b}", XOR), Ops.CMPNE: ("{a} ^ {b}", XOR),
    Ops.CMPEQ: ("~({a} ^ {b})", UNARY), Ops.CMPLT: ("~{a} & {b}", AND),
    Ops.CMPLE: ("~{a} | {b}", OR),
}
# fmt: on


def is_about_bools(node: UOp, count: int) -> bool:
    """Whether a node gives bools, or reads vectors of them."""
    return node.dtype.is_bool or count > 1 and any(s.dtype.is_bool for s in node.src)


def about_bools(values: COperands, node: UOp, count: int) -> Expression:
    """Return a node of bools over `count` lanes as an expression over its operands."""
    if node.dtype.is_bool:
        return _bool(values, node) if count == 1 else _mask(values, node, count)
    if node.op is Ops.WHERE:
        return where(values, node, count)
    bits = node.dtype.bits  # a CAST or BITCAST of a mask
    mask = paren(values.mask(node.src[0], bits, count), ATOM)
    kind = values.prelude.type(node.dtype)
    if node.dtype.is_float:
        return call("__builtin_convertvector", f"-{mask}", kind)
    return f"({kind}){mask} & 1", AND


def _bool(values: COperands, node: UOp) -> Expression:
    op, source = node.op, node.src[0]
    if op in (Ops.CAST, Ops.BITCAST):
        zero = constant(0, source.dtype)
        return f"{paren(values.text(source), SHIFT)} != {zero}", EQUAL
    if op is Ops.NOT:
        return f"!{paren(values.text(source), UNARY)}", UNARY
    if op is Ops.WHERE:
        return where(values, node, 1)
    table = _ON_BOOLS if source.dtype.is_bool else INFIX
    sign, binds = table[op]
    tight = (ADD, ADD)
    if sign in ("&&", "||"):  # && may stand beside &&; || gets parentheses
        tight = (BOTH, BOTH) if sign == "&&" else (OR, OR)
    a, b = (paren(values.text(s), t) for s, t in zip(node.src, tight, strict=True))
    return f"{a} {sign} {b}", binds


def _mask(values: COperands, node: UOp, count: int) -> Expression:
    """Return a mask. A comparison gives one as wide as its operands; masks of different widths are
    converted to one width first."""
    op, source = node.op, node.src[0]
    if op is not Ops.WHERE and not source.dtype.is_bool:
        return _compared(values, node, count)
    bits = values.mask_bits[node] = values.mask_width(*node.src)
    if op in (Ops.CAST, Ops.BITCAST):
        return values.mask(source, bits, count)
    if op is Ops.WHERE:
        return _where_masks(values, node, bits, count)
    parts = [paren(values.mask(s, bits, count), ATOM) for s in node.src]
    if op is Ops.NOT:
        return f"~{parts[0]}", UNARY
    a, b = parts
    words, binds = _ON_MASKS[op]
    return words.format(a=a, b=b), binds


def _compared(values: COperands, node: UOp, count: int) -> Expression:
    """Return the mask of a comparison of numbers, or of their test against 0."""
    op, source = node.op, node.src[0]
    values.mask_bits[node] = source.dtype.bits
    if op in (Ops.CAST, Ops.BITCAST):
        zero = constant(0, source.dtype)
        return f"{paren(values.vector(source, count), SHIFT)} != {zero}", EQUAL
    sign, binds = INFIX[op]
    values.prelude.mask(source.dtype.bits, count)
    a, b = values.pair(source, node.src[1], SHIFT, SHIFT)
    return f"{a} {sign} {b}", binds


def _where_masks(values: COperands, node: UOp, bits: int, count: int) -> Expression:
    condition, yes, no = node.src
    a, b = (paren(values.mask(s, bits, count), ATOM) for s in (yes, no))
    if condition.dtype.count == 1:
        name = values.prelude.choose(mask_type(bits, count))
        return call(name, values.text(condition)[0], a, b)
    m = paren(values.mask(condition, bits, count), ATOM)
    return f"({m} & {a}) | (~{m} & {b})", OR

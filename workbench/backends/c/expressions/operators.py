"""Operators of C: an elementwise node as an expression over its operands, scalars and vectors
alike.

C computes types narrower than int in int, so such a result is cast back; operations without an
operator in C (a maximum, a saturating cast) are functions of the prelude. bools.py has results that
are bools, and operations on masks.
"""

from __future__ import annotations

from collections.abc import Callable

from workbench.backends.c.expressions.operands import COperands, is_constant
from workbench.backends.c.expressions.types import constant, math_name
from workbench.backends.program.expression import (
    ADD,
    AND,
    ATOM,
    CHOICE,
    EITHER,
    EQUAL,
    LESS,
    MUL,
    OR,
    SHIFT,
    UNARY,
    XOR,
    Expression,
    call,
    paren,
)
from workbench.backends.program.value_facts import is_number, may_overflow
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError
from workbench.ir.node.ops import COMPARE, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import advice

# fmt: off
INFIX: dict[Ops, tuple[str, int]] = {
    Ops.ADD: ("+", ADD), Ops.MUL: ("*", MUL), Ops.FDIV: ("/", MUL), Ops.CDIV: ("/", MUL),
    Ops.CMOD: ("%", MUL), Ops.AND: ("&", AND), Ops.OR: ("|", OR), Ops.XOR: ("^", XOR),
    Ops.SHL: ("<<", SHIFT), Ops.SHR: (">>", SHIFT), Ops.CMPLT: ("<", LESS),
    Ops.CMPLE: ("<=", LESS), Ops.CMPEQ: ("==", EQUAL), Ops.CMPNE: ("!=", EQUAL),
}
_LEAVES_ITS_TYPE = (Ops.ADD, Ops.MUL, Ops.SHL, Ops.CDIV)
_CHAINS = (Ops.ADD, Ops.MUL)  # a + b + c needs no parentheses; a shift or a bit op gets them
# fmt: on


def arithmetic(values: COperands, node: UOp, count: int) -> Expression:
    """Return an elementwise node over `count` lanes as an expression over its operands.

    Errors: CompileError for an op that C has no operator for.
    """
    op, dtype = node.op, node.dtype
    special = SPECIAL.get(op)
    if special is not None:
        return special(values, node, count)
    if op in (Ops.CDIV, Ops.CMOD) and may_overflow(node):
        return _called(values, values.prelude.divide(op, dtype), node, count)
    if op is Ops.FMOD:
        return _called(values, values.prelude.remainder(dtype), node, count)
    if op not in INFIX:
        raise CompileError("render", f"C has no operator for {op.name}", hint=advice())
    return _narrowed(values, node, _infix(values, node, *INFIX[op]))


def _infix(values: COperands, node: UOp, sign: str, binds: int) -> Expression:
    left, right = (binds, binds + 1) if node.op in _CHAINS else (UNARY, UNARY)
    if node.op in (Ops.FDIV, Ops.CDIV, Ops.CMOD, *COMPARE):
        left, right = (binds, binds + 1) if binds >= MUL else (binds + 1, binds + 1)
    a, b = node.src
    if node.op is Ops.ADD and b.op is Ops.NEG and not _is_named(values, b):
        sign, b = "-", b.src[0]
    words, others = values.pair(a, b, left, right)
    if sign == "+" and others.startswith("-") and _has_opposite(b):
        sign, others = "-", others[1:]
    space = "" if node.op is Ops.MUL and node.dtype is dtypes.index else " "
    return f"{words}{space}{sign}{space}{others}", binds


def _narrowed(values: COperands, node: UOp, text: Expression) -> Expression:
    """Cast a result back to its type where that is narrower than int, in which C computes."""
    dtype = node.dtype
    if dtype.count > 1 or not dtype.is_int or dtype.bits >= 32:
        return text
    if node.op not in (*_LEAVES_ITS_TYPE, Ops.NEG, Ops.NOT):
        return text
    return f"({values.prelude.type(dtype)}){paren(text, UNARY)}", UNARY


def _is_named(values: COperands, node: UOp) -> bool:
    return node not in values.texts or values.texts[node][0].isidentifier()


def _called(values: COperands, name: str, node: UOp, count: int) -> Expression:
    return call(name, *(values.vector(s, count)[0] for s in node.src))


def _negative(values: COperands, node: UOp, count: int) -> Expression:
    sign = "-" if node.op is Ops.NEG else "~"
    inner = paren(values.vector(node.src[0], count), ATOM)
    return _narrowed(values, node, (sign + inner, UNARY))


def _reciprocal(values: COperands, node: UOp, count: int) -> Expression:
    one = constant(1.0, node.dtype.scalar)
    return f"{one} / {paren(values.vector(node.src[0], count), UNARY)}", MUL


def _function(values: COperands, node: UOp, count: int) -> Expression:
    name = node.op.name.lower()
    if count > 1:
        return _called(values, values.prelude.each(name, node.dtype, len(node.src)), node, count)
    return _called(values, math_name(name, node.dtype), node, count)


def _fma(values: COperands, node: UOp, count: int) -> Expression:
    """A macro, for which a comma in braces would begin another operand."""
    operands = (values.vector(s, count)[0] for s in node.src)
    texts = [f"({text})" if "{" in text else text for text in operands]
    return call(values.prelude.multiply_add(node.dtype), *texts)


def _extreme(values: COperands, node: UOp, count: int) -> Expression:
    """`a > b ? a : b` is one instruction, if a is known not to be NaN: so a constant
    goes first."""
    a, b = node.src
    if node.dtype.is_float and is_number(b) and not is_number(a):
        a, b = b, a
    name = values.prelude.extreme(node.op, node.dtype)
    return call(name, values.vector(a, count)[0], values.vector(b, count)[0])


def where(values: COperands, node: UOp, count: int) -> Expression:
    """Return a choice: `?:`, which takes one condition, or the mask between two vectors."""
    condition, yes, no = node.src
    a, b = values.vector(yes, count), values.vector(no, count)
    if count == 1:
        test = paren(values.text(condition), EITHER)
        return f"{test} ? {paren(a, EITHER)} : {paren(b, EITHER)}", CHOICE
    if condition.dtype.count == 1:
        test = values.text(condition)[0]
        return call(values.prelude.choose(node.dtype), test, a[0], b[0])
    mask = values.mask(condition, node.dtype.bits, count)
    return call(values.prelude.select(node.dtype), mask[0], a[0], b[0])


def _cast(values: COperands, node: UOp, count: int) -> Expression:
    source, dtype = node.src[0].dtype, node.dtype
    value = values.vector(node.src[0], count)
    kind = values.prelude.type(dtype)
    if source.is_float and not dtype.is_float:
        return call(values.prelude.saturate(source, dtype), value[0])
    if count == 1:
        return f"({kind}){paren(value, UNARY)}", UNARY
    if values.prelude.type(source) == kind:
        return value
    return call("__builtin_convertvector", value[0], kind)


def _bitcast(values: COperands, node: UOp, count: int) -> Expression:
    source, dtype = node.src[0].dtype, node.dtype
    if source.is_float == dtype.is_float or source.is_bool or count > 1:
        kind = values.prelude.type(dtype)
        return f"({kind}){paren(values.vector(node.src[0], count), UNARY)}", UNARY
    return call(values.prelude.bits(source, dtype), values.text(node.src[0])[0])


def _has_opposite(node: UOp) -> bool:
    """Whether a node is a constant whose negative its dtype holds: int8 has -128 and no 128."""
    if not is_constant(node):
        return False
    scalar = node if node.is_const else node.src[0]
    return node.dtype.is_float or bool(scalar.arg != node.dtype.min)


SPECIAL: dict[Ops, Callable[[COperands, UOp, int], Expression]] = {
    Ops.NEG: _negative,
    Ops.NOT: _negative,
    Ops.RECIP: _reciprocal,
    Ops.SQRT: _function,
    Ops.TRUNC: _function,
    Ops.FMA: _fma,
    Ops.MAX: _extreme,
    Ops.MIN: _extreme,
    Ops.WHERE: where,
    Ops.CAST: _cast,
    Ops.BITCAST: _bitcast,
}

"""Operators on scalars: an elementwise node as an expression over its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.backends.gpu.dialect import Dialect
from workbench.backends.gpu.helpers import Helpers
from workbench.backends.program.expression import (
    ADD,
    AND,
    ATOM,
    BOTH,
    EITHER,
    EQUAL,
    LESS,
    MUL,
    OR,
    SHIFT,
    UNARY,
    XOR,
    Expression,
    paren,
)
from workbench.backends.program.value_facts import may_overflow, wrapping_dtype
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.ir.node.ops import COMPARE, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import advice

Arguments = Sequence[Expression]
# fmt: off
_INFIX: dict[Ops, tuple[str, int]] = {
    Ops.ADD: ("+", ADD), Ops.MUL: ("*", MUL), Ops.FDIV: ("/", MUL), Ops.CDIV: ("/", MUL),
    Ops.CMOD: ("%", MUL), Ops.AND: ("&", AND), Ops.OR: ("|", OR), Ops.XOR: ("^", XOR),
    Ops.SHL: ("<<", SHIFT), Ops.SHR: (">>", SHIFT), Ops.CMPLT: ("<", LESS),
    Ops.CMPLE: ("<=", LESS), Ops.CMPEQ: ("==", EQUAL), Ops.CMPNE: ("!=", EQUAL),
}
_ON_BOOLS: dict[Ops, tuple[str, int]] = {
    Ops.ADD: ("||", EITHER), Ops.OR: ("||", EITHER), Ops.MAX: ("||", EITHER),
    Ops.MUL: ("&&", BOTH), Ops.AND: ("&&", BOTH), Ops.MIN: ("&&", BOTH),
    Ops.XOR: ("!=", EQUAL), Ops.CMPNE: ("!=", EQUAL), Ops.CMPEQ: ("==", EQUAL),
}
_CHAINS = (Ops.ADD, Ops.MUL)
_LEAVES_ITS_TYPE = (Ops.ADD, Ops.MUL, Ops.SHL, Ops.CDIV, Ops.NEG, Ops.NOT)
# fmt: on


def scalar_operation(
    dialect: Dialect, helpers: Helpers, node: UOp, arguments: Arguments
) -> Expression:
    """Return an elementwise node, of which `arguments` are the operands (of one lane).

    Errors: CompileError for an op, or a dtype, that the language has nothing for.
    """
    op, dtype = node.op, node.dtype.scalar
    source = node.src[0].dtype.scalar
    own = dialect.operation(node, arguments)
    if own is not None:
        return own
    if op in (Ops.CAST, Ops.BITCAST):
        return _converted(dialect, helpers, op, source, dtype, arguments[0])
    if op is Ops.WARP_SHUFFLE:
        return dialect.shuffle(arguments[0], dtype, node.arg)
    if op is Ops.WHERE:
        return dialect.choose(*arguments)
    if source.is_bool:
        return _on_bools(op, arguments)
    if op in (Ops.MAX, Ops.MIN):
        return helpers.extreme(op, dtype, *arguments)
    if op in (Ops.CDIV, Ops.CMOD) and dtype.kind != "index" and may_overflow(node):
        return helpers.quotient(op, dtype, *arguments)
    if op is Ops.CMOD and any(s.vmin < 0 for s in node.src):
        return dialect.rest(arguments[0], arguments[1], dtype)
    unsigned = None if dialect.wraps else wrapping_dtype(node)
    if unsigned is not None:
        return _wrapped(dialect, node, unsigned, arguments)
    if op in _INFIX:
        return _narrowed(dialect, op, dtype, _infix(dialect, node, arguments))
    if op in _UNARIES:
        return _narrowed(dialect, op, dtype, _UNARIES[op](dialect, dtype, arguments))
    if op in dialect.functions:
        return dialect.apply(op, dtype, arguments)
    name = dialect.language.name
    raise CompileError("render", f"{name} has no operator for {op.name}", hint=advice())


def _wrapped(dialect: Dialect, node: UOp, unsigned: DType, arguments: Arguments) -> Expression:
    """Return what a signed type does not define as that of the unsigned one."""
    dtype = node.dtype.scalar
    first, *others = arguments
    parts = [dialect.cast(first, dtype, unsigned), *others]
    if node.op in _CHAINS:
        parts[1] = dialect.cast(others[0], dtype, unsigned)
    if node.op is Ops.NEG:
        words = dialect.negative(parts[0], unsigned)
    else:
        words = _infix(dialect, node, parts)
    return dialect.cast(words, unsigned, dtype)


def _infix(dialect: Dialect, node: UOp, arguments: Arguments) -> Expression:
    op = node.op
    if op is Ops.CMPNE and node.src[0].dtype.is_float:
        return dialect.differ(*arguments)
    sign, binds = _INFIX[op]
    left, right = (binds, binds + 1) if op in _CHAINS else (UNARY, UNARY)
    if op in (Ops.FDIV, Ops.CDIV, Ops.CMOD, *COMPARE):
        left, right = (binds, binds + 1) if binds >= MUL else (binds + 1, binds + 1)
    words = paren(arguments[0], left)
    if op in (Ops.SHL, Ops.SHR):
        return f"{words} {sign} {dialect.shift(arguments[1], right)}", binds
    others = paren(arguments[1], right)
    if op is Ops.ADD and others.startswith("-"):
        sign, others = "-", others[1:]
    space = "" if op is Ops.MUL and node.dtype is dtypes.index else " "
    return f"{words}{space}{sign}{space}{others}", binds


def _on_bools(op: Ops, arguments: Arguments) -> Expression:
    if op is Ops.NOT:
        return f"!{paren(arguments[0], UNARY)}", UNARY
    if op in (Ops.CMPLT, Ops.CMPLE):
        sign, binds = ("&&", BOTH) if op is Ops.CMPLT else ("||", EITHER)
        return (f"!{paren(arguments[0], UNARY)} {sign} {paren(arguments[1], EQUAL)}", binds)
    sign, binds = _ON_BOOLS[op]
    a, b = (paren(argument, ADD) for argument in arguments)
    return f"{a} {sign} {b}", binds


def _narrowed(dialect: Dialect, op: Ops, dtype: DType, text: Expression) -> Expression:
    """Cast a result back to its type where that is narrower than int, in which C computes."""
    if not dtype.is_int or dtype.bits >= 32 or op not in _LEAVES_ITS_TYPE:
        return text
    return dialect.cast(text, dtypes.int32, dtype)


def _converted(
    dialect: Dialect, helpers: Helpers, op: Ops, source: DType, dtype: DType, value: Expression
) -> Expression:
    if source is dtype:
        return value
    if dtype.is_bool:
        zero = dialect.constant(0, source)
        if source.is_float:
            return dialect.differ(value, zero)
        return f"{paren(value, SHIFT)} != {zero[0]}", EQUAL
    if op is Ops.BITCAST and not source.is_bool:
        if source.is_float or dtype.is_float:
            return dialect.bitcast(value, source, dtype)
        return dialect.cast(value, source, dtype)
    if source.is_float and dtype.is_int:
        return helpers.saturate(source, dtype, value)
    return dialect.cast(value, source, dtype)


def _negative(dialect: Dialect, dtype: DType, arguments: Arguments) -> Expression:
    return dialect.negative(arguments[0], dtype)


def _inverse(dialect: Dialect, dtype: DType, arguments: Arguments) -> Expression:
    return f"~{paren(arguments[0], ATOM)}", UNARY


def _reciprocal(dialect: Dialect, dtype: DType, arguments: Arguments) -> Expression:
    return f"{dialect.constant(1.0, dtype)[0]} / {paren(arguments[0], UNARY)}", MUL


def _fma(dialect: Dialect, dtype: DType, arguments: Arguments) -> Expression:
    return dialect.multiply_add(dtype, arguments, (False, False, False))


_UNARIES: dict[Ops, Callable[[Dialect, DType, Arguments], Expression]] = {
    Ops.NEG: _negative,
    Ops.NOT: _inverse,
    Ops.RECIP: _reciprocal,
    Ops.FMA: _fma,
}

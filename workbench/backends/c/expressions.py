"""C expressions of the nodes of a kernel: operators, bools, lanes and operands.

Sections: Operands of C; Operators of C; Bools in C; Lanes in C.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from workbench.backends.c.helpers import Prelude, constant, lanes, mask_type, math_name, scalar_type
from workbench.backends.program.analysis import is_number, may_overflow
from workbench.backends.program.text import (
    ADD,
    AND,
    ATOM,
    BOTH,
    CHOICE,
    EITHER,
    EQUAL,
    LESS,
    LOOSE,
    MUL,
    OR,
    SHIFT,
    UNARY,
    XOR,
    Expression,
    call,
    paren,
    signed,
)
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.ir.node.ops import COMPARE, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import advice

# --------------------------------------------------------------------------------------------------
# Operands of C: the text of every computed value, in the form that its user needs.
#
# A text is a name, or an expression that stands where it is used. A value that is the same in every
# lane stays a scalar as long as an operator takes one beside a vector. A vector of bools is a mask:
# integers as wide as what was compared, 0 or -1 per lane.

_ZEROS = frozenset({"0", "0.0", "0.0f", "0u", "0l", "0ul"})
_TYPED = re.compile(r"\w+(\[[^\[\]]*\])?")


class COperands:
    """The text of the values of one kernel, by node."""

    def __init__(self, prelude: Prelude):
        self.prelude = prelude
        self.texts: dict[UOp, Expression] = {}
        self.mask_bits: dict[UOp, int] = {}

    # operands

    def text(self, node: UOp) -> Expression:
        """Return the expression of a value."""
        if node.op is Ops.CONST and node.dtype.count == 1:
            return signed(constant(node.arg, node.dtype))
        if node.op is Ops.AFTER:
            return self.text(node.src[0])
        if node.dtype.count > 1 and is_splat(node):
            return self.vector(node, node.dtype.count)
        if node.op is Ops.LANES:
            return self._lanes(node)
        if node not in self.texts:
            raise CompileError("render", f"{node!r} is used before it has a value")
        return self.texts[node]

    def vector(self, node: UOp, count: int) -> Expression:
        """Return a value as a vector of `count` lanes; unchanged where `count` is 1."""
        if count == 1 or not is_splat(node):
            return self.text(node)
        dtype = node.dtype.vec(count)
        if dtype.is_bool:
            return self.mask(node, 8, count)
        words = self.scalar_of(node)
        if is_constant(node) and words in _ZEROS:
            return f"({self.prelude.type(dtype)}){{0}}", ATOM
        return call(self.prelude.splat(dtype), words)

    def mask(self, node: UOp, bits: int, count: int) -> Expression:
        """Return a vector of bools as a mask of this width."""
        kind = self.prelude.mask(bits, count)
        if is_splat(node):
            words = self.scalar_of(node, UNARY)
            if words == "0":
                return f"({kind}){{0}}", ATOM
            return call(self.prelude.splat(mask_type(bits, count)), f"-{words}")
        text = self.text(node)
        if self.mask_bits[node] == bits:
            return text
        return call("__builtin_convertvector", text[0], kind)

    def mask_width(self, *nodes: UOp) -> int:
        """Return the width, in bits, at which several masks are best combined."""
        return max((self.mask_bits[n] for n in nodes if n in self.mask_bits), default=8)

    def _lanes(self, node: UOp) -> Expression:
        self.prelude.type(node.dtype if not node.dtype.is_bool else _bytes(node.dtype))
        if not node.dtype.is_bool:
            return lanes(node.arg, node.dtype), ATOM
        self.mask_bits[node] = 8
        return lanes([-bool(v) for v in node.arg], _bytes(node.dtype)), ATOM

    def scalar_of(self, node: UOp, tight: int = LOOSE) -> str:
        """Return the one value of all lanes, in the element's type, which a vector requires."""
        if is_constant(node):
            scalar = node if node.is_const else node.src[0]
            return constant(scalar.arg, node.dtype.scalar)
        inner = node.src[0]
        text = self.text(inner)
        small = inner.dtype.is_int and inner.dtype.bits < 32
        if small and not _TYPED.fullmatch(text[0]):
            return f"({scalar_type(inner.dtype)}){paren(text, UNARY)}"
        return paren(text, tight)

    def pair(self, a: UOp, b: UOp, left: int, right: int) -> tuple[str, str]:
        """Return the operands of an operator, each in parentheses if it binds less than `left`
        and `right`; beside a vector a scalar will do."""
        count = max(a.dtype.count, b.dtype.count)
        if count == 1:
            return paren(self.text(a), left), paren(self.text(b), right)
        if is_splat(b) and not is_splat(a):
            scalar = signed(self.scalar_of(b, right))
            return paren(self.vector(a, count), left), paren(scalar, right)
        if is_splat(a) and not is_splat(b):
            scalar = signed(self.scalar_of(a, left))
            return paren(scalar, left), paren(self.vector(b, count), right)
        return paren(self.vector(a, count), left), paren(self.vector(b, count), right)


def is_splat(node: UOp) -> bool:
    """Whether all lanes have one value that exists as a scalar."""
    return node.op in (Ops.CONST, Ops.BROADCAST)


def is_constant(node: UOp) -> bool:
    """Whether a value is one constant, in every lane."""
    return node.is_const or node.op is Ops.BROADCAST and node.src[0].is_const


def _bytes(dtype: DType) -> DType:
    return mask_type(8, dtype.count)


# --------------------------------------------------------------------------------------------------
# Operators of C: an elementwise node as an expression over its operands, scalars and vectors alike.
#
# C computes types narrower than int in int, so such a result is cast back; operations without an
# operator in C (a maximum, a saturating cast) are functions of the prelude. The section on bools
# has results that are bools, and operations on masks.

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


# --------------------------------------------------------------------------------------------------
# Bools in C: `_Bool` for scalars, and masks of 0 or -1 for vectors.
#
# `&&` on bools, `&` on masks: a mask chooses between vectors by bit operations, so it is as wide as
# the elements it chooses between. The width of each mask is in `COperands.mask_bits`.

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


# --------------------------------------------------------------------------------------------------
# Lanes in C: building vectors of scalars, extracting lanes and combining them.


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

"""Values as C expressions: text, and how tightly it binds.

`Values` knows the text of every value made so far: a name, or an expression that stands
where it is used. Scalars and vectors share most operators. A value that is the same in every
lane stays a scalar as long as an operator takes one beside a vector.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from workbench.backends.render.c_helpers import Prelude
from workbench.backends.render.c_types import (
    constant,
    lanes,
    mask_type,
    math_name,
    scalar_type,
)
from workbench.backends.render.facts import is_number, may_overflow
from workbench.dtypes import DType, dtypes
from workbench.errors import CompileError
from workbench.ir.ops import COMPARE, Ops
from workbench.ir.uop import UOp

Expression = tuple[str, int]
"""An expression and how tightly it binds."""

ATOM, UNARY, MUL, ADD, SHIFT, LESS, EQUAL, AND, XOR, OR, BOTH, EITHER, CHOICE, LOOSE = (
    range(15, 1, -1)
)
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
    Ops.CMPLT: ("<", LESS), Ops.CMPLE: ("<=", LESS),
}
_ON_MASKS: dict[Ops, tuple[str, int]] = {
    Ops.ADD: ("{a} | {b}", OR), Ops.OR: ("{a} | {b}", OR), Ops.MAX: ("{a} | {b}", OR),
    Ops.MUL: ("{a} & {b}", AND), Ops.AND: ("{a} & {b}", AND), Ops.MIN: ("{a} & {b}", AND),
    Ops.XOR: ("{a} ^ {b}", XOR), Ops.CMPNE: ("{a} ^ {b}", XOR),
    Ops.CMPEQ: ("~({a} ^ {b})", UNARY), Ops.CMPLT: ("~{a} & {b}", AND),
    Ops.CMPLE: ("~{a} | {b}", OR),
}
_LEAVES_ITS_TYPE = (Ops.ADD, Ops.MUL, Ops.SHL, Ops.CDIV, Ops.FMA)
_CHAINS = (Ops.ADD, Ops.MUL)  # a + b + c needs no parentheses; a shift or a bit op gets them
# fmt: on
_ZEROS = frozenset({"0", "0.0", "0.0f", "0u", "0l", "0ul"})
_TYPED = re.compile(r"\w+(\[[^\[\]]*\])?")


def paren(text: Expression, tight: int) -> str:
    """Return the words of an expression, in parentheses if it binds less than `tight`."""
    words, binds = text
    return words if binds >= tight else f"({words})"


def signed(words: str) -> Expression:
    """Return a constant as an expression: a minus binds less than a name."""
    return words, UNARY if words.startswith("-") else ATOM


def call(name: str, *arguments: str) -> Expression:
    return f"{name}({', '.join(arguments)})", ATOM


class Values:
    """The text of the values of one kernel, by node."""

    def __init__(self, prelude: Prelude):
        self.prelude = prelude
        self.texts: dict[UOp, Expression] = {}
        self.mask_bits: dict[UOp, int] = {}

    # operands

    def text(self, node: UOp) -> Expression:
        """Return the expression that stands for a value."""
        if node.op is Ops.CONST and node.dtype.count == 1:
            return signed(constant(node.arg, node.dtype))
        if node.op is Ops.AFTER:
            return self.text(node.src[0])
        if node.dtype.count > 1 and _is_splat(node):
            return self.vector(node, node.dtype.count)
        if node.op is Ops.LANES:
            return self._lanes(node)
        if node not in self.texts:
            raise CompileError("render", f"{node!r} is used before it has a value")
        return self.texts[node]

    def vector(self, node: UOp, count: int) -> Expression:
        """Return a value as a vector of `count` lanes, whatever it is (1: as it is)."""
        if count == 1 or not _is_splat(node):
            return self.text(node)
        dtype = node.dtype.vec(count)
        if dtype.is_bool:
            return self.mask(node, 8, count)
        words = self._scalar_of(node)
        if _is_constant(node) and words in _ZEROS:
            return f"({self.prelude.type(dtype)}){{0}}", ATOM
        return call(self.prelude.splat(dtype), words)

    def mask(self, node: UOp, bits: int, count: int) -> Expression:
        """Return a vector of bools as a mask of this width."""
        kind = self.prelude.mask(bits, count)
        if _is_splat(node):
            words = self._scalar_of(node, UNARY)
            if words == "0":
                return f"({kind}){{0}}", ATOM
            return call(self.prelude.splat(mask_type(bits, count)), f"-{words}")
        text = self.text(node)
        if self.mask_bits[node] == bits:
            return text
        return call("__builtin_convertvector", text[0], kind)

    def mask_width(self, *nodes: UOp) -> int:
        """Return the bits at which masks that come together are best combined."""
        return max((self.mask_bits[n] for n in nodes if n in self.mask_bits), default=8)

    def _lanes(self, node: UOp) -> Expression:
        self.prelude.type(node.dtype if not node.dtype.is_bool else _bytes(node.dtype))
        if not node.dtype.is_bool:
            return lanes(node.arg, node.dtype), ATOM
        self.mask_bits[node] = 8
        return lanes([-bool(v) for v in node.arg], _bytes(node.dtype)), ATOM

    def _scalar_of(self, node: UOp, tight: int = LOOSE) -> str:
        """Return the one value of all lanes, in the element's type: a vector insists on it."""
        if _is_constant(node):
            held = node if node.is_const else node.src[0]
            return constant(held.arg, node.dtype.scalar)
        inner = node.src[0]
        text = self.text(inner)
        small = inner.dtype.is_int and inner.dtype.bits < 32
        if small and not _TYPED.fullmatch(text[0]):
            return f"({scalar_type(inner.dtype)}){paren(text, UNARY)}"
        return paren(text, tight)

    def _pair(self, a: UOp, b: UOp, left: int, right: int) -> tuple[str, str]:
        """Return the operands of an operator; beside a vector a scalar will do."""
        count = max(a.dtype.count, b.dtype.count)
        if count == 1:
            return paren(self.text(a), left), paren(self.text(b), right)
        if _is_splat(b) and not _is_splat(a):
            scalar = signed(self._scalar_of(b, right))
            return paren(self.vector(a, count), left), paren(scalar, right)
        if _is_splat(a) and not _is_splat(b):
            scalar = signed(self._scalar_of(a, left))
            return paren(scalar, left), paren(self.vector(b, count), right)
        return paren(self.vector(a, count), left), paren(self.vector(b, count), right)

    # operators

    def elementwise(self, node: UOp) -> Expression:
        """Return an elementwise node as an expression over its operands."""
        count = max(s.dtype.count for s in node.src)
        if count > 1 and any(s.dtype.is_bool for s in node.src) or node.dtype.is_bool:
            return self._about_bools(node, count)
        return self._arithmetic(node, count)

    def product(self, node: UOp, tight: int = MUL) -> Expression:
        """Return the product in an FMA."""
        a, b = self._pair(node.src[0], node.src[1], MUL, UNARY)
        both_scalar = all(_is_splat(s) for s in node.src[:2])
        if node.dtype.count > 1 and both_scalar:
            count = node.dtype.count
            a = paren(self.vector(node.src[0], count), MUL)
        return f"{a} * {b}", MUL

    def _arithmetic(self, node: UOp, count: int) -> Expression:
        op, dtype = node.op, node.dtype
        special = _SPECIAL.get(op)
        if special is not None:
            return special(self, node, count)
        if op in (Ops.CDIV, Ops.CMOD) and may_overflow(node):
            return self._called(self.prelude.divide(op, dtype), node, count)
        if op not in _INFIX:
            raise CompileError(
                "render",
                f"C has no operator for {op.name}",
                hint="a rule of lowering should have taken it apart",
            )
        return self._narrowed(node, self._infix(node, *_INFIX[op]))

    def _infix(self, node: UOp, sign: str, binds: int) -> Expression:
        left, right = (binds, binds + 1) if node.op in _CHAINS else (UNARY, UNARY)
        if node.op in (Ops.FDIV, Ops.CDIV, Ops.CMOD, *COMPARE):
            left, right = (binds, binds + 1) if binds >= MUL else (binds + 1, binds + 1)
        a, b = node.src
        if node.op is Ops.ADD and b.op is Ops.NEG and not self._is_named(b):
            sign, b = "-", b.src[0]
        words, others = self._pair(a, b, left, right)
        if sign == "+" and others.startswith("-") and _has_opposite(b):
            sign, others = "-", others[1:]
        space = "" if node.op is Ops.MUL and node.dtype is dtypes.index else " "
        return f"{words}{space}{sign}{space}{others}", binds

    def _narrowed(self, node: UOp, text: Expression) -> Expression:
        """Bring a result back to a type narrower than int, in which C computes."""
        dtype = node.dtype
        if dtype.count > 1 or not dtype.is_int or dtype.bits >= 32:
            return text
        if node.op not in (*_LEAVES_ITS_TYPE, Ops.NEG, Ops.NOT):
            return text
        return f"({self.prelude.type(dtype)}){paren(text, UNARY)}", UNARY

    def _is_named(self, node: UOp) -> bool:
        return node not in self.texts or self.texts[node][0].isidentifier()

    def _called(self, name: str, node: UOp, count: int) -> Expression:
        return call(name, *(self.vector(s, count)[0] for s in node.src))

    def _negative(self, node: UOp, count: int) -> Expression:
        sign = "-" if node.op is Ops.NEG else "~"
        inner = paren(self.vector(node.src[0], count), ATOM)
        return self._narrowed(node, (sign + inner, UNARY))

    def _reciprocal(self, node: UOp, count: int) -> Expression:
        one = constant(1.0, node.dtype.scalar)
        return f"{one} / {paren(self.vector(node.src[0], count), UNARY)}", MUL

    def _function(self, node: UOp, count: int) -> Expression:
        name = node.op.name.lower()
        if count > 1:
            return self._called(self.prelude.each(name, node.dtype), node, count)
        return call(math_name(name, node.dtype), self.text(node.src[0])[0])

    def _fma(self, node: UOp, count: int) -> Expression:
        tail = node.src[2]
        words = self.product(node)[0]
        if _is_splat(tail):
            after = signed(self._scalar_of(tail, UNARY))
        else:
            after = self.text(tail)
        sign, rest = "+", paren(after, MUL)
        if rest.startswith("-") and (_has_opposite(tail) or tail.op is Ops.NEG):
            sign, rest = "-", rest[1:]
        return self._narrowed(node, (f"{words} {sign} {rest}", ADD))

    def _extreme(self, node: UOp, count: int) -> Expression:
        """`a > b ? a : b` is one instruction, if a is known not to be NaN: so a constant
        goes first."""
        a, b = node.src
        if node.dtype.is_float and is_number(b) and not is_number(a):
            a, b = b, a
        name = self.prelude.extreme(node.op, node.dtype)
        return call(name, self.vector(a, count)[0], self.vector(b, count)[0])

    def _where(self, node: UOp, count: int) -> Expression:
        condition, yes, no = node.src
        a, b = self.vector(yes, count), self.vector(no, count)
        if count == 1:
            test = paren(self.text(condition), EITHER)
            return f"{test} ? {paren(a, EITHER)} : {paren(b, EITHER)}", CHOICE
        if condition.dtype.count == 1:
            test = self.text(condition)[0]
            return call(self.prelude.choose(node.dtype), test, a[0], b[0])
        mask = self.mask(condition, node.dtype.bits, count)
        return call(self.prelude.select(node.dtype), mask[0], a[0], b[0])

    # casts

    def _cast(self, node: UOp, count: int) -> Expression:
        source, dtype = node.src[0].dtype, node.dtype
        value = self.vector(node.src[0], count)
        kind = self.prelude.type(dtype)
        if source.is_float and not dtype.is_float:
            return call(self.prelude.saturate(source, dtype), value[0])
        if count == 1:
            return f"({kind}){paren(value, UNARY)}", UNARY
        if self.prelude.type(source) == kind:
            return value
        return call("__builtin_convertvector", value[0], kind)

    def _bitcast(self, node: UOp, count: int) -> Expression:
        source, dtype = node.src[0].dtype, node.dtype
        if source.is_float == dtype.is_float or source.is_bool or count > 1:
            kind = self.prelude.type(dtype)
            return f"({kind}){paren(self.vector(node.src[0], count), UNARY)}", UNARY
        return call(self.prelude.bits(source, dtype), self.text(node.src[0])[0])

    # bools

    def _about_bools(self, node: UOp, count: int) -> Expression:
        """A result of bools, or a vector operation on them."""
        if node.dtype.is_bool:
            return self._bool(node) if count == 1 else self._mask(node, count)
        if node.op is Ops.WHERE:
            return self._where(node, count)
        bits = node.dtype.bits  # a CAST or BITCAST of a mask
        mask = paren(self.mask(node.src[0], bits, count), ATOM)
        kind = self.prelude.type(node.dtype)
        if node.dtype.is_float:
            return call("__builtin_convertvector", f"-{mask}", kind)
        return f"({kind}){mask} & 1", AND

    def _bool(self, node: UOp) -> Expression:
        op, source = node.op, node.src[0]
        if op in (Ops.CAST, Ops.BITCAST):
            zero = constant(0, source.dtype)
            return f"{paren(self.text(source), SHIFT)} != {zero}", EQUAL
        if op is Ops.NOT:
            return f"!{paren(self.text(source), UNARY)}", UNARY
        if op is Ops.WHERE:
            return self._where(node, 1)
        if op is Ops.FMA:
            a, b, c = (paren(self.text(s), OR) for s in node.src)
            return f"({a} && {b}) || {c}", EITHER
        table = _ON_BOOLS if source.dtype.is_bool else _INFIX
        sign, binds = table[op]
        tight = (ADD, ADD)
        if sign in ("&&", "||"):  # && may stand beside &&; || gets parentheses
            tight = (BOTH, BOTH) if sign == "&&" else (OR, OR)
        a, b = (paren(self.text(s), t) for s, t in zip(node.src, tight, strict=True))
        return f"{a} {sign} {b}", binds

    def _mask(self, node: UOp, count: int) -> Expression:
        op, source = node.op, node.src[0]
        if op is not Ops.WHERE and not source.dtype.is_bool:
            self.mask_bits[node] = source.dtype.bits
            if op in (Ops.CAST, Ops.BITCAST):
                zero = constant(0, source.dtype)
                return f"{paren(self.vector(source, count), SHIFT)} != {zero}", EQUAL
            sign, binds = _INFIX[op]
            self.prelude.mask(source.dtype.bits, count)
            a, b = self._pair(node.src[0], node.src[1], SHIFT, SHIFT)
            return f"{a} {sign} {b}", binds
        bits = self.mask_bits[node] = self.mask_width(*node.src)
        if op in (Ops.CAST, Ops.BITCAST):
            return self.mask(source, bits, count)
        if op is Ops.NOT:
            return f"~{paren(self.mask(source, bits, count), ATOM)}", UNARY
        if op is Ops.WHERE:
            return self._where_masks(node, bits, count)
        if op is Ops.FMA:
            a, b, c = (paren(self.mask(s, bits, count), ATOM) for s in node.src)
            return f"({a} & {b}) | {c}", OR
        a, b = (paren(self.mask(s, bits, count), ATOM) for s in node.src)
        words, binds = _ON_MASKS[op]
        return words.format(a=a, b=b), binds

    def _where_masks(self, node: UOp, bits: int, count: int) -> Expression:
        condition, yes, no = node.src
        a, b = (paren(self.mask(s, bits, count), ATOM) for s in (yes, no))
        if condition.dtype.count == 1:
            name = self.prelude.choose(mask_type(bits, count))
            return call(name, self.text(condition)[0], a, b)
        m = paren(self.mask(condition, bits, count), ATOM)
        return f"({m} & {a}) | (~{m} & {b})", OR


def _is_splat(node: UOp) -> bool:
    """Whether all lanes hold one value, which is at hand as a scalar."""
    return node.op in (Ops.CONST, Ops.BROADCAST)


def _has_opposite(node: UOp) -> bool:
    """Whether a node is a constant whose negative its dtype holds: int8 has -128 and no 128."""
    if not _is_constant(node):
        return False
    held = node if node.is_const else node.src[0]
    return node.dtype.is_float or bool(held.arg != node.dtype.min)


def _is_constant(node: UOp) -> bool:
    return node.is_const or node.op is Ops.BROADCAST and node.src[0].is_const


def _bytes(dtype: DType) -> DType:
    return mask_type(8, dtype.count)


_SPECIAL: dict[Ops, Callable[[Values, UOp, int], Expression]] = {
    Ops.NEG: Values._negative,
    Ops.NOT: Values._negative,
    Ops.RECIP: Values._reciprocal,
    Ops.SQRT: Values._function,
    Ops.TRUNC: Values._function,
    Ops.FMA: Values._fma,
    Ops.MAX: Values._extreme,
    Ops.MIN: Values._extreme,
    Ops.WHERE: Values._where,
    Ops.CAST: Values._cast,
    Ops.BITCAST: Values._bitcast,
}

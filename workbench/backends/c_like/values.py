"""Values of a kernel as expressions of a dialect.

Sections: Operators on scalars, and on vectors where a language has them; Values, whole or lane by
lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from workbench.backends.c_like.dialect import Dialect, FragmentText
from workbench.backends.c_like.helpers import Helpers
from workbench.backends.program.analysis import may_overflow, wrapping_dtype
from workbench.backends.program.text import (
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
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.ir.node.ops import COMPARE, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import advice

# --------------------------------------------------------------------------------------------------
# Operators on scalars, and on vectors where a language has them: an elementwise node as an
# expression of its operands.

Arguments = Sequence[Expression]
# fmt: off
INFIX: dict[Ops, tuple[str, int]] = {
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


def operation(
    dialect: Dialect, helpers: Helpers, node: UOp, arguments: Arguments, dtype: DType
) -> Expression:
    """Return an elementwise node as an expression of its operands, `arguments`. `dtype` is the
    dtype of one lane, or of the vector where the language has operators for vectors.

    Errors: CompileError for an op that the language lacks, LanguageError for a dtype.
    """
    op, source = node.op, node.src[0].dtype.scalar.vec(dtype.count)
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
    has_own_bits = dtype.kind != "index" or dialect.wide
    if op in (Ops.CDIV, Ops.CMOD) and has_own_bits and may_overflow(node):
        return helpers.quotient(op, dtype, *arguments)
    if op is Ops.CMOD and any(s.vmin < 0 for s in node.src):
        return dialect.rest(arguments[0], arguments[1], dtype)
    unsigned = None if dialect.wraps else wrapping_dtype(node)
    if unsigned is not None:
        return _wrapped(dialect, node, unsigned, arguments)
    if op in INFIX:
        return _narrowed(dialect, op, dtype, _infix(dialect, node, arguments))
    if op in PREFIX:
        return _narrowed(dialect, op, dtype, PREFIX[op](dialect, dtype, arguments))
    if op in dialect.functions:
        return dialect.apply(op, dtype, arguments)
    name = dialect.language.name
    raise CompileError("render", f"{name} has no operator for {op.name}", hint=advice())


def _wrapped(dialect: Dialect, node: UOp, unsigned: DType, arguments: Arguments) -> Expression:
    """Compute in the unsigned type: an overflow of the signed one is undefined."""
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
    sign, binds = INFIX[op]
    left, right = (binds, binds + 1) if op in _CHAINS else (UNARY, UNARY)
    if op in (Ops.FDIV, Ops.CDIV, Ops.CMOD, *COMPARE):
        left, right = (binds, binds + 1) if binds >= MUL else (ADD, ADD)
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
    tight = {BOTH: BOTH, EITHER: OR}.get(binds, ADD)  # && may stand beside &&
    a, b = (paren(argument, tight) for argument in arguments)
    return f"{a} {sign} {b}", binds


def _narrowed(dialect: Dialect, op: Ops, dtype: DType, text: Expression) -> Expression:
    """Cast a result back to a type narrower than int: C computes it as int."""
    if not dtype.is_int or dtype.bits >= 32 or dtype.count > 1 or op not in _LEAVES_ITS_TYPE:
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


PREFIX: dict[Ops, Callable[[Dialect, DType, Arguments], Expression]] = {
    Ops.NEG: _negative,
    Ops.NOT: _inverse,
    Ops.RECIP: _reciprocal,
    Ops.FMA: _fma,
}


# --------------------------------------------------------------------------------------------------
# Values, whole or lane by lane.
#
# A work-item computes one lane at a time; vectors are for memory and for registers. So a vector is
# either one expression (a load, a register, sums and products of floats) or an expression for each
# of its lanes. Each can be written as the other: `v.x`, and `(float4)(a, b, c, d)`. The vectors of
# C have every operator: `c/vectors.py` writes them whole.

Lanes = tuple[Expression, ...]
_VECTOR_INFIX = {Ops.ADD: ("+", ADD), Ops.MUL: ("*", MUL), Ops.FDIV: ("/", MUL)}


class Values:
    """The expressions of the values of one kernel, by node. `define` gives a value a name where it
    would be written several times."""

    loads_inline = False
    """Whether the load of a vector may stand where it is used."""

    def __init__(
        self,
        dialect: Dialect,
        helpers: Helpers,
        define: Callable[[UOp], None],
        unrounded: Set[UOp] = frozenset(),
    ):
        """`unrounded` has casts that are not written, since the stores that read them round."""
        self.dialect, self.helpers, self.unrounded = dialect, helpers, unrounded
        self._define = define
        self.wholes: dict[UOp, Expression] = {}
        self.parts: dict[UOp, Lanes] = {}

    def type(self, dtype: DType) -> str:
        """Return the type of values of a dtype."""
        return self.dialect.scalar(dtype) if dtype.count == 1 else self.dialect.vector(dtype)

    def type_of(self, node: UOp) -> str:
        """Return the type of a value."""
        return self.type(node.dtype)

    def is_split(self, dtype: DType) -> bool:
        """Whether a vector is a scalar per lane: it has bools, or no type in the language."""
        has_vector = not dtype.is_bool and self.dialect.has_vector(dtype)
        return dtype.count > 1 and not has_vector

    def can_update(self, dtype: DType) -> bool:
        """Whether the language has `+=` and `*=` for values of a dtype."""
        is_number = dtype.count == 1 or dtype.is_float
        return is_number and self.dialect.has_operators(dtype)

    # reading

    def scalar(self, node: UOp) -> Expression:
        """Return the expression of a scalar."""
        if node.op is Ops.CONST:
            return self.dialect.constant(node.arg, node.dtype)
        if node.op is Ops.AFTER:
            return self.scalar(node.src[0])
        if node not in self.wholes:
            raise CompileError("render", f"{node!r} is used before it has a value")
        return self.wholes[node]

    def lane(self, node: UOp, i: int) -> Expression:
        """Return one lane of a value; a scalar is the same in every lane."""
        if node.op is Ops.AFTER:
            return self.lane(node.src[0], i)
        if node.op is Ops.BROADCAST:
            return self.scalar(node.src[0])
        if node.op is Ops.LANES:
            return self.dialect.constant(node.arg[i], node.dtype)
        if node.dtype.count == 1 or node.op is Ops.CONST:
            return self.scalar(node)
        if node in self.parts:
            return self.parts[node][i]
        if not self.wholes.get(node, ("", 0))[0].isidentifier():
            self._define(node)  # else it would be computed for each lane
        words = self.whole(node)[0]
        return self.dialect.component(words, i, node.dtype.count), ATOM

    def whole(self, node: UOp) -> Expression:
        """Return a value as one expression."""
        if node.op is Ops.AFTER:
            return self.whole(node.src[0])
        if node.dtype.count == 1:
            return self.scalar(node)
        if node in self.wholes:
            return self.wholes[node]
        if node in self.parts or node.op in (Ops.BROADCAST, Ops.LANES, Ops.CONST):
            lanes = [self.lane(node, i) for i in range(node.dtype.count)]
            return self.dialect.build(node.dtype, lanes)
        raise CompileError("render", f"{node!r} is used before it has a value")

    def stored(self, node: UOp, count: int) -> Expression:
        """Return a value as a register of `count` lanes holds it."""
        if node.dtype.count == count:
            return self.whole(node)
        return self.dialect.build(node.dtype.vec(count), [self.scalar(node)] * count)

    # computing

    def compute(self, node: UOp) -> Expression | Lanes:
        """Return what a node computes: an expression, or one for each lane."""
        count = node.dtype.count
        if node.op is Ops.EXTRACT:
            return self.lane(node.src[0], node.arg)
        if node.op is Ops.HREDUCE:
            return self._combined(node)
        if node.op is Ops.WMMA:
            tiles = [self._tile(source) for source in node.src]
            return self.helpers.multiply(node.arg, tiles)
        if node in self.unrounded:
            return self.parts.get(node.src[0]) or self.whole(node.src[0])
        if count == 1:
            return self.operation(node, [self.scalar(s) for s in node.src], node.dtype)
        if node.op is Ops.STACK:
            return tuple(self.scalar(s) for s in node.src)
        if node.op is Ops.SHUFFLE:
            a, b = node.src
            width = a.dtype.count
            places = [(a, i) if i < width else (b, i - width) for i in node.arg]
            return tuple(self.lane(source, i) for source, i in places)
        if self._has_operator(node):
            return self._vector_operation(node)
        converted = self._converted(node)
        if converted is not None:
            return converted
        return tuple(
            self.operation(node, [self.lane(s, i) for s in node.src], node.dtype.scalar)
            for i in range(count)
        )

    def _converted(self, node: UOp) -> Expression | None:
        """Return a vector of floats as another one, where the language converts whole vectors."""
        (source, *_), dtype = node.src, node.dtype
        is_of_floats = node.op is Ops.CAST and source.dtype.is_float and dtype.is_float
        if not is_of_floats or source in self.parts:
            return None
        return self.dialect.convert(self.whole(source), source.dtype, dtype)

    def _tile(self, node: UOp) -> FragmentText:
        def lanes() -> list[str]:
            return [self.lane(node, i)[0] for i in range(node.dtype.count)]

        is_packed = node.op is Ops.EXCHANGE
        return FragmentText(node.dtype, lambda: self.whole(node)[0], lanes, is_packed)

    def operation(self, node: UOp, arguments: Arguments, dtype: DType) -> Expression:
        """Return an elementwise node of these operands."""
        return operation(self.dialect, self.helpers, node, arguments, dtype)

    def _combined(self, node: UOp) -> Expression:
        """Combine the lanes of a vector: its halves with each other, until one lane is left."""
        source = node.src[0]
        op, dtype = node.combines, node.dtype
        lanes = [self.lane(source, i) for i in range(source.dtype.count)]
        while len(lanes) > 1:
            half = len(lanes) // 2
            pairs = zip(lanes[:half], lanes[half:], strict=True)
            lanes = [self.operation(pair_of(op, dtype), [a, b], dtype) for a, b in pairs]
        return lanes[0]

    # vectors of floats have operators

    def _has_operator(self, node: UOp) -> bool:
        has_sign = node.op in _VECTOR_INFIX or node.op in (Ops.FMA, Ops.NEG)
        return has_sign and node.dtype.is_float and not any(s in self.parts for s in node.src)

    def _vector_operation(self, node: UOp) -> Expression:
        if node.op is Ops.NEG:
            self.dialect.operator("-", node.dtype, False, True)
            return f"-{paren(self.whole(node.src[0]), UNARY)}", UNARY
        if node.op is Ops.FMA:
            splats = [is_splat(s) for s in node.src]
            operands = [self._operand(s) for s in node.src]
            if all(splats):
                operands[0], splats[0] = self.whole(node.src[0]), False
            return self.dialect.multiply_add(node.dtype, operands, splats)
        sign, binds = _VECTOR_INFIX[node.op]
        a, b = node.src
        left, right = self._operand(a), paren(self._operand(b), binds + 1)
        left_is_vector = not is_splat(a) or is_splat(b)
        words = paren(self.whole(a) if left_is_vector else left, binds)
        if node.op is Ops.ADD and right.startswith("-"):
            sign, right = "-", right[1:]
        self.dialect.operator(sign, node.dtype, left_is_vector, not is_splat(b))
        return f"{words} {sign} {right}", binds

    def _operand(self, node: UOp) -> Expression:
        """Return an operand of a vector operation: a scalar where all lanes have one value."""
        if node.op is Ops.BROADCAST:
            return self.scalar(node.src[0])
        if node.op is Ops.CONST:
            return self.scalar(node)
        return self.whole(node)


def is_splat(node: UOp) -> bool:
    """Whether all lanes have one value that exists as a scalar."""
    return node.op in (Ops.CONST, Ops.BROADCAST) or node.dtype.count == 1


def pair_of(op: Ops, dtype: DType) -> UOp:
    """Return a node that combines two unknown values."""
    a, b = (UOp(Ops.REG, dtype, (), (name, 0)) for name in "ab")
    return UOp(op, dtype, (a, b))

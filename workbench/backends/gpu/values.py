"""Values as expressions of a dialect: scalars, and vectors, whole or lane by lane.

A work-item computes one lane at a time; vectors are for memory and for registers. So a vector is
either one expression (a load, a register, sums and products of floats) or an expression for each of
its lanes. Each form gives the other: `v.x`, and `(float4)(a, b, c, d)`.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from workbench.backends.gpu.dialect import Dialect, FragmentText
from workbench.backends.gpu.helpers import Helpers
from workbench.backends.gpu.scalars import scalar_operation
from workbench.backends.program.expression import ADD, ATOM, MUL, UNARY, Expression, paren
from workbench.base.dtypes import DType
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Lanes = tuple[Expression, ...]
_INFIX = {Ops.ADD: ("+", ADD), Ops.MUL: ("*", MUL), Ops.FDIV: ("/", MUL)}


class Values:
    """The expressions of the values of one kernel, by node. `define` gives a value a name where it
    would be written several times."""

    def __init__(
        self,
        dialect: Dialect,
        helpers: Helpers,
        define: Callable[[UOp], None],
        unrounded: Set[UOp] = frozenset(),
    ):
        """`unrounded` has the casts that are left to the stores that read them."""
        self.dialect, self.helpers, self.unrounded = dialect, helpers, unrounded
        self._define = define
        self.wholes: dict[UOp, Expression] = {}
        self.parts: dict[UOp, Lanes] = {}

    def type(self, dtype: DType) -> str:
        """Return the type of a value."""
        return self.dialect.scalar(dtype) if dtype.count == 1 else self.dialect.vector(dtype)

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
        if node.op is Ops.BROADCAST:
            return self.scalar(node.src[0])
        if node.op is Ops.LANES:
            return self.dialect.constant(node.arg[i], node.dtype)
        if node.dtype.count == 1 or node.op is Ops.CONST:
            return self.scalar(node)
        if node in self.parts:
            return self.parts[node][i]
        if not self.wholes.get(node, ("", 0))[0].isidentifier():
            self._define(node)  # it would be computed for each lane
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
            return self._operation(node, [self.scalar(s) for s in node.src])
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
            self._operation(node, [self.lane(s, i) for s in node.src]) for i in range(count)
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

    def _operation(self, node: UOp, arguments: list[Expression]) -> Expression:
        return scalar_operation(self.dialect, self.helpers, node, arguments)

    def _combined(self, node: UOp) -> Expression:
        """The lanes of a vector combined: its halves with each other, until one lane is left."""
        source = node.src[0]
        op, dtype = node.combines, node.dtype
        lanes = [self.lane(source, i) for i in range(source.dtype.count)]
        while len(lanes) > 1:
            half = len(lanes) // 2
            pairs = zip(lanes[:half], lanes[half:], strict=True)
            lanes = [
                scalar_operation(self.dialect, self.helpers, pair_of(op, dtype), [a, b])
                for a, b in pairs
            ]
        return lanes[0]

    # vectors of floats have operators

    def _has_operator(self, node: UOp) -> bool:
        has_sign = node.op in _INFIX or node.op in (Ops.FMA, Ops.NEG)
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
        sign, binds = _INFIX[node.op]
        a, b = node.src
        left, right = self._operand(a), paren(self._operand(b), binds + 1)
        left_is_vector = not is_splat(a) or is_splat(b)
        words = paren(self.whole(a) if left_is_vector else left, binds)
        if node.op is Ops.ADD and right.startswith("-"):
            sign, right = "-", right[1:]
        self.dialect.operator(sign, node.dtype, left_is_vector, not is_splat(b))
        return f"{words} {sign} {right}", binds

    def _operand(self, node: UOp) -> Expression:
        """Return a value beside a vector, where a scalar will do for all lanes."""
        if node.op is Ops.BROADCAST:
            return self.scalar(node.src[0])
        if node.op is Ops.CONST:
            return self.scalar(node)
        return self.whole(node)


def is_splat(node: UOp) -> bool:
    """Whether all lanes have one value that exists as a scalar."""
    return node.op in (Ops.CONST, Ops.BROADCAST) or node.dtype.count == 1


def pair_of(op: Ops, dtype: DType) -> UOp:
    """Return a node that combines two values that are not known."""
    a, b = (UOp(Ops.REG, dtype, (), (name, 0)) for name in "ab")
    return UOp(op, dtype, (a, b))

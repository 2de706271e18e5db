"""Operands of C: the text of every computed value, in the form that its user needs.

A text is a name, or an expression that stands where it is used. A value that is the same in
every lane stays a scalar as long as an operator takes one beside a vector. A vector of bools
is a mask: integers as wide as what was compared, 0 or -1 per lane.
"""

from __future__ import annotations

import re

from workbench.backends.c.expressions.helpers import Prelude
from workbench.backends.c.expressions.types import constant, lanes, mask_type, scalar_type
from workbench.backends.program.expression import (
    ATOM,
    LOOSE,
    UNARY,
    Expression,
    call,
    paren,
    signed,
)
from workbench.base.dtypes import DType
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

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

"""Vectors of C as whole expressions, since they have every operator; a vector of bools is a mask.

An operand that is the same in every lane stays a scalar where the other operand is a vector. A mask
has an integer per lane, 0 or -1, as wide as the compared values. It selects between vectors by bit
operations, and is first converted to the width of the vectors' elements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from workbench.backends.c.helpers import VectorHelpers, mask_type
from workbench.backends.c_like.storage import WorkItemMemory, of_all_lanes
from workbench.backends.c_like.values import INFIX, Lanes, Values, is_splat
from workbench.backends.program.analysis import is_number, may_overflow
from workbench.backends.program.text import (
    AND,
    ATOM,
    EQUAL,
    OR,
    SHIFT,
    UNARY,
    XOR,
    Expression,
    call,
    paren,
)
from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_ZEROS = frozenset({"0", "0.0", "0.0f", "0u", "0l", "0ul"})
_TYPED = re.compile(r"\w+(\[[^\[\]]*\])?")
# fmt: off
_ON_MASKS: dict[Ops, tuple[str, int]] = {
    Ops.ADD: ("{a} | {b}", OR), Ops.OR: ("{a} | {b}", OR), Ops.MAX: ("{a} | {b}", OR),
    Ops.MUL: ("{a} & {b}", AND), Ops.AND: ("{a} & {b}", AND), Ops.MIN: ("{a} & {b}", AND),
    Ops.XOR: ("{a} ^ {b}", XOR), Ops.CMPNE: ("{a} ^ {b}", XOR),
    Ops.CMPEQ: ("~({a} ^ {b})", UNARY), Ops.CMPLT: ("~{a} & {b}", AND),
    Ops.CMPLE: ("~{a} | {b}", OR),
}
# fmt: on


class VectorValues(Values):
    """The expressions of the values of one kernel. `mask_bits` has the bits per lane of masks; a
    mask that is not in it has 8."""

    helpers: VectorHelpers
    loads_inline = True

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.mask_bits: dict[UOp, int] = {}

    def type_of(self, node: UOp) -> str:
        dtype = node.dtype
        if dtype.is_bool and dtype.count > 1:
            return self.helpers.mask(self.mask_bits.get(node, 8), dtype.count)
        return self.type(dtype)

    def is_split(self, dtype: DType) -> bool:
        return False

    def can_update(self, dtype: DType) -> bool:
        return True

    # reading

    def whole(self, node: UOp) -> Expression:
        count = node.dtype.count
        if count == 1 or node.op not in (Ops.LANES, Ops.BROADCAST, Ops.CONST):
            return super().whole(node)
        if node.op is not Ops.LANES:
            return self.vector(node, count)
        if not node.dtype.is_bool:
            return super().whole(node)
        dtype = mask_type(8, count)
        lanes = [self.dialect.constant(-bool(value), dtype) for value in node.arg]
        return self.dialect.build(dtype, lanes)

    def vector(self, node: UOp, count: int) -> Expression:
        if count == 1 or not is_splat(node):
            return self.whole(node)
        dtype = node.dtype.vec(count)
        if dtype.is_bool:
            return self.mask(node, 8, count)
        words, _ = self._of_all(node)
        if words in _ZEROS:
            return f"({self.type(dtype)}){{0}}", ATOM
        return call(self.helpers.splat(dtype), words)

    def stored(self, node: UOp, count: int) -> Expression:
        is_mask = node.dtype.is_bool and count > 1
        return self.mask(node, 8, count) if is_mask else self.vector(node, count)

    def lane(self, node: UOp, i: int) -> Expression:
        text = super().lane(node, i)
        is_mask = node.dtype.is_bool and node.dtype.count > 1
        if not is_mask or node.op in (Ops.BROADCAST, Ops.LANES, Ops.CONST):
            return text
        return f"{text[0]} != 0", EQUAL

    def mask(self, node: UOp, bits: int, count: int) -> Expression:
        """Return a vector of bools as a mask of `bits` per lane."""
        kind = self.helpers.mask(bits, count)
        if is_splat(node):
            words = paren(self._of_all(node), UNARY)
            if words == "0":
                return f"({kind}){{0}}", ATOM
            return call(self.helpers.splat(mask_type(bits, count)), f"-{words}")
        text = self.whole(node)
        if self.mask_bits.get(node, 8) == bits:
            return text
        return call("__builtin_convertvector", text[0], kind)

    def _of_all(self, node: UOp) -> Expression:
        """Return the value of all lanes as a scalar of exactly the vector's element type."""
        inner = node.src[0] if node.op is Ops.BROADCAST else node
        dtype, text = inner.dtype.scalar, self.scalar(inner)
        small = dtype.is_int and dtype.bits < 32
        if small and not inner.is_const and not _TYPED.fullmatch(text[0]):
            return self.dialect.cast(text, dtype, dtype)
        if small and inner.is_const and inner.arg == dtype.min:  # int8 has -128 and no 128
            return f"({text[0]})", ATOM
        return text

    def _width(self, *nodes: UOp) -> int:
        """Return the bits per lane of the widest of several masks; 8 if no width is known."""
        return max((self.mask_bits[n] for n in nodes if n in self.mask_bits), default=8)

    # computing

    def compute(self, node: UOp) -> Expression | Lanes:
        op, dtype = node.op, node.dtype
        count = max(dtype.count, *(s.dtype.count for s in node.src))
        if op in (Ops.MAX, Ops.MIN) and dtype.is_float:
            node = _constant_first(node)
        if count == 1 or op is Ops.EXTRACT:
            return super().compute(node)
        if op is Ops.HREDUCE:
            return self._combined(node)
        if op is Ops.STACK:
            return self._stack(node)
        if op is Ops.SHUFFLE:
            a, b = (self.vector(s, count)[0] for s in node.src)
            return call("__builtin_shufflevector", a, b, *map(str, node.arg))
        if op is Ops.WHERE and not dtype.is_bool:
            return self._where(node, count)
        if dtype.is_bool:
            return self._mask(node, count)
        if node.src[0].dtype.is_bool:
            return self._from_mask(node, count)
        return self.operation(node, self._operands(node, count), dtype)

    def _operands(self, node: UOp, count: int) -> list[Expression]:
        """Return the operands as vectors. If the op is infix and one operand is a vector, a splat
        stays a scalar; a division that may overflow is a function, and counts as not infix."""
        op, sources = node.op, node.src
        has_sign = op in INFIX and not (op in (Ops.CDIV, Ops.CMOD) and may_overflow(node))
        if not has_sign or all(map(is_splat, sources)):
            return [self.vector(source, count) for source in sources]
        return [
            self._of_all(source) if is_splat(source) else self.vector(source, count)
            for source in sources
        ]

    def _combined(self, node: UOp) -> Expression:
        source, dtype = node.src[0], node.dtype
        count = source.dtype.count
        if dtype.is_bool:
            bits = self._width(source)
            name = self.helpers.combine_masks(node.arg, bits, count)
            return call(name, self.mask(source, bits, count)[0])
        return call(self.helpers.combine(node.arg, source.dtype), self.vector(source, count)[0])

    def _stack(self, node: UOp) -> Expression:
        lanes = [self.scalar(source) for source in node.src]
        if not node.dtype.is_bool:
            return self.dialect.build(node.dtype, lanes)
        masks = [(f"-{paren(lane, UNARY)}", UNARY) for lane in lanes]
        return self.dialect.build(mask_type(8, node.dtype.count), masks)

    # masks

    def _where(self, node: UOp, count: int) -> Expression:
        """Return the selection between two vectors: by a mask, or by one condition for all."""
        condition, yes, no = node.src
        a, b = self.vector(yes, count)[0], self.vector(no, count)[0]
        if condition.dtype.count == 1:
            return call(self.helpers.choose(node.dtype), self.scalar(condition)[0], a, b)
        mask = self.mask(condition, node.dtype.bits, count)[0]
        return call(self.helpers.select(node.dtype), mask, a, b)

    def _from_mask(self, node: UOp, count: int) -> Expression:
        """Return 1 where a mask holds, else 0: a CAST or BITCAST of bools."""
        mask = paren(self.mask(node.src[0], node.dtype.bits, count), ATOM)
        kind = self.type(node.dtype)
        if node.dtype.is_float:
            return call("__builtin_convertvector", f"-{mask}", kind)
        return f"({kind}){mask} & 1", AND

    def _mask(self, node: UOp, count: int) -> Expression:
        """Return a mask. A comparison gives one as wide as its operands; masks of different widths
        are converted to one width first."""
        op, source = node.op, node.src[0]
        if op is not Ops.WHERE and not source.dtype.is_bool:
            return self._compared(node, count)
        bits = self.mask_bits[node] = self._width(*node.src)
        if op in (Ops.CAST, Ops.BITCAST):
            return self.mask(source, bits, count)
        if op is Ops.WHERE:
            return self._where_masks(node, bits, count)
        parts = [paren(self.mask(s, bits, count), ATOM) for s in node.src]
        if op is Ops.NOT:
            return f"~{parts[0]}", UNARY
        words, binds = _ON_MASKS[op]
        return words.format(a=parts[0], b=parts[1]), binds

    def _compared(self, node: UOp, count: int) -> Expression:
        """Return the mask of a comparison of numbers, or of a cast of numbers to bools."""
        source = node.src[0].dtype
        self.mask_bits[node] = source.bits
        self.helpers.mask(source.bits, count)
        if node.op in (Ops.CAST, Ops.BITCAST):
            zero = self.dialect.constant(0, source)[0]
            return f"{paren(self.vector(node.src[0], count), SHIFT)} != {zero}", EQUAL
        return self.operation(node, self._operands(node, count), node.dtype)

    def _where_masks(self, node: UOp, bits: int, count: int) -> Expression:
        condition, yes, no = node.src
        a, b = (paren(self.mask(s, bits, count), ATOM) for s in (yes, no))
        if condition.dtype.count == 1:
            name = self.helpers.choose(mask_type(bits, count))
            return call(name, self.scalar(condition)[0], a, b)
        m = paren(self.mask(condition, bits, count), ATOM)
        return f"({m} & {a}) | (~{m} & {b})", OR


def _constant_first(node: UOp) -> UOp:
    """Put an operand that cannot be NaN first: `a > b ? a : b` is then one instruction."""
    a, b = node.src
    return UOp(node.op, node.dtype, (b, a)) if is_number(b) and not is_number(a) else node


class VectorMemory(WorkItemMemory):
    """Loads and stores of vectors, also masked; bools are bytes in memory."""

    values: VectorValues

    def load(self, node: UOp) -> Expression | Lanes:
        dtype, (address, *rest) = node.dtype, node.src
        if dtype.count > 1 and dtype.is_bool:
            words, _ = self.load(UOp(Ops.LOAD, dtypes.uint8.vec(dtype.count), node.src))
            self.values.helpers.mask(8, dtype.count)
            return f"{words} != 0", EQUAL
        mask = self._mask(rest, dtype)
        if not mask:
            return super().load(node)
        name, index = self._name_and_index(address)
        return call(self.values.helpers.load_where(dtype), name, index[0], mask)

    def store(self, node: UOp) -> None:
        address, value, *rest = node.src
        dtype, count = value.dtype, value.dtype.count
        if count == 1:
            super().store(node)
            return
        words = self.values.stored(value, count)
        if dtype.is_bool:
            dtype = dtypes.uint8.vec(count)
            words = f"({self.values.type(dtype)}){paren(words, ATOM)} & 1", AND
        name, index = self._name_and_index(address)
        mask = self._mask(rest, dtype)
        if mask:
            function = self.values.helpers.store_where(dtype)
            self.text.put(f"{function}({name}, {index[0]}, {mask}, {words[0]});")
            return
        statement = self.dialect.store_vector(name, index[0], dtype, "global", True, words[0])
        self._write_guarded(of_all_lanes(rest), 0, statement or "")

    def _mask(self, condition: Sequence[UOp], dtype: DType) -> str:
        """Return the conditions of single lanes as a mask as wide as the elements in memory; ""
        without a condition, or with one for all lanes."""
        conditions = of_all_lanes(condition)
        if not conditions or conditions[0].dtype.count == 1:
            return ""
        return self.values.mask(conditions[0], dtype.bits, dtype.count)[0]

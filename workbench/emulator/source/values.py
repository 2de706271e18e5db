"""Values of a kernel's text as nodes: conversions, operators, parts of vectors.

Every node is appended to the program when it is made, unless this statement has computed it before.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.arithmetic import computed
from workbench.emulator.source.languages import SourceLanguage
from workbench.emulator.source.tokens import SourceError, Token
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

PARTS = "xyzw"
_COLOURS = "rgba"


@dataclass(frozen=True)
class Abstract:
    """A literal of WGSL that takes the type of what it meets."""

    value: int | float


Value = UOp | Abstract
_COMPARED = {"<": Ops.CMPLT, "<=": Ops.CMPLE, "==": Ops.CMPEQ, "!=": Ops.CMPNE}
_BITS = {"&": Ops.AND, "|": Ops.OR, "^": Ops.XOR}
_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
"""The comparisons of two numbers that are known."""


class SourceValues:
    """Makes nodes. `append` adds a step to the program."""

    def __init__(self, language: SourceLanguage, append: Callable[[UOp], None]):
        self.language = language
        self._append = append
        self.computed: list[set[UOp]] = [set()]
        """The nodes that this statement has computed, by the IFs that are open in it."""
        self.gate: UOp | None = None
        """The condition under which the part of an expression that is written now is used."""
        self.divisions: dict[UOp, UOp | None] = {}
        """The divisions that have no value if they are by 0, with their gates."""

    def node(self, op: Ops, dtype: DType, sources: Sequence[UOp], arg: object = None) -> UOp:
        """Return a node, computed here, or a constant if all its sources are."""
        node = UOp(op, dtype, tuple(sources), arg)
        if all(s.op is Ops.CONST for s in sources) and dtype.count == 1:
            with np.errstate(all="ignore"):
                arrays = [np.asarray(s.arg, s.dtype.numpy) for s in sources]
                return UOp.const(dtype, computed(node, arrays).item())
        self.step(node)
        return node

    def step(self, node: UOp) -> None:
        """Append a node to the program, unless this statement has computed it."""
        if not any(node in known for known in self.computed):
            self.computed[-1].add(node)
            self._append(node)

    # conversions

    def concrete(self, value: Value, dtype: DType | None = None) -> UOp:
        """Return a value with a type of its own; a literal becomes `dtype`, if that is given."""
        if isinstance(value, UOp):
            return value
        own = dtypes.float32 if isinstance(value.value, float) else dtypes.int32
        kind = own if dtype is None else dtype
        is_float = isinstance(value.value, float)
        if is_float and not kind.is_float:
            kind = own
        return self.spread(UOp.const(kind.scalar, value.value), kind)

    def spread(self, value: UOp, dtype: DType) -> UOp:
        """Return a scalar in every lane of a vector of `dtype`."""
        if value.dtype.count == dtype.count:
            return value
        return self.node(Ops.BROADCAST, value.dtype.vec(dtype.count), [value])

    def cast(self, value: Value, dtype: DType) -> UOp:
        """Return a value as another type, by its number; a scalar in every lane of a vector."""
        node = self.concrete(value, dtype if dtype.scalar is not dtypes.index else None)
        node = self.spread(node, dtype)
        if node.dtype is dtype:
            return node
        if dtype.is_bool:
            return self.node(Ops.CMPNE, dtype, [node, self.zero(node.dtype)])
        return self.node(Ops.CAST, dtype, [node])

    def converted(self, value: Value, dtype: DType, at: Token) -> UOp:
        """Return a value as the type of a variable. Errors: SourceError where the language does not
        convert it."""
        if isinstance(value, Abstract):
            if isinstance(value.value, float) and not dtype.is_float:
                raise SourceError(at, f"a float does not become {dtype} by itself", f"{dtype}(..)")
            kind = dtype.scalar
            if kind.is_int and not kind.min <= value.value <= kind.max:
                raise SourceError(at, f"{value.value} does not fit {kind}")
            return self.cast(value, dtype)
        if value.dtype is dtype:
            return value
        if value.dtype.count not in (1, dtype.count):
            raise SourceError(at, f"a value of {value.dtype} stands where {dtype} is expected")
        if not self.language.converts:
            because = f"WGSL converts nothing by itself: this is {value.dtype}, not {dtype}"
            raise SourceError(at, because, "a conversion, such as f32(x)")
        return self.cast(value, dtype)

    def truth(self, value: Value, at: Token) -> UOp:
        """Return a value as a condition."""
        node = self.concrete(value)
        if node.dtype.count > 1:
            raise SourceError(at, f"a condition is one value, and this is {node.dtype}")
        if not node.dtype.is_bool and not self.language.converts:
            raise SourceError(at, f"a condition is a bool, and this is {node.dtype}")
        return self.cast(node, dtypes.bool)

    def bits(self, value: UOp, dtype: DType) -> UOp:
        """Return the bits of a value as another type, of elements of any width."""
        source = value.dtype
        if source is dtype:
            return value
        if source.scalar.bits == dtype.scalar.bits:
            return self.node(Ops.BITCAST, dtype, [value])
        narrow, wide = sorted((source.scalar.bits, dtype.scalar.bits))
        share = wide // narrow
        words = dtypes.named(f"uint{source.scalar.bits}"), dtypes.named(f"uint{dtype.scalar.bits}")
        given = self.bits(value, words[0].vec(source.count))
        lanes = [self.lane(given, i) for i in range(source.count)]
        parts: list[UOp] = []
        for i in range(dtype.count):
            if source.scalar.bits == wide:
                amount = UOp.const(words[0], i % share * narrow)
                moved = self.node(Ops.SHR, words[0], [lanes[i // share], amount])
                parts.append(self.cast(moved, words[1]))
                continue
            total = self.cast(lanes[i * share], words[1])
            for j in range(1, share):
                amount = UOp.const(words[1], j * narrow)
                wider = self.cast(lanes[i * share + j], words[1])
                moved = self.node(Ops.SHL, words[1], [wider, amount])
                total = self.node(Ops.OR, words[1], [total, moved])
            parts.append(total)
        return self.bits(self.vector(parts), dtype)

    def zero(self, dtype: DType) -> UOp:
        """Return 0 of a type."""
        return self.spread(UOp.const(dtype.scalar, 0), dtype)

    # vectors

    def vector(self, lanes: Sequence[UOp]) -> UOp:
        """Return a vector of lanes, or the only lane."""
        if len(lanes) == 1:
            return lanes[0]
        return self.node(Ops.STACK, lanes[0].dtype.vec(len(lanes)), lanes)

    def lane(self, value: UOp, number: int) -> UOp:
        """Return a lane of a vector."""
        if value.dtype.count == 1:
            return value
        if value.op is Ops.STACK:
            return value.src[number]
        if value.op is Ops.BROADCAST:
            return value.src[0]
        return self.node(Ops.EXTRACT, value.dtype.scalar, [value], number)

    def parts(self, value: UOp, places: Sequence[int]) -> UOp:
        """Return some lanes of a vector."""
        return self.vector([self.lane(value, place) for place in places])

    # operators

    def common(self, left: Value, right: Value, at: Token) -> tuple[UOp, UOp]:
        """Return two operands with their common type. Errors: SourceError if there is none."""
        if isinstance(left, Abstract) and isinstance(right, Abstract):
            is_float = isinstance(left.value, float) or isinstance(right.value, float)
            dtype = dtypes.float32 if is_float else dtypes.int32
            return self.cast(left, dtype), self.cast(right, dtype)
        if isinstance(left, Abstract):
            other = self.concrete(right)
            return self.converted(left, other.dtype, at), other
        if isinstance(right, Abstract):
            return left, self.converted(right, left.dtype, at)
        counts = left.dtype.count, right.dtype.count
        if counts[0] != counts[1] and 1 not in counts:
            raise SourceError(at, f"{left.dtype} and {right.dtype} have no operator")
        count = max(counts)
        if not self.language.converts:
            if left.dtype.scalar is not right.dtype.scalar:
                because = f"WGSL converts nothing by itself: {left.dtype} and {right.dtype}"
                raise SourceError(at, because, "a conversion, such as f32(x)")
            dtype = left.dtype.scalar
        elif counts[0] != counts[1]:  # a scalar becomes an element of the vector
            vector, other = (left, right) if counts[0] > 1 else (right, left)
            dtype = vector.dtype.scalar
            if other.dtype.is_float and not dtype.is_float:
                because = f"{left.dtype} and {right.dtype} have no operator"
                raise SourceError(at, because, "a conversion")
        else:
            dtype = arithmetic_type(left.dtype.scalar, right.dtype.scalar, count > 1)
        return self.cast(left, dtype.vec(count)), self.cast(right, dtype.vec(count))

    def binary(self, sign: str, left: Value, right: Value, at: Token) -> UOp:
        """Return the result of an operator. Errors: SourceError for operands without it."""
        if sign in ("<<", ">>"):
            return self._shift(sign, left, right, at)
        if sign in (">", ">="):
            return self.binary(sign.replace(">", "<"), right, left, at)
        own = self.concrete(left), self.concrete(right)
        is_of_bools = all(v.dtype.is_bool for v in own)
        if is_of_bools and (sign in _BITS or sign in ("==", "!=")):
            op = _BITS.get(sign) or _COMPARED[sign]
            return self.node(op, own[0].dtype, own)
        a, b = self.common(left, right, at)
        dtype = a.dtype
        if sign in _COMPARED:
            test = self.node(_COMPARED[sign], dtypes.bool.vec(dtype.count), [a, b])
            return self._as_ints(test, dtype) if self.language.compares_as_ints else test
        if dtype.is_bool:
            raise SourceError(at, f"`{sign}` of bools", "&& or ||")
        if sign == "+":
            return self.node(Ops.ADD, dtype, [a, b])
        if sign == "-":
            return self.node(Ops.ADD, dtype, [a, self.node(Ops.NEG, dtype, [b])])
        if sign == "*":
            return self.node(Ops.MUL, dtype, [a, b])
        if sign == "/" and dtype.is_float:
            return self.node(Ops.FDIV, dtype, [a, b])
        if sign == "/":
            return self._divided(a, b, at)
        if dtype.is_float:
            if sign == "%" and self.language.is_wgsl:
                return self.node(Ops.FMOD, dtype, [a, b])
            raise SourceError(at, f"`{sign}` of floats", "fmodf" if sign == "%" else "")
        if sign == "%":
            return self._integers_divided(Ops.CMOD, a, b, at)
        return self.node(_BITS[sign], dtype, [a, b])

    def _integers_divided(self, op: Ops, a: UOp, b: UOp, at: Token) -> UOp:
        """Return the quotient or the rest of integers. Errors: SourceError for a divisor that is
        always 0."""
        if b.op is Ops.CONST and b.arg == 0:
            raise SourceError(at, "this divides a whole number by 0, which has no value")
        node = UOp(op, a.dtype, (a, b))
        if node not in self.divisions and b.op is not Ops.CONST and not self.language.is_wgsl:
            self.divisions[node] = self.gate
        return self.node(op, a.dtype, [a, b])

    def _divided(self, a: UOp, b: UOp, at: Token) -> UOp:
        """Return a / b of integers; WGSL has a for a b of 0, and C has nothing."""
        dtype = a.dtype
        result = self._integers_divided(Ops.CDIV, a, b, at)
        if not self.language.is_wgsl or b.op is Ops.CONST and b.arg != 0:
            return result
        is_zero = self.node(Ops.CMPEQ, dtypes.bool.vec(dtype.count), [b, self.zero(dtype)])
        return self.node(Ops.WHERE, dtype, [is_zero, a, result])

    def _as_ints(self, test: UOp, dtype: DType) -> UOp:
        """Return a comparison of vectors of `dtype` as OpenCL has it: -1 where it holds, else 0."""
        if dtype.count == 1:
            return test
        kind = dtypes.named(f"int{dtype.scalar.bits}").vec(dtype.count)
        minus = self.spread(UOp.const(kind.scalar, -1), kind)
        return self.node(Ops.WHERE, kind, [test, minus, self.zero(kind)])

    def folded(self, sign: str, left: Abstract, right: Abstract, at: Token) -> Value:
        """Return the result of an operator of two literals without a type: another one, or a bool.
        Errors: SourceError for a division by 0, and a result beyond 64 bits."""
        a, b = left.value, right.value
        is_float = isinstance(a, float) or isinstance(b, float)
        if is_float and sign not in "+-*/%" and sign not in COMPARISONS:
            raise SourceError(at, f"`{sign}` of floats")
        if sign in ("/", "%") and b == 0 or sign in ("<<", ">>") and not 0 <= b < 64:
            raise SourceError(at, f"`{a} {sign} {b}` has no value")
        if sign in COMPARISONS:
            return UOp.const(dtypes.bool, COMPARISONS[sign](a, b))
        result: int | float
        if sign in ("/", "%"):
            divided, rest = (a / b, math.fmod(a, b)) if is_float else truncated(int(a), int(b))
            result = divided if sign == "/" else rest
        else:
            result = _FOLDED[sign](a, b)
        if is_float and not math.isfinite(result) or not is_float and abs(result) > 1 << 63:
            raise SourceError(at, f"`{a} {sign} {b}` is too large")
        return Abstract(result)

    def _shift(self, sign: str, left: Value, right: Value, at: Token) -> UOp:
        value, amount = self.concrete(left), self.concrete(right, dtypes.uint32)
        if not value.dtype.is_int and not value.dtype.is_bool or not amount.dtype.is_int:
            raise SourceError(at, f"`{sign}` of {value.dtype} by {amount.dtype}")
        is_promoted = self.language.converts and value.dtype.count == 1
        dtype = promoted(value.dtype) if is_promoted else value.dtype
        by = self.cast(amount, dtype)
        if self.language.masks_shifts:
            most = self.spread(UOp.const(dtype.scalar, dtype.scalar.bits - 1), dtype)
            by = self.node(Ops.AND, dtype, [by, most])
        return self.node(Ops.SHL if sign == "<<" else Ops.SHR, dtype, [self.cast(value, dtype), by])

    def unary(self, sign: str, value: Value, at: Token) -> Value:
        """Return the result of a sign before a value."""
        if isinstance(value, Abstract):
            if sign in "-+":
                return Abstract(-value.value) if sign == "-" else value
            value = self.concrete(value)
        if sign == "!":
            return self.node(Ops.NOT, dtypes.bool, [self.truth(value, at)])
        dtype = value.dtype
        if self.language.converts and dtype.count == 1:
            dtype = promoted(dtype)
        node = self.cast(value, dtype)
        if sign == "+":
            return node
        if sign == "~" and dtype.is_float:
            raise SourceError(at, f"`~` of {dtype}")
        return self.node(Ops.NOT if sign == "~" else Ops.NEG, dtype, [node])

    def choose(self, condition: UOp, yes: Value, no: Value, at: Token) -> UOp:
        """Return `yes` where the condition holds, else `no`."""
        if isinstance(yes, UOp) and isinstance(no, UOp) and yes.dtype is no.dtype:
            a, b = yes, no
        else:
            a, b = self.common(yes, no, at)
        if condition.dtype.count != a.dtype.count:
            condition = self.spread(condition, a.dtype)
        return self.node(Ops.WHERE, a.dtype, [condition, a, b])

    def all_of(self, *conditions: UOp | None) -> UOp | None:
        """Return a condition that holds where all do; None for no condition."""
        total: UOp | None = None
        for each in conditions:
            if each is not None:
                total = each if total is None else self.node(Ops.AND, dtypes.bool, [total, each])
        return total


def truncated(a: int, b: int) -> tuple[int, int]:
    """Return a / b rounded towards 0, and the rest, which has the sign of a."""
    whole = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return whole, a - whole * b


def promoted(dtype: DType) -> DType:
    """Return the type in which C computes with values of a type."""
    scalar = dtype.scalar
    if scalar.is_bool or scalar.is_int and scalar.bits < 32:
        return dtypes.int32.vec(dtype.count)
    return dtype


def arithmetic_type(left: DType, right: DType, is_vector: bool = False) -> DType:
    """Return the type in which C computes with two scalars of these types (of vectors: elements,
    which C does not widen)."""
    if left is right and is_vector:
        return left
    if left.is_float or right.is_float:
        floats = [d for d in (left, right) if d.is_float]
        return max(floats, key=lambda d: (d.bits, d is dtypes.float16))
    if is_vector:
        return max((left, right), key=lambda d: d.bits)
    a, b = promoted(left), promoted(right)
    if a.bits != b.bits:
        return max((a, b), key=lambda d: d.bits)
    return a if a.kind == "uint" else b


def lanes_named(name: str, count: int, at: Token) -> list[int]:
    """Return the lanes that a part of a vector names: `x`, `xy`, `s0`. Errors: SourceError."""
    letters = name
    if name[:1] in ("s", "S") and len(name) > 1 and count >= 1:
        digits = list(name[1:].lower())
        places = [int(c, 16) if c in "0123456789abcdef" else count for c in digits]
    elif all(c in PARTS for c in letters):
        places = [PARTS.index(c) for c in letters]
    elif all(c in _COLOURS for c in letters):
        places = [_COLOURS.index(c) for c in letters]
    else:
        places = [count]
    if any(place >= count for place in places):
        parts = ", ".join(PARTS[:count]) if count <= len(PARTS) else f"s0 to s{count - 1:x}"
        raise SourceError(at, f"a vector of {count} lanes has no part `{name}`", parts)
    return places

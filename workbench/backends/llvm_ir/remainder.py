"""The remainder of floats in LLVM: by one quotient if it is small, by several if not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.backends.llvm_ir.instructions import call, constant, type_of
from workbench.backends.llvm_ir.writer import LLVMWriter
from workbench.backends.program.value_facts import QUOTIENT_SCALE
from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.uop import UOp


def remainder(node: UOp, args: Sequence[str], text: LLVMWriter) -> str:
    """Return the instruction that completes a FMOD.

    A float has p bits. A rounded quotient q = x / y below 2**p truncates to the integer n of the
    exact one, or to its neighbour; x - n*y is a float, which an FMA gives without rounding, and
    where it is below 0, y is added back. It is NaN where the answer is.

    A larger q is whole, and x - q*y is a float again, smaller by 2**p. So a loop, which is not
    entered where all quotients are small, reduces x first; where q is infinite, with y scaled by
    QUOTIENT_SCALE, once or twice.
    """
    return _Remainder(node.dtype, text).write(*args)


class _Remainder:
    """Writes the instructions, of `dtype`, whose lanes are computed together."""

    def __init__(self, dtype: DType, text: LLVMWriter):
        self.dtype, self.text = dtype, text
        self.kind, self.bit = type_of(dtype), type_of(dtypes.bool.vec(dtype.count))

    def write(self, a: str, b: str) -> str:
        text, kind = self.text, self.kind
        x, y = self._call("fabs", a), self._call("fabs", b)
        q = self._op("fdiv", x, y)
        before, far, near = text.block, text.unique("far"), text.unique("near")
        lower, quotient = text.unique("lower"), text.unique("quotient")
        values = (before, x, q), (far, f"%{lower}", f"%{quotient}")
        self._branch(self._is_large(x, y, q), far, near)
        text.begin(far)
        x, q = self._either(*values)
        less = self._lower(x, y, q)
        is_large = self._is_large(x, y, q)
        text.emit(f"select {self.bit} {is_large}, {kind} {less}, {kind} {x}", lower)
        text.emit(f"fdiv {kind} %{lower}, {y}", quotient)
        is_large = self._is_large(f"%{lower}", y, f"%{quotient}")
        self._branch(is_large, far, near)
        text.begin(near)
        x, q = self._either(*values)
        rest = self._less(x, y, q)
        # an infinite y times 0 is NaN; the remainder is x
        rest = self._select(self._compared(q, "oeq", 0.0), x, rest)
        more = self._op("fadd", rest, y)
        rest = self._select(self._compared(rest, "olt", 0.0), more, rest)
        return call("copysign", self.dtype, (rest, a))

    def _lower(self, x: str, y: str, q: str) -> str:
        """Return x less a multiple of y that is nearly as large as x."""
        for _ in range(2):
            is_infinite = self._compared(self._call("fabs", q), "oeq", math.inf)
            factor = constant(QUOTIENT_SCALE[self.dtype.scalar], self.dtype)
            y = self._select(is_infinite, self._op("fmul", y, factor), y)
            q = self._op("fdiv", x, y)
        return self._less(x, y, q)

    def _less(self, x: str, y: str, q: str) -> str:
        """Return x - trunc(q) * y, rounded once."""
        times = self.text.step(f"fneg {self.kind} {self._call('trunc', q)}")
        return self._call("fma", times, y, x)

    def _is_large(self, x: str, y: str, q: str) -> str:
        limit = 2.0 ** (self.dtype.fraction_bits + 1)
        is_large = self._compared(self._call("fabs", q), "oge", limit)
        is_finite = self._compared(self._call("fabs", x), "olt", math.inf)
        is_number = self._and(is_finite, self._compared(y, "ogt", 0.0))
        return self._and(is_large, is_number)

    def _either(self, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """Return phis of the values of two blocks; each argument has a block's name, then its
        values."""
        pairs = zip(one[1:], other[1:], strict=True)
        return [
            self.text.step(f"phi {self.kind} [ {x}, %{one[0]} ], [ {y}, %{other[0]} ]")
            for x, y in pairs
        ]

    def _branch(self, test: str, some: str, none: str) -> None:
        """Go to `some` if the test holds in any lane."""
        if self.dtype.count > 1:
            reduced = f"@llvm.vector.reduce.or.v{self.dtype.count}i1"
            test = self.text.step(f"call i1 {reduced}({self.bit} {test})")
        self.text.put(f"br i1 {test}, label %{some}, label %{none}")

    def _call(self, name: str, *operands: str) -> str:
        return self.text.step(call(name, self.dtype, operands))

    def _op(self, name: str, x: str, y: str) -> str:
        return self.text.step(f"{name} {self.kind} {x}, {y}")

    def _compared(self, x: str, sign: str, y: float) -> str:
        other = constant(y, self.dtype)
        return self.text.step(f"fcmp {sign} {self.kind} {x}, {other}")

    def _and(self, x: str, y: str) -> str:
        return self.text.step(f"and {self.bit} {x}, {y}")

    def _select(self, test: str, yes: str, no: str) -> str:
        return self.text.step(f"select {self.bit} {test}, {self.kind} {yes}, {self.kind} {no}")

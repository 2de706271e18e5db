"""C functions before a kernel, for operations without an operator in C. Each comes after the types
and functions that it uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from workbench.backends.c_like.helpers import Helpers
from workbench.backends.program.analysis import QUOTIENT_SCALE
from workbench.backends.program.text import ATOM, Expression, call
from workbench.base.dtypes import Const, DType, dtypes
from workbench.ir.node.ops import Ops

_INTEGERS = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}
_COMBINED = {Ops.ADD: "sum", Ops.MUL: "product", Ops.MAX: "greatest", Ops.MIN: "least"}
_SIGN = {Ops.ADD: "+", Ops.MUL: "*"}
_ON_MASKS = {Ops.ADD: "|", Ops.MUL: "&", Ops.MAX: "|", Ops.MIN: "&"}
_AT_ONCE = "#pragma omp simd"
"""The line before a loop over lanes that may become one masked instruction."""


def mask_type(bits: int, count: int) -> DType:
    """Return the dtype of a mask for `count` elements of `bits` each."""
    return _INTEGERS[bits].vec(count)


def math_name(name: str, dtype: DType) -> str:
    """Return the compilers' own function `name` for one float: __builtin_sqrtf."""
    return f"__builtin_{name}{'f' if dtype.bits == 32 else ''}"


class VectorHelpers(Helpers):
    """Functions of scalars and vectors. A method returns the name of its function, or a call of it;
    its docstring says what the function returns."""

    def type(self, dtype: DType) -> str:
        """Return the type of a value; a vector of bools is a mask and has none."""
        return self.dialect.scalar(dtype) if dtype.count == 1 else self.dialect.vector(dtype)

    def mask(self, bits: int, count: int) -> str:
        """Return the type of a mask: `count` integers of `bits` bits."""
        return self.type(mask_type(bits, count))

    def splat(self, dtype: DType) -> str:
        """A vector with one value in every lane."""
        kind, vector = self.type(dtype.scalar), self.type(dtype)
        lanes = ", ".join(["x"] * dtype.count)
        return self._add(
            f"splat_{vector}",
            f"{vector} %({kind} x)",
            f"return ({vector}){{{lanes}}};",
            about="one value in every lane",
        )

    def select(self, dtype: DType) -> str:
        """a where the mask is all ones, else b."""
        vector, mask = self.type(dtype), self.mask(dtype.bits, dtype.count)
        selection = f"(mask & ({mask})a) | (~mask & ({mask})b)"
        return self._add(
            f"select_{vector}",
            f"{vector} %({mask} mask, {vector} a, {vector} b)",
            f"return ({vector})({selection});",
            about="a where mask, else b",
        )

    def choose(self, dtype: DType) -> str:
        """The whole of a, or of b. (GCC's ?: requires exactly one type for both.)"""
        vector = self.type(dtype)
        head = f"{vector} %(_Bool all, {vector} a, {vector} b)"
        return self._add(f"choose_{vector}", head, "return all ? a : b;")

    def extreme(self, op: Ops, dtype: DType, a: Expression, b: Expression) -> Expression:
        if dtype.count == 1:
            return super().extreme(op, dtype, a, b)
        kind, sign = self.type(dtype), ">" if op is Ops.MAX else "<"
        nan = " | (a != a)" if dtype.is_float else ""
        name = self._add(
            f"{op.name.lower()}_{kind}",
            f"{kind} %({kind} a, {kind} b)",
            f"return {self.select(dtype)}((a {sign} b){nan}, a, b);",
            about="NaN if either is" if dtype.is_float else "",
        )
        return call(name, a[0], b[0])

    def quotient(self, op: Ops, dtype: DType, a: Expression, b: Expression) -> Expression:
        if dtype.count == 1:
            return super().quotient(op, dtype, a, b)

        def one(lanes: list[Expression]) -> Expression:
            return self.quotient(op, dtype.scalar, *lanes)

        word = "quotient" if op is Ops.CDIV else "rest"
        return call(self.by_lane(word, dtype, 2, one), a[0], b[0])

    def by_lane(
        self, name: str, dtype: DType, arity: int, one: Callable[[list[Expression]], Expression]
    ) -> str:
        """A vector whose lane i is `one` of the lanes i of the arguments."""
        vector, letters = self.type(dtype), "abc"[:arity]
        lanes = [one([(f"{n}[{i}]", ATOM) for n in letters])[0] for i in range(dtype.count)]
        head = f"{vector} %({', '.join(f'{vector} {n}' for n in letters)})"
        return self._add(f"{name}_{vector}", head, f"return ({vector}){{{_rows(lanes)}}};")

    def multiply_add(self, dtype: DType) -> str:
        """a * b + c, rounded once where the machine can. It must be explicit, since compilers fuse
        nothing by themselves (-ffp-contract=off). Elsewhere it is rounded twice, since a call of
        the C library would be slow. It is a macro so that its instruction has the kernel's line."""
        kind, name = self.type(dtype), f"fma_{self.dialect.part_of_name(dtype)}"
        if dtype.count == 1:
            text = (
                "#if defined(__FMA__) || defined(__FP_FAST_FMA)"
                "  // rounded once where the machine can\n"
                f"#define {name}(a, b, c) {math_name('fma', dtype)}(a, b, c)\n"
                f"#else\n#define {name}(a, b, c) ((a) * (b) + (c))\n#endif"
            )
        else:
            one = self.multiply_add(dtype.scalar)
            parts = [f"{one}(a_[{i}], b_[{i}], c_[{i}])" for i in range(dtype.count)]
            text = (
                f"#define {name}(a, b, c) ({{\n    {kind} a_ = a, b_ = b, c_ = c;\n"
                f"    ({kind}){{{_rows(parts)}}}; }})"
            ).replace("\n", " \\\n")
        self.texts.setdefault(name, "\n" + text)
        return name

    def remainder(self, dtype: DType) -> str:
        """The remainder of floats, with the sign of a: backends/llvm_ir/render.py says why it is
        exact."""
        kind, constant = self.type(dtype), self._constant
        name = f"remainder_{self.dialect.part_of_name(dtype)}"
        head = f"{kind} %({kind} a, {kind} b)"
        fabs, trunc, fma, copysign = (
            math_name(f, dtype) for f in ("fabs", "trunc", "fma", "copysign")
        )
        limit, infinity = 2.0 ** (dtype.fraction_bits + 1), constant(math.inf, dtype)
        scale = constant(QUOTIENT_SCALE[dtype], dtype)
        return self._add(
            name,
            head,
            f"{kind} x = {fabs}(a), y = {fabs}(b), q = x / y;",
            f"while ({fabs}(q) >= {constant(limit, dtype)} && {fabs}(x) < {infinity} && y > 0) {{",
            f"  {kind} by = y;",
            f"  for (; {fabs}(q) == {infinity}; q = x / by) by *= {scale};",
            f"  x = {fma}(-{trunc}(q), by, x);",
            "  q = x / y;",
            "}",
            f"{kind} rest = q == 0 ? x : {fma}(-{trunc}(q), y, x);",
            f"return {copysign}(rest < 0 ? rest + y : rest, a);",
            about="exact, with the sign of a",
        )

    def saturate(self, source: DType, dtype: DType, value: Expression) -> Expression:
        if dtype.count == 1:
            return super().saturate(source, dtype, value)
        names = [self.dialect.part_of_name(each) for each in (dtype, source)]
        least, most = self._constant(dtype.min, dtype), self._constant(dtype.max, dtype)
        low = self._constant(float(dtype.min), source)
        high = self._constant(float(int(dtype.max) + 1), source)
        kind, source_type, element = map(self.type, (dtype, source, dtype.scalar))
        wide, own = (self.mask(source.bits, dtype.count), self.mask(dtype.bits, dtype.count))
        lines = [
            f"{wide} below = x < {low}, above = x >= {high};",
            f"{wide} inside = (x >= {low}) & (x < {high});",
            f"{source_type} safe = ({source_type})(({wide})x & inside);",
            f"{kind} least = {{0}}, most = {{0}};",
            f"least += ({element}){least};",
            f"most += ({element}){most};",
            f"return __builtin_convertvector(safe, {kind})",
            f"    | (least & ({kind})__builtin_convertvector(below, {own}))",
            f"    | (most & ({kind})__builtin_convertvector(above, {own}));",
        ]
        head = f"{kind} %({source_type} x)"
        name = self._add("_from_".join(names), head, *lines, about="clamped; NaN: 0")
        return call(name, value[0])

    def bits(self, source: DType, dtype: DType) -> str:
        """The same bits, read as another type."""
        kind, source_type = self.type(dtype), self.type(source)
        return self._add(
            "_bits_of_".join(self.dialect.part_of_name(each) for each in (dtype, source)),
            f"{kind} %({source_type} x)",
            f"union {{ {source_type} from; {kind} to; }} both = {{x}};",
            "return both.to;",
            about="the same bits",
        )

    def combine(self, op: Ops, dtype: DType) -> str:
        """The lanes of a vector combined: its halves with each other, until one lane is left."""
        vector, half = self.type(dtype), dtype.vec(dtype.count // 2)
        name, scalar = f"{_COMBINED[op]}_{vector}", self.type(dtype.scalar)
        head = f"{scalar} %({vector} x)"
        if half.count == 1:
            return self._add(name, head, f"return {self._pair(op, half, 'x[0]', 'x[1]')};")
        both = self._pair(op, half, "both.half[0]", "both.half[1]")
        rest = self.combine(op, half)
        return self._add(
            name,
            head,
            f"union {{ {vector} all; {self.type(half)} half[2]; }} both = {{x}};",
            f"return {rest}({both});",
            about="halves with each other",
        )

    def combine_masks(self, op: Ops, bits: int, count: int) -> str:
        """The lanes of a mask combined: `or` for ADD and MAX, `and` for MUL and MIN."""
        vector, sign = self.mask(bits, count), _ON_MASKS[op]
        name = f"{'any' if sign == '|' else 'all'}_{vector}"
        lanes = f" {sign} ".join(f"x[{i}]" for i in range(count))
        return self._add(name, f"_Bool %({vector} x)", f"return ({_rows_of(lanes)}) != 0;")

    def load_where(self, dtype: DType) -> str:
        """Elements from p[at] on; 0 where the mask is 0, without an access."""
        kind, vector = self.type(dtype.scalar), self.type(dtype)
        return self._add(
            f"load_where_{vector}",
            f"{vector} %(const {kind} *p, long at, {self.mask(dtype.bits, dtype.count)} mask)",
            f"{vector} x;",
            _AT_ONCE,
            f"for (int i = 0; i < {dtype.count}; i++)",
            "  x[i] = mask[i] ? p[at + i] : 0;",
            "return x;",
            about="elsewhere 0, and memory is not touched",
        )

    def store_where(self, dtype: DType) -> str:
        """Store elements from p[at] on; where the mask is 0, memory is unchanged."""
        kind, vector = self.type(dtype.scalar), self.type(dtype)
        return self._add(
            f"store_where_{vector}",
            f"void %({kind} *p, long at, {self.mask(dtype.bits, dtype.count)} mask, {vector} x)",
            _AT_ONCE,
            f"for (int i = 0; i < {dtype.count}; i++)",
            "  if (mask[i]) p[at + i] = x[i];",
        )

    def _pair(self, op: Ops, dtype: DType, a: str, b: str) -> str:
        if op in _SIGN:
            return f"{a} {_SIGN[op]} {b}"
        return self.extreme(op, dtype, (a, ATOM), (b, ATOM))[0]

    def _constant(self, value: Const, dtype: DType) -> str:
        return self.dialect.constant(value, dtype)[0]

    def _add(self, name: str, head: str, *lines: str, about: str = "") -> str:
        if name not in self.texts:
            head = f"static inline {head.replace('%', name, 1)} {{"
            rows = [f"{head}  // {about}" if about else head]
            rows += [f"  {line}" for line in lines]
            self.texts[name] = "\n".join(["", *rows, "}"])
        return name


def _rows(parts: Sequence[str]) -> str:
    """Return values for braces, four on a line if one line would be too long."""
    if len(", ".join(parts)) <= 60:
        return ", ".join(parts)
    rows = [", ".join(parts[i : i + 4]) for i in range(0, len(parts), 4)]
    return "\n      " + ",\n      ".join(rows)


def _rows_of(text: str) -> str:
    return text if len(text) <= 80 else text.replace(" x[8]", "\n      x[8]")

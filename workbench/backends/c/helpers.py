"""Helper functions before a kernel, for operations without an operator in C.

A kernel has only those that it calls, each once. `Prelude` returns their names; the types and
functions that a function uses come before it.

Sections: C types, constants and the typedefs that a kernel needs; Helper functions before a
kernel, for operations without an operator in C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.backends.program.analysis import QUOTIENT_SCALE
from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops

# --------------------------------------------------------------------------------------------------
# C types, constants and the typedefs that a kernel needs.
#
# A vector is a type of the compilers' vector extension: `f32x8` is eight floats, aligned like one,
# so that any address will do. A bool is a byte in memory, `_Bool` as a value, and in a vector a
# mask: an integer as wide as what it was computed from, all ones where it holds.

# fmt: off
_SCALAR = {"float32": "float", "float64": "double", "bool": "_Bool", "index": "long"}
_LETTER = {"float": "f", "int": "i", "index": "i", "uint": "u"}
_INTEGERS = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}
_MATH_SUFFIX = {32: "f", 64: ""}
# fmt: on
_SHORT_DIGITS = 9


def scalar_type(dtype: DType) -> str:
    """Return the C type of one value of `dtype`."""
    name = dtype.scalar.name
    if name in _SCALAR:
        return _SCALAR[name]
    if not dtype.is_int:
        raise CompileError("render", f"C has no type for {name}")
    return f"{name}_t"


def memory_type(dtype: DType) -> str:
    """Return the C type of one element in memory, where a bool is one byte."""
    return "uint8_t" if dtype.is_bool else scalar_type(dtype)


def vector_name(dtype: DType) -> str:
    """Return the name of a type as part of other names: `f32x8`, `i64`."""
    lanes = f"x{dtype.count}" if dtype.count > 1 else ""
    if dtype.is_bool:
        return f"bool{lanes}"
    return f"{_LETTER[dtype.kind]}{dtype.bits}{lanes}"


def mask_type(bits: int, count: int) -> DType:
    """Return the dtype of a mask for `count` elements of `bits` each."""
    return _INTEGERS[bits].vec(count)


def typedef(dtype: DType) -> str:
    """Return the line that declares a vector type."""
    if dtype.count & (dtype.count - 1):
        raise CompileError(
            "render", f"C has no vector of {dtype.count} lanes: they are powers of two"
        )
    element, nbytes = dtype.scalar.itemsize, dtype.itemsize
    about = f"vector_size({nbytes}), aligned({element}), may_alias"
    kind = "int64_t" if dtype.kind == "index" else scalar_type(dtype)
    name = vector_name(dtype)
    return f"typedef {kind} {name} __attribute__(({about}));  // {dtype.count} lanes"


def math_name(name: str, dtype: DType) -> str:
    """Return the compilers' own function `name` for one float: __builtin_sqrtf."""
    return f"__builtin_{name}{_MATH_SUFFIX[dtype.bits]}"


def constant(value: Const, dtype: DType) -> str:
    """Return a constant whose value, and bits, are exactly those of `value`."""
    value = dtype.scalar.const(value)
    if dtype.is_bool:
        return "1" if value else "0"
    if dtype.is_float:
        return _float(float(value), dtype)
    return _integer(int(value), dtype)


def lanes(values: Sequence[Const], dtype: DType) -> str:
    """Return a vector constant with one value per lane."""
    return f"({vector_name(dtype)}){{{', '.join(constant(v, dtype) for v in values)}}}"


def _integer(value: int, dtype: DType) -> str:
    if dtype.bits < 32 or dtype.kind == "index" and abs(value) < 1 << 31:
        return str(value)
    suffix = ("u" if dtype.kind == "uint" else "") + ("l" if dtype.bits == 64 else "")
    if value == dtype.min and value:  # -2147483648 would be a minus and a wider number
        return f"({value + 1}{suffix} - 1)"
    return f"{value}{suffix}"


def _float(value: float, dtype: DType) -> str:
    single = dtype.bits <= 32
    if not math.isfinite(value):
        name = '__builtin_nanf("")' if single else '__builtin_nan("")'
        if math.isnan(value):
            return name
        sign = "-" if value < 0 else ""
        return sign + ("__builtin_inff()" if single else "__builtin_inf()")
    text = str(np.float32(value)) if single else repr(value)
    if len(text) > _SHORT_DIGITS:
        text = _hexadecimal(value)
    return text + ("f" if single else "")


def _hexadecimal(value: float) -> str:
    mantissa, exponent = value.hex().split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + exponent


# --------------------------------------------------------------------------------------------------
# Helper functions before a kernel, for operations without an operator in C.

_COMBINED = {Ops.ADD: "sum", Ops.MUL: "product", Ops.MAX: "greatest", Ops.MIN: "least"}
_SIGN = {Ops.ADD: "+", Ops.MUL: "*"}
_ON_MASKS = {Ops.ADD: "|", Ops.MUL: "&", Ops.MAX: "|", Ops.MIN: "&"}
_AT_ONCE = "#pragma omp simd"
"""The line before a loop over lanes that may be one masked instruction."""


class Prelude:
    """Types and functions that a kernel uses, in the order in which C must read them."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.uses_integers = False

    def text(self) -> str:
        """Return the definitions, a paragraph each; the one-line ones share the first."""
        first = ["#include <stdint.h>"] if self.uses_integers else []
        first += self.types.values()
        return "\n\n".join(["\n".join(first), *self.functions.values()]).strip("\n")

    def type(self, dtype: DType) -> str:
        """Return the name of the type of a value; a vector of bools is a mask and has none."""
        if dtype.count == 1:
            return self._scalar(scalar_type(dtype))
        name = vector_name(dtype)
        if name not in self.types:
            self.types[name] = typedef(dtype)
            self.uses_integers |= dtype.is_int
        return name

    def element(self, dtype: DType) -> str:
        """Return the name of the type of one element in memory."""
        return self._scalar(memory_type(dtype))

    def mask(self, bits: int, count: int) -> str:
        """Return the name of the type of a mask: `count` integers of `bits` bits."""
        return self.type(mask_type(bits, count))

    def splat(self, dtype: DType) -> str:
        """A vector with one value in every lane."""
        kind, vector = self._lane(dtype), self.type(dtype)
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
        """The whole of a, or of b. (GCC's ?: wants both of exactly one type.)"""
        vector = self.type(dtype)
        head = f"{vector} %(_Bool all, {vector} a, {vector} b)"
        return self._add(f"choose_{vector}", head, "return all ? a : b;")

    def extreme(self, op: Ops, dtype: DType) -> str:
        """The greater or lesser of two values; NaN if either is."""
        kind, sign = self.type(dtype), ">" if op is Ops.MAX else "<"
        name = f"{op.name.lower()}_{vector_name(dtype)}"
        head = f"{kind} %({kind} a, {kind} b)"
        about = "NaN if either is" if dtype.is_float else ""
        if dtype.count == 1:
            nan = " || a != a" if dtype.is_float else ""
            body = f"return a {sign} b{nan} ? a : b;"
            return self._add(name, head, body, about=about)
        nan = " | (a != a)" if dtype.is_float else ""
        body = f"return {self.select(dtype)}((a {sign} b){nan}, a, b);"
        return self._add(name, head, body, about=about)

    def each(self, name: str, dtype: DType, arity: int = 1) -> str:
        """A function of floats, applied to each lane."""
        vector, call = self.type(dtype), math_name(name, dtype)
        sources = "xyz"[:arity]
        lanes = _rows(
            [f"{call}({', '.join(f'{x}[{i}]' for x in sources)})" for i in range(dtype.count)]
        )
        return self._add(
            f"{name}_{vector}",
            f"{vector} %({', '.join(f'{vector} {x}' for x in sources)})",
            f"return ({vector}){{{lanes}}};",
        )

    def multiply_add(self, dtype: DType) -> str:
        """a * b + c, rounded once where the machine can: compilers are told to fuse nothing that
        does not ask for it (-ffp-contract=off), and a call of the C library would be slow. A macro:
        its instruction is of the line that stands in the kernel."""
        kind, name = self.type(dtype), f"fma_{vector_name(dtype)}"
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
        self.functions.setdefault(name, text)
        return name

    def divide(self, op: Ops, dtype: DType) -> str:
        """A quotient or remainder that wraps where INT_MIN / -1 is possible: machines trap
        there."""
        kind = self.type(dtype)
        name = f"{'quotient' if op is Ops.CDIV else 'rest'}_{vector_name(dtype)}"
        head = f"{kind} %({kind} a, {kind} b)"
        if dtype.count == 1:
            wrapped, plain = ("-a", "a / b") if op is Ops.CDIV else ("0", "a % b")
            body = f"return b == -1 ? {wrapped} : {plain};"
            return self._add(name, head, body, about="the least // -1 wraps")
        one = self.divide(op, dtype.scalar)
        lanes = _rows([f"{one}(a[{i}], b[{i}])" for i in range(dtype.count)])
        return self._add(name, head, f"return ({kind}){{{lanes}}};")

    def remainder(self, dtype: DType) -> str:
        """The remainder of floats, with the sign of a: backends/llvm_ir/render.py says why it is
        exact."""
        kind, name = self.type(dtype), f"remainder_{vector_name(dtype)}"
        head = f"{kind} %({kind} a, {kind} b)"
        if dtype.count > 1:
            one = self.remainder(dtype.scalar)
            lanes = _rows([f"{one}(a[{i}], b[{i}])" for i in range(dtype.count)])
            return self._add(name, head, f"return ({kind}){{{lanes}}};")
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

    def saturate(self, source: DType, dtype: DType) -> str:
        """A float as an integer: truncated, clamped to its limits, 0 for NaN."""
        name = f"{vector_name(dtype)}_from_{vector_name(source)}"
        least, most = constant(dtype.min, dtype), constant(dtype.max, dtype)
        low = constant(float(dtype.min), source)
        high = constant(float(int(dtype.max) + 1), source)
        kind, source_type = self.type(dtype), self.type(source)
        head = f"{kind} %({source_type} x)"
        if dtype.count == 1:
            inside = f"x >= {low} ? ({kind})x : x == x ? {least} : 0"
            body = f"return x >= {high} ? {most} : {inside};"
            return self._add(name, head, body, about="clamped; NaN: 0")
        wide, own = (self.mask(source.bits, dtype.count), self.mask(dtype.bits, dtype.count))
        lines = [
            f"{wide} below = x < {low}, above = x >= {high};",
            f"{wide} inside = (x >= {low}) & (x < {high});",
            f"{source_type} safe = ({source_type})(({wide})x & inside);",
            f"{kind} least = {{0}}, most = {{0}};",
            f"least += {_fitting(least, dtype)};",
            f"most += {_fitting(most, dtype)};",
            f"return __builtin_convertvector(safe, {kind})",
            f"    | (least & ({kind})__builtin_convertvector(below, {own}))",
            f"    | (most & ({kind})__builtin_convertvector(above, {own}));",
        ]
        return self._add(name, head, *lines, about="clamped; NaN: 0")

    def bits(self, source: DType, dtype: DType) -> str:
        """The same bits, read as another type."""
        kind, source_type = self.type(dtype), self.type(source)
        return self._add(
            f"{vector_name(dtype)}_bits_of_{vector_name(source)}",
            f"{kind} %({source_type} x)",
            f"union {{ {source_type} from; {kind} to; }} both = {{x}};",
            "return both.to;",
            about="the same bits",
        )

    def combine(self, op: Ops, dtype: DType) -> str:
        """The lanes of a vector combined: its halves with each other, until one lane is left."""
        vector, half = self.type(dtype), dtype.vec(dtype.count // 2)
        name, scalar = f"{_COMBINED[op]}_{vector}", self._lane(dtype)
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
        """Elements from p[at] on where the mask holds, 0 elsewhere: no memory is touched there."""
        kind, mask = self.element(dtype), self.mask(_bits(dtype), dtype.count)
        vector = self.type(dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype)
        return self._add(
            f"load_where_{vector}",
            f"{vector} %(const {kind} *p, long at, {mask} mask)",
            f"{vector} x;",
            _AT_ONCE,
            f"for (int i = 0; i < {dtype.count}; i++)",
            "  x[i] = mask[i] ? p[at + i] : 0;",
            "return x;",
            about="elsewhere 0, and memory is not touched",
        )

    def store_where(self, dtype: DType) -> str:
        """Elements to p[at] on where the mask holds; elsewhere memory is unchanged."""
        kind, mask = self.element(dtype), self.mask(_bits(dtype), dtype.count)
        vector = self.type(dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype)
        return self._add(
            f"store_where_{vector}",
            f"void %({kind} *p, long at, {mask} mask, {vector} x)",
            _AT_ONCE,
            f"for (int i = 0; i < {dtype.count}; i++)",
            "  if (mask[i]) p[at + i] = x[i];",
        )

    def _pair(self, op: Ops, dtype: DType, a: str, b: str) -> str:
        if op in _SIGN:
            return f"{a} {_SIGN[op]} {b}"
        return f"{self.extreme(op, dtype)}({a}, {b})"

    def _lane(self, dtype: DType) -> str:
        return self.type(dtype.scalar) if not dtype.is_bool else self._scalar("_Bool")

    def _scalar(self, name: str) -> str:
        self.uses_integers |= name.endswith("_t")
        return name

    def _add(self, name: str, head: str, *lines: str, about: str = "") -> str:
        if name not in self.functions:
            head = f"static inline {head.replace('%', name, 1)} {{"
            rows = [f"{head}  // {about}" if about else head]
            rows += [f"  {line}" for line in lines]
            self.functions[name] = "\n".join([*rows, "}"])
        return name


def _bits(dtype: DType) -> int:
    return 8 if dtype.is_bool else dtype.bits


def _fitting(text: str, dtype: DType) -> str:
    """Return a constant of exactly the element's type, which a vector requires."""
    return f"({scalar_type(dtype)}){text}"


def _rows(parts: Sequence[str]) -> str:
    """Return values for braces, four a line where they are many."""
    if len(", ".join(parts)) <= 60:
        return ", ".join(parts)
    rows = [", ".join(parts[i : i + 4]) for i in range(0, len(parts), 4)]
    return "\n      " + ",\n      ".join(rows)


def _rows_of(text: str) -> str:
    return text if len(text) <= 80 else text.replace(" x[8]", "\n      x[8]")

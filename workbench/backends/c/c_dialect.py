"""The dialect C: C with the vector extension of GCC and clang, which has every operator.

`f32x8` is a vector of eight floats, aligned like one float, so that it may be at any float's
address. A bool is a byte in memory and `_Bool` as a scalar. In a vector it is a mask: an integer
as wide as the compared values, all ones for true.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.c.helpers import VectorHelpers, math_name
from workbench.backends.c.vectors import VectorMemory, VectorValues
from workbench.backends.c_like.dialect import C_WORDS, ArrayPart, Dialect, Parameter
from workbench.backends.program.launch import LaunchShape
from workbench.backends.program.text import ATOM, UNARY, Expression, Language, call, paren
from workbench.base.dtypes import DType
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops
from workbench.ir.node.views import LoopRole

C_LANGUAGE = Language(
    "C",
    "C, in which every kernel can be read",
    comment="//.*$",
    word=r"\b(?:for|if|else|return|const|void|float|double|long|int|static|inline|typedef"
    r"|struct|union|__kernel|__local|__global)\b",
    head='^(?:__kernel |extern "C" )?void ',
)
_LETTER = {"float": "f", "int": "i", "index": "i", "uint": "u"}
_PARTS: dict[LoopRole | None, tuple[str, str]] = {
    "chunked": ("lo", "hi"),
    "thread": ("thread", "thread + 1"),
}
"""The first step, and the one after the last, in loops of which a launch runs a part."""


class C(Dialect):
    """The dialect. Its compiler must wrap signed integers (-fwrapv) and must not fuse products with
    sums by itself (-ffp-contract=off): the runtime sets these flags."""

    language = C_LANGUAGE
    reserved = C_WORDS | set(
        "args lo hi thread scratch restrict asm typeof linux unix i386 arm".split()
    )
    types = {
        "float32": "float", "float64": "double", "bool": "_Bool", "int8": "int8_t",
        "uint8": "uint8_t", "int16": "int16_t", "uint16": "uint16_t", "int32": "int32_t",
        "uint32": "uint32_t", "int64": "int64_t", "uint64": "uint64_t",
    }  # fmt: skip
    functions = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc", Ops.FMOD: "fmod"}
    truths = ("0", "1")
    not_finite = {
        32: ('__builtin_nanf("")', "__builtin_inff()"),
        64: ('__builtin_nan("")', "__builtin_inf()"),
    }
    has_extremes = False
    aligns_vectors = False
    wraps = True
    wide = True
    needs_only_text = True
    parts = VectorHelpers, VectorValues, VectorMemory

    def __init__(self) -> None:
        super().__init__()
        self.helpers = VectorHelpers(self)
        self.vectors: dict[str, str] = {}
        """The definitions of vector types, by name."""
        self.has_integers = False

    # types

    @property
    def index_type(self) -> str:
        return "long"

    def scalar(self, dtype: DType) -> str:
        name = super().scalar(dtype)
        self.has_integers |= name.endswith("_t")
        return name

    def part_of_name(self, dtype: DType) -> str:
        """Return a dtype as part of a function's name: `f32x8`, `i64`."""
        lanes = f"x{dtype.count}" if dtype.count > 1 else ""
        return f"bool{lanes}" if dtype.is_bool else f"{_LETTER[dtype.kind]}{dtype.bits}{lanes}"

    def vector(self, dtype: DType) -> str:
        name = self.part_of_name(dtype)
        if name not in self.vectors:
            self.vectors[name] = self._vector_type(name, dtype)
            self.has_integers |= dtype.is_int
        return name

    def _vector_type(self, name: str, dtype: DType) -> str:
        if dtype.count & (dtype.count - 1):
            because = f"C has no vector of {dtype.count} lanes: they are powers of two"
            raise CompileError("render", because)
        attributes = f"vector_size({dtype.itemsize}), aligned({dtype.scalar.itemsize}), may_alias"
        kind = "int64_t" if dtype.kind == "index" else self.scalar(dtype)
        return f"typedef {kind} {name} __attribute__(({attributes}));  // {dtype.count} lanes"

    # values

    def cast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        if dtype.count == 1:
            return super().cast(value, source, dtype)
        kind = self.vector(dtype)
        if self.vector(source) == kind:
            return value
        return call("__builtin_convertvector", value[0], kind)

    def bitcast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        if dtype.count > 1:
            return f"({self.vector(dtype)}){paren(value, UNARY)}", UNARY
        if source.is_float == dtype.is_float:
            return self.cast(value, source, dtype)
        return call(self.helpers.bits(source, dtype), value[0])

    def apply(self, op: Ops, dtype: DType, arguments: Sequence[Expression]) -> Expression:
        if dtype.count > 1:
            name = self.helpers.by_lane(
                self.functions[op], dtype, len(arguments), lambda a: self.apply(op, dtype.scalar, a)
            )
        elif op is Ops.FMOD:
            name = self.helpers.remainder(dtype)
        else:
            name = math_name(self.functions[op], dtype)
        return call(name, *[words for words, _ in arguments])

    def multiply_add(
        self, dtype: DType, operands: Sequence[Expression], splats: Sequence[bool]
    ) -> Expression:
        """Return a call of a macro. An operand with braces is put in parentheses: a comma in the
        braces would end the argument."""
        texts = [f"({words})" if "{" in words else words for words, _ in operands]
        return call(self.helpers.multiply_add(dtype), *texts)

    def build(self, dtype: DType, lanes: Sequence[Expression]) -> Expression:
        words = [words for words, _ in lanes]
        is_zero = not any(word.strip("0.ful") for word in words)
        return f"({self.vector(dtype)}){{{'0' if is_zero else ', '.join(words)}}}", ATOM

    def has_vector(self, dtype: DType) -> bool:
        return True

    def component(self, value: str, i: int, count: int) -> str:
        return f"{value}[{i}]"

    def function(
        self,
        kind: str,
        name: str,
        parameters: Sequence[tuple[str, str]],
        value: str,
        about: str = "",
    ) -> str:
        listed = ", ".join(f"{k} {n}" for k, n in parameters)
        note = f"  // {about}" if about else ""
        return f"\n{self.inline}{kind} {name}({listed}) {{{note}\n  return {value};\n}}"

    # memory

    def store_element(self, name: str, index: str, dtype: DType, value: Expression) -> str:
        return f"{self.element(name, index)} = {value[0]};"

    def array(self, dtype: DType, name: str, size: int, zeros: bool) -> str:
        aligned = f"__attribute__((aligned({self.alignment_bytes})))"
        value = " = {0}" if zeros else ""
        return f"{self.in_memory(dtype)} {name}[{size}] {aligned}{value};"

    def launch_arrays(self, arrays: Sequence[ArrayPart], slot: int) -> list[str]:
        return [f"char *scratch = args[{slot}];"] + [
            f"{a.kind} *{a.name} = ({a.kind} *)(scratch + {a.offset});" for a in arrays
        ]

    # statements

    def define(self, kind: str, name: str, value: str, constant: bool = True) -> str:
        zero = "{0}" if value == f"({kind}){{0}}" else value
        return super().define(kind, name, zero, constant)

    def bounds(self, role: LoopRole | None, extent: int) -> tuple[str, str]:
        """A launch runs a part of a chunked loop, and one step of a thread loop."""
        return _PARTS.get(role) or super().bounds(role, extent)

    def arguments(self, parameters: Sequence[Parameter]) -> list[str]:
        return [f"{self.pointer(p)} = args[{p.slot}];" for p in parameters]

    def head(self, name: str, parameters: Sequence[Parameter], launch: LaunchShape) -> list[str]:
        thread = ", long thread" if launch.threads > 1 else ""
        return [f"void {name}(void **args, long lo, long hi{thread}) {{"]

    def preamble(self, uses: frozenset[str]) -> list[str]:
        header = ["#include <stdint.h>"] if self.has_integers else []
        return [*header, *self.vectors.values()]

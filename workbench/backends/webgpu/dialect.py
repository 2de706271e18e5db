"""WGSL (W3C, WebGPU Shading Language): no pointers, no implicit conversions, 32 bits at most."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from workbench.backends.gpu.dialect import COMPONENTS, Dialect, Parameter, group_size
from workbench.backends.program.expression import (
    ADD,
    MUL,
    UNARY,
    Expression,
    call,
    paren,
)
from workbench.backends.program.language import Language
from workbench.backends.program.launch import LaunchShape
from workbench.backends.webgpu.functions import FUNCTIONS, INFINITY, NAN
from workbench.base.dtypes import DType
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops
from workbench.ir.node.views import LoopRole

WGSL = Language(
    "WGSL",
    "WGSL, the program of one invocation",
    comment="//.*$",
    word=r"\b(?:for|if|else|return|let|var|fn|f32|i32|u32|bool|array|storage|workgroup"
    r"|read_write|read|workgroupBarrier)\b",
    head="^fn ",
)
_NEGATIVE = re.compile(r"-\d+( \+ \d+)?")


class Wgsl(Dialect):
    """The dialect. Floats are at least what WGSL promises: a number below the normal ones may be 0.
    Storage has elements of 32 bits only, so that smaller ones are refused."""

    language = WGSL
    reserved = frozenset(
        "alias break case const const_assert continue continuing default diagnostic discard else"
        " enable false fn for if let loop override requires return struct switch true var while"
        " array atomic bool f16 f32 i32 mat2x2 ptr sampler u32 vec2 vec3 vec4 group item select"
        " bitcast storage private workgroup function uniform read write read_write main target"
        " auto char class common compile do enum export extern filter final from get goto impl"
        " import in inline interface is module mod move mut new nil null of out package pass pub"
        " ref self set shared static std super sync this type typedef typeof union unless use using"
        " varying virtual void where with yield infinity_bits nan_bits"
        " exp2_float32 log2_float32 turn_float32 sin_float32 cos_float32".split()
    )
    types = {"bool": "bool", "int32": "i32", "uint32": "u32", "float32": "f32"}
    barrier = "workgroupBarrier();"
    shares_outside = True

    def __init__(self) -> None:
        self._declarations: dict[str, None] = {}

    def vector(self, dtype: DType) -> str:
        return f"vec{dtype.count}<{self.scalar(dtype)}>"

    def integer_text(self, value: int, dtype: DType) -> str:
        if dtype.kind == "uint":
            return f"{value}u"
        if value == dtype.min and dtype.bits == 32:
            return f"({value + 1} - 1)"
        return str(value)

    def special_float(self, value: float, dtype: DType) -> str:
        """A constant expression that is infinite is an error: its bits are a variable."""
        self._declarations[NAN if math.isnan(value) else INFINITY] = None
        sign = "-" if value < 0 else ""
        name = "nan_bits" if math.isnan(value) else "infinity_bits"
        return f"{sign}bitcast<f32>({name})"

    def cast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        return call(self.scalar(dtype), value[0])

    def bitcast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        return call(f"bitcast<{self.scalar(dtype)}>", value[0])

    def choose(
        self, condition: Expression, yes: Expression, no: Expression
    ) -> Expression:
        return call("select", no[0], yes[0], condition[0])

    def negative(self, value: Expression, dtype: DType) -> Expression:
        """A minus sign is for signed numbers alone."""
        if dtype.kind == "uint":
            return f"0u - {paren(value, MUL)}", ADD
        return super().negative(value, dtype)

    def differ(self, a: Expression, b: Expression) -> Expression:
        """Some compilers make of != what is false for NaN."""
        return f"!({a[0]} == {b[0]})", UNARY

    def element(self, name: str, index: str) -> str:
        """A constant index before the array is an error, also where a condition keeps it unread."""
        return f"{name}[{'0' if _NEGATIVE.fullmatch(index) else index}]"

    def shift(self, amount: Expression, tight: int) -> str:
        return f"u32({amount[0]})"

    def apply(
        self, op: Ops, dtype: DType, arguments: Sequence[Expression]
    ) -> Expression:
        if op is Ops.FMOD:
            raise CompileError("render", "WGSL has no exact remainder of floats")
        if op in FUNCTIONS:
            name, declarations = FUNCTIONS[op]
            self._declarations |= dict.fromkeys(declarations)
            return call(name, *[words for words, _ in arguments])
        return super().apply(op, dtype, arguments)

    def build(self, dtype: DType, lanes: Sequence[Expression]) -> Expression:
        return call(self.vector(dtype), *[words for words, _ in lanes])

    def function(
        self, kind: str, name: str, parameters: Sequence[tuple[str, str]], value: str
    ) -> str:
        listed = ", ".join(f"{n}: {k}" for k, n in parameters)
        return f"fn {name}({listed}) -> {kind} {{ return {value}; }}"

    def define(self, kind: str, name: str, value: str, constant: bool = True) -> str:
        return f"{'let' if constant else 'var'} {name}: {kind} = {value};"

    def declare(self, kind: str, name: str) -> str:
        return f"var {name}: {kind};"

    def array(self, kind: str, name: str, size: int) -> str:
        return f"var {name}: array<{kind}, {size}>;"

    def shared_array(self, kind: str, name: str, size: int) -> str:
        return f"var<workgroup> {name}: array<{kind}, {size}>;"

    def loop(self, kind: str, name: str, extent: int) -> str:
        return f"for (var {name} = 0; {name} < {extent}; {name}++) {{"

    def number(self, role: LoopRole, dimension: int) -> str:
        part = f"{'group' if role == 'grid' else 'item'}.{COMPONENTS[dimension]}"
        return f"i32({part})"

    def head(
        self, name: str, parameters: Sequence[Parameter], launch: LaunchShape
    ) -> list[str]:
        bindings = [
            f"@group(0) @binding({place}) var<storage, {'read_write' if p.is_written else 'read'}>"
            f" {p.name}: array<{self.in_memory(p.dtype)}>;"
            for place, p in enumerate(parameters)
        ]
        size = ", ".join(map(str, group_size(launch)))
        return [
            *bindings,
            f"@compute @workgroup_size({size})",
            f"fn {name}(@builtin(workgroup_id) group: vec3<u32>,"
            " @builtin(local_invocation_id) item: vec3<u32>) {",
        ]

    def preamble(self, uses: frozenset[str]) -> list[str]:
        return [*self._declarations]

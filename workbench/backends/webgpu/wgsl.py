"""The dialect WGSL (W3C, WebGPU Shading Language): no pointers, no implicit conversions, no types
above 32 bits (`wgsl_integers.py` has integers of 64 bits).

Sections: WGSL functions for kernels that need more accuracy than the built-in ones have; WGSL
(W3C, WebGPU Shading Language).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from workbench.backends.c_like.dialect import COMPONENTS, Dialect, Parameter
from workbench.backends.program.launch import LaunchShape, group_size
from workbench.backends.program.text import (
    ADD,
    ATOM,
    EQUAL,
    MUL,
    UNARY,
    Expression,
    Language,
    call,
    paren,
)
from workbench.backends.webgpu import wgsl_integers
from workbench.backends.webgpu.wgsl_integers import PackedMemory, fills_words, is_packed, word_count
from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import LanguageError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import LoopRole

# --------------------------------------------------------------------------------------------------
# WGSL functions for kernels that need more accuracy than the built-in ones have.
#
# WGSL's own sine may be off by 2**-11, its exp2(x) by 2 |x| units in the last place, and each may
# be anything for NaN (W3C, WGSL, section "Accuracy"). Sums that rely on rounding, as in the
# polynomials of other devices, do not help: an implementation may reassociate them. Here powers of
# two are split at an integer by `round`, and arguments of sines reduced by `fma`, which nothing
# reassociates; a remainder is a long division of integers, eight bits per step. Source of the
# reduction: Cody and Waite 1980; beyond 2**16 a sine is WGSL's own.

NAN = "var<private> nan_bits: u32 = 0x7fc00000u;"
INFINITY = "var<private> infinity_bits: u32 = 0x7f800000u;"
"""In WGSL a constant expression that is not finite is an error: its bits are in a variable."""
_EXP2 = """\
fn exp2_float32(x: f32) -> f32 {
  let n: f32 = round(clamp(x, -160.0f, 160.0f));
  let low: i32 = i32(n) >> 1u;
  let high: i32 = i32(n) - low;
  let power: f32 = exp2(x - n) * bitcast<f32>(u32(low + 127) << 23u);
  return select(power * bitcast<f32>(u32(high + 127) << 23u), x, !(x == x));
}"""
_LOG2 = """\
fn log2_float32(x: f32) -> f32 {
  let value: f32 = select(log2(x), -bitcast<f32>(infinity_bits), x == 0.0f);
  return select(value, bitcast<f32>(nan_bits), !(x >= 0.0f));
}"""
_SINE = """\
fn sine_float32(x: f32, quadrant: i32) -> f32 {
  let n: f32 = round(x * 0.63661975f);
  let r: f32 = fma(-n, 7.54979e-8f, fma(-n, 0.0004837513f, fma(-n, 1.5703125f, x)));
  let q: i32 = i32(n) + quadrant;
  let s: f32 = r * r;
  let sine: f32 = ((-0.00019518292f * s + 0.008332189f) * s - 0.16666655f) * s * r + r;
  let c: f32 = ((2.4432327e-5f * s - 0.001388731f) * s + 0.041666646f) * s - 0.5f;
  let cosine: f32 = c * s + 1.0f;
  let value: f32 = select(sine, cosine, (q & 1) != 0);
  return select(value, -value, (q & 2) != 0);
}"""
_PERIODIC = """\
fn {name}_float32(x: f32) -> f32 {{
  let value: f32 = select({name}(x), sine_float32(x, {quadrant}), abs(x) <= 65536.0f);
  return select(bitcast<f32>(nan_bits), value, abs(x) <= 3.4028234e38f);
}}"""
_SIN = _PERIODIC.format(name="sin", quadrant=0)
_COS = _PERIODIC.format(name="cos", quadrant=1)
_FMOD = """\
fn fmod_float32(x: f32, y: f32) -> f32 {
  let sign: u32 = bitcast<u32>(x) & 0x80000000u;
  let size: u32 = bitcast<u32>(x) & 0x7fffffffu;
  let by: u32 = bitcast<u32>(y) & 0x7fffffffu;
  if (by == 0u || size >= 0x7f800000u || by > 0x7f800000u) { return bitcast<f32>(nan_bits); }
  if (size < by) { return x; }
  var high: i32 = max(i32(size >> 23u), 1);
  let low: i32 = max(i32(by >> 23u), 1);
  let divisor: u32 = (by & 0x7fffffu) | select(0u, 0x800000u, by >= 0x800000u);
  var rest: u32 = ((size & 0x7fffffu) | select(0u, 0x800000u, size >= 0x800000u)) % divisor;
  while (high > low && rest != 0u) {
    let step: i32 = min(high - low, 8);
    rest = (rest << u32(step)) % divisor;
    high -= step;
  }
  let up: i32 = select(min(i32(countLeadingZeros(rest)) - 8, low - 1), 0, rest == 0u);
  rest <<= u32(up);
  let exponent: u32 = select(0u, u32(low - up) << 23u, rest >= 0x800000u);
  return bitcast<f32>(sign | exponent | (rest & 0x7fffffu));
}"""

FUNCTIONS: Mapping[Ops, tuple[str, tuple[str, ...]]] = {
    Ops.EXP2: ("exp2_float32", (_EXP2,)),
    Ops.LOG2: ("log2_float32", (INFINITY, NAN, _LOG2)),
    Ops.SIN: ("sin_float32", (NAN, _SINE, _SIN)),
    Ops.FMOD: ("fmod_float32", (NAN, _FMOD)),
    Ops.COS: ("cos_float32", (NAN, _SINE, _COS)),
}
"""The name of the function for an op, and the declarations that it needs, in their order."""


# --------------------------------------------------------------------------------------------------
# WGSL (W3C, WebGPU Shading Language).

WGSL = Language(
    "WGSL",
    "WGSL, the program of one invocation",
    comment="//.*$",
    word=r"\b(?:for|if|else|return|let|var|fn|f32|i32|u32|bool|array|storage|workgroup"
    r"|read_write|read|workgroupBarrier)\b",
    head="^fn ",
)
_RESERVED = frozenset(
    "alias break case const const_assert continue continuing default diagnostic discard else"
    " enable false fn for if let loop override requires return struct switch true var while array"
    " atomic bool f16 f32 i32 mat2x2 ptr sampler u32 vec2 vec3 vec4 group item select bitcast"
    " storage private workgroup function uniform read write read_write main target auto char class"
    " common compile do enum export extern filter final from get goto impl import in inline"
    " interface is module mod move mut new nil null of out package pass pub ref self set shared"
    " static std super sync this type typedef typeof union unless use using varying virtual void"
    " where with yield infinity_bits nan_bits exp2_float32 log2_float32 fmod_float32 sine_float32"
    " sin_float32 cos_float32".split()
)
_NEGATIVE = re.compile(r"-\d+( \+ \d+)?")


class Wgsl(Dialect):
    """The dialect. Floats have the accuracy that WGSL guarantees: a subnormal number may be 0.
    Elements below 32 bits share words in memory (`wgsl_integers.py`); as values they have 32 bits,
    and are wrapped after an operation that may exceed their own width."""

    language = WGSL
    reserved = _RESERVED | wgsl_integers.NAMES
    types = {
        "bool": "bool", "int8": "i32", "int16": "i32", "int32": "i32", "uint8": "u32",
        "uint16": "u32", "uint32": "u32",
        "int64": wgsl_integers.LONG_TYPE, "uint64": wgsl_integers.LONG_TYPE,
        "float32": "f32",
    }  # fmt: skip
    barrier = "workgroupBarrier();"
    wraps = True
    shares_outside = True

    def __init__(self) -> None:
        super().__init__()
        self._calls: set[str] = set()
        """The functions on 64-bit integers that the kernel calls."""
        self._packed = PackedMemory()
        self._shared: set[str] = set()
        """The arrays of the group whose elements share words."""
        self._private: set[str] = set()
        """The arrays of a work-item: each element has a word."""

    def vector(self, dtype: DType) -> str:
        return f"vec{dtype.count}<{self.scalar(dtype)}>"

    @property
    def index_type(self) -> str:
        if self.wide:
            what, hint = "indexes of 64 bits", "a smaller tensor"
            raise LanguageError(self.language.name, what, hint)
        return "i32"

    # memory

    def in_memory(self, dtype: DType) -> str:
        """Return the type of a word in memory, where it is not atomic."""
        return "u32" if is_packed(dtype) else super().in_memory(dtype)

    def _is_shared_word(self, name: str, dtype: DType) -> bool:
        return is_packed(dtype.scalar) and name not in self._private

    def load_element(self, name: str, index: str, dtype: DType) -> Expression:
        if not self._is_shared_word(name, dtype):
            return super().load_element(name, index, dtype)
        byte = dtypes.uint8 if dtype.is_bool else dtype
        value = self._packed.load(name, index, byte, self.scalar(byte))
        return (f"{value} != 0u", EQUAL) if dtype.is_bool else (value, ATOM)

    def store_element(self, name: str, index: str, dtype: DType, value: Expression) -> str:
        if not self._is_shared_word(name, dtype):
            return super().store_element(name, index, dtype, value)
        byte, words = dtype, value[0]
        if dtype.is_bool:
            byte, words = dtypes.uint8, self.cast(value, dtype, dtypes.uint8)[0]
        return self._packed.store(name, index, byte, self.scalar(byte), words)

    def load_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, constant: bool
    ) -> str | None:
        if not self._has_whole_words(name, dtype, aligned):
            return None
        return self._packed.load(name, index, dtype, self.vector(dtype))

    def store_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, value: str
    ) -> str | None:
        if not self._has_whole_words(name, dtype, aligned):
            return None
        return self._packed.store(name, index, dtype, self.vector(dtype), value)

    def _has_whole_words(self, name: str, dtype: DType, aligned: bool) -> bool:
        is_whole = aligned and fills_words(dtype) and self.has_vector(dtype)
        return is_whole and self._is_shared_word(name, dtype)

    # values

    def constant(self, value: Const, dtype: DType) -> Expression:
        if wgsl_integers.has_words(dtype.scalar):
            return wgsl_integers.constant(int(value))
        return super().constant(value, dtype)

    def operation(self, node: UOp, arguments: Sequence[Expression]) -> Expression | None:
        op, source = node.op, node.src[0].dtype.scalar
        if not wgsl_integers.has_words(source):
            return None
        if op is Ops.CAST and node.dtype.is_bool:
            op, arguments = Ops.CMPNE, (*arguments, wgsl_integers.constant(0))
        text = wgsl_integers.operation(op, source, arguments)
        return text and self._with_functions(text)

    def has_operators(self, dtype: DType) -> bool:
        return not wgsl_integers.has_words(dtype.scalar)

    def has_vector(self, dtype: DType) -> bool:
        return not wgsl_integers.has_words(dtype.scalar) and super().has_vector(dtype)

    def _with_functions(self, text: Expression) -> Expression:
        """Return an expression; the functions that it calls come before the kernel."""
        self._calls |= wgsl_integers.calls(text[0])
        return text

    def integer_text(self, value: int, dtype: DType) -> str:
        if dtype.kind == "uint":
            return f"{value}u"
        if value == dtype.min and dtype.bits == 32:
            return f"({value + 1} - 1)"
        return str(value)

    def special_float(self, value: float, dtype: DType) -> str:
        """Return the bits of a variable as a float: a constant that is not finite is an error."""
        bits = NAN if math.isnan(value) else INFINITY
        self.declarations[bits] = bits
        sign = "-" if value < 0 else ""
        name = "nan_bits" if math.isnan(value) else "infinity_bits"
        return f"{sign}bitcast<f32>({name})"

    def cast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        if wgsl_integers.has_words(dtype) or wgsl_integers.has_words(source) and dtype.is_float:
            return self._with_functions(wgsl_integers.cast(value, source, dtype))
        if wgsl_integers.has_words(source):
            value, source = wgsl_integers.low_word(value), dtypes.uint32
        kind = self.scalar(dtype)
        if dtype.is_int and source.is_int and dtype.bits < 32:
            return call("extractBits", f"{kind}({value[0]})", "0u", f"{dtype.bits}u")
        return call(kind, value[0])

    def bitcast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        return call(f"bitcast<{self.scalar(dtype)}>", value[0])

    def choose(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        return call("select", no[0], yes[0], condition[0])

    def negative(self, value: Expression, dtype: DType) -> Expression:
        """Only signed numbers have a minus sign."""
        if dtype.kind == "uint":
            return f"0u - {paren(value, MUL)}", ADD
        return super().negative(value, dtype)

    def rest(self, a: Expression, b: Expression, dtype: DType) -> Expression:
        """With a negative operand, implementations on Vulkan return any value for %."""
        if dtype.kind == "uint":
            return super().rest(a, b, dtype)
        divisor = paren(b, UNARY)
        product = f"{paren(a, MUL)} / {divisor} * {divisor}"
        return f"{paren(a, ADD)} - {product}", ADD

    def differ(self, a: Expression, b: Expression) -> Expression:
        """Some compilers turn != into a comparison that is false for NaN."""
        return f"!({a[0]} == {b[0]})", UNARY

    def element(self, name: str, index: str) -> str:
        """A negative constant index is an error, even in an access that is never executed."""
        return f"{name}[{'0' if _NEGATIVE.fullmatch(index) else index}]"

    def shift(self, amount: Expression, tight: int) -> str:
        return f"u32({amount[0]})"

    def apply(self, op: Ops, dtype: DType, arguments: Sequence[Expression]) -> Expression:
        if op in FUNCTIONS:
            name, declarations = FUNCTIONS[op]
            self.declarations |= {text: text for text in declarations}
            return call(name, *[words for words, _ in arguments])
        return super().apply(op, dtype, arguments)

    def build(self, dtype: DType, lanes: Sequence[Expression]) -> Expression:
        return call(self.vector(dtype), *[words for words, _ in lanes])

    def function(
        self,
        kind: str,
        name: str,
        parameters: Sequence[tuple[str, str]],
        value: str,
        about: str = "",
    ) -> str:
        listed = ", ".join(f"{n}: {k}" for k, n in parameters)
        return f"fn {name}({listed}) -> {kind} {{ return {value}; }}"

    def define(self, kind: str, name: str, value: str, constant: bool = True) -> str:
        return f"{'let' if constant else 'var'} {name}: {kind} = {value};"

    def declare(self, kind: str, name: str) -> str:
        return f"var {name}: {kind};"

    def array(self, dtype: DType, name: str, size: int, zeros: bool) -> str:
        """A variable without a value is 0 (section 7, variable and value declarations)."""
        self._private.add(name)
        kind = self.in_memory(dtype) if dtype.is_bool else self.scalar(dtype)
        return f"var {name}: array<{kind}, {size}>;"

    def shared_array(self, dtype: DType, name: str, size: int) -> str:
        kind = self.in_memory(dtype)
        if is_packed(dtype):
            self._shared.add(name)
            kind, size = "atomic<u32>", word_count(dtype, size)
        return f"var<workgroup> {name}: array<{kind}, {size}>;"

    def loop(self, kind: str, name: str, first: str, last: str) -> str:
        return f"for (var {name} = {first}; {name} < {last}; {name}++) {{"

    def number(self, role: LoopRole, dimension: int) -> str:
        part = f"{'group' if role == 'grid' else 'item'}.{COMPONENTS[dimension]}"
        return f"i32({part})"

    def head(self, name: str, parameters: Sequence[Parameter], launch: LaunchShape) -> list[str]:
        bindings = [
            f"@group(0) @binding({place}) var<storage, {'read_write' if p.is_written else 'read'}>"
            f" {p.name}: array<{self._element_type(p)}>;"
            for place, p in enumerate(parameters)
        ]
        atomic = {p.name for p in parameters if p.is_written} | self._shared
        size = ", ".join(map(str, group_size(launch)))
        return [
            *bindings,
            *self._packed.functions(atomic),
            f"@compute @workgroup_size({size})",
            f"fn {name}(@builtin(workgroup_id) group: vec3<u32>,"
            " @builtin(local_invocation_id) item: vec3<u32>) {",
        ]

    def _element_type(self, parameter: Parameter) -> str:
        is_atomic = parameter.is_written and is_packed(parameter.dtype)
        return "atomic<u32>" if is_atomic else self.in_memory(parameter.dtype)

    def preamble(self, uses: frozenset[str]) -> list[str]:
        return wgsl_integers.functions(self._calls)

"""The dialect CUDA C++ (NVIDIA, CUDA C++ Programming Guide).

Sections: The dialect; Functions of tiles, around PTX's mma.sync and ldmatrix.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.c_like.dialect import COMPONENTS, ArrayPart, CopyText, FragmentText
from workbench.backends.cuda.cuda_machines import GROUP_SHARED_BYTES
from workbench.backends.cuda.driver import COMMIT, COPY_BYTES, WAIT, copy_function
from workbench.backends.gpu.cpp import COMMENT, HEAD, WORD, GpuCpp
from workbench.backends.program.text import ATOM, Expression, Language, call
from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores import TensorCore
from workbench.ir.node.ops import Ops

# --------------------------------------------------------------------------------------------------
# The dialect.

_HALVES = {"float16": "half", "bfloat16": "bfloat16"}
"""The 16-bit floats in the names of functions."""
_HEADERS = {"float16": "cuda_fp16.h", "bfloat16": "cuda_bf16.h"}
_WORDS = {8: "uint2", 16: "uint4"}
"""The vector types of copies, by bytes."""
CUDA_CPP = Language("CUDA", "CUDA C++, the program of one thread", COMMENT, WORD, HEAD)


class CudaCpp(GpuCpp):
    """The dialect. Its vectors have no operators: those that a kernel uses are defined before it,
    and so are vectors of more than two 16-bit floats."""

    language = CUDA_CPP
    types = {**GpuCpp.types, "float16": "__half", "bfloat16": "__nv_bfloat16"}

    # floats of 16 bits

    def has_vector(self, dtype: DType) -> bool:
        return dtype.count in (2, 4, 8) if dtype.is_low_precision else super().has_vector(dtype)

    def vector(self, dtype: DType) -> str:
        if not dtype.is_low_precision:
            return super().vector(dtype)
        kind, count = self.scalar(dtype), dtype.count
        if count == 2:
            return f"{kind}2"
        name = f"{dtype.scalar.name}_x{count}"
        parts = "x, y, z, w" if count == 4 else f"s[{count}]"
        align = f"__align__({dtype.itemsize})"
        self.declarations[name] = f"struct {align} {name} {{ {kind} {parts}; }};"
        return name

    def build(self, dtype: DType, lanes: Sequence[Expression]) -> Expression:
        if not dtype.is_low_precision:
            return super().build(dtype, lanes)
        return f"{self.vector(dtype)}{{{', '.join(words for words, _ in lanes)}}}", ATOM

    def component(self, value: str, i: int, count: int) -> str:
        if count <= len(COMPONENTS):
            return super().component(value, i, count)
        return f"{value}.s[{i}]"

    def cast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        if source.is_low_precision:
            return call(f"__{_HALVES[source.name]}2float", value[0])
        if dtype.is_low_precision:
            return call(f"__float2{_HALVES[dtype.name]}", value[0])
        return super().cast(value, source, dtype)

    def bitcast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        kinds = {**_HALVES, "int16": "short", "uint16": "ushort"}
        if source.bits == 16:
            return call(f"__{kinds[source.name]}_as_{kinds[dtype.name]}", value[0])
        return super().bitcast(value, source, dtype)

    # operators of vectors

    def operator(self, sign: str, dtype: DType, left: bool, right: bool) -> None:
        text = self._operator(sign, dtype, left, right)
        self.declarations[text] = text

    def _operator(self, sign: str, dtype: DType, left: bool, right: bool) -> str:
        vector, scalar = self.vector(dtype), self.scalar(dtype)
        parts = COMPONENTS[: dtype.count]
        if sign == "-" and not left:
            lanes = ", ".join(f"-a.{c}" for c in parts)
            head = f"{self.inline}{vector} operator-({vector} a)"
            return f"{head} {{ return make_{vector}({lanes}); }}"
        first, second = (vector if v else scalar for v in (left, right))
        a, b = (["%s.{}", "%s"][not v] % name for v, name in ((left, "a"), (right, "b")))
        if sign in ("+=", "*="):
            steps = " ".join(f"{a.format(c)} {sign} {b.format(c)};" for c in parts)
            return f"{self.inline}void operator{sign}({vector} &a, {second} b) {{ {steps} }}"
        lanes = ", ".join(f"{a.format(c)} {sign} {b.format(c)}" for c in parts)
        head = f"{self.inline}{vector} operator{sign}({first} a, {second} b)"
        return f"{head} {{ return make_{vector}({lanes}); }}"

    def extreme_function(self, name: str, op: Ops, dtype: DType) -> str:
        """For float32: one instruction from sm_80 on, instead of three."""
        if dtype is not dtypes.float32:
            return ""
        word, sign = op.name.lower(), ">" if op is Ops.MAX else "<"
        return f"""\
{self.inline}float {name}(float a, float b) {{
#if __CUDA_ARCH__ >= 800
  float r;
  asm("{word}.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a {sign} b || a != a ? a : b;
#endif
}}"""

    def shuffle(self, value: Expression, dtype: DType, distance: int) -> Expression:
        return call("__shfl_xor_sync", "0xffffffff", value[0], str(distance))

    def tile_function(self, name: str, core: TensorCore, bits: DType) -> str:
        return mma_function(name, core, self.vector(core.accumulator.vec(core.c.per_lane)))

    def tile_arguments(self, value: FragmentText) -> list[str]:
        if not value.is_packed:
            dtype, lanes = value.dtype.scalar, value.lanes()
            if dtype.is_low_precision:
                word = _word(dtype)
                lanes = [self.bitcast((w, ATOM), dtype, word)[0] for w in lanes]
            return registers(lanes, _word(dtype))
        whole, count = value.whole(), value.dtype.itemsize // 4
        return [f"{whole}.{c}" for c in COMPONENTS[:count]] if count > 1 else [whole]

    def exchange_function(self, name: str, matrices: int, transposed: bool) -> str:
        return matrix_function(name, matrices, transposed)

    most_array_bytes = GROUP_SHARED_BYTES

    def launch_arrays(self, arrays: Sequence[ArrayPart], slot: int) -> list[str]:
        first = "extern __shared__ __align__(16) unsigned char shared_memory[];"
        return [first] + [
            f"{a.kind} *{a.name} = ({a.kind} *)&shared_memory[{a.offset}];" for a in arrays
        ]

    def copy(self, copy: CopyText) -> str | None:
        kind = _WORDS.get(copy.nbytes)
        if kind is None:
            return None
        value = f"*(const {kind} *)&{copy.source}"
        if copy.condition:
            zero = f"make_{kind}({', '.join('0' * int(kind[-1]))})"
            value = f"{copy.condition} ? {value} : {zero}"
        return f"*({kind} *)&{copy.to} = {value};"

    def copy_function(self, name: str, nbytes: int) -> str:
        return copy_function(name, nbytes) if nbytes in COPY_BYTES else ""

    def barrier_but(self, batches: int) -> str:
        return f"{COMMIT} {WAIT % batches} {self.barrier}"

    def preamble(self, uses: frozenset[str]) -> list[str]:
        return [f"#include <{header}>" for name, header in _HEADERS.items() if name in uses]


def _word(dtype: DType) -> DType:
    """Return the dtype that holds the bits of an operand's element."""
    return dtypes.uint16 if dtype.is_low_precision else dtype


# --------------------------------------------------------------------------------------------------
# Functions of tiles, around PTX's mma.sync and ldmatrix: the first multiplies the fragments of a
# lane, the second loads them.
#
#     __device__ inline float4 wmma_16x8x16_float16(unsigned a0, .., unsigned b0, .., float4 c) {
#       asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, .."
#           : "+f"(c.x), .. : "r"(a0), ..);
#       return c;
#     }
#
# An operand of 16 or 8 bits shares a register of 32 bits with its neighbours. Source: PTX ISA 8.5,
# "Warp Level Matrix Instructions".

REGISTER_BITS = 32
_LETTERS = {dtypes.float32: "f", dtypes.float64: "d", dtypes.int32: "r"}
"""The letters of register types in inline assembly."""


def mma_function(name: str, core: TensorCore, total: str) -> str:
    """Return the function that multiplies tiles on a tensor core; `total` is the type of a vector
    of its accumulators."""
    is_double = core.operand is dtypes.float64
    bits = core.operand.bits if is_double else REGISTER_BITS
    sides = [
        [f"{letter}{i}" for i in range(fragment.per_lane * core.operand.bits // bits)]
        for letter, fragment in (("a", core.a), ("b", core.b))
    ]
    c = [f"c.{part}" for part in "xyzw"[: core.c.per_lane]]
    groups, number = [], 0
    for count in (len(c), *map(len, sides)):
        groups.append(", ".join(f"%{number + i}" for i in range(count)))
        number += count
    operands = ", ".join(f"{{{group}}}" for group in (*groups, groups[0]))
    letter = _LETTERS[core.accumulator]
    outputs = ", ".join(f'"+{letter}"({part})' for part in c)
    source, kind = ("d", "double") if is_double else ("r", "unsigned")
    words = [word for side in sides for word in side]
    values = ", ".join(f'"{source}"({word})' for word in words)
    parameters = ", ".join(f"{kind} {word}" for word in words)
    return "\n".join(
        [
            f"__device__ inline {total} {name}({parameters}, {total} c) {{",
            f'  asm("{core.instruction} {operands};"',
            f"      : {outputs}",
            f"      : {values});",
            "  return c;",
            "}",
        ]
    )


def matrix_function(name: str, count: int, transposed: bool) -> str:
    """Return the function that reads `count` matrices of 8 rows of 16 bytes: each lane passes the
    address of one row, and gets its word of each matrix."""
    vector = f"uint{count}" if count > 1 else "unsigned"
    parts = [f"r.{c}" for c in "xyzw"[:count]] if count > 1 else ["r"]
    outputs = ", ".join(f'"=r"({part})' for part in parts)
    numbers = ", ".join(f"%{i}" for i in range(count))
    word = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared.b16"
    return "\n".join(
        [
            f"__device__ inline {vector} {name}(const void *row) {{",
            f"  {vector} r;",
            f'  asm volatile("{word} {{{numbers}}}, [%{count}];"',
            f"      : {outputs}",
            '      : "r"((unsigned)__cvta_generic_to_shared(row)) : "memory");',
            "  return r;",
            "}",
        ]
    )


def registers(words: Sequence[str], operand: DType) -> list[str]:
    """Return the registers that hold these elements, the first element in the lowest bits."""
    if operand is dtypes.float64:
        return list(words)
    if operand is dtypes.float32:
        return [f"__float_as_uint({word})" for word in words]
    size = REGISTER_BITS // operand.bits
    word_type = "unsigned char" if operand.bits == 8 else "unsigned short"
    cast = f"({word_type})" if operand.kind == "int" else ""
    registers = []
    for begin in range(0, len(words), size):
        parts = [f"{cast}{words[begin]}"] + [
            f"(unsigned){cast}{words[begin + i]} << {i * operand.bits}" for i in range(1, size)
        ]
        registers.append(" | ".join(parts))
    return registers

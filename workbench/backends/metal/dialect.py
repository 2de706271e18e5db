"""The dialect Metal (Apple, Metal Shading Language Specification)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.backends.c_like.dialect import COMPONENTS, Dialect, Parameter
from workbench.backends.gpu.cpp import CPP_WORDS
from workbench.backends.program.launch import LaunchShape, group_size
from workbench.backends.program.text import Expression, Language, call
from workbench.base.dtypes import DType
from workbench.base.tensor_cores import TensorCore
from workbench.ir.node.views import LoopRole

METAL = Language(
    "Metal",
    "Metal, the program of one thread",
    comment="//.*$",
    word=r"\b(?:for|if|else|return|const|void|float|half|bfloat|long|int|uint|bool|uchar|inline|kernel|device"
    r"|threadgroup|using|namespace)\b",
    head="^kernel ",
)


class Metal(Dialect):
    """The dialect."""

    language = METAL
    reserved = CPP_WORDS | set(
        "kernel vertex fragment device threadgroup thread constant metal group item uint uchar"
        " ushort ulong".split()
    )
    types = {
        "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort",
        "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong",
        "float32": "float", "float16": "half", "bfloat16": "bfloat",
    }  # fmt: skip
    barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
    spaces = {"global": "device ", "shared": "threadgroup ", "private": "thread "}
    not_finite = {32: ("NAN", "INFINITY")}

    def build(self, dtype: DType, lanes: Sequence[Expression]) -> Expression:
        return call(self.vector(dtype), *[words for words, _ in lanes])

    def convert(self, value: Expression, source: DType, dtype: DType) -> Expression | None:
        return call(self.vector(dtype), value[0])

    def bitcast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        return call(f"as_type<{self.scalar(dtype)}>", value[0])

    def load_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, constant: bool
    ) -> str | None:
        if aligned or dtype.scalar.bits == 64:
            return super().load_vector(name, index, dtype, space, aligned, constant)
        return f"{self.vector(dtype)}({self._packed(name, index, dtype, space, constant)})"

    def store_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, value: str
    ) -> str | None:
        if aligned or dtype.scalar.bits == 64:
            return super().store_vector(name, index, dtype, space, aligned, value)
        return f"{self._packed(name, index, dtype, space)} = {value};"

    def _packed(
        self, name: str, index: str, dtype: DType, space: str, constant: bool = False
    ) -> str:
        kind = f"{self.spaces[space]}{'const ' if constant else ''}packed_{self.vector(dtype)}"
        return f"*({kind} *)&{name}[{index}]"

    def shared_array(self, dtype: DType, name: str, size: int) -> str:
        return f"threadgroup alignas(16) {self.in_memory(dtype)} {name}[{size}];"

    def array(self, dtype: DType, name: str, size: int, zeros: bool) -> str:
        value = " = {}" if zeros else ""
        return f"alignas(16) {self.in_memory(dtype)} {name}[{size}]{value};"

    def number(self, role: LoopRole, dimension: int) -> str:
        return f"{'group' if role == 'grid' else 'item'}.{COMPONENTS[dimension]}"

    def head(self, name: str, parameters: Sequence[Parameter], launch: LaunchShape) -> list[str]:
        listed = [f"{self.pointer(p)} [[buffer({place})]]" for place, p in enumerate(parameters)]
        listed += [
            "uint3 group [[threadgroup_position_in_grid]]",
            "uint3 item [[thread_position_in_threadgroup]]",
        ]
        items = math.prod(group_size(launch))
        lines = [f"[[max_total_threads_per_threadgroup({items})]]", f"kernel void {name}("]
        return [*lines, *[f"    {each}," for each in listed[:-1]], f"    {listed[-1]}) {{"]

    def shuffle(self, value: Expression, dtype: DType, distance: int) -> Expression:
        return call("simd_shuffle_xor", value[0], f"ushort({distance})")

    def tile_function(self, name: str, core: TensorCore, bits: DType) -> str:
        """Return a function that multiplies by simdgroup_matrix. A thread accesses the elements of
        a matrix by number."""
        kind, element = (self.vector(bits.vec(core.a.per_lane)), self.scalar(core.operand))
        total = self.vector(core.accumulator.vec(core.c.per_lane))
        word = self.scalar(core.accumulator)
        size = f"{core.m}x{core.n}"
        lines = [f"static inline {total} {name}({kind} a, {kind} b, {total} c) {{"]
        lines += [f"  simdgroup_{element}{size} left, right;"]
        lines += [f"  simdgroup_{word}{size} sum;"]
        for matrix, value, scalar in (
            ("left", "a", element),
            ("right", "b", element),
            ("sum", "c", word),
        ):
            for i, part in enumerate(COMPONENTS[: core.c.per_lane]):
                words = f"{value}.{part}"
                if scalar == "half" and bits.kind == "uint":
                    words = f"as_type<half>({words})"
                lines.append(f"  {matrix}.thread_elements()[{i}] = {words};")
        parts = ", ".join(f"sum.thread_elements()[{i}]" for i in range(core.c.per_lane))
        lines += [f"  {core.instruction}(sum, left, right, sum);"]
        return "\n".join([*lines, f"  return {total}({parts});", "}"])

    def preamble(self, uses: frozenset[str]) -> list[str]:
        return [
            "#include <metal_stdlib>",
            "using namespace metal;",
            "#pragma clang fp contract(off)",
        ]

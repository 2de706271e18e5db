"""HIP (AMD, HIP documentation): CUDA's words, and vectors with operators.

Vectors of up to 4 lanes are HIP's, but for those of 16-bit floats. These are vectors of clang's; so
are longer ones, and the operands of instructions, to which HIP's are converted bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.gpu.cpp import COMMENT, HEAD, WORD, GpuCpp
from workbench.backends.gpu.dialect import COMPONENTS
from workbench.backends.program.text import ATOM, Expression, Language, call
from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores import TensorCore

HIP_CPP = Language("HIP", "HIP, the program of one work-item", COMMENT, WORD, HEAD)
_ELEMENTS = {
    dtypes.float16: "_Float16", dtypes.bfloat16: "short", dtypes.float32: "float",
}  # fmt: skip
"""The types of operands in instructions."""


class HipCpp(GpuCpp):
    """The dialect. The types of clang's vectors that a kernel uses stand before it."""

    language = HIP_CPP
    types = {**GpuCpp.types, "float16": "_Float16", "bfloat16": "__bf16"}

    def __init__(self) -> None:
        super().__init__()
        self._vectors: dict[str, str] = {}

    def has_vector(self, dtype: DType) -> bool:
        return True

    def vector(self, dtype: DType) -> str:
        if _is_of_hip(dtype):
            return super().vector(dtype)
        kind = self.scalar(dtype)
        name = f"{dtype.scalar.name}_x{dtype.count}"
        self._vectors[name] = _typedef(kind, dtype.count, name)
        return name

    def build(self, dtype: DType, lanes: Sequence[Expression]) -> Expression:
        if _is_of_hip(dtype):
            return super().build(dtype, lanes)
        return f"{self.vector(dtype)}{{{', '.join(words for words, _ in lanes)}}}", ATOM

    def component(self, value: str, i: int, count: int) -> str:
        if count <= len(COMPONENTS):
            return super().component(value, i, count)
        return f"{value}[{i}]"

    def bitcast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        if source.bits == 16:
            return call("__builtin_bit_cast", self.scalar(dtype), value[0])
        return super().bitcast(value, source, dtype)

    def shuffle(self, value: Expression, dtype: DType, distance: int) -> Expression:
        return call("__shfl_xor", value[0], str(distance))

    def tile_function(self, name: str, core: TensorCore, bits: DType) -> str:
        """Return a call of the compiler's function for v_mfma or v_wmma."""
        if not core.instruction.startswith("__builtin_amdgcn_"):
            return super().tile_function(name, core, bits)
        kind, total = (
            self.vector(dtype.vec(fragment.per_lane))
            if fragment.per_lane > 1
            else self.scalar(dtype)
            for dtype, fragment in ((bits, core.a), (core.accumulator, core.c))
        )
        count = core.a.per_lane
        element = _ELEMENTS[core.operand]
        operand = _typedef(element, count, "operand")
        if count == 1:
            operand = f"typedef {element} operand;"
        more = ", 0, 0, 0" if "mfma" in core.instruction else ""
        return "\n".join(
            [
                f"{self.inline}{total} {name}({kind} a, {kind} b, {total} c) {{",
                f"  {operand}",
                f"  {_typedef(self.scalar(core.accumulator), core.c.per_lane, 'sum')}",
                f"  return __builtin_bit_cast({total}, {core.instruction}(",
                "      __builtin_bit_cast(operand, a), __builtin_bit_cast(operand, b),",
                f"      __builtin_bit_cast(sum, c){more}));",
                "}",
            ]
        )

    def preamble(self, uses: frozenset[str]) -> list[str]:
        return [*self._vectors.values(), *self._multiply_adds.values()]


def _is_of_hip(dtype: DType) -> bool:
    return dtype.count <= len(COMPONENTS) and not dtype.is_low_precision


def _typedef(kind: str, count: int, name: str) -> str:
    return f"typedef {kind} {name} __attribute__((ext_vector_type({count})));"

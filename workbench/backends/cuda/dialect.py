"""CUDA C++ (NVIDIA, CUDA C++ Programming Guide)."""

from __future__ import annotations

from workbench.backends.cuda.mma import mma_function
from workbench.backends.gpu.cpp import COMMENT, HEAD, WORD, GpuCpp
from workbench.backends.gpu.dialect import COMPONENTS, FragmentText
from workbench.backends.program.language import Language
from workbench.base.dtypes import DType
from workbench.base.tensor_cores.tensor_core import TensorCore

CUDA_CPP = Language("CUDA", "CUDA C++, the program of one thread", COMMENT, WORD, HEAD)


class CudaCpp(GpuCpp):
    """The dialect. A vector of it has no operators: those that a kernel uses stand before it."""

    language = CUDA_CPP

    def __init__(self) -> None:
        self._operators: dict[tuple[str, str, bool, bool], str] = {}

    def operator(self, sign: str, dtype: DType, left: bool, right: bool) -> None:
        key = sign, self.vector(dtype), left, right
        if key not in self._operators:
            self._operators[key] = self._operator(sign, dtype, left, right)

    def _operator(self, sign: str, dtype: DType, left: bool, right: bool) -> str:
        vector, scalar = self.vector(dtype), self.scalar(dtype)
        parts = COMPONENTS[: dtype.count]
        if sign == "-" and not left:
            lanes = ", ".join(f"-a.{c}" for c in parts)
            head = f"{self.inline}{vector} operator-({vector} a)"
            return f"{head} {{ return make_{vector}({lanes}); }}"
        first, second = (vector if v else scalar for v in (left, right))
        a, b = (
            ["%s.{}", "%s"][not v] % name for v, name in ((left, "a"), (right, "b"))
        )
        if sign in ("+=", "*="):
            steps = " ".join(f"{a.format(c)} {sign} {b.format(c)};" for c in parts)
            return f"{self.inline}void operator{sign}({vector} &a, {second} b) {{ {steps} }}"
        lanes = ", ".join(f"{a.format(c)} {sign} {b.format(c)}" for c in parts)
        head = f"{self.inline}{vector} operator{sign}({first} a, {second} b)"
        return f"{head} {{ return make_{vector}({lanes}); }}"

    def tile_function(self, name: str, core: TensorCore, bits: DType) -> str:
        total = self.vector(core.accumulator.vec(core.c.per_lane))
        return mma_function(name, core, (self.scalar(bits), total))

    def tile_arguments(self, value: FragmentText) -> list[str]:
        return value.lanes()

    def preamble(self, uses: frozenset[str]) -> list[str]:
        return [*self._operators.values()]

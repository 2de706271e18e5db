"""The common part of CUDA C++ and HIP: C++ with CUDA's names."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from workbench.backends.gpu.dialect import COMPONENTS, Dialect, Parameter
from workbench.backends.program.expression import ATOM, Expression, call
from workbench.backends.program.launch import LaunchShape, group_size
from workbench.base.dtypes import DType
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops
from workbench.ir.node.views import LoopRole

COMMENT = "//.*$"
WORD = (
    r"\b(?:for|if|else|return|const|void|float|double|long|int|unsigned|bool|char|inline"
    r"|__half2?|__nv_bfloat16|__nv_bfloat162|_Float16|__bf16|extern|__global__|__shared__|__device__|__syncthreads)\b"
)
HEAD = '^extern "C" '
CPP_WORDS = frozenset(
    "alignas alignof and asm auto bool break case catch char class const constexpr continue default"
    " delete do double else enum explicit export extern false float for friend goto if inline int"
    " long mutable namespace new not nullptr operator or private protected public register return"
    " short signed sizeof static struct switch template this throw true try typedef typename union"
    " unsigned using virtual void volatile while xor half main".split()
)
_VECTORS = {
    "signed char": "char", "unsigned char": "uchar", "unsigned short": "ushort",
    "unsigned int": "uint", "long long": "longlong", "unsigned long long": "ulonglong",
}  # fmt: skip


class GpuCpp(Dialect):
    """A dialect with CUDA's words."""

    reserved = CPP_WORDS | {
        "shared_memory",
        "blockIdx",
        "threadIdx",
        "gridDim",
        "blockDim",
        "warpSize",
    }
    types = {
        "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
        "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int",
        "int64": "long long", "uint64": "unsigned long long", "float32": "float",
        "float64": "double",
    }  # fmt: skip
    barrier = "__syncthreads();"
    long_suffix = "ll"
    inline = "__device__ inline "

    def __init__(self) -> None:
        self._multiply_adds: dict[str, str] = {}

    def vector(self, dtype: DType) -> str:
        kind = self.scalar(dtype)
        return f"{_VECTORS.get(kind, kind)}{dtype.count}"

    def build(self, dtype: DType, lanes: Sequence[Expression]) -> Expression:
        return call(f"make_{self.vector(dtype)}", *[words for words, _ in lanes])

    def splat(self, dtype: DType, value: Expression) -> Expression:
        return self.build(dtype, [value] * dtype.count)

    def multiply_add(
        self, dtype: DType, operands: Sequence[Expression], splats: Sequence[bool]
    ) -> Expression:
        """Of a vector: a function that stands before the kernel, one for the types of operands."""
        if dtype.count > 1:
            self._note_multiply_add(dtype, splats)
            return call("fma", *[words for words, _ in operands])
        name = "fmaf" if dtype.bits <= 32 else "fma"
        return call(name, *[words for words, _ in operands])

    def _note_multiply_add(self, dtype: DType, splats: Sequence[bool]) -> None:
        vector, count = self.vector(dtype), dtype.count
        kinds = [self.scalar(dtype) if splat else vector for splat in splats]
        lanes = []
        for i in range(count):
            pairs = zip("abc", splats, strict=True)
            parts = [n if s else self.component(n, i, count) for n, s in pairs]
            scalars = [(part, ATOM) for part in parts]
            lanes.append(self.multiply_add(dtype.scalar, scalars, (False,) * 3))
        listed = ", ".join(f"{k} {n}" for k, n in zip(kinds, "abc", strict=True))
        head = f"{self.inline}{vector} fma({listed})"
        self._multiply_adds[head] = f"{head} {{ return {self.build(dtype, lanes)[0]}; }}"

    def special_float(self, value: float, dtype: DType) -> str:
        if math.isnan(value):
            value = math.nan
        if dtype.bits <= 32:
            bits = int.from_bytes(struct.pack(">f", value), "big")
            return f"__int_as_float({bits:#x})"
        bits = int.from_bytes(struct.pack(">d", value), "big")
        return f"__longlong_as_double({bits:#x}ll)"

    def apply(self, op: Ops, dtype: DType, arguments: Sequence[Expression]) -> Expression:
        name = self.functions[op] + ("f" if dtype.bits <= 32 else "")
        return call(name, *[words for words, _ in arguments])

    def bitcast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        names = {
            "float32": "float", "int32": "int", "uint32": "uint", "float64": "double",
            "int64": "longlong", "uint64": "longlong",
        }  # fmt: skip
        if source.name not in names or dtype.name not in names:
            because = f"C++ reads no {source.name} as {dtype.name}"
            raise CompileError("render", because)
        words = call(f"__{names[source.name]}_as_{names[dtype.name]}", value[0])
        return self.cast(words, source, dtype) if dtype.name == "uint64" else words

    def load_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, constant: bool
    ) -> str | None:
        kind = f"{'const ' if constant else ''}{self.vector(dtype)}"
        return f"*({kind} *)&{name}[{index}]" if aligned else None

    def store_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, value: str
    ) -> str | None:
        where = f"*({self.vector(dtype)} *)&{name}[{index}]"
        return f"{where} = {value};" if aligned else None

    def shared_array(self, dtype: DType, name: str, size: int) -> str:
        return f"__shared__ __align__(16) {self.in_memory(dtype)} {name}[{size}];"

    def array(self, dtype: DType, name: str, size: int, zeros: bool) -> str:
        value = " = {}" if zeros else ""
        return f"__align__(16) {self.in_memory(dtype)} {name}[{size}]{value};"

    def number(self, role: LoopRole, dimension: int) -> str:
        return f"{'block' if role == 'grid' else 'thread'}Idx.{COMPONENTS[dimension]}"

    def head(self, name: str, parameters: Sequence[Parameter], launch: LaunchShape) -> list[str]:
        listed = [
            f"{'' if p.is_written else 'const '}{self.in_memory(p.dtype)} *{p.name}"
            for p in parameters
        ]
        items = f"{math.prod(group_size(launch))}"
        if self.unit_groups:  # a compiler need not spare registers for more
            items += f", {self.unit_groups}"
        return [
            f'extern "C" __global__ void __launch_bounds__({items})',
            f"{name}({', '.join(listed)}) {{",
        ]

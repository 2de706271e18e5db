"""Dialects that several devices share: the common part of CUDA C++ and HIP, and OpenCL C.

Sections: The common part of CUDA C++ and HIP; OpenCL C.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from workbench.backends.c_like.dialect import C_WORDS, COMPONENTS, Dialect, Parameter
from workbench.backends.program.launch import LaunchShape, group_size
from workbench.backends.program.text import ATOM, Expression, Language, call
from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import CompileError
from workbench.base.tensor_cores import TensorCore
from workbench.ir.node.ops import Ops
from workbench.ir.node.views import LoopRole

# --------------------------------------------------------------------------------------------------
# The common part of CUDA C++ and HIP: C++ with CUDA's names.

COMMENT = "//.*$"
WORD = (
    r"\b(?:for|if|else|return|const|void|float|double|long|int|unsigned|bool|char|inline"
    r"|__half2?|__nv_bfloat16|__nv_bfloat162|_Float16|__bf16|extern|__global__|__shared__|__device__|__syncthreads)\b"
)
HEAD = '^extern "C" '
CPP_WORDS = C_WORDS | frozenset(
    "alignas alignof and asm bool catch class constexpr delete explicit export false friend mutable"
    " namespace new not nullptr operator or private protected public template this throw true try"
    " typename using virtual xor half".split()
)
_VECTORS = {
    "signed char": "char", "unsigned char": "uchar", "unsigned short": "ushort",
    "unsigned int": "uint", "long long": "longlong", "unsigned long long": "ulonglong",
}  # fmt: skip


class GpuCpp(Dialect):
    """C++ with CUDA's words. The two languages add their 16-bit floats."""

    reserved = CPP_WORDS | set("shared_memory blockIdx threadIdx gridDim blockDim warpSize".split())
    types = {
        "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
        "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int",
        "int64": "long long", "uint64": "unsigned long long", "float32": "float",
        "float64": "double",
    }  # fmt: skip
    barrier = "__syncthreads();"
    long_suffix = "ll"
    inline = "__device__ inline "

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
        """For vectors it is a function before the kernel, one per combination of operand types."""
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
        self.declarations[head] = f"{head} {{ return {self.build(dtype, lanes)[0]}; }}"

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

    def shared_array(self, dtype: DType, name: str, size: int) -> str:
        return f"__shared__ __align__(16) {self.in_memory(dtype)} {name}[{size}];"

    def array(self, dtype: DType, name: str, size: int, zeros: bool) -> str:
        value = " = {}" if zeros else ""
        return f"__align__(16) {self.in_memory(dtype)} {name}[{size}]{value};"

    def number(self, role: LoopRole, dimension: int) -> str:
        return f"{'block' if role == 'grid' else 'thread'}Idx.{COMPONENTS[dimension]}"

    def head(self, name: str, parameters: Sequence[Parameter], launch: LaunchShape) -> list[str]:
        listed = ", ".join(map(self.pointer, parameters))
        items = f"{math.prod(group_size(launch))}"
        if self.unit_groups:  # with this number, a compiler may use more registers
            items += f", {self.unit_groups}"
        return [f'extern "C" __global__ void __launch_bounds__({items})', f"{name}({listed}) {{"]


# --------------------------------------------------------------------------------------------------
# OpenCL C. Source: OpenCL C specification, version 1.2, which every implementation has.

OPENCL_C = Language(
    "OpenCL C",
    "OpenCL C, the program of one work-item",
    comment="//.*$",
    word=r"\b(?:for|if|else|return|const|void|float|half|double|long|int|uint|bool|uchar|inline"
    r"|__kernel|__local|__global|barrier)\b",
    head="^__kernel ",
)
STANDARD = "-cl-std=CL1.2"
"""The option of compilers for this version."""
_ENABLE = "#pragma OPENCL EXTENSION {} : enable"
_NO_CONTRACTION = "#pragma OPENCL FP_CONTRACT OFF"
"""Without it, an implementation may fuse: round a product and its sum once."""
_HALF_TYPE = _ENABLE.format("cl_khr_fp16")
_HALF_FUNCTIONS = {
    "round_half": """\
static inline float round_half(float a) {
  uchar2 b;
  vstore_half_rte(a, 0, (half *)&b);
  return vload_half(0, (const half *)&b);
}""",
    "bits_of_half": """\
static inline ushort bits_of_half(float a) {
  uchar2 b;
  vstore_half_rte(a, 0, (half *)&b);
  return as_ushort(b);
}""",
    "half_of_bits": """\
static inline float half_of_bits(ushort a) {
  uchar2 b = as_uchar2(a);
  return vload_half(0, (const half *)&b);
}""",
}
"""Functions of a float16 in registers, where it is a float: rounding to float16, the bits of a
float16, and a float16 from bits."""
_ALIGNED = "__attribute__((aligned(16)))"


class OpenCLC(Dialect):
    """The dialect. A float16 is a float in registers."""

    language = OPENCL_C
    reserved = C_WORDS | set(
        "restrict bool half uchar ushort uint ulong kernel global local private constant read_only"
        " write_only image2d_t sampler_t event_t pipe complex imaginary true false linux"
        " unix".split()
    )
    types = {
        "bool": "bool", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort",
        "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong",
        "float32": "float", "float64": "double", "float16": "float",
    }  # fmt: skip
    barrier = "barrier(CLK_LOCAL_MEM_FENCE);"
    spaces = {"global": "__global ", "shared": "__local ", "private": ""}
    not_finite = {32: ("NAN", "INFINITY"), 64: ("nan(0ul)", "HUGE_VAL")}
    rounds_stores = True

    def __init__(self) -> None:
        super().__init__()
        self._sub_group = 0
        """Work-items of a sub-group, where the kernel requires a number; 0: any."""

    # float16: every implementation has it in memory, and few in registers

    def in_memory(self, dtype: DType) -> str:
        return "half" if dtype.scalar is dtypes.float16 else super().in_memory(dtype)

    def constant(self, value: Const, dtype: DType) -> Expression:
        if dtype.scalar is dtypes.float16:
            return super().constant(dtype.scalar.const(value), dtypes.float32)
        return super().constant(value, dtype)

    def cast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        if source is dtypes.float16:
            return value
        if dtype is dtypes.float16:
            return self._called("round_half", value)
        return super().cast(value, source, dtype)

    def convert(self, value: Expression, source: DType, dtype: DType) -> Expression | None:
        return value if source.scalar is dtypes.float16 else None

    def _called(self, name: str, value: Expression) -> Expression:
        self.declarations[name] = _HALF_FUNCTIONS[name]
        return call(name, value[0])

    def load_element(self, name: str, index: str, dtype: DType) -> Expression:
        if dtype is dtypes.float16:
            return f"vload_half({index}, {name})", ATOM
        return super().load_element(name, index, dtype)

    def store_element(self, name: str, index: str, dtype: DType, value: Expression) -> str:
        if dtype is dtypes.float16:
            return f"vstore_half_rte({value[0]}, {index}, {name});"
        return super().store_element(name, index, dtype, value)

    @property
    def masked(self) -> Callable[[Expression, str, DType], str] | None:
        """A `select` where the work-items of a group run one after another. PoCL 3.0 assumes that
        work-items that branch alike get the same value from the branch: after a barrier, the choice
        between a load and 0 would be another work-item's."""
        return self._masked if self.serial_items else None

    def _masked(self, condition: Expression, value: str, dtype: DType) -> str:
        if dtype.is_bool:
            return f"(bool)({value} & ({condition[0]}))"
        zero = self.constant(0, dtype)[0]
        bits = 32 if dtype is dtypes.float16 else dtype.bits  # a float in registers
        mask = {8: "char", 16: "short", 32: "int", 64: "long"}[bits]
        kind = self.scalar(dtype)
        return f"select(({kind}){zero}, {value}, ({mask})({condition[0]}))"

    # vectors, tiles

    def has_vector(self, dtype: DType) -> bool:
        return dtype.count in (2, 3, 4, 8, 16)

    def component(self, value: str, i: int, count: int) -> str:
        if count <= len(COMPONENTS):
            return super().component(value, i, count)
        return f"{value}.s{i:x}"

    def shuffle(self, value: Expression, dtype: DType, distance: int) -> Expression:
        """A function of cl_intel_subgroups, for numbers of 32 and 64 bits. The extension
        cl_intel_required_subgroup_size makes a sub-group as large as a warp."""
        self._sub_group = self.warp_lanes
        return call("intel_sub_group_shuffle_xor", value[0], f"{distance}u")

    def tile_function(self, name: str, core: TensorCore, bits: DType) -> str:
        """Return a function that calls cl_intel_subgroup_matrix_multiply_accumulate. Two columns of
        A are an int in sub-groups of 8, one column is a short in sub-groups of 16; two rows of B
        are always an int."""
        if not core.instruction.startswith("intel_"):
            return super().tile_function(name, core, bits)
        self._sub_group = core.lanes
        a, b = (self.vector(bits.vec(f.per_lane)) for f in (core.a, core.b))
        total = self.vector(core.accumulator.vec(core.c.per_lane))
        rows, columns = "ab"
        if bits is dtypes.float16:  # compilers remove this conversion together with the load's
            rows, columns = f"convert_half{core.a.per_lane}(a)", "convert_half16(b)"
            self.declarations["half"] = _HALF_TYPE
        rows = f"as_{'int8' if core.lanes == 8 else 'short8'}({rows})"
        return (
            f"static inline {total} {name}({a} a, {b} b, {total} c) {{\n"
            f"  return {core.instruction}({rows}, as_int8({columns}), c);\n}}"
        )

    def bitcast(self, value: Expression, source: DType, dtype: DType) -> Expression:
        if source is dtypes.float16:
            return self.cast(self._called("bits_of_half", value), dtypes.uint16, dtype)
        if dtype is dtypes.float16:
            return self._called("half_of_bits", self.cast(value, source, dtypes.uint16))
        return call(f"as_{self.scalar(dtype)}", value[0])

    def load_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, constant: bool
    ) -> str | None:
        if dtype.scalar is dtypes.float16:
            word = "vloada" if aligned else "vload"
            return f"{word}_half{dtype.count}(0, &{name}[{index}])"
        whole = super().load_vector(name, index, dtype, space, aligned, constant)
        return whole or f"vload{dtype.count}(0, &{name}[{index}])"

    def store_vector(
        self, name: str, index: str, dtype: DType, space: str, aligned: bool, value: str
    ) -> str | None:
        if dtype.scalar is dtypes.float16:
            word = "vstorea" if aligned else "vstore"
            return f"{word}_half{dtype.count}_rte({value}, 0, &{name}[{index}]);"
        whole = super().store_vector(name, index, dtype, space, aligned, value)
        return whole or f"vstore{dtype.count}({value}, 0, &{name}[{index}]);"

    def shared_array(self, dtype: DType, name: str, size: int) -> str:
        return self._array("__local ", dtype, name, size, "")

    def array(self, dtype: DType, name: str, size: int, zeros: bool) -> str:
        return self._array("", dtype, name, size, " = {0}" if zeros else "")

    def _array(self, space: str, dtype: DType, name: str, size: int, value: str) -> str:
        """Return a declaration: without cl_khr_fp16 there are pointers to half, but no arrays."""
        if dtype.scalar is not dtypes.float16:
            kind = self.in_memory(dtype)
            return f"{space}{kind} {name}[{size}] {_ALIGNED}{value};"
        bits = f"{space}ushort {name}_bits[{size}] {_ALIGNED}{value};"
        return f"{bits} {space}half *const {name} = ({space}half *){name}_bits;"

    def number(self, role: LoopRole, dimension: int) -> str:
        return f"get_{'group' if role == 'grid' else 'local'}_id({dimension})"

    def head(self, name: str, parameters: Sequence[Parameter], launch: LaunchShape) -> list[str]:
        listed = ", ".join(map(self.pointer, parameters))
        size = ", ".join(map(str, group_size(launch)))
        lines = [f"__kernel __attribute__((reqd_work_group_size({size})))"]
        if self._sub_group:
            lines += [f"__attribute__((intel_reqd_sub_group_size({self._sub_group})))"]
        return [*lines, f"void {name}({listed}) {{"]

    def preamble(self, uses: frozenset[str]) -> list[str]:
        lines = [_NO_CONTRACTION]
        if "float64" in uses:
            lines += [_ENABLE.format("cl_khr_fp64")]
        return lines

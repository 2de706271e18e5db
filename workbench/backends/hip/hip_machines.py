"""AMD GPUs as Targets, with their matrix cores; and the dialect HIP.

Sources: AMD CDNA 3 Architecture, white paper 2023 (units, rates of a compute unit, caches, local
data share, Infinity Cache); AMD Instinct MI300X Accelerator, data sheet 2023 (clock, peaks,
memory); AMD Instinct MI300 Instruction Set Architecture, reference guide 2024 (registers, waves);
the AMDGPU code generator's AMDGPUBaseInfo.cpp, 2026 (multiples of registers, groups of a compute
unit).

Sections: The matrix cores of AMD's GPUs; The AMD GPUs, as Targets; HIP (AMD, HIP documentation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.backends.c_like.dialect import COMPONENTS
from workbench.backends.gpu.cpp import COMMENT, HEAD, WORD, GpuCpp
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.program.text import ATOM, Expression, Language, call
from workbench.base.dtypes import DType, dtypes
from workbench.base.target import SHUFFLE_ALL, Hardware, Target
from workbench.base.tensor_cores import Fragment, TensorCore

# --------------------------------------------------------------------------------------------------
# The matrix cores of AMD's GPUs.
#
# Sources: AMD matrix instruction calculator (register layouts of v_mfma_*, CDNA2 and CDNA3); "How
# to accelerate AI applications on RDNA 3 using WMMA", GPUOpen 2023, and the RDNA3 ISA, section
# "Wave matrix multiply accumulate": there lanes 16 to 31 hold copies of the elements of A and B
# that lanes 0 to 15 hold.

_F32 = dtypes.float32
_WORDS = {dtypes.float16: "f16", dtypes.bfloat16: "bf16_1k", _F32: "f32"}
_SQUARE_16 = Fragment("n0 n1 n2 n3 m2 m3", "m0 m1")
_SQUARE_32 = Fragment("n0 n1 n2 n3 n4 m2", "m0 m1 m3 m4")


def _mfma(size: int, operand: DType) -> TensorCore:
    """Return v_mfma_f32 of 16x16 or 32x32: a lane has 4 elements along k, or 1 of float32."""
    inside = "" if operand is _F32 else "k0 k1"
    outside = ["k0", "k1"] if operand is _F32 else ["k2", "k3"]
    rest = " ".join(outside[: 2 if size == 16 else 1])
    bits = size.bit_length() - 1
    rows, columns = (" ".join(f"{x}{i}" for i in range(bits)) for x in "mn")
    a, b = (Fragment(f"{line} {rest}", inside) for line in (rows, columns))
    k = a.size("k")
    name = f"__builtin_amdgcn_mfma_f32_{size}x{size}x{k}{_WORDS[operand]}"
    c = _SQUARE_16 if size == 16 else _SQUARE_32
    return TensorCore(size, size, k, operand, _F32, 64, a, b, c, name)


def _wmma(operand: DType) -> TensorCore:
    word = {dtypes.float16: "f16", dtypes.bfloat16: "bf16"}[operand]
    steps = "k0 k1 k2 k3"
    return TensorCore(
        16, 16, 16, operand, _F32, 32, Fragment("m0 m1 m2 m3 -", steps),
        Fragment("n0 n1 n2 n3 -", steps), Fragment("n0 n1 n2 n3 m0", "m1 m2 m3"),
        f"__builtin_amdgcn_wmma_f32_16x16x16_{word}_w32",
    )  # fmt: skip


RDNA3 = (_wmma(dtypes.float16), _wmma(dtypes.bfloat16))
CDNA = tuple(
    _mfma(size, operand) for operand in (dtypes.float16, dtypes.bfloat16, _F32) for size in (16, 32)
)


def tensor_cores(arch: str) -> tuple[TensorCore, ...]:
    """Return the matrix cores of an architecture such as "gfx1100", the preferred first."""
    if arch.startswith("gfx11"):
        return RDNA3
    return CDNA if arch in ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950") else ()


# --------------------------------------------------------------------------------------------------
# The AMD GPUs, as Targets.

CONVERSIONS = (dtypes.float16, dtypes.bfloat16)
"""The low-precision types of the language."""
MI300X = Hardware(
    name="MI300X",
    about="AMD Instinct MI300X (CDNA 3)",
    sources=(
        "AMD CDNA 3 Architecture, white paper 2023",
        "AMD Instinct MI300X Accelerator, data sheet 2023",
        "AMD Instinct MI300 Instruction Set Architecture, reference guide 2024",
        "The AMDGPU code generator, AMDGPUBaseInfo.cpp, 2026",
    ),
    arch="gfx942",
    units=304,
    lanes=128,
    clock_hz=2.1e9,
    peaks=(("float32", 163.4e12), ("float64", 81.7e12), ("float16", 163.4e12)),
    bandwidths=(
        ("DRAM", 5.3e12), ("L3", 17.2e12), ("L2", 8 * 2048 * 2.1e9),
        ("shared", 304 * 128 * 2.1e9),
    ),
    tensor_peaks=(
        ("float16", 1307.4e12), ("bfloat16", 1307.4e12), ("tf32", 653.7e12),
        ("float32", 163.4e12), ("float64", 163.4e12), ("int8", 2614.9e12),
    ),
    memory_bytes=192 << 30,
    unit_registers=4 * 512 * 64,
    unit_items=4 * 8 * 64,
    unit_groups=16,
    unit_shared_bytes=64 << 10,
    item_registers=512,
    partitions=4,
    register_block=8 * 64,
    shared_block=512,
)  # fmt: skip
MACHINES: Mapping[str, Target] = {
    "MI300X": Target(
        "MI300X",
        vector_bytes=16,
        caches=(("L1", 32 << 10), ("L2", 8 * (4 << 20)), ("L3", 256 << 20)),
        line_bytes=128,
        native_transcendentals=True,
        conversions=CONVERSIONS,
        cores=MI300X.units,
        grid_limits=((1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1),
        group_items=1024,
        warp_lanes=64,
        shuffle_dtypes=SHUFFLE_ALL,
        shared_bytes=64 << 10,
        stack_bytes=1 << 30,
        scratch_bytes=16 << 10,
        hardware=MI300X,
        tensor_cores=tensor_cores(MI300X.arch),
    )
}
"""The machines of the HIP device, by name."""


def machine_of(gpu: str, arch: str, units: int, clock_hz: float, memory_bytes: int) -> Target:
    """Return the Target of this machine's GPU, from what its driver reports. It is the Target of a
    machine in MACHINES with the same name or architecture, at the GPU's own units, clock and
    memory; for any other GPU it has no Hardware."""
    for machine in MACHINES.values():
        row = machine.hardware
        assert row is not None
        is_named = row.name in gpu.split()
        if is_named or row.arch == arch:
            own = row.at(units, clock_hz, memory_bytes)
            names = (own.name, own.about) if is_named else (gpu, gpu)
            own = replace(own, name=names[0], about=names[1], arch=arch)
            return replace(machine, hardware=own)
    cores = tensor_cores(arch)
    return replace(common_gpu(gpu), conversions=CONVERSIONS, tensor_cores=cores)


# --------------------------------------------------------------------------------------------------
# HIP (AMD, HIP documentation): CUDA's words, and vectors with operators.
#
# Vectors of up to 4 lanes have HIP's types. Longer ones, those of 16-bit floats, and operands of
# instructions have types of clang's vectors, to which HIP's are converted bit by bit.

HIP_CPP = Language("HIP", "HIP, the program of one work-item", COMMENT, WORD, HEAD)
_ELEMENTS = {
    dtypes.float16: "_Float16", dtypes.bfloat16: "short", dtypes.float32: "float",
}  # fmt: skip
"""The types of operands in instructions."""


class HipCpp(GpuCpp):
    """The dialect. The types of clang's vectors that a kernel uses are defined before it."""

    language = HIP_CPP
    types = {**GpuCpp.types, "float16": "_Float16", "bfloat16": "__bf16"}

    def has_vector(self, dtype: DType) -> bool:
        return True

    def vector(self, dtype: DType) -> str:
        if _is_of_hip(dtype):
            return super().vector(dtype)
        kind = self.scalar(dtype)
        name = f"{dtype.scalar.name}_x{dtype.count}"
        self.declarations[name] = _typedef(kind, dtype.count, name)
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
        """Return a function that calls the compiler's builtin for v_mfma or v_wmma."""
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


def _is_of_hip(dtype: DType) -> bool:
    return dtype.count <= len(COMPONENTS) and not dtype.is_low_precision


def _typedef(kind: str, count: int, name: str) -> str:
    return f"typedef {kind} {name} __attribute__((ext_vector_type({count})));"

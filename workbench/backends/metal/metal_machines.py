"""Apple GPUs as Targets, with their tensor cores.

Sources: Apple, MacBook Air (13-inch, M3, 2024), technical specifications (cores, bandwidth of
memory); Apple, Metal Feature Set Tables, 2023, family Apple 9 (work-items of a group, shared
memory); P. Turner, metal-benchmarks, 2023 (lanes of a core, which Apple does not publish);
Notebookcheck, Apple M3 10-Core GPU, 2023 (clock, which Apple does not publish). The registers and
work-items that a core holds are not published, and change while a kernel runs.

Sections: simdgroup_matrix of Apple's GPUs, from the seventh family (M1) on; The Apple GPUs, as
Targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workbench.backends.gpu.work_group_device import common_gpu
from workbench.base.dtypes import DType, dtypes
from workbench.base.target import SHUFFLE_WORDS, Hardware, Target
from workbench.base.tensor_cores import Fragment, TensorCore

# --------------------------------------------------------------------------------------------------
# simdgroup_matrix of Apple's GPUs, from the seventh family (M1) on.
#
# Sources: Metal Shading Language Specification, 2.7 and 6.7 (simdgroup_matrix, 8 x 8); Apple does
# not document which lane holds which element: P. Turner, metal-benchmarks, "SIMD-group matrix",
# measured it, and MLX (`steel/gemm/mma.h`) relies on it.


def _layout(row: str, column: str) -> Fragment:
    return Fragment(f"{column}1 {row}0 {row}1 {column}2 {row}2", f"{column}0")


def _simdgroup(operand: DType) -> TensorCore:
    return TensorCore(
        8, 8, 8, operand, dtypes.float32, 32, _layout("m", "k"), _layout("k", "n"),
        _layout("m", "n"), "simdgroup_multiply_accumulate",
    )  # fmt: skip


SIMDGROUP = (_simdgroup(dtypes.float16), _simdgroup(dtypes.float32))


def tensor_cores(arch: str) -> tuple[TensorCore, ...]:
    """Return the tensor cores of an architecture such as "apple7"; earlier ones have none."""
    family = arch.lower().removeprefix("apple")
    return SIMDGROUP if family.isdecimal() and int(family) >= 7 else ()


# --------------------------------------------------------------------------------------------------
# The Apple GPUs, as Targets.

CONVERSIONS = (dtypes.float16, dtypes.bfloat16)
"""The low-precision types of the language."""
M3 = Hardware(
    name="M3",
    about="Apple M3, the GPU with 10 cores",
    sources=(
        "Apple, MacBook Air (13-inch, M3, 2024), technical specifications, 2024",
        "Apple, Metal Feature Set Tables, 2023",
        "P. Turner, metal-benchmarks, 2023",
        "Notebookcheck, Apple M3 10-Core GPU, 2023",
    ),
    arch="apple9",
    units=10,
    lanes=128,
    clock_hz=1.38e9,
    peaks=(("float32", 3.53e12), ("float16", 3.53e12)),
    bandwidths=(("DRAM", 100e9), ("shared", 10 * 128 * 1.38e9)),
    memory_bytes=8 << 30,
    unit_shared_bytes=32 << 10,
    launch_s=1e-5,
)
MACHINES: Mapping[str, Target] = {
    "M3": Target(
        "M3",
        vector_bytes=16,
        caches=(("L1", 8 << 10), ("L2", 8 << 20)),
        line_bytes=128,
        native_transcendentals=True,
        conversions=CONVERSIONS,
        cores=M3.units,
        grid_limits=((1 << 31) - 1,) * 3,
        group_items=1024,
        warp_lanes=32,
        shuffle_dtypes=SHUFFLE_WORDS,
        shared_bytes=32 << 10,
        stack_bytes=1 << 30,
        scratch_bytes=16 << 10,
        hardware=M3,
        tensor_cores=tensor_cores(M3.arch),
    )
}
"""The machines of the METAL device, by name."""


def machine_of(gpu: str, arch: str, memory_bytes: int) -> Target:
    """Return the Target of this machine's GPU, from the name and family that its driver reports and
    the bytes that it may use. It is the Target of a machine in MACHINES with the same name; for any
    other GPU it has no Hardware, since Metal does not report units and clocks."""
    for machine in MACHINES.values():
        row = machine.hardware
        assert row is not None
        if gpu == f"Apple {row.name}":
            return replace(machine, hardware=replace(row, memory_bytes=memory_bytes))
    cores = tensor_cores(arch) if arch else ()
    return replace(common_gpu(gpu), conversions=CONVERSIONS, tensor_cores=cores)

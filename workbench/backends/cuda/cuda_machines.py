"""NVIDIA GPUs as Targets: their tensor cores, generations and machines.

Sources: the architecture whitepapers and data sheets named with each machine; the sources of a
generation are named in the section on generations.

Sections: The tensor cores of NVIDIA's GPUs; Generations of NVIDIA GPUs; The NVIDIA GPUs, as
Targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.base.dtypes import DType, dtypes
from workbench.base.target import SHUFFLE_ALL, Hardware, Rates, Target
from workbench.base.tensor_cores import Fragment, TensorCore

# --------------------------------------------------------------------------------------------------
# The tensor cores of NVIDIA's GPUs.
#
# Source: PTX ISA 8.5, "Matrix multiply-accumulate operation using mma instruction", the sections
# "Matrix Fragments for mma.m8n8k4 with .f64", "mma.m16n8k8", "mma.m16n8k16" and "mma.m16n8k32". Its
# groupID is the lane's number // 4, its threadID_in_group the lane's number % 4.

LANES = 32
_C = Fragment("n1 n2 m0 m1 m2", "n0 m3")
_TYPES = {
    dtypes.float16: "f16", dtypes.bfloat16: "bf16", dtypes.float32: "tf32",
    dtypes.int8: "s8", dtypes.fp8e4m3: "e4m3", dtypes.fp8e5m2: "e5m2",
}  # fmt: skip


def _mma(k: int, operand: DType, a: Fragment, b: Fragment) -> TensorCore:
    word = _TYPES[operand]
    is_int = operand.is_int
    total, accumulator = ("s32", dtypes.int32) if is_int else ("f32", dtypes.float32)
    name = f"mma.sync.aligned.m16n8k{k}.row.col.{total}.{word}.{word}.{total}"
    rounded = "tf32" if operand is dtypes.float32 else ""
    return TensorCore(16, 8, k, operand, accumulator, LANES, a, b, _C, name, rounded)


def _of_16_bits(k: int, operand: DType) -> TensorCore:
    more = " k3" if k == 16 else ""
    a = Fragment("k1 k2 m0 m1 m2", f"k0 m3{more}")
    return _mma(k, operand, a, Fragment("k1 k2 n0 n1 n2", f"k0{more}"))


def _of_8_bits(operand: DType) -> TensorCore:
    a = Fragment("k2 k3 m0 m1 m2", "k0 k1 m3 k4")
    return _mma(32, operand, a, Fragment("k2 k3 n0 n1 n2", "k0 k1 k4"))


_TF32 = _mma(
    8, dtypes.float32, Fragment("k0 k1 m0 m1 m2", "m3 k2"), Fragment("k0 k1 n0 n1 n2", "k2")
)
_F64 = TensorCore(
    8, 8, 4, dtypes.float64, dtypes.float64, LANES,
    Fragment("k0 k1 m0 m1 m2"), Fragment("k0 k1 n0 n1 n2"),
    Fragment("n1 n2 m0 m1 m2", "n0"), "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
)  # fmt: skip

TURING = (_of_16_bits(8, dtypes.float16),)
AMPERE = (
    _of_16_bits(16, dtypes.float16), _of_16_bits(16, dtypes.bfloat16),
    _of_16_bits(8, dtypes.float16), _of_16_bits(8, dtypes.bfloat16),
    _of_8_bits(dtypes.int8), _F64, _TF32,
)  # fmt: skip
ADA = (*AMPERE, _of_8_bits(dtypes.fp8e4m3), _of_8_bits(dtypes.fp8e5m2))


def tensor_cores(arch: str) -> tuple[TensorCore, ...]:
    """Return the tensor cores of an architecture such as "sm_90", the preferred first."""
    number = int(arch.removeprefix("sm_").rstrip("af") or 0)
    for least, cores in ((89, ADA), (80, AMPERE), (75, TURING)):
        if number >= least:
            return cores
    return ()


# --------------------------------------------------------------------------------------------------
# Generations of NVIDIA GPUs: the shared limits and rates of their multiprocessors.
#
# Sources: for limits the table "Technical Specifications per Compute Capability" and for rates the
# table "Arithmetic Instructions" of NVIDIA's CUDA C++ Programming Guide; for how registers and
# shared memory are handed out NVIDIA's occupancy calculator (cuda_occupancy.h of the CUDA Toolkit
# 13.0); for tensor cores, the peaks of the architecture whitepapers by units and clock: T4
# (Turing), A100, GA102 (with accumulators of float32), RTX 4090, H100, and for the generations
# after it H100's rates, which mma.sync does not exceed. Shared memory has 32 banks of 4 bytes per
# cycle (CUDA C++ Programming Guide, "Shared Memory").

CONVERSIONS = (dtypes.float16, dtypes.bfloat16)
"""The low-precision types of the language."""
BANK_BYTES = 32 * 4
GROUP_SHARED_BYTES = 48 << 10
"""Most bytes of a group's shared arrays whose sizes stand in the program; arrays with a size in the
launch may have all that a unit has."""
READS_MATRICES = 75
COPIES_ASYNC = 80
"""The first compute capabilities with ldmatrix and cp.async."""
RESERVED_SHARED_BYTES = 1 << 10
"""Shared memory that the system takes for itself in each group."""


@dataclass(frozen=True)
class Generation:
    """A multiprocessor of a generation. It begins `lanes` multiply-adds of float32 per cycle.
    `shares` has the rates of other dtypes relative to float32's, `tensor_rates` the operations of
    its tensor cores per cycle, by the format of the operands."""

    lanes: int
    unit_items: int
    unit_groups: int
    unit_shared_bytes: int
    l1_bytes: int
    shares: Rates
    tensor_rates: Rates


_TURING = Generation(
    64, 1024, 16, 64 << 10, 96 << 10,
    (("float64", 1 / 32), ("float16", 2), ("int32", 1)),
    (("float16", 1024), ("int8", 2048)),
)  # fmt: skip
_A100 = Generation(
    64, 2048, 32, 164 << 10, 192 << 10,
    (("float64", 1 / 2), ("float16", 4), ("bfloat16", 2), ("int32", 1)),
    (
        ("float16", 2048), ("bfloat16", 2048), ("tf32", 1024), ("float64", 128), ("int8", 4096),
    ),
)  # fmt: skip
_HALF_RATES: Rates = (
    ("float64", 1 / 64), ("float16", 1), ("bfloat16", 1), ("int32", 1 / 2),
)  # fmt: skip
_AMPERE = Generation(
    128, 1536, 16, 100 << 10, 128 << 10, _HALF_RATES,
    (("float16", 512), ("bfloat16", 512), ("tf32", 256), ("int8", 2048)),
)  # fmt: skip
_ADA = Generation(
    128, 1536, 24, 100 << 10, 128 << 10, _HALF_RATES,
    (
        ("float16", 512), ("bfloat16", 512), ("tf32", 256), ("int8", 2048),
        ("fp8e4m3", 1024), ("fp8e5m2", 1024),
    ),
)  # fmt: skip
_SUSTAINED = 1.83 / 1.98
"""The clock of H100's published peaks of tensor cores, as a share of its highest clock."""
_HOPPER = Generation(
    128, 2048, 32, 228 << 10, 256 << 10,
    (("float64", 1 / 2), ("float16", 2), ("bfloat16", 2), ("int32", 1 / 2)),
    (
        ("float16", 4096 * _SUSTAINED), ("bfloat16", 4096 * _SUSTAINED),
        ("tf32", 2048 * _SUSTAINED), ("float64", 256), ("int8", 8192 * _SUSTAINED),
        ("fp8e4m3", 8192 * _SUSTAINED), ("fp8e5m2", 8192 * _SUSTAINED),
    ),
)  # fmt: skip
GENERATIONS = {
    75: _TURING, 80: _A100, 86: _AMPERE, 87: _AMPERE, 89: _ADA, 90: _HOPPER, 120: _ADA,
}  # fmt: skip
"""Generations by compute capability, without its dot: 90 is 9.0."""


def capability(arch: str) -> int:
    """Return the compute capability of an architecture such as "sm_90", without its dot: 90."""
    return int(arch.removeprefix("sm_").rstrip("af"))


def generation(arch: str) -> Generation:
    """Return the generation of an architecture such as "sm_90"; one that is not in the table has
    the last generation before it, or else the first one."""
    number = capability(arch)
    earlier = [each for each in GENERATIONS if each <= number]
    return GENERATIONS[max(earlier, default=min(GENERATIONS))]


def hardware(
    name: str,
    about: str,
    sources: tuple[str, ...],
    arch: str,
    units: int,
    clock_hz: float,
    dram: float,
    memory_bytes: int,
    l2: float = 0.0,
) -> Hardware:
    """Return the Hardware of a GPU: the limits of its generation, and rates by units and clock.

    Units: `dram` and `l2` are bytes per second (0: not known).
    """
    unit = generation(arch)
    float32 = 2.0 * unit.lanes * units * clock_hz
    tensor_cycles = units * clock_hz
    shared = units * BANK_BYTES * clock_hz
    levels = ("DRAM", dram), ("L2", l2), ("shared", shared)
    return Hardware(
        name=name,
        about=about,
        sources=sources,
        arch=arch,
        units=units,
        lanes=unit.lanes,
        clock_hz=clock_hz,
        peaks=(("float32", float32), *((d, float32 * s) for d, s in unit.shares)),
        bandwidths=tuple((level, speed) for level, speed in levels if speed),
        tensor_peaks=tuple((f, tensor_cycles * rate) for f, rate in unit.tensor_rates),
        memory_bytes=memory_bytes,
        unit_registers=65536,
        unit_items=unit.unit_items,
        unit_groups=unit.unit_groups,
        unit_shared_bytes=unit.unit_shared_bytes,
        item_registers=255,
        partitions=4,
        register_block=256,
        shared_block=128,
        group_shared_bytes=RESERVED_SHARED_BYTES,
    )


def target(device: str, hardware: Hardware, l2_bytes: int) -> Target:
    """Return the Target of a GPU."""
    return Target(
        device,
        vector_bytes=16,
        caches=(("L1", generation(hardware.arch).l1_bytes), ("L2", l2_bytes)),
        line_bytes=128,
        native_transcendentals=True,
        conversions=CONVERSIONS,
        cores=hardware.units,
        grid_limits=((1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1),
        group_items=1024,
        group_limits=(1024, 1024, 64),
        warp_lanes=32,
        shuffle_dtypes=SHUFFLE_ALL,
        shared_bytes=hardware.unit_shared_bytes - hardware.group_shared_bytes,
        stack_bytes=1 << 30,
        scratch_bytes=16 << 10,
        hardware=hardware,
        reads_matrices=capability(hardware.arch) >= READS_MATRICES,
        copies_async=capability(hardware.arch) >= COPIES_ASYNC,
        tensor_cores=tensor_cores(hardware.arch),
    )


# --------------------------------------------------------------------------------------------------
# The NVIDIA GPUs, as Targets.

_HOPPER_PAPER = "NVIDIA H100 Tensor Core GPU Architecture, whitepaper 2022, tables 1 to 4"
_HOPPER_L2 = "Chips and Cheese, Nvidia's H100: Funny L2, and Tons of Bandwidth, 2023"
_HOPPER_L2_SPEED = 5.7e12
"""Bytes per second of reads from L2, measured by that source; NVIDIA publishes none."""
_H100_CLOCK_HZ = 1.98e9
H100 = hardware(
    "H100",
    "NVIDIA H100 SXM5 80 GB (Hopper)",
    (_HOPPER_PAPER, _HOPPER_L2),
    "sm_90",
    units=132,
    clock_hz=_H100_CLOCK_HZ,
    dram=3.35e12,
    memory_bytes=80 << 30,
    l2=_HOPPER_L2_SPEED,
)
H200 = hardware(
    "H200",
    "NVIDIA H200 SXM 141 GB (Hopper)",
    (_HOPPER_PAPER, "NVIDIA H200 Tensor Core GPU, data sheet 2023", _HOPPER_L2),
    "sm_90",
    units=132,
    clock_hz=_H100_CLOCK_HZ,
    dram=4.8e12,
    memory_bytes=141 << 30,
    l2=_HOPPER_L2_SPEED,
)
A100 = hardware(
    "A100",
    "NVIDIA A100 SXM4 40 GB (Ampere)",
    ("NVIDIA A100 Tensor Core GPU Architecture, whitepaper 2020, tables 1 to 5",),
    "sm_80",
    units=108,
    clock_hz=1.41e9,
    dram=1.555e12,
    memory_bytes=40 << 30,
    l2=5120 * 1.41e9,
)
RTX_4090 = hardware(
    "RTX 4090",
    "NVIDIA GeForce RTX 4090 (Ada Lovelace)",
    ("NVIDIA Ada GPU Architecture, whitepaper 2022, appendix A",),
    "sm_89",
    units=128,
    clock_hz=2.52e9,
    dram=1.008e12,
    memory_bytes=24 << 30,
)
MACHINES: Mapping[str, Target] = {
    "H100": target("H100", H100, 50 << 20),
    "H200": target("H200", H200, 50 << 20),
    "A100": target("A100", A100, 40 << 20),
    "RTX 4090": target("RTX 4090", RTX_4090, 72 << 20),
}
"""The machines of the CUDA device, by name."""


def hardware_here(
    gpu: str, arch: str, units: int, clock_hz: float, memory_bytes: int, dram: float
) -> Hardware:
    """Return the Hardware of this machine's GPU, from what its driver reports: its name, such as
    "NVIDIA H100 80GB HBM3", and `dram`, the speed of its memory in bytes per second. Published
    speeds are used where name, units and memory are those of a machine in MACHINES; any other GPU
    has the figures of its generation."""
    row = _machine_named(gpu)
    if row is not None and row.units == units and _fits_data_sheet(row.memory_bytes, memory_bytes):
        l2 = row.bandwidth("L2") * clock_hz / row.clock_hz
        names = row.name, row.about, row.sources
        return hardware(*names, arch, units, clock_hz, row.bandwidth("DRAM"), memory_bytes, l2)
    sources = (f"the driver of the GPU, and its generation's ({arch})",)
    name = gpu.removeprefix("NVIDIA ")
    return hardware(name, gpu, sources, arch, units, clock_hz, dram, memory_bytes)


def _machine_named(gpu: str) -> Hardware | None:
    words = gpu.upper().replace("-", " ").split()
    for name, machine in MACHINES.items():
        parts = name.upper().split()
        if any(words[i : i + len(parts)] == parts for i in range(len(words))):
            return machine.hardware
    return None


def _fits_data_sheet(published_bytes: int, memory_bytes: int) -> bool:
    """Return whether a GPU has the memory of its data sheet within 10%: the system takes a part."""
    return 0.9 < memory_bytes / published_bytes < 1.1

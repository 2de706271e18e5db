"""Generations of NVIDIA GPUs: the shared limits and rates of their multiprocessors.

Sources: for limits the table "Technical Specifications per Compute Capability" and for rates the
table "Arithmetic Instructions" of NVIDIA's CUDA C++ Programming Guide; for how registers and shared
memory are handed out NVIDIA's occupancy calculator (cuda_occupancy.h of the CUDA Toolkit 13.0); for
tensor cores, the peaks of the architecture whitepapers by units and clock: T4 (Turing), A100, GA102
(with accumulators of float32), RTX 4090, H100, and for the generations after it H100's rates, which
mma.sync does not exceed. Shared memory has 32 banks of 4 bytes per cycle (CUDA C++ Programming
Guide, "Shared Memory").
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.backends.cuda.tensor_cores import tensor_cores
from workbench.base.dtypes import dtypes
from workbench.base.target import SHUFFLE_ALL, Hardware, Rates, Target

CONVERSIONS = (dtypes.float16, dtypes.bfloat16)
"""What the language has types of."""
BANK_BYTES = 32 * 4
GROUP_SHARED_BYTES = 48 << 10
"""Shared memory of a group whose arrays have their sizes in the program; all that a unit has, where
its launch says so."""
READS_MATRICES = 75
COPIES_ASYNC = 80
"""The first compute capabilities with ldmatrix and cp.async."""
RESERVED_SHARED_BYTES = 1 << 10
"""Shared memory of each group that is the system's."""


@dataclass(frozen=True)
class Generation:
    """One multiprocessor. `lanes` multiply-adds of float32 begin in it per cycle; `shares` are the
    rates of other dtypes, as a share of float32's; `tensor_rates` the operations of its tensor
    cores per cycle, by the format of the operands."""

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
"""The clock of H100's published peaks of tensor cores, as a share of its greatest one."""
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
"""By compute capability, without its dot."""


def capability(arch: str) -> int:
    """Return the compute capability of an architecture such as "sm_90", without its dot: 90."""
    return int(arch.removeprefix("sm_").rstrip("af"))


def generation(arch: str) -> Generation:
    """Return the generation of an architecture such as "sm_90": of one that is in no table, the
    last one before it."""
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
    """Return the figures of a GPU. Units: `dram` and `l2` are bytes per second (0: not known)."""
    one = generation(arch)
    float32 = 2.0 * one.lanes * units * clock_hz
    tensor_cycles = units * clock_hz
    shared = units * BANK_BYTES * clock_hz
    levels = ("DRAM", dram), ("L2", l2), ("shared", shared)
    return Hardware(
        name=name,
        about=about,
        sources=sources,
        arch=arch,
        units=units,
        lanes=one.lanes,
        clock_hz=clock_hz,
        peaks=(("float32", float32), *((d, float32 * s) for d, s in one.shares)),
        bandwidths=tuple((level, speed) for level, speed in levels if speed),
        tensor_peaks=tuple((f, tensor_cycles * rate) for f, rate in one.tensor_rates),
        memory_bytes=memory_bytes,
        unit_registers=65536,
        unit_items=one.unit_items,
        unit_groups=one.unit_groups,
        unit_shared_bytes=one.unit_shared_bytes,
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

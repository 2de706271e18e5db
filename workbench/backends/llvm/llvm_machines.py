"""The processors that LLVM compiles for, as Targets.

Each names its sources. The peaks follow from the vector units and the given clock: multiply-adds of
float32 that begin in a core per cycle, times two, times cores and clock.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.backends.native.machine import absence, multiply_add, tensor_cores
from workbench.base.dtypes import dtypes
from workbench.base.target import Hardware, Target


def _target(
    hardware: Hardware,
    vector_bytes: int,
    vector_registers: int,
    cache_bytes: tuple[int, ...],
    ways: tuple[int, ...],
    features: tuple[str, ...] = (),
) -> Target:
    """Return the Target of a processor. `cache_bytes` are the sizes of its caches, from the first
    on, `ways` the lines in their sets, `features` LLVM's names for its matrix instructions."""
    cores, fma = tensor_cores(features), multiply_add(hardware.arch)
    return Target(
        hardware.name,
        vector_bytes=vector_bytes,
        vector_registers=vector_registers,
        fma_cycles=fma.cycles,
        fma_starts=fma.starts,
        caches=tuple((f"L{n}", size) for n, size in enumerate(cache_bytes, 1)),
        ways=tuple((f"L{n}", each) for n, each in enumerate(ways, 1)),
        non_temporal_bytes=cache_bytes[-1],
        conversions=(dtypes.float16,),
        cores=hardware.units,
        hardware=hardware,
        tensor_cores=cores,
        no_tensor_cores="" if cores else absence(hardware.triple.partition("-")[0]),
    )


GRAVITON3 = Hardware(
    name="Graviton3",
    about="AWS Graviton3, 64 Neoverse V1 cores (SVE with vectors of 256 bits)",
    sources=(
        "AWS, Graviton3 and C7g instances, announcements 2021 and 2022",
        "Arm, Neoverse V1 Core Software Optimization Guide, 2021",
        "Arm, Neoverse V1 Core Technical Reference Manual, 2021",
    ),
    arch="neoverse-v1",
    triple="aarch64-unknown-linux-gnu",
    units=64,
    lanes=2 * 8,
    clock_hz=2.6e9,
    peaks=(("float32", 5.3e12), ("float64", 2.66e12), ("float16", 10.6e12)),
    bandwidths=(("DRAM", 8 * 8 * 4.8e9), ("L1", 64 * 2 * 32 * 2.6e9)),
    tensor_peaks=(("bfloat16", 64 * 2 * 64 * 2.6e9),),
    memory_bytes=128 << 30,
)
GRAVITON4 = Hardware(
    name="Graviton4",
    about="AWS Graviton4, 96 Neoverse V2 cores",
    sources=(
        "AWS, Graviton4 and R8g instances, announcements 2023 and 2024",
        "Arm, Neoverse V2 Core Software Optimization Guide, 2023",
        "Arm, Neoverse V2 Core Technical Reference Manual, 2023",
    ),
    arch="neoverse-v2",
    triple="aarch64-unknown-linux-gnu",
    units=96,
    lanes=4 * 4,
    clock_hz=2.8e9,
    peaks=(("float32", 8.6e12), ("float64", 4.3e12), ("float16", 17.2e12)),
    bandwidths=(("DRAM", 12 * 8 * 5.6e9), ("L1", 96 * 3 * 16 * 2.8e9)),
    tensor_peaks=(("bfloat16", 96 * 4 * 32 * 2.8e9),),
    memory_bytes=768 << 30,
)
XEON_8480 = Hardware(
    name="Xeon 8480+",
    about="Intel Xeon Platinum 8480+ (Sapphire Rapids), 56 cores",
    sources=(
        "Intel, Xeon Platinum 8480+ Processor, specifications, 2023",
        "Intel, 64 and IA-32 Architectures Optimization Reference Manual, 2024,"
        " chapters 2 and 20 (AVX-512 of two units, AMX)",
    ),
    arch="sapphirerapids",
    triple="x86_64-unknown-linux-gnu",
    units=56,
    lanes=2 * 16,
    clock_hz=2.0e9,
    peaks=(("float32", 7.17e12), ("float64", 3.58e12), ("float16", 14.3e12)),
    bandwidths=(("DRAM", 8 * 8 * 4.8e9), ("L1", 56 * 2 * 64 * 2.0e9)),
    tensor_peaks=(("bfloat16", 56 * 2048 * 2.0e9), ("int8", 56 * 4096 * 2.0e9)),
    memory_bytes=256 << 30,
)
RASPBERRY_PI_5 = Hardware(
    name="Raspberry Pi 5",
    about="Raspberry Pi 5, 4 Cortex-A76 cores",
    sources=(
        "Raspberry Pi Ltd, Raspberry Pi 5 Product Brief, 2023",
        "Raspberry Pi Ltd, BCM2712 processor documentation, 2023",
        "Arm, Cortex-A76 Software Optimization Guide, 2018",
    ),
    arch="cortex-a76",
    triple="aarch64-unknown-linux-gnu",
    units=4,
    lanes=2 * 4,
    clock_hz=2.4e9,
    peaks=(("float32", 153.6e9), ("float64", 76.8e9), ("float16", 307.2e9)),
    bandwidths=(("DRAM", 4 * 4.267e9), ("L1", 4 * 2 * 16 * 2.4e9)),
    memory_bytes=8 << 30,
)
BANANA_PI_F3 = Hardware(
    name="Banana Pi F3",
    about="Banana Pi BPI-F3, 8 SpacemiT X60 cores (RISC-V with vectors of 256 bits)",
    sources=("SpacemiT, Key Stone K1 data sheet, 2024", "Banana Pi, BPI-F3 documentation, 2024"),
    arch="spacemit-x60",
    triple="riscv64-unknown-linux-gnu",
    units=8,
    lanes=8,
    clock_hz=1.6e9,
    peaks=(("float32", 204.8e9), ("float64", 102.4e9), ("float16", 409.6e9)),
    bandwidths=(("DRAM", 4 * 2.666e9), ("L1", 8 * 32 * 1.6e9)),
    memory_bytes=4 << 30,
)
MACHINES: Mapping[str, Target] = {
    "Graviton3": _target(
        GRAVITON3, 32, 32, (64 << 10, 1 << 20, 32 << 20), (4, 8, 16), ("bf16",)
    ),
    "Graviton4": _target(
        GRAVITON4, 16, 32, (64 << 10, 2 << 20, 36 << 20), (4, 8, 16), ("bf16",)
    ),
    "Xeon 8480+": _target(
        XEON_8480, 64, 32, (48 << 10, 2 << 20, 105 << 20), (12, 16, 15),
        ("amx-bf16", "avx512bf16"),
    ),
    "Raspberry Pi 5": _target(
        RASPBERRY_PI_5, 16, 32, (64 << 10, 512 << 10, 2 << 20), (4, 8, 16)
    ),
    "Banana Pi F3": _target(BANANA_PI_F3, 32, 32, (32 << 10, 512 << 10), (8, 16)),
}  # fmt: skip
"""The Targets by the name of the processor."""

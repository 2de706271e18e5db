"""The AMD GPUs, as Targets.

Sources: AMD CDNA 3 Architecture, white paper 2023 (units, rates of a compute unit, caches, local
data share, Infinity Cache); AMD Instinct MI300X Accelerator, data sheet 2023 (clock, peaks,
memory); AMD Instinct MI300 Instruction Set Architecture, reference guide 2024 (registers, waves);
the AMDGPU code generator's AMDGPUBaseInfo.cpp, 2026 (multiples of registers, groups of a compute
unit).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workbench.backends.gpu.target import common_gpu
from workbench.backends.hip.tensor_cores import tensor_cores
from workbench.base.dtypes import dtypes
from workbench.base.target import SHUFFLE_ALL, Hardware, Target

CONVERSIONS = (dtypes.float16, dtypes.bfloat16)
"""What the language has types of."""
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
"""By name."""


def machine_of(gpu: str, arch: str, units: int, clock_hz: float, memory_bytes: int) -> Target:
    """Return the Target of a GPU that is here, by what its driver says: that of a machine of its
    name or architecture, with its own units, clock and memory; else one without figures."""
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

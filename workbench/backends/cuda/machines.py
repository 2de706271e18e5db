"""GPUs of NVIDIA's, as Targets.

Sources: the architecture whitepapers named with each; for the limits of a multiprocessor the table
"Technical Specifications per Compute Capability" of NVIDIA's CUDA C++ Programming Guide, and for
how registers and shared memory are handed out NVIDIA's occupancy calculator (cuda_occupancy.h of
the CUDA Toolkit 13.0). Shared memory has 32 banks of 4 bytes per cycle (CUDA C++ Programming Guide,
"Shared Memory").
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.backends.cuda.tensor_cores import tensor_cores
from workbench.base.target import Hardware, Target

GROUP_SHARED_BYTES = 48 << 10
"""Shared memory of a group whose arrays have their sizes in the program."""
BANK_BYTES = 32 * 4


def _target(hardware: Hardware, l1_bytes: int, l2_bytes: int) -> Target:
    """Return the Target of a GPU."""
    return Target(
        hardware.name,
        vector_bytes=16,
        caches=(("L1", l1_bytes), ("L2", l2_bytes)),
        line_bytes=128,
        native_transcendentals=True,
        cores=hardware.units,
        grid_limits=((1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1),
        group_items=1024,
        warp_lanes=32,
        shared_bytes=GROUP_SHARED_BYTES,
        stack_bytes=1 << 30,
        scratch_bytes=16 << 10,
        hardware=hardware,
        tensor_cores=tensor_cores(hardware.arch),
    )


A100 = Hardware(
    name="A100",
    about="NVIDIA A100 SXM4 40 GB (Ampere)",
    sources=("NVIDIA A100 Tensor Core GPU Architecture, whitepaper 2020, tables 1 to 5",),
    arch="sm_80",
    units=108,
    lanes=64,
    clock_hz=1.41e9,
    peaks=(
        ("float32", 19.5e12), ("float64", 9.7e12), ("float16", 78e12),
        ("bfloat16", 39e12), ("int32", 19.5e12),
    ),
    bandwidths=(
        ("DRAM", 1.555e12), ("L2", 5120 * 1.41e9), ("shared", 108 * BANK_BYTES * 1.41e9),
    ),
    tensor_peaks=(
        ("float16", 312e12), ("bfloat16", 312e12), ("tf32", 156e12), ("float64", 19.5e12),
        ("int8", 624e12),
    ),
    memory_bytes=40 << 30,
    unit_registers=65536,
    unit_items=2048,
    unit_groups=32,
    unit_shared_bytes=164 << 10,
    item_registers=255,
    partitions=4,
    register_block=256,
    shared_block=128,
    group_shared_bytes=1 << 10,
)  # fmt: skip
H100 = Hardware(
    name="H100",
    about="NVIDIA H100 SXM5 80 GB (Hopper)",
    sources=("NVIDIA H100 Tensor Core GPU Architecture, whitepaper 2022, tables 1 to 4",),
    arch="sm_90",
    units=132,
    lanes=128,
    clock_hz=1.98e9,
    peaks=(
        ("float32", 66.9e12), ("float64", 33.5e12), ("float16", 133.8e12),
        ("bfloat16", 133.8e12), ("int32", 33.5e12),
    ),
    bandwidths=(("DRAM", 3.35e12), ("shared", 132 * BANK_BYTES * 1.98e9)),
    # at 1.83 GHz
    tensor_peaks=(
        ("float16", 989.4e12), ("bfloat16", 989.4e12), ("tf32", 494.7e12),
        ("float64", 66.9e12), ("int8", 1978.9e12), ("fp8e4m3", 1978.9e12), ("fp8e5m2", 1978.9e12),
    ),
    memory_bytes=80 << 30,
    unit_registers=65536,
    unit_items=2048,
    unit_groups=32,
    unit_shared_bytes=228 << 10,
    item_registers=255,
    partitions=4,
    register_block=256,
    shared_block=128,
    group_shared_bytes=1 << 10,
)  # fmt: skip
RTX_4090 = Hardware(
    name="RTX 4090",
    about="NVIDIA GeForce RTX 4090 (Ada Lovelace)",
    sources=("NVIDIA Ada GPU Architecture, whitepaper 2022, appendix A",),
    arch="sm_89",
    units=128,
    lanes=128,
    clock_hz=2.52e9,
    peaks=(
        ("float32", 82.6e12), ("float64", 82.6e12 / 64), ("float16", 82.6e12),
        ("bfloat16", 82.6e12), ("int32", 41.3e12),
    ),
    bandwidths=(("DRAM", 1.008e12), ("shared", 128 * BANK_BYTES * 2.52e9)),
    # that accumulate in float32
    tensor_peaks=(
        ("float16", 165.2e12), ("bfloat16", 165.2e12), ("tf32", 82.6e12), ("int8", 660.6e12),
        ("fp8e4m3", 330.3e12), ("fp8e5m2", 330.3e12),
    ),
    memory_bytes=24 << 30,
    unit_registers=65536,
    unit_items=1536,
    unit_groups=24,
    unit_shared_bytes=100 << 10,
    item_registers=255,
    partitions=4,
    register_block=256,
    shared_block=128,
    group_shared_bytes=1 << 10,
)  # fmt: skip
MACHINES: Mapping[str, Target] = {
    "H100": _target(H100, 256 << 10, 50 << 20),
    "A100": _target(A100, 192 << 10, 40 << 20),
    "RTX 4090": _target(RTX_4090, 128 << 10, 72 << 20),
}
"""By name."""

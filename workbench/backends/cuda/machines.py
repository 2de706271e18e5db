"""GPUs of NVIDIA's, as Targets.

Sources: the architecture whitepapers named with each, and the table "Technical Specifications per
Compute Capability" of the CUDA C++ Programming Guide.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.base.target import Hardware, Target


def _target(hardware: Hardware, shared_bytes: int, l2_bytes: int) -> Target:
    """Return the Target of a GPU whose group may have `shared_bytes`."""
    return Target(
        hardware.name,
        vector_bytes=16,
        caches=(("L1", hardware.unit_shared_bytes), ("L2", l2_bytes)),
        line_bytes=128,
        native_transcendentals=True,
        cores=hardware.units,
        grid_limits=((1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1),
        group_items=1024,
        warp_lanes=32,
        shared_bytes=shared_bytes,
        stack_bytes=1 << 30,
        scratch_bytes=16 << 10,
        hardware=hardware,
    )


H100 = Hardware(
    name="H100",
    about="NVIDIA H100 SXM5 80 GB (Hopper)",
    sources=("NVIDIA H100 Tensor Core GPU Architecture, whitepaper 2022, table 3",),
    arch="sm_90",
    units=132,
    clock_hz=1.83e9,
    peaks=(("float32", 66.9e12), ("float64", 33.5e12), ("float16", 133.8e12)),
    bandwidths=(("DRAM", 3.35e12),),
    tensor_peaks=(("float16", 989.4e12), ("bfloat16", 989.4e12)),
    memory_bytes=80 << 30,
    unit_registers=65536,
    unit_items=2048,
    unit_groups=32,
    unit_shared_bytes=228 << 10,
    item_registers=255,
    register_block=256,
    shared_block=128,
)
MACHINES: Mapping[str, Target] = {"H100": _target(H100, 48 << 10, 50 << 20)}
"""By name."""

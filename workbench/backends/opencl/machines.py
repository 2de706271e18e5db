"""The GPUs that are programmed in OpenCL C, as Targets.

Sources: Intel, oneAPI GPU Optimization Guide, 2023 (execution units, threads, registers, local
memory and work-items of a group of the Xe-LP architecture); Intel, Core i7-1185G7 Processor,
specifications, 2020 (clock); D. Blythe, The Xe GPU Architecture, Hot Chips 32, 2020 (caches,
bandwidth of local memory, rates of dtypes).
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.backends.opencl.tensor_cores import tensor_cores
from workbench.base.dtypes import dtypes
from workbench.base.target import Hardware, Target

IRIS_XE = Hardware(
    name="Iris Xe",
    about="Intel Iris Xe Graphics, 96 execution units (Xe-LP, Core i7-1185G7)",
    sources=(
        "Intel, oneAPI GPU Optimization Guide, 2023",
        "Intel, Core i7-1185G7 Processor, specifications, 2020",
        "D. Blythe, The Xe GPU Architecture, Hot Chips 32, 2020",
    ),
    arch="gen12lp",
    units=6,
    lanes=16 * 8,
    clock_hz=1.35e9,
    peaks=(("float32", 2.07e12), ("float16", 4.15e12)),
    bandwidths=(("DRAM", 68.3e9), ("shared", 6 * 128 * 1.35e9)),
    memory_bytes=8 << 30,
    unit_registers=16 * 7 * 128 * 8,
    unit_items=16 * 7 * 16,
    unit_groups=16,
    unit_shared_bytes=128 << 10,
    item_registers=64,
    partitions=16,
    register_block=128 * 8,
    shared_block=1 << 10,
    launch_s=1e-5,
)
MACHINES: Mapping[str, Target] = {
    "Iris Xe": Target(
        "Iris Xe",
        vector_bytes=16,
        caches=(("L1", 64 << 10), ("L2", 3840 << 10)),
        line_bytes=64,
        native_transcendentals=True,
        conversions=(dtypes.float16,),
        converts_in_memory=True,
        cores=IRIS_XE.units,
        grid_limits=((1 << 31) - 1,) * 3,
        group_items=512,
        warp_lanes=16,
        shuffle_dtypes=("int32", "uint32", "float32", "int64", "uint64"),
        shared_bytes=64 << 10,
        stack_bytes=1 << 30,
        scratch_bytes=16 << 10,
        hardware=IRIS_XE,
        tensor_cores=tensor_cores(IRIS_XE.arch),
    )
}
"""By name."""

"""GPUs that are programmed in OpenCL C, as Targets, with their matrix engines.

Sources: Intel, oneAPI GPU Optimization Guide, 2023 (execution units, threads, registers, local
memory and work-items of a group of the Xe-LP architecture); Intel, Core i7-1185G7 Processor,
specifications, 2020 (clock); D. Blythe, The Xe GPU Architecture, Hot Chips 32, 2020 (caches,
bandwidth of local memory, rates of dtypes).

Sections: The matrix engines of Intel's GPUs (XMX); The GPUs that are programmed in OpenCL C, as
Targets.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.base.dtypes import DType, dtypes
from workbench.base.target import Hardware, Target
from workbench.base.tensor_cores import Fragment, TensorCore

# --------------------------------------------------------------------------------------------------
# The matrix engines of Intel's GPUs (XMX).
#
# Source: OpenCL extension cl_intel_subgroup_matrix_multiply_accumulate. A lane's elements of A are
# one for each of A's 8 rows: in sub-groups of 16 a short, in sub-groups of 8 an int that packs two
# columns. B's rows are packed in pairs, as ints.


def _dpas(lanes: int, operand: DType) -> TensorCore:
    columns = " ".join(f"n{i}" for i in range(lanes.bit_length() - 1))
    a = Fragment("k1 k2 k3", "k0 m0 m1 m2")
    if lanes == 16:
        a = Fragment("k0 k1 k2 k3", "m0 m1 m2")
    word = "f16" if operand is dtypes.float16 else "bf16"
    return TensorCore(
        8, lanes, 16, operand, dtypes.float32, lanes, a, Fragment(columns, "k0 k1 k2 k3"),
        Fragment(columns, "m0 m1 m2"), f"intel_sub_group_{word}_{word}_matrix_mad_k16",
    )  # fmt: skip


XE_HPG = (_dpas(8, dtypes.float16), _dpas(8, dtypes.bfloat16))
XE_HPC = (_dpas(16, dtypes.float16), _dpas(16, dtypes.bfloat16))


def tensor_cores(arch: str) -> tuple[TensorCore, ...]:
    """Return the matrix engines of an architecture: of Arc ("xe-hpg", "dg2") or of Data Center GPU
    Max ("xe-hpc", "pvc")."""
    word = arch.lower().replace("_", "-")
    if word in ("xe-hpg", "dg2", "acm-g10"):
        return XE_HPG
    return XE_HPC if word in ("xe-hpc", "pvc") else ()


# --------------------------------------------------------------------------------------------------
# The GPUs that are programmed in OpenCL C, as Targets.

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
"""The machines of the OPENCL device, by name."""

"""Tensor cores of all devices, and Targets that have them."""

from __future__ import annotations

from dataclasses import replace

from workbench.backends.cuda import cuda_machines as cuda
from workbench.backends.device import Device
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.hip import hip_machines as hip
from workbench.backends.metal import metal_machines as metal
from workbench.backends.native import machine as native
from workbench.backends.opencl import opencl_machines as opencl
from workbench.base.target import Target
from workbench.base.tensor_cores import TensorCore

ARCHES = {
    cuda: ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90"),
    hip: ("gfx1100", "gfx90a", "gfx942"),
    metal: ("apple7", "apple9"),
    opencl: ("xe-hpg", "xe-hpc"),
}
"""Architectures with tensor cores, by the module that knows them."""
BY_ARCH: dict[str, tuple[TensorCore, ...]] = {
    arch: module.tensor_cores(arch) for module, arches in ARCHES.items() for arch in arches
}
BY_FEATURE: dict[str, tuple[TensorCore, ...]] = {
    feature: native.tensor_cores({feature}) for feature in ("bf16", "avx512bf16", "amx-bf16")
}
"""Those of processors, by LLVM's names of their features."""
PROCESSOR_CORES = tuple(core for cores in BY_FEATURE.values() for core in cores)
CORES = tuple(dict.fromkeys(core for cores in BY_ARCH.values() for core in cores))


def core_named(arch: str, words: str) -> TensorCore:
    """Return the tensor core of an architecture by its text, "16x8x16 float16 -> float32"."""
    listed = (BY_ARCH | BY_FEATURE)[arch]
    return next(core for core in listed if str(core) == words)


def gpu_with(*cores: TensorCore) -> Target:
    """Return a common GPU with tensor cores, and what their makers have beside them."""
    gpu = common_gpu("a GPU with tensor cores")
    lanes, is_mma = cores[0].lanes, cores[0].instruction.startswith("mma")
    return replace(
        gpu,
        tensor_cores=cores,
        warp_lanes=lanes,
        group_items=1024,
        reads_matrices=is_mma,
        copies_async=is_mma,
    )


def target_with(core: TensorCore) -> Target:
    """Return a GPU with a tensor core, or the processor of one lane that it is of."""
    if core.lanes > 1:
        return gpu_with(core)
    device = "LLVM:Graviton4" if core.instruction == "bfmmla" else "LLVM:Xeon 8480+"
    return replace(Device[device].target, tensor_cores=(core,))

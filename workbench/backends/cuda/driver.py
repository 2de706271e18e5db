"""The NVIDIA driver, through cuda-core and cuda-bindings: the GPU, its stream, its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.backends.cuda import nvrtc
from workbench.backends.cuda.generations import target
from workbench.backends.cuda.machines import hardware_here
from workbench.backends.gpu.driver import GpuDriver
from workbench.base.libraries import library
from workbench.base.target import Target

KILO = 1e3


class CudaDriver(GpuDriver):
    """The first GPU: a cuda.core Device, and the stream of all launches and copies."""

    name = "CUDA"
    package = "cuda.core"
    absence = "no NVIDIA GPU with its driver is found"
    # CUDA Driver API, CUresult
    sticky = (
        "ILLEGAL_ADDRESS", "LAUNCH_FAILED", "LAUNCH_TIMEOUT", "MISALIGNED_ADDRESS",
        "ILLEGAL_INSTRUCTION", "ASSERT", "ECC_UNCORRECTABLE", "HARDWARE_STACK_ERROR",
        "CONTEXT_IS_DESTROYED", "DEVICE_UNAVAILABLE",
    )  # fmt: skip

    def __init__(self, gpu: Any):
        gpu.set_current()
        self.gpu = gpu
        self.stream = self.explain("the GPU cannot be used", gpu.create_stream)

    @staticmethod
    def find() -> Any | None:
        if nvrtc.toolkit() is None:
            return None
        try:
            gpus = library("cuda.core").Device.get_all_devices()
        except Exception:  # each library on the way to the driver has errors of its own
            return None
        return gpus[0] if gpus else None

    @property
    def arch(self) -> str:
        """What compilers call it: "sm_90"."""
        capability = self.gpu.compute_capability
        return f"sm_{capability.major}{capability.minor}"

    def target(self) -> Target:
        limits = self.gpu.properties
        hardware = replace(
            hardware_here(
                self.gpu.name,
                self.arch,
                units=limits.multiprocessor_count,
                clock_hz=limits.clock_rate * KILO,
                memory_bytes=self.memory_bytes,
                # two transfers per cycle
                dram=2 * limits.memory_clock_rate * KILO * limits.global_memory_bus_width / 8,
            ),
            unit_registers=limits.max_registers_per_multiprocessor,
            unit_items=limits.max_threads_per_multiprocessor,
            unit_groups=limits.max_blocks_per_multiprocessor,
            unit_shared_bytes=limits.max_shared_memory_per_multiprocessor,
            group_shared_bytes=limits.reserved_shared_memory_per_block,
        )
        grid = (limits.max_grid_dim_x, limits.max_grid_dim_y, limits.max_grid_dim_z)
        return replace(
            target(self.name, hardware, limits.l2_cache_size),
            grid_limits=grid,
            group_items=limits.max_threads_per_block,
            warp_lanes=limits.warp_size,
        )

    def allow_shared(self, kernel: Any, nbytes: int) -> None:
        """Allow launches of a kernel to give a group more memory than arrays with sizes may be."""
        bindings = library("cuda.bindings.driver")
        limit = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        gpu = bindings.CUdevice(self.gpu.device_id)
        call("KernelSetAttribute", limit, nbytes, kernel.handle, gpu)

    @property
    def memory_bytes(self) -> int:
        """The bytes of its memory, taken or not."""

        def act() -> int:
            self.gpu.set_current()
            _, total = call("MemGetInfo")
            return int(total)

        return self.explain("the GPU does not say what memory it has", act)

    def flush(self) -> None:
        """A stream begins by itself."""

    def wait(self) -> None:
        self.explain("the GPU stopped", self.stream.sync)


def call(name: str, *arguments: Any) -> Any:
    """Return what a function of cuda.bindings gives beside its status: one value, or several.

    Errors: MemoryError where memory runs out; RuntimeError with the name of any other error.
    """
    function = getattr(library("cuda.bindings.driver"), f"cu{name}")
    status, *values = function(*arguments)
    if int(status):
        word = getattr(status, "name", str(status))
        if "OUT_OF_MEMORY" in word:
            raise MemoryError(word)
        raise RuntimeError(word)
    return values[0] if len(values) == 1 else tuple(values)

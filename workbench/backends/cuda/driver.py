"""The NVIDIA driver, through cuda-core and cuda-bindings: the GPU, its stream, its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from workbench.backends.cuda.generations import target
from workbench.backends.cuda.machines import hardware_here
from workbench.base.errors import DeviceError
from workbench.base.libraries import library
from workbench.base.target import Target

T = TypeVar("T")
KILO = 1e3
FAULTS: list[str] = []
"""The errors that took the GPU from this process."""
STICKY = (
    "ILLEGAL_ADDRESS", "LAUNCH_FAILED", "LAUNCH_TIMEOUT", "MISALIGNED_ADDRESS",
    "ILLEGAL_INSTRUCTION", "ASSERT", "ECC_UNCORRECTABLE", "HARDWARE_STACK_ERROR",
    "CONTEXT_IS_DESTROYED", "DEVICE_UNAVAILABLE",
)  # fmt: skip
"""Errors after which the process cannot use the GPU any more (CUDA Driver API, CUresult)."""


@dataclass(frozen=True)
class CudaDriver:
    """The first GPU: a cuda.core Device, and the stream of all launches and copies."""

    gpu: Any
    stream: Any

    @property
    def arch(self) -> str:
        """What compilers call it: "sm_90"."""
        capability = self.gpu.compute_capability
        return f"sm_{capability.major}{capability.minor}"

    def target(self, device: str) -> Target:
        """Return its limits, with the figures that are known of it."""
        limits = self.gpu.properties
        hardware = replace(
            hardware_here(
                self.gpu.name,
                self.arch,
                units=limits.multiprocessor_count,
                clock_hz=limits.clock_rate * KILO,
                memory_bytes=self.memory_bytes,
                # two transfers per cycle
                dram=2
                * limits.memory_clock_rate
                * KILO
                * limits.global_memory_bus_width
                / 8,
            ),
            unit_registers=limits.max_registers_per_multiprocessor,
            unit_items=limits.max_threads_per_multiprocessor,
            unit_groups=limits.max_blocks_per_multiprocessor,
            unit_shared_bytes=limits.max_shared_memory_per_multiprocessor,
            group_shared_bytes=limits.reserved_shared_memory_per_block,
        )
        grid = (limits.max_grid_dim_x, limits.max_grid_dim_y, limits.max_grid_dim_z)
        return replace(
            target(device, hardware, limits.l2_cache_size),
            grid_limits=grid,
            group_items=limits.max_threads_per_block,
            warp_lanes=limits.warp_size,
            shared_bytes=limits.max_shared_memory_per_block,
        )

    @property
    def memory_bytes(self) -> int:
        """The bytes of its memory, taken or not."""
        function = library("cuda.bindings.driver").cuMemGetInfo

        def act() -> int:
            self.gpu.set_current()
            _, total = checked(function())
            return int(total)

        return explain("the GPU does not say what memory it has", act)

    def wait(self) -> None:
        """Wait until all that was launched is done."""
        explain("the GPU stopped", self.stream.sync)


@lru_cache(maxsize=1)
def find_gpu() -> Any | None:
    """Return the first GPU, None without one or without its driver."""
    try:
        gpus = library("cuda.core").Device.get_all_devices()
    except Exception:  # each library of the way to the driver has an error of its own
        return None
    return gpus[0] if gpus else None


@lru_cache(maxsize=1)
def driver() -> CudaDriver:
    """Return the driver. Errors: DeviceError where there is none."""
    gpu = find_gpu()
    if gpu is None:
        because = "no NVIDIA GPU with its driver is found"
        raise DeviceError("the device CUDA is not available", because)
    gpu.set_current()
    return CudaDriver(gpu, explain("the GPU cannot be used", gpu.create_stream))


def explain(what: str, act: Callable[[], T]) -> T:
    """Return what `act` does.

    Errors: DeviceError with `what` for an error of the driver; after some, only another process can
    use the GPU.
    """
    try:
        return act()
    except (DeviceError, MemoryError):
        raise
    except Exception as error:  # CUDAError is not public
        because = " ".join(str(error).split())[:400]
        if not any(name in because for name in STICKY):
            raise DeviceError(what, because) from error
        FAULTS.append(because)
        hint = "in another process: the GPU is lost to this one"
        raise DeviceError(what, because, hint) from error


def checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a function of cuda.bindings gives beside its status.

    Errors: MemoryError where memory runs out; RuntimeError with the name of any other error.
    """
    status, *values = answer
    if int(status):
        name = getattr(status, "name", str(status))
        if "OUT_OF_MEMORY" in name:
            raise MemoryError(name)
        raise RuntimeError(name)
    return tuple(values)

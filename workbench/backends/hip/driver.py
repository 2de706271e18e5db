"""AMD's driver, through hip-python: the GPU, its stream, its limits."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from workbench.backends.gpu.driver import GpuDriver, without_status
from workbench.backends.hip.hip_machines import machine_of
from workbench.base.errors import WorkbenchError
from workbench.base.installation import library
from workbench.base.target import Target

KILO = 1e3


class HipDriver(GpuDriver):
    """The first GPU: its properties, and the stream of all launches and copies."""

    name = "HIP"
    package = "hip"
    absence = "no AMD GPU with its driver (ROCm) is found"
    # HIP Runtime API, hipError_t
    sticky = (
        "hipErrorIllegalAddress", "hipErrorLaunchFailure", "hipErrorLaunchTimeOut",
        "hipErrorAssert", "hipErrorECCNotCorrectable", "hipErrorContextIsDestroyed",
    )  # fmt: skip

    def __init__(self, gpu: Any):
        self.properties = gpu
        self.stream = self.explain("the GPU cannot be used", lambda: call("StreamCreate"))

    @staticmethod
    def find() -> Any | None:
        try:  # without the driver the first call of a function fails
            if not call("GetDeviceCount"):
                return None
            return _properties()
        except (RuntimeError, OSError, WorkbenchError):
            return None

    @classmethod
    def why_absent(cls) -> str:
        reason = super().why_absent()
        if reason != cls.absence:
            return reason
        try:
            call("GetDeviceCount")
        except (RuntimeError, OSError, WorkbenchError) as error:  # its library is not there
            words = " ".join(getattr(error, "because", "").split() or str(error).split())
            return f"{reason}: {words:.200}"
        return reason

    @property
    def arch(self) -> str:
        """Its architecture, for compilers: "gfx942"."""
        return _words(self.properties.gcnArchName).partition(":")[0]

    def target(self) -> Target:
        limits = self.properties
        machine = machine_of(
            _words(limits.name),
            self.arch,
            units=limits.multiProcessorCount,
            clock_hz=limits.clockRate * KILO,
            memory_bytes=limits.totalGlobalMem,
        )
        sizes = dict(machine.caches) | {"L2": limits.l2CacheSize}
        return replace(
            machine,
            device=self.name,
            caches=tuple(sizes.items()),
            cores=limits.multiProcessorCount,
            group_items=limits.maxThreadsPerBlock,
            warp_lanes=limits.warpSize,
            shared_bytes=limits.sharedMemPerBlock,
        )

    def flush(self) -> None:
        """Do nothing: a stream begins its work by itself."""

    def wait(self) -> None:
        self.explain("the GPU stopped", lambda: call("StreamSynchronize", self.stream))


def _properties() -> Any:
    """Return the properties of the first GPU. hip-python fills a record that it is given; later
    releases return one."""
    function = part("hip").hipGetDeviceProperties
    if len(inspect.signature(function).parameters) == 1:
        return call("GetDeviceProperties", 0)
    properties = part("hip").hipDeviceProp_t()
    call("GetDeviceProperties", properties, 0)
    return properties


def _words(text: bytes | str) -> str:
    """Return a text of the driver, which is bytes or, in later releases of hip-python, a str."""
    return text.decode() if isinstance(text, bytes) else text


def part(name: str) -> Any:
    """Return hip-python's "hip" or "hiprtc": an attribute of its package, or a module of it."""
    return getattr(library("hip"), name, None) or library(f"hip.{name}")


def call(name: str, *arguments: Any, module: str = "hip") -> Any:
    """Call a function of hip-python; return its values without its status: one, or a tuple.

    Errors: MemoryError where memory runs out; RuntimeError with the name of any other error.
    """
    return without_status(*getattr(part(module), module + name)(*arguments))

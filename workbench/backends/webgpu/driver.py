"""The GPU that the device uses through wgpu: its queue, its limits."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.backends.webgpu.machines import target
from workbench.base.errors import DeviceError
from workbench.base.libraries import library
from workbench.base.target import Target

LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
    "max-compute-workgroup-storage-size",
)
"""Limits of which the device asks for all that the GPU has."""


@dataclass(frozen=True)
class WebGpuDriver:
    """One GPU, and a small buffer that is read to wait."""

    gpu: Any
    device: Any
    mark: Any

    @property
    def queue(self) -> Any:
        """The queue of launches and copies."""
        return self.device.queue

    def target(self, name: str) -> Target:
        """Return its limits."""
        limits = self.gpu.limits
        return target(
            name,
            min(limits[name] for name in LIMITS[3:5]),
            limits["max-compute-workgroup-storage-size"],
            limits["max-compute-workgroups-per-dimension"],
        )

    def wait(self) -> None:
        """Wait until the queue is empty: what is read comes after all that was submitted."""
        self.queue.read_buffer(self.mark)


@lru_cache(maxsize=1)
def find_gpu() -> Any | None:
    """Return the GPU (WebGPU's adapter) to use, None without one."""
    os.environ.setdefault(
        "XDG_RUNTIME_DIR", tempfile.gettempdir()
    )  # else EGL complains
    wgpu = library("wgpu")
    try:
        return wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except (wgpu.GPUError, RuntimeError):
        return None


@lru_cache(maxsize=1)
def driver() -> WebGpuDriver:
    """Return the driver. Errors: DeviceError where there is none."""
    gpu = find_gpu()
    if gpu is None:
        because, how = "wgpu finds no GPU", "a Vulkan, Metal or Direct3D driver"
        raise DeviceError("the device WEBGPU is not available", because, how)
    limits = {name: gpu.limits[name] for name in LIMITS}
    device = gpu.request_device_sync(required_limits=limits)
    usage = library("wgpu").BufferUsage
    mark = device.create_buffer_with_data(
        data=np.zeros(1, np.uint32), usage=usage.COPY_SRC
    )
    return WebGpuDriver(gpu, device, mark)

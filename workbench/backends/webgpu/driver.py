"""The GPU that the device uses through wgpu: its queue, its limits."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

from workbench.backends.gpu.driver import GpuDriver
from workbench.backends.webgpu.machines import target
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


class WebGpuDriver(GpuDriver):
    """One GPU (WebGPU's adapter), and a small buffer that is read to wait."""

    name = "WEBGPU"
    package = "wgpu"
    absence = "wgpu finds no GPU with a Vulkan, Metal or Direct3D driver"

    def __init__(self, gpu: Any):
        limits = {name: gpu.limits[name] for name in LIMITS}
        self.gpu, self.device = gpu, gpu.request_device_sync(required_limits=limits)
        usage = library("wgpu").BufferUsage
        self.mark = self.device.create_buffer_with_data(
            data=np.zeros(1, np.uint32), usage=usage.COPY_SRC
        )

    @staticmethod
    def find() -> Any | None:
        # else EGL complains
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
        wgpu = library("wgpu")
        try:
            return wgpu.gpu.request_adapter_sync(power_preference="high-performance")
        except (wgpu.GPUError, RuntimeError):
            return None

    @property
    def queue(self) -> Any:
        """The queue of launches and copies."""
        return self.device.queue

    def target(self) -> Target:
        limits = self.gpu.limits
        return target(
            self.name,
            min(limits[name] for name in LIMITS[3:5]),
            limits["max-compute-workgroup-storage-size"],
            limits["max-compute-workgroups-per-dimension"],
            tuple(limits[name] for name in LIMITS[4:7]),
        )

    def wait(self) -> None:
        self.queue.read_buffer(self.mark)  # which comes after all that was submitted

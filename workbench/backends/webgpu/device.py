"""The WEBGPU device: a GPU through WebGPU."""

from __future__ import annotations

from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.webgpu.dialect import WGSL, Wgsl


class WebGpuDevice(WorkGroupDevice):
    """WGSL on any GPU that WebGPU reaches."""

    name = "WEBGPU"
    about = "a GPU through WebGPU"
    how_to_get = "a GPU with a Vulkan, Metal or Direct3D driver"
    rank = 99
    language = WGSL

    def dialect(self) -> Wgsl:
        return Wgsl()


DEVICE = WebGpuDevice()

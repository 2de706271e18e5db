"""The WEBGPU device: a GPU through WebGPU."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.memory import Memory
from workbench.backends.webgpu.dialect import WGSL, Wgsl
from workbench.backends.webgpu.driver import WebGpuDriver
from workbench.backends.webgpu.machines import MACHINES
from workbench.backends.webgpu.memory import WebGpuMemory
from workbench.backends.webgpu.runtime import WebGpuProgram
from workbench.base.target import Target


class WebGpuDevice(WorkGroupDevice):
    """WGSL on any GPU that WebGPU reaches."""

    name = "WEBGPU"
    has_machine_code = False
    about = "a GPU through WebGPU"
    extra = "webgpu"
    needs = (
        "with a GPU's Vulkan, Metal or Direct3D driver; without one a page runs the kernels of"
        ' "WEBGPU:BROWSER" where it is read'
    )
    rank = 99
    queues = True
    language = WGSL
    memory: Memory = WebGpuMemory()
    driver = WebGpuDriver
    program = WebGpuProgram
    runs_in_page = True

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> Wgsl:
        return Wgsl()


DEVICE = WebGpuDevice()

"""The WEBGPU device: a GPU through WebGPU."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from workbench.backends.contract import Program
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.memory import Memory
from workbench.backends.program.source import Source
from workbench.backends.webgpu.dialect import WGSL, Wgsl
from workbench.backends.webgpu.machines import MACHINES
from workbench.backends.webgpu.memory import WebGpuMemory
from workbench.base.forking import no_fork
from workbench.base.target import Target


class WebGpuDevice(WorkGroupDevice):
    """WGSL on any GPU that WebGPU reaches."""

    name = "WEBGPU"
    about = "a GPU through WebGPU"
    how_to_get = (
        "pip install 'workbench[webgpu]', with a GPU's Vulkan, Metal or Direct3D driver; without"
        ' one a page runs the kernels of "WEBGPU:BROWSER" where it is read'
    )
    rank = 99
    queues = True
    language = WGSL
    memory: Memory = WebGpuMemory()
    runs_in_page = True

    @property
    def is_available(self) -> bool:
        if find_spec("wgpu") is None:
            return False
        with no_fork:
            from workbench.backends.webgpu.driver import find_gpu

        return find_gpu() is not None

    def _target(self) -> Target:
        with no_fork:
            from workbench.backends.webgpu.driver import driver

        return driver().target(self.name)

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> Wgsl:
        return Wgsl()

    def load(self, source: Source) -> Program:
        if not self.is_available:
            raise self._missing()
        with no_fork:
            from workbench.backends.webgpu.runtime import load
        return load(source)

    def synchronize(self) -> None:
        with no_fork:
            from workbench.backends.webgpu.driver import driver

        driver().wait()


DEVICE = WebGpuDevice()

"""The OPENCL device: any OpenCL implementation of this machine, a GPU's if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from workbench.backends.contract import Program
from workbench.backends.gpu.opencl_c import OPENCL_C, OpenCLC
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.llvm_ir.gpu.targets import SPIRV
from workbench.backends.memory import Memory
from workbench.backends.opencl.machines import MACHINES
from workbench.backends.opencl.memory import OpenCLMemory
from workbench.backends.program.source import Source
from workbench.base.forking import no_fork
from workbench.base.target import Target


class OpenCLDevice(WorkGroupDevice):
    """Work-groups through pyopencl."""

    name = "OPENCL"
    about = "work-groups, through an OpenCL driver"
    how_to_get = (
        "pip install 'workbench[opencl]', which brings a driver for the processor (PoCL); drivers"
        " of GPUs are found too"
    )
    aliases = ("CL",)
    rank = 95
    queues = True
    language = OPENCL_C
    gpu_target = SPIRV
    memory: Memory = OpenCLMemory()

    @property
    def is_available(self) -> bool:
        package = find_spec("pyopencl")
        if package is None or package.origin is None:  # what only drivers left there
            return False
        with no_fork:
            from workbench.backends.opencl.driver import find_driver

        return find_driver() is not None

    def _target(self) -> Target:
        with no_fork:
            from workbench.backends.opencl.driver import driver

        return driver().target(self.name)

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> OpenCLC:
        return OpenCLC()

    def load(self, source: Source) -> Program:
        if not self.is_available:
            raise self._missing()
        with no_fork:
            from workbench.backends.opencl.runtime import load
        return load(source)

    def synchronize(self) -> None:
        with no_fork:
            from workbench.backends.opencl.driver import driver

        driver().queue.finish()


DEVICE = OpenCLDevice()

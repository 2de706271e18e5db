"""The OPENCL device: any OpenCL implementation of this machine, a GPU's if there is one."""

from __future__ import annotations

from importlib.util import find_spec

from workbench.backends.contract import DeviceInfo, Program
from workbench.backends.memory import Memory
from workbench.backends.opencl.dialect import OPENCL_C
from workbench.backends.opencl.memory import OpenCLMemory
from workbench.backends.program.source import Source
from workbench.base.errors import DeviceError
from workbench.base.forking import no_fork
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class OpenCLDevice(DeviceInfo):
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
    memory: Memory = OpenCLMemory()

    @property
    def is_available(self) -> bool:
        if find_spec("pyopencl") is None:
            return False
        with no_fork:
            from workbench.backends.opencl.driver import find_driver

        return find_driver() is not None

    def _target(self) -> Target:
        with no_fork:
            from workbench.backends.opencl.driver import driver

        return driver().target(self.name)

    def render(
        self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        with no_fork:
            from workbench.backends.gpu.render import render
            from workbench.backends.opencl.dialect import OpenCLC

        return render(OpenCLC(), block, linear, self.target, tree)

    def load(self, source: Source) -> Program:
        if not self.is_available:
            what = f"the device {self.name} is not available"
            raise DeviceError(what, self.about, self.how_to_get)
        with no_fork:
            from workbench.backends.opencl.runtime import load
        return load(source)

    def synchronize(self) -> None:
        with no_fork:
            from workbench.backends.opencl.driver import driver

        driver().queue.finish()


DEVICE = OpenCLDevice()

"""The OPENCL device: any OpenCL implementation of this machine, a GPU's if there is one."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.gpu.opencl_c import OPENCL_C, OpenCLC
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.llvm_ir.gpu.targets import SPIRV
from workbench.backends.memory import Memory
from workbench.backends.opencl.driver import OpenCLDriver
from workbench.backends.opencl.machines import MACHINES
from workbench.backends.opencl.memory import OpenCLMemory
from workbench.backends.opencl.runtime import OpenCLProgram
from workbench.backends.program.source import Source
from workbench.base.forking import no_fork
from workbench.base.target import Target


class OpenCLDevice(WorkGroupDevice):
    """Work-groups through pyopencl."""

    name = "OPENCL"
    has_machine_code = False
    about = "work-groups, through an OpenCL driver"
    extra = "opencl"
    needs = "which brings a driver for the processor (PoCL); drivers of GPUs are found too"
    aliases = ("CL",)
    rank = 95
    queues = True
    language = OPENCL_C
    gpu_target = SPIRV
    memory: Memory = OpenCLMemory()
    driver = OpenCLDriver
    program = OpenCLProgram
    compiles_text = True

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        with no_fork:
            from workbench.backends.opencl.spirv import compile_source
        return compile_source(source, target)

    def dialect(self) -> OpenCLC:
        return OpenCLC()


DEVICE = OpenCLDevice()

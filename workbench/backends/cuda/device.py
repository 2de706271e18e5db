"""The CUDA device: an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.cuda.compile import compile_source
from workbench.backends.cuda.dialect import CUDA_CPP, CudaCpp
from workbench.backends.cuda.machines import MACHINES
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.llvm_ir.gpu.targets import PTX
from workbench.backends.program.source import Source
from workbench.base.target import Target


class CudaDevice(WorkGroupDevice):
    """CUDA C++ on an NVIDIA GPU."""

    name = "CUDA"
    about = "an NVIDIA GPU"
    how_to_get = "an NVIDIA GPU with its driver"
    aliases = ("NV",)
    rank = 96
    language = CUDA_CPP
    gpu_target = PTX

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> CudaCpp:
        return CudaCpp()

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        hardware = target.hardware
        return None if hardware is None else compile_source(source, target)


DEVICE = CudaDevice()

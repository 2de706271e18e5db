"""The CUDA device: an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.contract import Launch
from workbench.backends.cuda.compile import compile_source
from workbench.backends.cuda.dialect import CUDA_CPP, CudaCpp
from workbench.backends.cuda.driver import CudaDriver
from workbench.backends.cuda.graph import CudaGraph
from workbench.backends.cuda.machines import MACHINES
from workbench.backends.cuda.memory import CudaMemory
from workbench.backends.cuda.runtime import CudaLaunch, CudaProgram
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.llvm_ir.gpu.targets import PTX
from workbench.backends.memory import Memory
from workbench.backends.program.source import Source
from workbench.base.target import Target


class CudaDevice(WorkGroupDevice):
    """CUDA C++ on an NVIDIA GPU."""

    name = "CUDA"
    about = "an NVIDIA GPU"
    extra = "cuda"
    needs = "on a machine with an NVIDIA GPU and its driver"
    aliases = ("NV",)
    rank = 96
    queues = True
    memory: Memory = CudaMemory()
    driver = CudaDriver
    program = CudaProgram
    language = CUDA_CPP
    gpu_target = PTX
    compiles_text = True

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> CudaCpp:
        return CudaCpp()

    def graph(self, launches: Sequence[Launch]) -> Callable[[], None] | None:
        plain = [each for each in launches if isinstance(each, CudaLaunch)]
        return CudaGraph(plain) if len(plain) == len(launches) else None

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        return compile_source(source, target)


DEVICE = CudaDevice()

"""The CUDA device: an NVIDIA GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.contract import Launch, Program
from workbench.backends.cuda import nvrtc
from workbench.backends.cuda.compile import compile_source
from workbench.backends.cuda.dialect import CUDA_CPP, CudaCpp
from workbench.backends.cuda.machines import MACHINES
from workbench.backends.cuda.memory import CudaMemory
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.llvm_ir.gpu.targets import PTX
from workbench.backends.memory import Memory
from workbench.backends.program.source import Source
from workbench.base.forking import no_fork
from workbench.base.target import Target


class CudaDevice(WorkGroupDevice):
    """CUDA C++ on an NVIDIA GPU."""

    name = "CUDA"
    about = "an NVIDIA GPU"
    how_to_get = (
        "pip install 'workbench[cuda]', on a machine with an NVIDIA GPU and its driver"
    )
    aliases = ("NV",)
    rank = 96
    queues = True
    memory: Memory = CudaMemory()
    language = CUDA_CPP
    gpu_target = PTX
    compiles_text = True

    @property
    def is_available(self) -> bool:
        if find_spec("cuda") is None or nvrtc.toolkit() is None:
            return False
        with no_fork:
            from workbench.backends.cuda.driver import find_gpu

        return find_gpu() is not None

    def _target(self) -> Target:
        with no_fork:
            from workbench.backends.cuda.driver import driver

        return driver().target(self.name)

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> CudaCpp:
        return CudaCpp()

    def load(self, source: Source) -> Program:
        if not self.is_available:
            raise self._missing()
        with no_fork:
            from workbench.backends.cuda.runtime import load
        return load(source)

    def graph(self, launches: Sequence[Launch]) -> Callable[[], None] | None:
        with no_fork:
            from workbench.backends.cuda.graph import CudaGraph
            from workbench.backends.cuda.runtime import CudaLaunch

        plain = [each for each in launches if isinstance(each, CudaLaunch)]
        return CudaGraph(plain) if len(plain) == len(launches) else None

    @property
    def is_lost(self) -> bool:
        module = sys.modules.get("workbench.backends.cuda.driver")
        return module is not None and bool(module.FAULTS)

    def synchronize(self) -> None:
        with no_fork:
            from workbench.backends.cuda.driver import driver

        driver().wait()

    def flush(self) -> None:
        """A stream begins by itself."""

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        return compile_source(source, target)


DEVICE = CudaDevice()

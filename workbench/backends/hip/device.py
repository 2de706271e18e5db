"""The HIP device: an AMD GPU, through HIP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.contract import Launch
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.hip.dialect import HIP_CPP, HipCpp
from workbench.backends.hip.driver import HipDriver
from workbench.backends.hip.graph import HipGraph
from workbench.backends.hip.machines import MACHINES
from workbench.backends.hip.memory import HipMemory
from workbench.backends.hip.runtime import HipLaunch, HipProgram
from workbench.backends.llvm_ir.gpu.targets import AMDGCN
from workbench.backends.memory import Memory
from workbench.backends.program.source import Source
from workbench.base.forking import no_fork
from workbench.base.target import Target


class HipDevice(WorkGroupDevice):
    """HIP on an AMD GPU."""

    name = "HIP"
    about = "an AMD GPU, through HIP"
    extra = "hip"
    needs = "on a machine with an AMD GPU and ROCm; without ROCm, WebGPU runs kernels on an AMD GPU"
    rank = 97
    queues = True
    memory: Memory = HipMemory()
    driver = HipDriver
    program = HipProgram
    language = HIP_CPP
    gpu_target = AMDGCN
    compiles_text = True

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> HipCpp:
        return HipCpp()

    def graph(self, launches: Sequence[Launch]) -> Callable[[], None] | None:
        plain = [each for each in launches if isinstance(each, HipLaunch)]
        return HipGraph(plain) if len(plain) == len(launches) else None

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        with no_fork:
            from workbench.backends.hip.compile import compile_source
        return compile_source(source, target)


DEVICE = HipDevice()

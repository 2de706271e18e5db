"""The CUDA device: an NVIDIA GPU.

Sections: Machine code for any NVIDIA GPU, present or not; Graphs of launches on an NVIDIA GPU (CUDA
C++ Programming Guide, "CUDA Graphs"); Memory of an NVIDIA GPU; The CUDA device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.compilers import MachineCode, code_of
from workbench.backends.contract import Launch
from workbench.backends.cuda import nvrtc, sass
from workbench.backends.cuda.cuda_machines import MACHINES
from workbench.backends.cuda.dialect import CUDA_CPP, CudaCpp
from workbench.backends.cuda.driver import CudaDriver, CudaLaunch, CudaProgram, call
from workbench.backends.gpu.memory import AddressMemory, LaunchGraph
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.llvm_ir.gpu_code import gpu_machine_code
from workbench.backends.llvm_ir.gpu_targets import PTX
from workbench.backends.memory import Memory
from workbench.backends.program.text import Source
from workbench.base.errors import DeviceError
from workbench.base.target import Target

# --------------------------------------------------------------------------------------------------
# Machine code for any NVIDIA GPU, present or not.


def compile_source(source: Source, target: Target) -> MachineCode:
    """Return the SASS of a kernel by NVRTC; without NVRTC or nvdisasm, its PTX by LLVM.

    Errors: CompileError with the line of the source; DeviceError without these tools, for a text
    that a user wrote.
    """
    arch, tools = PTX.processor(target), nvrtc.toolkit()
    if tools is not None and tools.nvdisasm:
        text = source.text
        return code_of(
            lambda: in_child(sass.compile_to_sass, text, arch), text, arch, _version(tools)
        )
    if not source.linear:
        what = f"there is no compiler of CUDA C++ for {arch} here"
        raise DeviceError(
            what,
            "NVRTC and nvdisasm, which compile CUDA C++, are not both installed",
            nvrtc.how_to_get(),
        )
    code = gpu_machine_code(PTX, arch, source, target)
    return replace(code, compiler=f"{code.compiler} (for SASS: {nvrtc.how_to_get()})")


def _version(tools: nvrtc.Toolkit) -> str:
    """Return a text that differs between versions of the tools, without loading them."""
    stat = Path(tools.library).stat() if Path(tools.library).exists() else None
    changed = f"{stat.st_size} {stat.st_mtime_ns}" if stat else ""
    return f"{tools.library} {tools.nvdisasm} {changed}"


# --------------------------------------------------------------------------------------------------
# Graphs of launches on an NVIDIA GPU (CUDA C++ Programming Guide, "CUDA Graphs").


class CudaGraph(LaunchGraph[CudaLaunch]):
    """A graph that a builder of cuda-core records."""

    def build(self) -> Any:
        return CudaDriver.current().explain("CUDA cannot build a graph", self._built)

    def launch(self, graph: Any) -> None:
        driver = CudaDriver.current()
        driver.explain("CUDA cannot launch a graph", lambda: graph.launch(driver.stream))

    def _built(self) -> Any:
        driver = CudaDriver.current()
        driver.gpu.set_current()
        builder = driver.gpu.create_graph_builder()
        builder.begin_building()
        for launch in self.launches:
            launch.enqueue(driver, builder)
        return builder.end_building().complete()


# --------------------------------------------------------------------------------------------------
# Memory of an NVIDIA GPU.


class CudaMemory(AddressMemory):
    """Memory of the GPU, through the CUDA driver."""

    spare_limit_bytes = 4 << 30
    driver = CudaDriver
    prefix = "cu"
    allocation = "MemAlloc"
    release = "MemFree"

    @property
    def stream(self) -> Any:
        return CudaDriver.current().stream.handle

    def apply(self, name: str, arguments: Sequence[Any]) -> Any:
        CudaDriver.current().gpu.set_current()  # the context is set for each thread
        return call(name, *arguments)


# --------------------------------------------------------------------------------------------------
# The CUDA device.


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
        own_launches = [each for each in launches if isinstance(each, CudaLaunch)]
        return CudaGraph(own_launches) if len(own_launches) == len(launches) else None

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        return compile_source(source, target)


DEVICE = CudaDevice()

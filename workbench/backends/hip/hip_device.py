"""The HIP device: an AMD GPU, through HIP.

Sections: The HIP runtime; Graphs of launches on an AMD GPU (HIP documentation, "HIP graphs");
Memory of an AMD GPU; The HIP device.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import finalize

from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.compilers.refusal import errors_in
from workbench.backends.contract import Launch
from workbench.backends.gpu.memory import AddressLaunch, AddressMemory, LaunchGraph
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.hip.driver import HipDriver, call, part
from workbench.backends.hip.hip_machines import HIP_CPP, MACHINES, HipCpp
from workbench.backends.hip.hiprtc import compile_text
from workbench.backends.llvm_ir.gpu_targets import AMDGCN
from workbench.backends.memory import Buffer, Memory
from workbench.backends.program.text import Source
from workbench.base.interrupts import no_fork, once
from workbench.base.target import Target

# --------------------------------------------------------------------------------------------------
# The HIP runtime: HIP to a Program, code of hipRTC launched through hip-python.

MILLI = 1e-3


class HipProgram:
    """A kernel in HIP; it is compiled when it is first bound.

    Errors: CompileError with the line that hipRTC refuses; DeviceError where the GPU does not load
    it.
    """

    def __init__(self, source: Source):
        self.source = source

    def require_code(self) -> None:
        """Compile and load now. Errors: CompileError; DeviceError if the GPU does not load it."""
        _ = self.kernel

    @once
    def kernel(self) -> Any:
        """The kernel on the GPU, and the module that it is in."""
        driver, source = HipDriver.current(), self.source
        with errors_in(source):
            code: bytes = in_child(compile_text, source.text, driver.arch)

        def load() -> Any:
            module = call("ModuleLoadData", code)
            return call("ModuleGetFunction", module, source.name.encode()), module

        return driver.explain(f"the GPU does not load {source.name}", load)

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> HipLaunch:
        return HipLaunch(self, buffers)


class HipLaunch(AddressLaunch):
    """A kernel bound to its memory."""

    def __init__(self, program: HipProgram, buffers: Sequence[Buffer]):
        self.kernel, _ = program.kernel
        super().__init__(program.source, buffers)

    def __call__(self, wait: bool = True) -> None:
        driver = HipDriver.current()
        driver.explain(f"HIP cannot launch {self.name}", self.enqueue)
        if wait:
            driver.explain(
                f"the GPU stopped in {self.name}", lambda: call("StreamSynchronize", driver.stream)
            )

    def timed(self) -> float:
        """Run, and return the seconds between two events of the stream."""
        return HipDriver.explain(f"the GPU stopped in {self.name}", self._timed)

    def _timed(self) -> float:
        stream = HipDriver.current().stream
        begin, end = call("EventCreate"), call("EventCreate")
        try:
            call("EventRecord", begin, stream)
            self.enqueue()
            call("EventRecord", end, stream)
            call("EventSynchronize", end)
            return float(call("EventElapsedTime", begin, end)) * MILLI
        finally:
            call("EventDestroy", begin)
            call("EventDestroy", end)

    def enqueue(self) -> None:
        """Launch in the stream, or add the launch to the graph that is captured from it."""
        arguments = tuple(ctypes.c_void_p(address) for address in self.addresses.values())
        sizes = *self.grid, *self.group
        stream = HipDriver.current().stream
        call("ModuleLaunchKernel", self.kernel, *sizes, 0, stream, None, arguments)


# --------------------------------------------------------------------------------------------------
# Graphs of launches on an AMD GPU (HIP documentation, "HIP graphs").


class HipExecutable:
    """A graph that can be launched; it is destroyed with the last reference to this object."""

    def __init__(self, handle: Any):
        self.handle = handle
        finalize(self, call, "GraphExecDestroy", handle).atexit = False


class HipGraph(LaunchGraph[HipLaunch]):
    """A graph of launches that are captured from the stream."""

    def build(self) -> HipExecutable:
        return HipDriver.explain("HIP cannot build a graph", self._built)

    def launch(self, graph: HipExecutable) -> None:
        driver = HipDriver.current()
        driver.explain(
            "HIP cannot launch a graph", lambda: call("GraphLaunch", graph.handle, driver.stream)
        )

    def _built(self) -> HipExecutable:
        stream, modes = HipDriver.current().stream, part("hip").hipStreamCaptureMode
        call("StreamBeginCapture", stream, modes.hipStreamCaptureModeRelaxed)
        try:
            for launch in self.launches:
                launch.enqueue()
        finally:  # without this the stream would stay in capture, and run nothing
            graph = call("StreamEndCapture", stream)
        try:
            return HipExecutable(call("GraphInstantiateWithFlags", graph, 0))
        finally:
            call("GraphDestroy", graph)


# --------------------------------------------------------------------------------------------------
# Memory of an AMD GPU.


class HipMemory(AddressMemory):
    """Memory of the GPU, through HIP."""

    driver = HipDriver
    prefix = "hip"
    allocation = "Malloc"
    release = "Free"

    @property
    def stream(self) -> Any:
        return HipDriver.current().stream

    def apply(self, name: str, arguments: Sequence[Any]) -> Any:
        return call(name, *arguments)


# --------------------------------------------------------------------------------------------------
# The HIP device.


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
        own_launches = [each for each in launches if isinstance(each, HipLaunch)]
        return HipGraph(own_launches) if len(own_launches) == len(launches) else None

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        with no_fork:
            from workbench.backends.hip.hiprtc import compile_source
        return compile_source(source, target)


DEVICE = HipDevice()

"""The METAL device: an Apple GPU.

Sections: Apple's driver, through pyobjc; Memory of an Apple GPU, which this process shares; The
METAL runtime; The METAL device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.backends.compilers.refusal import errors_in, missing_kernel, refusal
from workbench.backends.gpu.driver import GpuDriver
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.memory import Buffer, Bytes, Memory
from workbench.backends.metal.dialect import METAL, Metal
from workbench.backends.metal.metal_machines import MACHINES, machine_of
from workbench.backends.program.launch import grid_size, group_size
from workbench.backends.program.text import Source
from workbench.base.errors import DeviceError
from workbench.base.installation import library
from workbench.base.interrupts import once
from workbench.base.target import Target

# --------------------------------------------------------------------------------------------------
# Apple's driver, through pyobjc: the GPU, its queue, its limits.

MOST_PENDING = 64
"""Most unfinished launches: the command buffers that a queue of Metal has."""
COMPLETED = 4
"""Apple, Metal, MTLCommandBufferStatus."""
APPLE_FAMILIES = range(1001, 1020)
"""Apple, Metal, MTLGPUFamily: the numbers of Apple 1 and of later families."""


class MetalDriver(GpuDriver):
    """The GPU of this Mac, and the queue of all launches; `pending` has the unfinished ones."""

    name = "METAL"
    package = "Metal"
    absence = "pyobjc finds no GPU that Metal supports"

    def __init__(self, gpu: Any):
        self.gpu, self.queue = gpu, gpu.newCommandQueue()
        self.pending: deque[tuple[str, Any]] = deque()

    @staticmethod
    def find() -> Any | None:
        return library("Metal").MTLCreateSystemDefaultDevice()

    @property
    def arch(self) -> str:
        """The latest family that it belongs to: "apple9"; "" for a GPU that is not Apple's."""
        families = [n for n in APPLE_FAMILIES if self.gpu.supportsFamily_(n)]
        return f"apple{families[-1] - 1000}" if families else ""

    def target(self) -> Target:
        memory = self.gpu.recommendedMaxWorkingSetSize()
        machine = machine_of(self.gpu.name(), self.arch, memory)
        return replace(
            machine,
            device=self.name,
            group_items=self.gpu.maxThreadsPerThreadgroup().width,
            shared_bytes=self.gpu.maxThreadgroupMemoryLength(),
        )

    def start(self, name: str, commands: Any) -> None:
        """Run commands after all earlier ones. Errors: as `wait`, for an earlier launch."""
        if len(self.pending) == MOST_PENDING:
            self._finish()
        commands.commit()
        self.pending.append((name, commands))

    def flush(self) -> None:
        """Do nothing: committed commands begin by themselves."""

    def wait(self) -> None:
        while self.pending:
            self._finish()

    def _finish(self) -> None:
        """Wait for the first pending launch. Errors: DeviceError where it failed."""
        name, commands = self.pending.popleft()
        commands.waitUntilCompleted()
        if commands.status() != COMPLETED:
            because = str(commands.error().localizedDescription())
            raise DeviceError(f"the GPU stopped in {name}", because)


# --------------------------------------------------------------------------------------------------
# Memory of an Apple GPU, which this process shares: a handle is an MTLBuffer.

SHARED = 0
"""Apple, Metal, MTLResourceStorageModeShared."""


class MetalMemory(Memory):
    """Memory that the GPU shares with this process. A copy waits until no kernel runs."""

    alignment_bytes = 256
    offset_bytes = 16

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Any:
        gpu, size = MetalDriver.current().gpu, max(1, size_bytes)
        most = gpu.maxBufferLength()
        buffer = gpu.newBufferWithLength_options_(size, SHARED) if size <= most else None
        if buffer is None:
            raise MemoryError(f"a buffer has at most {most:,} bytes")
        return buffer

    def free(self, handle: Any) -> None:
        """Do nothing: a buffer is freed with the last reference to it."""

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        if data.size:
            self._bytes(handle, offset, data.size)[:] = data

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        if data.size:
            data[:] = self._bytes(handle, offset, data.size)

    def copy(
        self, target: Any, target_offset: int, source: Any, source_offset: int, size_bytes: int
    ) -> None:
        if size_bytes:
            data = self._bytes(source, source_offset, size_bytes).copy()
            self._bytes(target, target_offset, size_bytes)[:] = data

    def _bytes(self, handle: Any, offset: int, size: int) -> Bytes:
        MetalDriver.current().wait()
        whole = handle.contents().as_buffer(handle.length())
        return np.frombuffer(whole, np.uint8)[offset : offset + size]


# --------------------------------------------------------------------------------------------------
# The METAL runtime: Metal to a Program, through Apple's compiler.


class MetalProgram:
    """A kernel in Metal; it is compiled when it is first bound.

    Errors: CompileError with the line that the compiler refuses.
    """

    def __init__(self, source: Source):
        self.source = source
        self.slots = source.slots

    def require_code(self) -> None:
        """Compile now. Errors: CompileError."""
        _ = self.pipeline

    @once
    def pipeline(self) -> Any:
        """The compiled kernel, as a compute pipeline of Metal."""
        with errors_in(self.source):
            return self._compiled()

    def _compiled(self) -> Any:
        gpu, source = MetalDriver.current().gpu, self.source
        options = library("Metal").MTLCompileOptions.new()
        options.setFastMathEnabled_(False)  # it assumes that no value is NaN
        compiled, error = gpu.newLibraryWithSource_options_error_(source.text, options, None)
        if compiled is None:
            raise refusal("metal", _words(error), source.text)
        function = compiled.newFunctionWithName_(source.name)
        if function is None:
            raise missing_kernel("metal", source)
        state, error = gpu.newComputePipelineStateWithFunction_error_(function, None)
        if state is None:
            raise refusal("metal", _words(error), source.text)
        return state

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> MetalLaunch:
        return MetalLaunch(self, buffers)


class MetalLaunch:
    """A kernel bound to its memory.

    Errors: DeviceError where a work-group has more work-items than the GPU allows for the kernel.
    """

    def __init__(self, program: MetalProgram, buffers: Sequence[Buffer]):
        launch = program.source.launch
        self.name, self.slots = program.source.name, program.slots
        self.pipeline, self.buffers = program.pipeline, [*buffers]
        size = library("Metal").MTLSizeMake
        self.grid, self.group = size(*grid_size(launch)), size(*group_size(launch))
        items = self.group.width * self.group.height * self.group.depth
        most = self.pipeline.maxTotalThreadsPerThreadgroup()
        if items > most:
            because = f"a work-group has {items} work-items, and the GPU allows {most} for it"
            raise DeviceError(f"METAL cannot launch {self.name}", because)

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer

    def __call__(self, wait: bool = True) -> None:
        self._start()
        if wait:
            MetalDriver.current().wait()

    def timed(self) -> float:
        """Run, and return the seconds by the GPU's clock."""
        commands = self._start()
        MetalDriver.current().wait()
        return float(commands.GPUEndTime() - commands.GPUStartTime())

    def _start(self) -> Any:
        with library("objc").autorelease_pool():
            return self._commit()

    def _commit(self) -> Any:
        driver = MetalDriver.current()
        commands = driver.queue.commandBuffer()
        encoder = commands.computeCommandEncoder()
        encoder.setComputePipelineState_(self.pipeline)
        for place, slot in enumerate(self.slots):
            buffer = self.buffers[slot]
            encoder.setBuffer_offset_atIndex_(buffer.handle, buffer.offset, place)
        encoder.dispatchThreadgroups_threadsPerThreadgroup_(self.grid, self.group)
        encoder.endEncoding()
        driver.start(self.name, commands)
        return commands


def _words(error: Any) -> str:
    return "" if error is None else str(error.localizedDescription())


# --------------------------------------------------------------------------------------------------
# The METAL device.


class MetalDevice(WorkGroupDevice):
    """Metal on an Apple GPU."""

    name = "METAL"
    has_machine_code = False
    about = "an Apple GPU"
    extra = "metal"
    needs = "on a Mac"
    rank = 98
    queues = True
    memory: Memory = MetalMemory()
    driver = MetalDriver
    program = MetalProgram
    language = METAL

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> Metal:
        return Metal()


DEVICE = MetalDevice()

"""The METAL runtime: Metal to a Program, through Apple's compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.compilers.refusal import errors_in, missing_kernel, refusal
from workbench.backends.metal.driver import MetalDriver
from workbench.backends.program.launch import grid_size, group_size
from workbench.backends.program.source import Source
from workbench.base.errors import DeviceError
from workbench.base.forking import once
from workbench.base.libraries import library


class MetalProgram:
    """A kernel in Metal; it is compiled when it is first bound.

    Errors: CompileError with the line that the compiler refuses.
    """

    def __init__(self, source: Source):
        self.source = source
        self.slots = source.slots

    def require_code(self) -> None:
        """Errors: CompileError."""
        _ = self.pipeline

    @once
    def pipeline(self) -> Any:
        """The compiled program."""
        with errors_in(self.source):
            return self._compiled()

    def _compiled(self) -> Any:
        gpu, source = MetalDriver.current().gpu, self.source
        options = library("Metal").MTLCompileOptions.new()
        options.setFastMathEnabled_(False)  # it takes NaN for no value
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
    """A kernel and its memory.

    Errors: DeviceError where a work-group has more work-items than the GPU runs of this kernel.
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
            because = f"a work-group has {items} work-items, and the GPU takes {most} of this"
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

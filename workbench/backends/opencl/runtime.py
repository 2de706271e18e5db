"""The OPENCL runtime: OpenCL C to a Program, the driver's binary launched through pyopencl."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.compilers.opencl import build, kernel_in, load
from workbench.backends.compilers.refusal import errors_in, require_arguments
from workbench.backends.opencl.compile import KernelText, binary_of
from workbench.backends.opencl.driver import OpenCLDriver
from workbench.backends.program.launch import group_size, item_counts
from workbench.backends.program.source import Source
from workbench.base.errors import DeviceError
from workbench.base.forking import once
from workbench.base.libraries import library


class OpenCLProgram:
    """A kernel in OpenCL C; it is compiled when it is first bound.

    Errors: CompileError if the driver's compiler refuses the text, crashes, or does not end.
    """

    def __init__(self, source: Source):
        self.source = source
        self.items, self.group = item_counts(source.launch), group_size(source.launch)

    def require_code(self) -> None:
        """Errors: CompileError."""
        self.kernel()

    def kernel(self) -> Any:
        """Return the driver's kernel, a new one each time: it holds its arguments.

        Errors: CompileError, also for a text with another kernel.
        """
        program, name = self._program
        with errors_in(self.source):
            kernel = kernel_in(program, name, self.source)
            require_arguments("opencl", kernel.num_args, self.source)
        return kernel

    @once
    def _program(self) -> tuple[Any, str]:
        """The driver's program, and the kernel's name in it."""
        source, driver = self.source, OpenCLDriver.current()
        text = KernelText(source.text, source.name, self.items, self.group)
        with errors_in(source):
            binary = binary_of(text)
            program = load(driver.context, driver.device, binary.data)
            if program is not None:
                return program, binary.name
            _warn_of_compiler(driver.device.platform.name)
            return build(driver.context, source.text), source.name

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> OpenCLLaunch:
        return OpenCLLaunch(self, buffers)


class OpenCLLaunch:
    """A kernel and its memory."""

    def __init__(self, program: OpenCLProgram, buffers: Sequence[Buffer]):
        source = program.source
        self.source, self.items, self.group = source, program.items, program.group
        self.kernel = program.kernel()
        self.arguments = source.slots
        self.buffers = [*buffers]
        for slot in self.arguments:
            self.move(slot, buffers[slot])

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer
        if slot not in self.arguments:
            return
        memory = buffer.handle
        if buffer.offset:
            memory = memory.get_sub_region(buffer.offset, max(1, buffer.nbytes))
        self.kernel.set_arg(self.arguments.index(slot), memory)

    def _enqueue(self) -> Any:
        cl = library("pyopencl")
        try:
            return cl.enqueue_nd_range_kernel(
                OpenCLDriver.current().queue, self.kernel, self.items, self.group
            )
        except cl.Error as error:
            raise DeviceError(f"OPENCL cannot launch {self.source.name}", str(error)) from error

    def __call__(self, wait: bool = True) -> None:
        event = self._enqueue()
        if wait:
            event.wait()

    def timed(self) -> float:
        """Run, and return the seconds by the driver's clock."""
        event = self._enqueue()
        event.wait()
        return float(event.profile.end - event.profile.start) * 1e-9


@cache
def _warn_of_compiler(driver: str) -> None:
    warnings.warn(
        f"{driver} does not load what it has compiled in another process: its compiler runs in"
        " this one, and takes it along where it crashes",
        RuntimeWarning,
        stacklevel=2,
    )

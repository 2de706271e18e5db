"""OpenCL C -> a Program, through the driver's compiler."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.elsewhere import about_line
from workbench.backends.gpu.dialect import grid_size, group_size
from workbench.backends.gpu.opencl_c import STANDARD
from workbench.backends.opencl.driver import OpenCLDriver
from workbench.backends.program.source import Source
from workbench.base.errors import CompileError, DeviceError
from workbench.base.forking import once
from workbench.base.libraries import library

_LINE = re.compile(r"error: .*?:(\d+):\d+: (.*)|:(\d+):\d+: error: (.*)")
"""How drivers (PoCL; those on Clang) say where an error is."""


class OpenCLProgram:
    """A kernel in OpenCL C; it is compiled when it is first bound.

    Errors: CompileError if the driver refuses the text.
    """

    def __init__(self, source: Source):
        self.source = source

    @once
    def program(self) -> Any:
        """The driver's compiled program."""
        text, cl = self.source.text, library("pyopencl")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what compilers say of right kernels
                return cl.Program(OpenCLDriver.here().context, text).build(
                    options=STANDARD
                )
        except cl.Error as error:
            match = _LINE.search(str(error))
            because, line = " ".join(str(error).split())[-400:], None
            if match:
                because, line = match[2] or match[4], int(match[1] or match[3])
            refusal = CompileError("opencl", because, last_good=text, line=line)
            raise about_line(refusal, self.source) from error

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> OpenCLLaunch:
        return OpenCLLaunch(self, buffers)


class OpenCLLaunch:
    """A kernel and its memory."""

    def __init__(self, program: OpenCLProgram, buffers: Sequence[Buffer]):
        source = program.source
        self.source = source
        self.kernel = library("pyopencl").Kernel(program.program, source.name)
        self.arguments = [s for s, (dtype, _) in enumerate(source.params) if dtype.bits]
        self.buffers = [*buffers]
        grid, self.group = grid_size(source.launch), group_size(source.launch)
        self.items = tuple(n * m for n, m in zip(grid, self.group, strict=True))
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
                OpenCLDriver.here().queue, self.kernel, self.items, self.group
            )
        except cl.Error as error:
            raise DeviceError(
                f"OPENCL cannot launch {self.source.name}", str(error)
            ) from error

    def __call__(self, wait: bool = True) -> None:
        event = self._enqueue()
        if wait:
            event.wait()

    def timed(self) -> float:
        """Run, and return the seconds by the driver's clock."""
        event = self._enqueue()
        event.wait()
        return float(event.profile.end - event.profile.start) * 1e-9

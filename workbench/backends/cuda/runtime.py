"""CUDA C++ -> a Program: a cubin by NVRTC, launched through cuda-core."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.cuda import nvrtc, sass
from workbench.backends.cuda.driver import CudaDriver, driver, explain
from workbench.backends.elsewhere import about_line
from workbench.backends.gpu.dialect import grid_size, group_size
from workbench.backends.native.assembly import AsmLine
from workbench.backends.program.source import Source
from workbench.base.errors import CompileError
from workbench.base.forking import once
from workbench.base.libraries import library

KEPT_PROGRAMS = 1024


@lru_cache(maxsize=KEPT_PROGRAMS)
def load(source: Source) -> CudaProgram:
    """Return the Program of a Source, the same one for the same text."""
    return CudaProgram(source)


class CudaProgram:
    """A kernel in CUDA C++; it is compiled when it is first bound.

    Errors: CompileError with the line that NVRTC refuses; DeviceError where the GPU does not load
    it.
    """

    def __init__(self, source: Source):
        self.source = source

    @once
    def image(self) -> nvrtc.Image:
        """The cubin, compiled in the process of compilers."""
        text, arch = self.source.text, driver().arch
        try:
            image: nvrtc.Image = in_child(nvrtc.compile_text, text, arch)
        except CompileError as error:
            raise about_line(error, self.source) from error
        return image

    @once
    def kernel(self) -> Any:
        """The kernel on the GPU."""
        core, name = library("cuda.core"), self.source.name
        cubin = self.image.data

        def act() -> Any:
            driver().gpu.set_current()
            return core.ObjectCode.from_cubin(cubin).get_kernel(name)

        return explain(f"the GPU does not load {name}", act)

    @once
    def machine_code(self) -> MachineCode:
        """The SASS, with the registers that are in use."""
        compiler = f"NVRTC for {driver().arch}"
        image = self.image
        code: MachineCode = in_child(
            sass.read_cubin, image.data, driver().arch, compiler, image.log
        )
        return code

    @property
    def assembly(self) -> str:
        """The machine code as text."""
        return self.machine_code.text

    @property
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The instructions, each with its line of the source."""
        return self.machine_code.lines

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> CudaLaunch:
        return CudaLaunch(self, buffers)


class CudaLaunch:
    """A kernel and its memory."""

    def __init__(self, program: CudaProgram, buffers: Sequence[Buffer]):
        source = program.source
        self.name, self.kernel = source.name, program.kernel
        self.slots = [s for s, (dtype, _) in enumerate(source.params) if dtype.bits]
        self.places = {slot: _place(buffers[slot]) for slot in self.slots}
        self.buffers = [*buffers]
        grid, group = grid_size(source.launch), group_size(source.launch)
        self.config = library("cuda.core").LaunchConfig(grid=grid, block=group)

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer
        if slot in self.places:
            self.places[slot] = _place(buffer)

    def __call__(self, wait: bool = True) -> None:
        here = driver()
        explain(
            f"CUDA cannot launch {self.name}", lambda: self.enqueue(here, here.stream)
        )
        if wait:
            explain(f"the GPU stopped in {self.name}", here.stream.sync)

    def timed(self) -> float:
        """Run, and return the seconds between two events of the stream."""
        return explain(f"the GPU stopped in {self.name}", self._timed)

    def _timed(self) -> float:
        here = driver()
        has_clock = library("cuda.core").EventOptions(timing_enabled=True)
        begin = here.stream.record(options=has_clock)
        self.enqueue(here, here.stream)
        end = here.stream.record(options=has_clock)
        end.sync()
        return float(end - begin) * 1e-3

    def enqueue(self, here: CudaDriver, stream: Any) -> None:
        """Launch on a stream, or in a graph that is being built."""
        here.gpu.set_current()
        places = self.places.values()
        library("cuda.core").launch(stream, self.config, self.kernel, *places)


def _place(buffer: Buffer) -> int:
    return int(buffer.handle) + buffer.offset

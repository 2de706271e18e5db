"""The CUDA runtime: CUDA C++ to a Program, a cubin of NVRTC launched through cuda-core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.compilers.refusal import errors_in, require_kernel
from workbench.backends.cuda import nvrtc, sass
from workbench.backends.cuda.driver import CudaDriver
from workbench.backends.gpu.addresses import AddressLaunch
from workbench.backends.native.assembly import AsmLine
from workbench.backends.program.source import Source
from workbench.base.forking import once
from workbench.base.libraries import library


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
        text, arch = self.source.text, CudaDriver.current().arch
        with errors_in(self.source):
            image: nvrtc.Image = in_child(nvrtc.compile_text, text, arch)
        return image

    def require_code(self) -> None:
        """Errors: CompileError."""
        kernels = self.machine_code.kernels
        with errors_in(self.source):
            require_kernel("nvrtc", kernels, self.source)

    @once
    def kernel(self) -> Any:
        """The kernel on the GPU."""
        core, name = library("cuda.core"), self.source.name
        cubin = self.image.data

        shared = self.source.shared_bytes

        def act() -> Any:
            driver = CudaDriver.current()
            driver.gpu.set_current()
            kernel = core.ObjectCode.from_cubin(cubin).get_kernel(name)
            if shared:
                driver.allow_shared(kernel, shared)
            return kernel

        return CudaDriver.explain(f"the GPU does not load {name}", act)

    @once
    def machine_code(self) -> MachineCode:
        """The SASS, with the registers that are in use."""
        compiler = f"NVRTC for {CudaDriver.current().arch}"
        image = self.image
        code: MachineCode = in_child(
            sass.read_cubin, image.data, CudaDriver.current().arch, compiler, image.log
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


class CudaLaunch(AddressLaunch):
    """A kernel and its memory."""

    def __init__(self, program: CudaProgram, buffers: Sequence[Buffer]):
        self.kernel = program.kernel
        super().__init__(program.source, buffers)
        config = library("cuda.core").LaunchConfig
        sizes: dict[str, Any] = {"grid": self.grid, "block": self.group}
        if program.source.shared_bytes:
            sizes["shmem_size"] = program.source.shared_bytes
        self.config = config(**sizes)

    def __call__(self, wait: bool = True) -> None:
        driver = CudaDriver.current()
        driver.explain(
            f"CUDA cannot launch {self.name}", lambda: self.enqueue(driver, driver.stream)
        )
        if wait:
            driver.explain(f"the GPU stopped in {self.name}", driver.stream.sync)

    def timed(self) -> float:
        """Run, and return the seconds between two events of the stream."""
        return CudaDriver.explain(f"the GPU stopped in {self.name}", self._timed)

    def _timed(self) -> float:
        driver = CudaDriver.current()
        has_clock = library("cuda.core").EventOptions(timing_enabled=True)
        begin = driver.stream.record(options=has_clock)
        self.enqueue(driver, driver.stream)
        end = driver.stream.record(options=has_clock)
        end.sync()
        return float(end - begin) * 1e-3

    def enqueue(self, driver: CudaDriver, stream: Any) -> None:
        """Launch on a stream, or in a graph that is being built."""
        driver.gpu.set_current()
        places = self.places.values()
        library("cuda.core").launch(stream, self.config, self.kernel, *places)

"""The OPENCL device: any OpenCL implementation of this machine, a GPU's if there is one.

Sections: Memory of an OpenCL driver; The OPENCL runtime; The OPENCL device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from workbench.backends.compilers.compilers import MachineCode, build, kernel_in, load
from workbench.backends.compilers.refusal import errors_in, require_arguments
from workbench.backends.gpu.cpp import OPENCL_C, OpenCLC
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.llvm_ir.gpu_targets import SPIRV
from workbench.backends.memory import Buffer, Bytes, Memory
from workbench.backends.opencl.opencl_code import KernelText, OpenCLDriver, binary_of
from workbench.backends.opencl.opencl_machines import MACHINES
from workbench.backends.program.launch import group_size, item_counts
from workbench.backends.program.text import Source
from workbench.base.errors import DeviceError
from workbench.base.installation import library
from workbench.base.interrupts import no_fork, once
from workbench.base.source import warn_user
from workbench.base.target import Target

# --------------------------------------------------------------------------------------------------
# Memory of an OpenCL driver: a handle is a pyopencl Buffer.


class OpenCLMemory(Memory):
    """Memory of the driver's device."""

    alignment_bytes = 128
    offset_bytes = 128

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Any:
        cl = library("pyopencl")
        try:
            flags = cl.mem_flags.READ_WRITE
            return cl.Buffer(OpenCLDriver.current().context, flags, size=size_bytes)
        except cl.Error as error:
            raise MemoryError(str(error)) from error

    def free(self, handle: Any) -> None:
        handle.release()

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        cl = library("pyopencl")
        queue = OpenCLDriver.current().queue
        cl.enqueue_copy(queue, handle, data, dst_offset=offset, is_blocking=True)

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        cl = library("pyopencl")
        queue = OpenCLDriver.current().queue
        cl.enqueue_copy(queue, data, handle, src_offset=offset, is_blocking=True)

    def copy(
        self, target: Any, target_offset: int, source: Any, source_offset: int, size_bytes: int
    ) -> None:
        cl = library("pyopencl")
        cl.enqueue_copy(
            OpenCLDriver.current().queue,
            target,
            source,
            byte_count=size_bytes,
            src_offset=source_offset,
            dst_offset=target_offset,
        )


# --------------------------------------------------------------------------------------------------
# The OPENCL runtime: OpenCL C to a Program, the driver's binary launched through pyopencl.


class OpenCLProgram:
    """A kernel in OpenCL C; it is compiled when it is first bound.

    Errors: CompileError if the driver's compiler refuses the text, crashes, or does not end.
    """

    def __init__(self, source: Source):
        self.source = source
        self.items, self.group = item_counts(source.launch), group_size(source.launch)

    def require_code(self) -> None:
        """Compile now. Errors: CompileError."""
        self.kernel()

    def kernel(self) -> Any:
        """Return a new kernel of the driver, since a kernel holds its arguments.

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
    """A kernel bound to its memory."""

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
    warn_user(
        f"{driver} does not load what it has compiled in another process: its compiler runs in"
        " this process, and ends it if it crashes"
    )


# --------------------------------------------------------------------------------------------------
# The OPENCL device.


class OpenCLDevice(WorkGroupDevice):
    """Work-groups through pyopencl."""

    name = "OPENCL"
    has_machine_code = False
    about = "work-groups, through an OpenCL driver"
    extra = "opencl"
    needs = "which brings a driver for the processor (PoCL); drivers of GPUs are found too"
    aliases = ("CL",)
    rank = 95
    queues = True
    language = OPENCL_C
    gpu_target = SPIRV
    memory: Memory = OpenCLMemory()
    driver = OpenCLDriver
    program = OpenCLProgram
    compiles_text = True

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        with no_fork:
            from workbench.backends.opencl.opencl_code import compile_source
        return compile_source(source, target)

    def dialect(self) -> OpenCLC:
        return OpenCLC()


DEVICE = OpenCLDevice()

"""Memory of an OpenCL driver: a handle is a pyopencl Buffer."""

from __future__ import annotations

from typing import Any

from workbench.backends.memory import Bytes, Memory
from workbench.backends.opencl.driver import OpenCLDriver
from workbench.base.libraries import library


class OpenCLMemory(Memory):
    """Memory that kernels of the OPENCL device read and write."""

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

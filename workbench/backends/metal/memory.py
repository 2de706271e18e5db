"""Memory of an Apple GPU, which this process shares: a handle is an MTLBuffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.backends.memory import Bytes, Memory
from workbench.backends.metal.driver import MetalDriver

SHARED = 0
"""Apple, Metal, MTLResourceStorageModeShared."""


class MetalMemory(Memory):
    """Memory that kernels of the METAL device read and write: no copy is made while one runs."""

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
        """Nothing: it is free without references."""

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

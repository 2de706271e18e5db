"""Memory of WebGPU: a handle is a GPUBuffer, of whole words of 4 bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.backends.memory import Bytes, Memory
from workbench.backends.webgpu.driver import WebGpuDriver
from workbench.base.libraries import library

WORD = 4


def whole_words(nbytes: int) -> int:
    """Return bytes rounded up to words."""
    return -(-nbytes // WORD) * WORD


class WebGpuMemory(Memory):
    """Memory that kernels of the WEBGPU device read and write."""

    alignment_bytes = 256
    offset_bytes = 256

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Any:
        most = WebGpuDriver.current().device.limits["max-storage-buffer-binding-size"]
        if size_bytes > most:
            raise MemoryError(f"a buffer has at most {most:,} bytes")
        wgpu = library("wgpu")
        usage = wgpu.BufferUsage
        use = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        try:
            size = max(WORD, whole_words(size_bytes))
            return WebGpuDriver.current().device.create_buffer(size=size, usage=use)
        except wgpu.GPUError as error:
            raise MemoryError(str(error)) from error

    def free(self, handle: Any) -> None:
        handle.destroy()

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        whole = data.size // WORD * WORD
        if whole:
            WebGpuDriver.current().queue.write_buffer(handle, offset, data[:whole])
        if whole < data.size:  # the rest of the last word stays as it is
            last = self._read(handle, offset + whole, WORD)
            last[: data.size - whole] = data[whole:]
            WebGpuDriver.current().queue.write_buffer(handle, offset + whole, last)

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        if data.size:
            words = self._read(handle, offset, whole_words(data.size))
            data[:] = words[: data.size]

    def copy(
        self, target: Any, target_offset: int, source: Any, source_offset: int, size_bytes: int
    ) -> None:
        if size_bytes % WORD or target is source:
            data = self._read(source, source_offset, whole_words(size_bytes))
            self.copy_in(target, target_offset, data[:size_bytes])
        elif size_bytes:
            commands = WebGpuDriver.current().device.create_command_encoder()
            place = target, target_offset, size_bytes
            commands.copy_buffer_to_buffer(source, source_offset, *place)
            WebGpuDriver.current().queue.submit([commands.finish()])

    def _read(self, handle: Any, offset: int, nbytes: int) -> Bytes:
        words = WebGpuDriver.current().queue.read_buffer(handle, offset, nbytes)
        return np.frombuffer(words, np.uint8).copy()

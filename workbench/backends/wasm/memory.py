"""WebAssembly memory: one block, whose pieces are numpy arrays."""

from __future__ import annotations

from bisect import insort

from workbench.backends.memory import Bytes
from workbench.backends.native.host_memory import HostMemory
from workbench.backends.wasm.module import STACK_BYTES
from workbench.base.forking import free_lock


class WasmMemory(HostMemory):
    """Memory of WebAssembly; a handle is an array of bytes, and its address is one of this
    process's. `place` gives that in WebAssembly. A piece that is free again is used again."""

    shares_host_memory = False  # not the memory that other devices have

    def __init__(self) -> None:
        self._gaps: list[tuple[int, int]] = []  # beginnings and ends
        self._end = STACK_BYTES
        self._lock = free_lock()

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Bytes:
        from workbench.backends.wasm.engine import engine

        size = -(-max(1, size_bytes) // alignment_bytes) * alignment_bytes
        with self._lock:
            begin = self._begin(size)
            engine().grow(begin + size)
            self._end = max(self._end, begin + size)
        return engine().view(begin, size_bytes)

    def _begin(self, size: int) -> int:
        for number, (begin, end) in enumerate(self._gaps):
            if end - begin >= size:
                del self._gaps[number]
                if end - begin > size:
                    insort(self._gaps, (begin + size, end))
                return begin
        return self._end

    def free(self, handle: Bytes) -> None:
        begin = self.place(self.address(handle))
        size = -(-max(1, handle.size) // self.alignment_bytes) * self.alignment_bytes
        with self._lock:
            insort(self._gaps, (begin, begin + size))
            joined: list[tuple[int, int]] = []
            for gap in self._gaps:
                if joined and joined[-1][1] == gap[0]:
                    joined[-1] = joined[-1][0], gap[1]
                else:
                    joined.append(gap)
            self._gaps = joined

    def adopt(self, data: Bytes) -> None:
        """Return None: other memory is not WebAssembly's."""

    def place(self, address: int) -> int:
        """Return the address in WebAssembly of one in this process."""
        from workbench.backends.wasm.engine import engine

        return address - engine().address

    def available_bytes(self) -> int | None:
        return (4 << 30) - self._end

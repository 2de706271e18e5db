"""Memory of an AMD GPU: a handle is its address."""

from __future__ import annotations

from typing import Any

from workbench.backends.hip.driver import HipDriver, call
from workbench.backends.memory import Bytes, Memory


class HipMemory(Memory):
    """Memory that kernels of the HIP device read and write. Copies stand in the stream of the
    launches; those from and to this process's memory are done when they return."""

    alignment_bytes = 256
    offset_bytes = 16

    def allocate(self, size_bytes: int, alignment_bytes: int) -> int:
        return int(self._call("Malloc", max(1, size_bytes)))

    def free(self, handle: Any) -> None:
        self._call("Free", handle)

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        if data.size:
            place = handle + offset, data.ctypes.data, data.size
            self._call("MemcpyHtoDAsync", *place, HipDriver.here().stream)
            HipDriver.here().wait()

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        if data.size:
            place = data.ctypes.data, handle + offset, data.size
            self._call("MemcpyDtoHAsync", *place, HipDriver.here().stream)
            HipDriver.here().wait()

    def copy(
        self,
        target: Any,
        target_offset: int,
        source: Any,
        source_offset: int,
        size_bytes: int,
    ) -> None:
        if size_bytes:
            place = target + target_offset, source + source_offset, size_bytes
            self._call("MemcpyDtoDAsync", *place, HipDriver.here().stream)

    def available_bytes(self) -> int | None:
        free, _ = self._call("MemGetInfo")
        return int(free)

    def _call(self, name: str, *arguments: Any) -> Any:
        here = HipDriver.here()
        return here.explain(
            f"the GPU refuses hip{name}", lambda: call(name, *arguments)
        )

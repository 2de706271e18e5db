"""Memory of an NVIDIA GPU: a handle is its address."""

from __future__ import annotations

from typing import Any

from workbench.backends.cuda.driver import CudaDriver, checked
from workbench.backends.memory import Bytes, Memory
from workbench.base.libraries import library


class CudaMemory(Memory):
    """Memory that kernels of the CUDA device read and write. Copies stand in the stream of the
    launches; those from and to this process's memory are done when they return."""

    alignment_bytes = 256
    offset_bytes = 16
    spare_limit_bytes = 4 << 30

    def allocate(self, size_bytes: int, alignment_bytes: int) -> int:
        (address,) = self._call("cuMemAlloc", max(1, size_bytes))
        return int(address)

    def free(self, handle: Any) -> None:
        self._call("cuMemFree", handle)

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        if data.size:
            place = handle + offset, data.ctypes.data, data.size
            self._call("cuMemcpyHtoDAsync", *place, self._stream)
            CudaDriver.here().wait()

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        if data.size:
            place = data.ctypes.data, handle + offset, data.size
            self._call("cuMemcpyDtoHAsync", *place, self._stream)
            CudaDriver.here().wait()

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
            self._call("cuMemcpyDtoDAsync", *place, self._stream)

    def available_bytes(self) -> int | None:
        free, _ = self._call("cuMemGetInfo")
        return int(free)

    @property
    def _stream(self) -> Any:
        return CudaDriver.here().stream.handle

    def _call(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        here = CudaDriver.here()
        function = getattr(library("cuda.bindings.driver"), name)

        def act() -> tuple[Any, ...]:
            here.gpu.set_current()  # a thread has no context of its own
            return checked(function(*arguments))

        return here.explain(f"the GPU refuses {name}", act)

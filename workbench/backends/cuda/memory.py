"""Memory of an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.backends.cuda.driver import CudaDriver, call
from workbench.backends.gpu.addresses import AddressMemory


class CudaMemory(AddressMemory):
    """Memory that kernels of the CUDA device read and write."""

    spare_limit_bytes = 4 << 30
    driver = CudaDriver
    prefix = "cu"
    allocation = "MemAlloc"
    release = "MemFree"

    @property
    def stream(self) -> Any:
        return CudaDriver.current().stream.handle

    def apply(self, name: str, arguments: Sequence[Any]) -> Any:
        CudaDriver.current().gpu.set_current()  # a thread has no context of its own
        return call(name, *arguments)

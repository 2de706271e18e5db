"""Memory of an AMD GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.backends.gpu.addresses import AddressMemory
from workbench.backends.hip.driver import HipDriver, call


class HipMemory(AddressMemory):
    """Memory that kernels of the HIP device read and write."""

    driver = HipDriver
    prefix = "hip"
    allocation = "Malloc"
    release = "Free"

    @property
    def stream(self) -> Any:
        return HipDriver.current().stream

    def apply(self, name: str, arguments: Sequence[Any]) -> Any:
        return call(name, *arguments)

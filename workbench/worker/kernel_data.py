"""The data of candidates, in the memory of the device that runs them."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.buffer import Buffer
from workbench.backends.device import Device
from workbench.backends.memory import Memory


class KernelData:
    """A kernel's buffers by slot in this process's memory, and copies of them in other memories.
    Devices that share a memory run on the same buffers."""

    def __init__(self, buffers: Sequence[Buffer]):
        self.buffers = buffers
        self._copies: dict[Memory, Sequence[Buffer]] = {}

    def on(self, device: str) -> Sequence[Buffer]:
        """Return the buffers in the memory of a device. Errors: DeviceError."""
        info = Device[device]
        if info.memory.shares_host_memory:
            return self.buffers
        if info.memory not in self._copies:
            copies = [Buffer(info.name, b.dtype, b.size) for b in self.buffers]
            for copy, buffer in zip(copies, self.buffers, strict=True):
                copy.copy_from(buffer)
            self._copies[info.memory] = copies
        return self._copies[info.memory]

"""A kernel and its memory, where a kernel takes the addresses of its buffers."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.buffer import Buffer
from workbench.backends.gpu.dialect import grid_size, group_size
from workbench.backends.program.source import Source


class AddressLaunch:
    """The arguments of a launch. `places` has the address of each buffer that the kernel has a
    parameter for, in their order."""

    def __init__(self, source: Source, buffers: Sequence[Buffer]):
        self.name = source.name
        self.grid, self.group = grid_size(source.launch), group_size(source.launch)
        slots = [s for s, (dtype, _) in enumerate(source.params) if dtype.bits]
        self.places = {slot: _address(buffers[slot]) for slot in slots}
        self.buffers = [*buffers]

    def move(self, slot: int, buffer: Buffer) -> None:
        """Give a slot other memory, of the same size and dtype."""
        self.buffers[slot] = buffer
        if slot in self.places:
            self.places[slot] = _address(buffer)


def _address(buffer: Buffer) -> int:
    return int(buffer.handle) + buffer.offset

"""A device that is written here, and whose memory numpy cannot see: the contract's shortest
example.

A handle is a number, memory is a dict of bytes that nobody else looks into, launches wait in a
queue, and the clock is the device's own. All that the rest of the project knows of it is what
the contract says (`workbench/backends/contract.py`, `workbench/backends/memory.py`).
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.backends.device import DeviceInfo
from workbench.backends.memory import Buffer, Bytes, Memory
from workbench.backends.program.text import Language, Source
from workbench.backends.python.python_device import EmulatorProgram, render
from workbench.base.errors import DeviceError
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

Array = np.ndarray[Any, Any]
NAME = "SHELF"
STEP_S = 1e-3
"""What a run takes by the device's clock."""


class ShelfMemory(Memory):
    """Bytes in a dict, by number. Whoever uses a number that is not there gets an error."""

    alignment_bytes = 128
    offset_bytes = 16

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self._blocks: dict[int, bytes] = {}
        self._last = 0
        self._synchronize = synchronize
        self.counts: Counter[str] = Counter()

    def allocate(self, size_bytes: int, alignment_bytes: int) -> int:
        assert size_bytes > 0 and alignment_bytes == self.alignment_bytes
        self._last += alignment_bytes
        self._blocks[self._last] = b"\xa5" * size_bytes
        return self._last

    def free(self, handle: int) -> None:
        self._synchronize()
        del self._blocks[handle]

    def copy_in(self, handle: int, offset: int, data: Bytes) -> None:
        self.counts["in"] += 1
        self._synchronize()
        self.write(handle, offset, data.tobytes())

    def copy_out(self, handle: int, offset: int, data: Bytes) -> None:
        self.counts["out"] += 1
        self._synchronize()
        data[:] = np.frombuffer(self.read(handle, offset, data.size), np.uint8)

    def copy(
        self, target: int, target_offset: int, source: int, source_offset: int, size_bytes: int
    ) -> None:
        self.counts["copy"] += 1
        self._synchronize()
        self.write(target, target_offset, self.read(source, source_offset, size_bytes))

    def read(self, handle: int, offset: int, size: int) -> bytes:
        """Return bytes, as a kernel reads them."""
        block = self._blocks[handle]
        assert offset % self.offset_bytes == 0 and offset + size <= len(block)
        return block[offset : offset + size]

    def write(self, handle: int, offset: int, data: bytes) -> None:
        """Replace bytes, as a kernel writes them."""
        block = self._blocks[handle]
        assert offset % self.offset_bytes == 0 and offset + len(data) <= len(block)
        self._blocks[handle] = block[:offset] + data + block[offset + len(data) :]

    @property
    def block_count(self) -> int:
        """How many blocks there are, those of the pool with them."""
        return len(self._blocks)


@dataclass
class Local:
    """What a launch works on: the device's own copy of an argument."""

    array: Array


class ShelfLaunch:
    """A run of a kernel: put in the queue, and done when somebody waits."""

    def __init__(self, device: Shelf, source: Source, buffers: Sequence[Buffer]):
        self._device, self._buffers = device, [*buffers]
        self._program = EmulatorProgram(source)

    def __call__(self, wait: bool = True) -> None:
        self._device.queue.append((self._program, tuple(self._buffers)))
        if wait:
            self._device.synchronize()

    def timed(self) -> float:
        """Run; return the seconds by the device's clock."""
        self()
        return STEP_S

    def move(self, slot: int, buffer: Buffer) -> None:
        self._buffers[slot] = buffer


class ShelfProgram:
    """A kernel for buffers of this memory alone."""

    def __init__(self, device: Shelf, source: Source):
        self._device, self._source = device, source

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> ShelfLaunch:
        for buffer in buffers:
            if buffer.memory is not self._device.memory:
                because = f"{buffer!r} is in other memory"
                raise DeviceError(f"cannot launch {self._source.name}", because)
        return ShelfLaunch(self._device, self._source, buffers)


class Shelf(DeviceInfo):
    """The device; `queue` has what was launched and not run, `waits` counts the waiting."""

    name = NAME
    about = "memory that numpy cannot see"
    how_to_get = "it is always there"
    language = Language("shelf IR", "IR of the shelf", "#.*$", r"\bLOAD\b")
    queues = True
    can_abort = False
    memory: ShelfMemory

    def __init__(self) -> None:
        self.queue: list[tuple[EmulatorProgram, tuple[Buffer, ...]]] = []
        self.waits = self.longest_queue = 0
        self.memory = ShelfMemory(self.synchronize)

    @property
    def is_available(self) -> bool:
        return True

    def _target(self) -> Target:
        return Target(NAME, native_transcendentals=True, native_low_precision=True)

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        return render(block)

    def load(self, source: Source) -> ShelfProgram:
        return ShelfProgram(self, source)

    def flush(self) -> None:
        """Nothing begins before somebody waits: the longest that a queue can get."""

    def synchronize(self) -> None:
        self.longest_queue = max(self.longest_queue, len(self.queue))
        self.waits += bool(self.queue)
        pending, self.queue = self.queue, []
        for program, buffers in pending:
            before = [self.memory.read(b.handle, b.offset, b.nbytes) for b in buffers]
            arguments = [
                Local(np.frombuffer(bytearray(data), b.dtype.numpy))
                for data, b in zip(before, buffers, strict=True)
            ]
            program(arguments)
            for data, argument, b in zip(before, arguments, buffers, strict=True):
                if argument.array.tobytes() != data:
                    self.memory.write(b.handle, b.offset, argument.array.tobytes())


@dataclass
class Copies:
    """The copies of a block of code: to the device, from it, on it."""

    memory: ShelfMemory

    def __enter__(self) -> Copies:
        gc.collect()
        self._before = Counter(self.memory.counts)
        return self

    def __exit__(self, *exc: object) -> None:
        after = self.memory.counts
        self.made = tuple(after[n] - self._before[n] for n in ("in", "out", "copy"))

"""The memory of a device: the few things that Buffers ask of it, and the pool of its blocks.

Fresh memory is slow (a system clears each page on first touch, a driver takes its time), so
blocks are used again. A block goes back to the pool when the last Buffer on it dies, and where
this process can look into it the last array that does: `buffer.array` may live on in the user's
hands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.base.errors import DeviceError
from workbench.base.forking import free_lock, once

Bytes = NDArray[np.uint8]
_CHECKED_BYTES = 16 << 20
"""Below this, asking how much is free costs too much."""


class Memory(ABC):
    """Memory that kernels of a device read and write. A handle is whatever `allocate` returns;
    devices that have the same Memory read each other's buffers.

    Units: bytes. A block begins at a multiple of `alignment_bytes`; a Buffer that is a part of
    another one begins at a multiple of `offset_bytes` from the beginning of its block.
    """

    alignment_bytes: int = 64
    offset_bytes: int = 1
    spare_limit_bytes: int = 512 << 20
    """Bytes of unused blocks that the pool has ready for later, at most."""
    shares_host_memory: bool = False
    """Whether this process can look into it: then `address` is there, and nothing is copied."""

    @abstractmethod
    def allocate(self, size_bytes: int, alignment_bytes: int) -> Any:
        """Return the handle of new memory, not initialised. Errors: MemoryError."""

    @abstractmethod
    def free(self, handle: Any) -> None:
        """Give memory back: nobody uses the handle again."""

    @abstractmethod
    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        """Copy `data` of this process to memory, `offset` bytes from its beginning on."""

    @abstractmethod
    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        """Copy memory to `data`, from `offset` bytes on, as much as that holds."""

    @abstractmethod
    def copy(
        self,
        target: Any,
        target_offset: int,
        source: Any,
        source_offset: int,
        size_bytes: int,
    ) -> None:
        """Copy memory to other memory of the same device."""

    def address(self, handle: Any) -> int:
        """Where it begins in this process's memory; 0 where that is not so."""
        return 0

    def available_bytes(self) -> int | None:
        """How much more can be had; None where nobody knows."""
        return None

    @once
    def pool(self) -> BufferPool:
        """The pool of all Buffers in this memory."""
        return BufferPool(self, self.spare_limit_bytes)


class BufferPool:
    """Blocks of a memory that are free to be used again, by size.

    Units: limit_bytes bounds what is kept; beyond it blocks go back to the memory.
    """

    def __init__(self, memory: Memory, limit_bytes: int = 512 << 20):
        self.memory, self.limit_bytes = memory, limit_bytes
        self.spare_bytes = 0
        self._used_bytes = 0
        self._free: dict[int, list[Block]] = {}
        self._returned: deque[Block] = deque()
        self._lock = free_lock()

    @property
    def used_bytes(self) -> int:
        """Bytes of the blocks that are in use."""
        with self._lock:
            self._sort()
            return self._used_bytes

    def acquire(self, nbytes: int) -> Block:
        """Return a block of at least `nbytes`: one of the pool, or new memory."""
        size = size_class(nbytes)
        with self._lock:
            self._sort()
            blocks = self._free.get(size)
            if blocks:
                self.spare_bytes -= size
                self._used_bytes += size
                return blocks.pop()
        block = self._allocate(size)
        with self._lock:
            self._used_bytes += size
        return block

    def release(self, block: Block) -> None:
        """Take a block back. Safe anywhere, even inside a garbage collection that interrupts
        this very class: if the lock is taken, whoever holds it or comes next sorts it in."""
        self._returned.append(block)
        if not self._lock.locked():
            with self._lock:  # no Ctrl-C comes between taking it and the block
                self._sort()

    def clear(self) -> None:
        """Give all blocks that are free back to the memory."""
        with self._lock:
            self._sort()
            blocks = [block for same in self._free.values() for block in same]
            self._free.clear()
            self.spare_bytes = 0
            for block in blocks:
                self.memory.free(block.handle)

    def _sort(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            self._used_bytes -= block.size
            if self.spare_bytes + block.size <= self.limit_bytes:
                self._free.setdefault(block.size, []).append(block)
                self.spare_bytes += block.size
            else:
                self.memory.free(block.handle)

    def check_room(self, nbytes: int) -> None:
        """Refuse, as DeviceError, what is more than there is; free blocks are given up for it.

        What is small for every machine is not asked about.
        """
        if nbytes < _CHECKED_BYTES:
            return
        available = self.memory.available_bytes()
        if available is not None and nbytes > available:
            self.clear()
            available = self.memory.available_bytes()
        if available is not None and nbytes > available:
            raise _too_large(nbytes, f"{_mib(available)} are free")

    def _allocate(self, size: int) -> Block:
        self.check_room(size)
        try:
            handle = self.memory.allocate(size, self.memory.alignment_bytes)
        except (MemoryError, ValueError) as error:
            raise _too_large(size, "the system does not give that much") from error
        return Block(handle, size, self.memory.address(handle))


class Block:
    """A piece of memory whose first byte is aligned."""

    __slots__ = ("address", "handle", "size")

    def __init__(self, handle: Any, size: int, address: int):
        self.handle, self.size, self.address = handle, size, address


class Lease:
    """What owns a Block: when no Buffer and no array looks into it, it goes back."""

    __slots__ = ("__array_interface__", "block", "pool")

    def __init__(self, pool: BufferPool, nbytes: int):
        self.pool, self.block = pool, pool.acquire(nbytes)
        if self.block.address:
            self.__array_interface__ = {
                "shape": (nbytes,),
                "typestr": "|u1",
                "data": (self.block.address, False),
                "version": 3,
            }

    def __del__(self) -> None:
        if hasattr(self, "block"):
            self.pool.release(self.block)


memories: dict[str, Memory] = {}
"""The memory of each device, by its name."""


def memory_named(device: str) -> Memory:
    """Return the memory of a device. Errors: DeviceError for a name that no device has."""
    memory = memories.get(device)
    if memory is None:
        names = ", ".join(memories)
        raise DeviceError(
            f"no device {device!r:.60} has memory",
            f"the devices with memory are {names}",
        )
    return memory


def size_class(nbytes: int, step_bytes: int = 64) -> int:
    """Return `nbytes` rounded up so that blocks fit again: at most an eighth is wasted."""
    if nbytes <= 8 * step_bytes:
        return max(1, -(-nbytes // step_bytes)) * step_bytes
    step = 1 << ((nbytes - 1).bit_length() - 4)
    return -(-nbytes // step) * step


def _too_large(size: int, because: str) -> DeviceError:
    return DeviceError(
        f"cannot allocate {_mib(size)}",
        because,
        "smaller tensors, or delete those that are no longer needed",
    )


def _mib(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):,.0f} MiB"

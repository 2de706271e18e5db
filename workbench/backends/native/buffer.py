"""Memory for kernels: 64-byte aligned, from a pool, and never more than there is.

Fresh memory is slow (the system clears each page on first touch), so blocks are kept and
used again. A block goes back to the pool when the last array that looks into it dies, not
when its Buffer does: `buffer.array` may live on in the user's hands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.base.dtypes import DType
from workbench.base.errors import DeviceError
from workbench.base.forking import free_lock
from workbench.base.unpicklable import Unpicklable

ALIGNMENT_BYTES = 64
_CHECKED_BYTES = (
    16 << 20
)  # below this, asking the system how much is free costs too much


class Buffer(Unpicklable):
    """`size` elements of `dtype` in this machine's memory, not initialised.

    `array` is a 1-D numpy view of it and `address` where it begins.
    Errors: DeviceError if there is not enough memory.
    """

    __slots__ = ("address", "array", "device", "dtype", "nbytes", "size")

    def __init__(self, device: str, dtype: DType, size: int):
        if size < 0:
            raise DeviceError(
                f"cannot make a buffer of {size} elements", "a size is 0 or more"
            )
        self.device, self.dtype, self.size = device, dtype, size
        self.nbytes: int = size * dtype.itemsize
        lease = _Lease(pool, pool.acquire(self.nbytes), self.nbytes)
        self.address: int = lease.block.address
        # Bytes first: the interface has no name for bfloat16.
        self.array: NDArray[Any] = np.asarray(lease).view(dtype.numpy)

    def __repr__(self) -> str:
        return f"<Buffer {self.dtype}[{self.size}] on {self.device}>"

    def window(self, start: int, size: int) -> Buffer:
        """Return `size` elements from `start` on as a Buffer: the same memory, which lives as
        long as one of the two does."""
        if not 0 <= start <= start + size <= self.size:
            raise DeviceError(
                f"cannot look at elements {start} to {start + size} of {self!r}",
                f"it has {self.size}",
            )
        made = object.__new__(Buffer)
        made.device, made.dtype, made.size = self.device, self.dtype, size
        made.nbytes = size * self.dtype.itemsize
        made.address = self.address + start * self.dtype.itemsize
        made.array = self.array[start : start + size]
        return made


class BufferPool:
    """Blocks of memory that are free to be used again, by size.

    Units: limit_bytes bounds what is kept; beyond it blocks go back to the system.
    """

    def __init__(self, limit_bytes: int = 512 << 20):
        self.limit_bytes = limit_bytes
        self.kept_bytes = 0
        self._used_bytes = 0
        self._free: dict[int, list[_Block]] = {}
        self._returned: deque[_Block] = deque()
        self._lock = free_lock()

    @property
    def used_bytes(self) -> int:
        """Bytes of the blocks that somebody holds."""
        with self._lock:
            self._sort()
            return self._used_bytes

    def acquire(self, nbytes: int) -> _Block:
        """Return a block of at least `nbytes`: a kept one, or new memory."""
        size = size_class(nbytes)
        with self._lock:
            self._sort()
            blocks = self._free.get(size)
            if blocks:
                self.kept_bytes -= size
                self._used_bytes += size
                return blocks.pop()
        made = self._allocate(size)
        with self._lock:
            self._used_bytes += size
        return made

    def release(self, block: _Block) -> None:
        """Take a block back. Safe anywhere, even inside a garbage collection that interrupts
        this very class: if the lock is taken, whoever holds it or comes next sorts it in."""
        self._returned.append(block)
        if not self._lock.locked():
            with self._lock:  # no Ctrl-C comes between taking it and the block
                self._sort()

    def clear(self) -> None:
        """Give all kept memory back to the system."""
        with self._lock:
            self._sort()
            self._free.clear()
            self.kept_bytes = 0

    def _sort(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            self._used_bytes -= block.size
            if self.kept_bytes + block.size <= self.limit_bytes:
                self._free.setdefault(block.size, []).append(block)
                self.kept_bytes += block.size

    def check_room(self, nbytes: int) -> None:
        """Refuse, as DeviceError, what is more than there is; kept memory is given up for it.

        What is small for every machine is not asked about.
        """
        if nbytes < _CHECKED_BYTES:
            return
        available = available_bytes()
        if available is not None and nbytes > available:
            self.clear()
            available = available_bytes()
        if available is not None and nbytes > available:
            raise _too_large(nbytes, f"{_mib(available)} are free")

    def _allocate(self, size: int) -> _Block:
        self.check_room(size)
        try:
            return _Block(size)
        except (MemoryError, ValueError) as error:
            raise _too_large(size, "the system does not give that much") from error


class _Block:
    """A piece of memory whose first byte is aligned."""

    __slots__ = ("address", "memory", "size")

    def __init__(self, size: int):
        self.size = size
        self.memory = np.empty(size + ALIGNMENT_BYTES, np.uint8)
        start = self.memory.ctypes.data
        self.address: int = start + -start % ALIGNMENT_BYTES


class _Lease:
    """What owns the memory of a Buffer's array: when nothing looks into it, it goes back."""

    __slots__ = ("__array_interface__", "block", "pool")

    def __init__(self, pool: BufferPool, block: _Block, nbytes: int):
        self.pool, self.block = pool, block
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (block.address, False),
            "version": 3,
        }

    def __del__(self) -> None:
        self.pool.release(self.block)


pool = BufferPool()
"""The pool all Buffers share."""


def size_class(nbytes: int) -> int:
    """Return `nbytes` rounded up so that blocks fit again: at most an eighth is wasted."""
    if nbytes <= 8 * ALIGNMENT_BYTES:
        return max(1, -(-nbytes // ALIGNMENT_BYTES)) * ALIGNMENT_BYTES
    step = 1 << ((nbytes - 1).bit_length() - 4)
    return -(-nbytes // step) * step


def available_bytes() -> int | None:
    """Return how much memory can be had without swapping; None if the system does not say."""
    known = [n for n in (_system_available(), _container_available()) if n is not None]
    return min(known, default=None)


def _system_available() -> int | None:
    for name, amount in _pairs("/proc/meminfo"):
        if name == "MemAvailable:":
            return amount * 1024
    return None


def _container_available() -> int | None:
    """Return what a container's limit leaves (cgroup 2); file caches can be dropped."""
    root = "/sys/fs/cgroup"
    limit, used = _number(f"{root}/memory.max"), _number(f"{root}/memory.current")
    if limit is None or used is None:
        return None
    cached = dict(_pairs(f"{root}/memory.stat")).get("inactive_file", 0)
    return max(0, limit - used + cached)


def _number(path: str) -> int | None:
    try:
        with open(path) as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _pairs(path: str) -> Iterator[tuple[str, int]]:
    """Yield (word, number) of each line that begins so."""
    try:
        with open(path) as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        if len(words) > 1 and words[1].isdigit():
            yield words[0], int(words[1])


def _too_large(size: int, because: str) -> DeviceError:
    return DeviceError(
        f"cannot allocate {_mib(size)}",
        because,
        "smaller tensors, or delete those that are no longer needed",
    )


def _mib(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):,.0f} MiB"

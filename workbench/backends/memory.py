"""Memory of a device, and buffers in it.

Sections: The memory of a device; Buffers.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.base import recording
from workbench.base.dtypes import DType
from workbench.base.errors import DeviceError
from workbench.base.files import Unpicklable
from workbench.base.interrupts import free_lock, once, raised_after
from workbench.base.recording import note_memory, span

# --------------------------------------------------------------------------------------------------
# The memory of a device: the operations that Buffers need, and the pool of its blocks.
#
# Fresh memory is slow (a system clears each page on first touch, a driver takes its time), so
# blocks are used again. A block goes back to the pool when the last Buffer and the last numpy view
# on it are dead: a user may still have a `buffer.array`.

Bytes = NDArray[np.uint8]
_CHECKED_BYTES = 16 << 20
"""Least request that is compared with the free memory: the query takes long."""
REFUSED = "the system refuses that much memory"


class Memory(ABC):
    """Memory that kernels of a device read and write; a handle is a value that `allocate` returns.
    Devices that have the same Memory read each other's buffers.

    Units: bytes. The address of a block is a multiple of `alignment_bytes`, the offset of a Buffer
    in its block a multiple of `offset_bytes`.
    """

    alignment_bytes: int = 64
    offset_bytes: int = 1
    spare_limit_bytes: int = 512 << 20
    """Most bytes of unused blocks in the pool."""
    shares_host_memory: bool = False
    """Whether it is the memory that devices of this process share: they use it in place."""

    @abstractmethod
    def allocate(self, size_bytes: int, alignment_bytes: int) -> Any:
        """Return the handle of new memory, not initialised. Errors: MemoryError."""

    @abstractmethod
    def free(self, handle: Any) -> None:
        """Free memory: the handle is not used again."""

    @abstractmethod
    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        """Copy `data` of this process to memory, from `offset` bytes on."""

    @abstractmethod
    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        """Fill `data` with a copy of memory, from `offset` bytes on."""

    @abstractmethod
    def copy(
        self, target: Any, target_offset: int, source: Any, source_offset: int, size_bytes: int
    ) -> None:
        """Copy memory to other memory of the same device."""

    def adopt(self, data: Bytes) -> Any:
        """Return a handle for bytes of this process, used in place; None where the device cannot.
        `free` is not called for it."""
        return None

    def address(self, handle: Any) -> int:
        """Return the address of memory in this process; 0 where it has none."""
        return 0

    def available_bytes(self) -> int | None:
        """Return how many bytes are free; None where that is unknown."""
        return None

    @once
    def pool(self) -> BufferPool:
        """The pool of this memory's blocks."""
        return BufferPool(self, self.spare_limit_bytes)


class BufferPool:
    """The spare blocks of a memory, by size: they are used again.

    Units: limit_bytes is the most bytes of spare blocks; blocks beyond it are freed.
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
        """Take a block back. Safe anywhere, even inside a garbage collection that interrupts this
        class: if the lock is taken, its holder or the next caller adds the block to the pool."""
        self._returned.append(block)
        if not self._lock.locked():
            with self._lock:  # no Ctrl-C can come between the lock and the body
                self._sort()

    def clear(self) -> None:
        """Free all spare blocks."""
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
        """Errors: DeviceError if `nbytes` are not available, even without the pool's spare blocks.

        Requests below _CHECKED_BYTES are not checked.
        """
        if nbytes < _CHECKED_BYTES:
            return
        available = self.memory.available_bytes()
        if available is not None and nbytes > available:
            self.clear()
            available = self.memory.available_bytes()
        if available is not None and nbytes > available:
            raise too_large(nbytes, f"{_mib(available)} are free")

    def _allocate(self, size: int) -> Block:
        self.check_room(size)
        try:
            with span("memory", size):
                handle = self.memory.allocate(size, self.memory.alignment_bytes)
        except (MemoryError, ValueError) as error:
            raise too_large(size, REFUSED) from error
        return Block(handle, size, self.memory.address(handle))


class Block:
    """A piece of memory whose first byte is aligned."""

    __slots__ = ("address", "handle", "size")

    def __init__(self, handle: Any, size: int, address: int):
        self.handle, self.size, self.address = handle, size, address


class Lease:
    """The owner of a Block: when no Buffer and no array uses it, the block goes back to the
    pool. `is_shared`: another library uses the memory, too, and sees what is written there."""

    __slots__ = ("__weakref__", "block", "is_shared", "nbytes", "pool")

    def __init__(self, pool: BufferPool, nbytes: int):
        self.pool, self.nbytes, self.is_shared = pool, nbytes, False
        self.block = pool.acquire(nbytes)
        if recording.active:
            note_memory(self.block.size, id(self.block), pool.memory)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The bytes of a block with an address, for numpy, which has no name for bfloat16."""
        return {
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "data": (self.block.address, False),
            "version": 3,
        }

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "block") and not is_ending():  # at exit, the names here may be gone
            try:
                if recording.active:
                    note_memory(-self.block.size, id(self.block), self.pool.memory)
                self.pool.release(self.block)
            except KeyboardInterrupt:
                _ = [*raised_after()]


class Loan(Lease):
    """The owner of memory that is in no pool; it keeps `owner` alive."""

    __slots__ = ("owner",)

    def __init__(self, pool: BufferPool, handle: Any, nbytes: int, owner: Any = None):
        self.pool, self.owner, self.nbytes = pool, owner, nbytes
        self.is_shared = False
        self.block = Block(handle, nbytes, pool.memory.address(handle))

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Nothing goes back to the pool."""


memories: dict[str, Memory] = {}
"""The memory of each device, by its name."""


def memory_named(device: str) -> Memory:
    """Return the memory of a device. Errors: DeviceError for a name that no device has."""
    memory = memories.get(device)
    if memory is None:
        names = ", ".join(memories)
        raise DeviceError(
            f"no device {device!r:.60} has memory", f"the devices with memory are {names}"
        )
    return memory


def size_class(nbytes: int, step_bytes: int = 64) -> int:
    """Return `nbytes` rounded up for reuse of blocks, by an eighth or by `step_bytes` at most."""
    if nbytes <= 8 * step_bytes:
        return max(1, -(-nbytes // step_bytes)) * step_bytes
    step = 1 << ((nbytes - 1).bit_length() - 4)
    return -(-nbytes // step) * step


def too_large(size: int, because: str) -> DeviceError:
    """Return the error for `size` bytes that cannot be allocated."""
    return DeviceError(
        f"cannot allocate {_mib(size)}",
        because,
        "smaller tensors, or delete those that are no longer needed",
    )


def _mib(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):,.0f} MiB"


Array = NDArray[Any]
NO_COUNT = (0, 0)
_is_counted = (
    sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
)
_references_to: Callable[[object], int] | None = sys.getrefcount if _is_counted else None
"""The function that counts references exactly; None where several threads change them at once."""


# --------------------------------------------------------------------------------------------------
# Buffers: a number of elements in the memory of a device.


class Buffer(Unpicklable):
    """`size` elements of `dtype` in the memory of a device, not initialised.

    They begin `offset` bytes after the beginning of `handle`, the device's name for the memory.
    Where this process can read it, `array` is a 1-D numpy view of the elements, and `address`
    their address; else `address` is 0, and data are copied.
    Errors: DeviceError if there is not enough memory.
    """

    __slots__ = (
        "_lease", "address", "device", "dtype", "handle", "nbytes", "offset", "size"
    )  # fmt: skip

    def __init__(self, device: str, dtype: DType, size: int):
        if size < 0:
            raise DeviceError(f"cannot make a buffer of {size} elements", "a size is 0 or more")
        memory = memories.get(device) or memory_named(device)
        self.device, self.dtype, self.size = device, dtype, size
        self.nbytes: int = size * dtype.itemsize
        self._use(Lease(memory.pool, self.nbytes))

    def _use(self, lease: Lease) -> None:
        self._lease, block = lease, lease.block
        self.handle, self.offset, self.address = block.handle, 0, block.address

    def __repr__(self) -> str:
        return f"<Buffer {self.dtype}[{self.size}] on {self.device}>"

    @staticmethod
    def of(device: str, dtype: DType, values: Array) -> Buffer:
        """Return a Buffer that holds a copy of an array."""
        buffer = Buffer(device, dtype, values.size)
        buffer.copy_in(values)
        return buffer

    @staticmethod
    def over(device: str, dtype: DType, data: Bytes) -> Buffer | None:
        """Return a Buffer over `data`, bytes of this process, without a copy: both have one memory.
        None for no data, on a device that does not use this process's memory, and for elements
        that are not aligned."""
        memory = memories.get(device) or memory_named(device)
        handle = memory.adopt(data) if data.size else None
        if handle is None or memory.address(handle) % dtype.itemsize:
            return None
        loan = Loan(memory.pool, handle, data.size, data)
        return Buffer.on(loan, device, dtype, data.size // dtype.itemsize)

    @staticmethod
    def on(lease: Lease, device: str, dtype: DType, size: int) -> Buffer:
        """Return a Buffer of `size` elements at the beginning of the memory of `lease`."""
        buffer = object.__new__(Buffer)
        buffer.device, buffer.dtype, buffer.size = device, dtype, size
        buffer.nbytes = size * dtype.itemsize
        buffer._use(lease)
        return buffer

    @property
    def is_adopted(self) -> bool:
        """Whether its memory is that of another owner, such as a file."""
        return isinstance(self._lease, Loan)

    @property
    def memory(self) -> Memory:
        """The Memory that the Buffer is in."""
        return self._lease.pool.memory

    @property
    def owner(self) -> Lease:
        """The owner of the memory, which Buffers over parts of it share."""
        return self._lease

    @property
    def array(self) -> Array:
        """A view of the memory. Errors: DeviceError where this process cannot read it."""
        if not self.address:
            raise DeviceError(
                f"there is no view of {self!r}",
                f"the memory of {self.device} is not this process's",
                "to_numpy(), which copies it",
            )
        data = np.asarray(self._lease)[self.offset : self.offset + self.nbytes]
        return data.view(self.dtype.numpy)

    def copy_in(self, values: Array) -> None:
        """Copy an array of as many bytes to this memory."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._check_bytes(data.size, "an array")
        self.memory.copy_in(self.handle, self.offset, data)

    def to_numpy(self) -> Array:
        """Return a flat copy as a numpy array."""
        if self.address:
            return self.array.copy()
        values = np.empty(self.size, self.dtype.numpy)
        self.memory.copy_out(self.handle, self.offset, values.view(np.uint8))
        return values

    def as_array(self) -> Array:
        """Return the elements for reading: a view where this process can read the memory, else a
        copy."""
        return self.array if self.address else self.to_numpy()

    def copy_from(self, other: Buffer) -> None:
        """Copy another Buffer, of any device, to this one."""
        self._check_bytes(other.nbytes, repr(other))
        if self.memory is other.memory:
            self.memory.copy(self.handle, self.offset, other.handle, other.offset, self.nbytes)
        elif self.address:
            data = self.array.view(np.uint8)
            other.memory.copy_out(other.handle, other.offset, data)
        else:
            self.copy_in(other.as_array())

    def is_same_memory(self, other: Buffer) -> bool:
        """Whether two Buffers of one size are the same bytes."""
        return self._lease is other._lease and self.offset == other.offset

    def overlaps(self, other: Buffer) -> bool:
        """Whether two Buffers have bytes in common."""
        return (
            self._lease is other._lease
            and self.offset < other.offset + other.nbytes
            and other.offset < self.offset + self.nbytes
        )

    def window(self, start: int, size: int) -> Buffer:
        """Return `size` elements from `start` on as a Buffer over the same memory, which is freed
        when both are dead."""
        if not 0 <= start <= start + size <= self.size:
            raise DeviceError(
                f"cannot use elements {start} to {start + size} of {self!r}", f"it has {self.size}"
            )
        if not self.has_window(start):
            raise DeviceError(
                f"cannot use elements {start} to {start + size} of {self!r}",
                f"a part must begin at a multiple of {self.memory.offset_bytes} bytes",
            )
        return self.part(start * self.dtype.itemsize, self.dtype, size)

    def part(self, offset: int, dtype: DType, size: int) -> Buffer:
        """Return `size` elements of any dtype from byte `offset` on as a Buffer over the same
        memory, which is freed when both are dead. Errors: DeviceError beyond the last byte."""
        nbytes = size * dtype.itemsize
        if not 0 <= offset <= offset + nbytes <= self.nbytes:
            raise DeviceError(
                f"cannot use bytes {offset} to {offset + nbytes} of {self!r}",
                f"it has {self.nbytes:,}",
            )
        part = object.__new__(Buffer)
        part.device, part.dtype, part.size, part.nbytes = (
            self.device, dtype, size, nbytes
        )  # fmt: skip
        part._lease, part.handle = self._lease, self.handle
        part.offset = self.offset + offset
        part.address = self.address + offset if self.address else 0
        return part

    def reference_counts(self) -> tuple[int, int]:
        """Return the numbers of references to this Buffer and to the owner of its memory, those of
        the call among them: NO_COUNT where Python does not count them, and while another library
        uses the memory. If they are what they were when nobody else knew the Buffer, nobody does.
        """
        lease = self._lease
        if _references_to is None or lease.is_shared:
            return NO_COUNT
        return _references_to(self), _references_to(lease)

    def has_window(self, start: int) -> bool:
        """Whether a part that begins at element `start` can be a Buffer of its own."""
        first_byte = self.offset + start * self.dtype.itemsize
        return first_byte % self.memory.offset_bytes == 0

    def _check_bytes(self, nbytes: int, what: str) -> None:
        if nbytes != self.nbytes:
            raise DeviceError(
                f"cannot copy {what} to {self!r}",
                f"it has {nbytes:,} bytes, and the buffer has {self.nbytes:,}",
            )

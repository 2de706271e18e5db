"""Memory for kernels: a number of elements in the memory of a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.backends.memory import Bytes, Lease, Loan, Memory, memories, memory_named
from workbench.base.dtypes import DType
from workbench.base.errors import DeviceError
from workbench.base.unpicklable import Unpicklable

Array = NDArray[Any]


class Buffer(Unpicklable):
    """`size` elements of `dtype` in the memory of a device, not initialised.

    They begin `offset` bytes after the beginning of `handle`, the device's own name for the memory.
    Where this process can read that memory, `array` is a 1-D numpy view of it, and `address` is its
    address; elsewhere `address` is 0, and data move by `copy_in` and `to_numpy` alone.
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
        """Return a Buffer whose memory is `data`, uint8 of this process, which is not copied: what
        is written to one is read in the other. None where that cannot be: the memory of the device
        is elsewhere, or an element would not be aligned."""
        memory = memories.get(device) or memory_named(device)
        handle = memory.adopt(data) if data.size else None
        if handle is None or memory.address(handle) % dtype.itemsize:
            return None
        loan = Loan(memory.pool, handle, data.size, data)
        return Buffer.on(loan, device, dtype, data.size // dtype.itemsize)

    @staticmethod
    def on(lease: Lease, device: str, dtype: DType, size: int) -> Buffer:
        """Return a Buffer of `size` elements on memory that has an owner."""
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
        """Copy an array, of as many elements and of the same item size, to this memory."""
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

    def overlaps(self, other: Buffer) -> bool:
        """Whether both have bytes of one memory in common."""
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
                f"cannot look at elements {start} to {start + size} of {self!r}",
                f"it has {self.size}",
            )
        if not self.has_window(start):
            raise DeviceError(
                f"cannot look at elements {start} to {start + size} of {self!r}",
                f"a part begins at a multiple of {self.memory.offset_bytes} bytes there",
            )
        return self.part(start * self.dtype.itemsize, self.dtype, size)

    def part(self, offset: int, dtype: DType, size: int) -> Buffer:
        """Return `size` elements of any dtype from byte `offset` on as a Buffer over the same
        memory, which is freed when both are dead. Errors: DeviceError where it ends before them."""
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

    def has_window(self, start: int) -> bool:
        """Whether a part that begins at element `start` can be a Buffer of its own."""
        place = self.offset + start * self.dtype.itemsize
        return place % self.memory.offset_bytes == 0

    def _check_bytes(self, nbytes: int, what: str) -> None:
        if nbytes != self.nbytes:
            raise DeviceError(
                f"cannot copy {what} to {self!r}",
                f"it has {nbytes:,} bytes, and there are {self.nbytes:,}",
            )
